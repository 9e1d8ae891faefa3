"""Runs: a file of questions to a file of rankings, in constant memory, resumed where it was cut."""

from __future__ import annotations

from hippogpu.runs.formats import Sink, format_of, ranking_value
from hippogpu.runs.identity import run_identity
from hippogpu.runs.write import Report, partial_folder, record_path, write_run

__all__ = [
    "Report",
    "Sink",
    "format_of",
    "partial_folder",
    "ranking_value",
    "record_path",
    "run_identity",
    "write_run",
]
