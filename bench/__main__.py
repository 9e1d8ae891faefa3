"""The one entry: python -m bench VERB."""

from __future__ import annotations

import typer

from bench.oracle.command import oracle
from bench.ppr.command import ppr, ppr_report
from bench.readme import readme

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
app.command("oracle")(oracle)
app.command("ppr")(ppr)
app.command("ppr-report")(ppr_report)
app.command("readme")(readme)


if __name__ == "__main__":
    app(prog_name="python -m bench")
