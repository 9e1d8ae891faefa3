"""Runs a verb in process, for tests."""

from __future__ import annotations

from typing import NamedTuple

import typer
from typer.testing import CliRunner


class Ran(NamedTuple):
    """Exit code, standard output and standard error of a verb."""

    code: int
    out: str
    err: str


def run_verb(app: typer.Typer, *words: str) -> Ran:
    """The verb's outcome; an exception that no verb should let out is raised here."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "300"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)
