"""The verbs: `hippogpu VERB --help` shows each with examples."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from importlib import metadata
from types import FrameType
from typing import ParamSpec

import typer

from hippogpu.cli import (
    answering,
    deleting,
    diffusing,
    evaluating,
    exchanging,
    indexing,
    inspecting,
    planning,
    reading,
    sizing,
)
from hippogpu.cli.output import complain
from hippogpu.errors import ConfigError, HippoError, MissingExtraError, UsageError

INTERRUPTED = 130
Arguments = ParamSpec("Arguments")

app = typer.Typer(
    name="hippogpu",
    help="Associative retrieval as sparse linear algebra: index a corpus, then rank passages for questions.",
    epilog="Exit codes: 0 done, 1 failed or partly failed, 2 wrong usage, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _plain(verb: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The verb, with the errors of our own tree and an interruption as one line and an exit code."""

    @functools.wraps(verb)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except (ConfigError, UsageError, MissingExtraError) as error:
            complain(str(error))
            raise typer.Exit(2) from error
        except HippoError as error:
            complain(str(error))
            raise typer.Exit(1) from error
        except BrokenPipeError as error:
            # Whoever read our output has enough of it; so has the interpreter, which would try to flush it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from error
        except OSError as error:
            complain(f"The system refused: {error}. Mend that, then run the same command again.")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            complain(
                "Interrupted. What was finished is kept, nothing is there by half, and an index is as its last commit "
                "left it: run the same command again to go on."
            )
            raise typer.Exit(INTERRUPTED) from error

    return run


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        typer.echo(metadata.version("hippogpu"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("index")(_plain(indexing.index))
app.command("delete")(_plain(deleting.delete))
app.command("diffuse")(_plain(diffusing.diffuse))
app.command("search")(_plain(answering.search))
app.command("eval")(_plain(evaluating.evaluate))
app.command("answer")(_plain(reading.answer))
app.command("info")(_plain(inspecting.info))
app.command("verify")(_plain(inspecting.verify))
app.command("gc")(_plain(deleting.gc))
app.command("export")(_plain(exchanging.export))
app.command("import")(_plain(exchanging.import_))
app.command("demo")(_plain(answering.demo))
planning.plan.command("extract")(_plain(planning.extract))
planning.plan.command("index")(_plain(sizing.index))
app.add_typer(planning.plan)
app.command("doctor")(_plain(inspecting.doctor))


def main() -> None:
    """Runs a verb and leaves with its exit code. SIGTERM is an interruption like Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    app()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
