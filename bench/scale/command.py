"""python -m bench scale VERB."""

from __future__ import annotations

import json as json_text
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from bench.report import machine, print_rows, write_json
from bench.scale.asking import CASES
from bench.scale.cost import Runner, StageFailed, ask_case, build_case, limit_check
from bench.scale.kills import kill_case
from bench.scale.page import stored, write_page
from bench.scale.quality_command import QUALITY, measure_quality
from bench.scale.stages import BUILDING, COMPACT, EXACT, Case
from hippogpu.errors import HippoError, UsageError

RESULT = Path("bench/results/scale.json")
GIB = 2**30

app = typer.Typer(help="What an index of many passages costs, and what it still finds.", no_args_is_help=True)

Work = Annotated[Path, typer.Option("--work", metavar="DIR", help="Where everything is made and kept; resumes there.")]
Passages = Annotated[list[int], typer.Option("--passages", metavar="N", min=500, help="A size; repeatable.")]
Limit = Annotated[
    float, typer.Option("--memory-limit", metavar="GIB", help="A stage that holds more is killed, and the run fails.")
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", help=f"Merge the result into this file ({RESULT}).")
]


@app.command()
def cost(
    work: Work,
    passages: Passages,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="TOML with [index] instead of the compact settings."),
    ] = None,
    exact_up_to: Annotated[
        int, typer.Option("--exact-up-to", metavar="N", help="Up to this size the exact settings are measured too.")
    ] = 10_000,
    method: Annotated[
        list[str] | None, typer.Option("--ask", help=f"How to ask; repeatable ({', '.join(CASES)}).")
    ] = None,
    ask_again: Annotated[bool, typer.Option("--ask-again", help="Time questions anew that were timed before.")] = False,
    until: Annotated[
        str, typer.Option("--until", help=f"Stop behind this stage ({', '.join(BUILDING)}); all when not given.")
    ] = "",
    memory_limit: Limit = 20.0,
    json: Json = None,
) -> None:
    """Make an index of each size from a seeded corpus and ask it: time, memory and disk of every stage.

    Each stage is a process of its own. What is done is not done again; a stage that was killed goes on where it was.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    runner = Runner(work, limit_bytes=round(memory_limit * GIB), say=console.print)
    values = _values(settings)
    if until not in ("", *BUILDING):
        raise typer.BadParameter(f"--until must be one of {', '.join(BUILDING)}. Got '{until}'.")
    passed = True
    for size in sorted(set(passages)):
        cases = [Case(size, "compact", values)]
        if size <= exact_up_to:
            cases.insert(0, Case(size, "exact", EXACT))
        for case in cases:
            how = _How(tuple(method or CASES), until, ask_again, round(memory_limit * GIB))
            result = _measured(runner, case, how)
            if result is None:
                continue
            _merge(json or RESULT, "cost", case.name, result)
            _show(case, result, console)
            passed &= result["passed"]
    if not passed:
        raise typer.Exit(1)


class _How(NamedTuple):
    """How a case is measured, as the options say."""

    methods: Sequence[str]
    until: str
    ask_again: bool
    limit_bytes: int


def _measured(runner: Runner, case: Case, how: _How) -> dict[str, Any] | None:
    try:
        stages = build_case(runner, case, until=how.until or BUILDING[-1])
        if how.until:
            return None
        result = ask_case(runner, case, how.methods, stages, again=how.ask_again)
    except StageFailed as failed:
        Console(stderr=True).print(f"[bold red]error:[/] {failed}")
        raise typer.Exit(1) from failed
    check = limit_check(result, how.limit_bytes)
    command = f"python -m bench scale cost --work DIR --passages {case.passages}"
    return {
        "command": command,
        "machine": {**machine(), "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")},
        **result,
        "checks": [*result["checks"], check._asdict()],
        "passed": result["passed"] and check.passed,
    }


@app.command()
def kills(
    work: Work,
    passages: Annotated[int, typer.Option("--passages", metavar="N", min=500, help="The size.")] = 20_000,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="TOML with [index] instead of the compact settings."),
    ] = None,
    memory_limit: Limit = 20.0,
    json: Json = None,
) -> None:
    """Kill every long stage in its midst, let it go on, and compare the index with an undisturbed one by its files."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    case = Case(passages, "compact", _values(settings))
    result = kill_case(work, case, limit_bytes=round(memory_limit * GIB), say=console.print)
    _merge(json or RESULT, "kills", case.name, {"machine": machine(), **result})
    columns = ["stage", "killed after, s", "undisturbed, s", "with the kill, s", "files differing"]
    rows = [
        [row[name] for name in ("stage", "killed_after_s", "undisturbed_s", "wall_s", "differing")]
        for row in result["kills"]
    ]
    print_rows(f"kills at {passages:,} passages", columns, rows, console)
    if not result["passed"]:
        raise typer.Exit(1)


@app.command()
def quality(
    work: Work,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The sets' folders and 'scale'.")],
    sizes: Annotated[
        list[int] | None,
        typer.Option("--sizes", metavar="N", help="Passages; repeatable. Six sizes up to 50,000 when not given."),
    ] = None,
    exact_up_to: Annotated[
        int, typer.Option("--exact-up-to", metavar="N", help="Beyond this size synonyms are found by cells.")
    ] = 20_000,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Distractors in the second order: all of modern Wikipedia shuffled.")
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help=f"Put the cases into this file ({QUALITY}).")
    ] = None,
) -> None:
    """Ask real questions of an index of each size, its passages all real: what each method still finds.

    Every passage is read and encoded once, in a pool under the work folder. A case that was measured stays.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    console.print("A pool of 50,000 passages takes hours to encode on two cores; it goes on where it was killed.")
    try:
        passed = measure_quality(work, data, sizes, exact_up_to, mixed=mixed, path=json or QUALITY, console=console)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except HippoError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}")
        raise typer.Exit(1) from error
    if not passed:
        raise typer.Exit(1)


@app.command()
def report() -> None:
    """Write the generated parts of docs/scale.md and its plot over, from the stored results alone."""
    write_page(stored(RESULT), stored(QUALITY))


def _values(settings: Path | None) -> Mapping[str, Any]:
    if settings is None:
        return COMPACT
    found: dict[str, Any] = tomllib.loads(settings.read_text(encoding="utf-8")).get("index", {})
    return found


def _merge(path: Path, what: str, name: str, result: Mapping[str, Any]) -> None:
    """Puts one result beside those of other sizes, which stay."""
    held: dict[str, Any] = json_text.loads(path.read_text(encoding="utf-8")) if path.exists() else {"bench": "scale"}
    held.setdefault(what, {})[name] = dict(result)
    write_json(path, held)


def _show(case: Case, result: Mapping[str, Any], console: Console) -> None:
    foretold = result["predicted"]
    rows = [
        [
            name,
            stage["wall_s"],
            foretold.get(name, {}).get("wall_s"),
            stage["cpu_s"],
            stage["anon_bytes"] / GIB,
            stage["peak_bytes"] / GIB,
            stage["written_bytes"] / GIB,
        ]
        for name, stage in result["stages"].items()
    ]
    columns = ["stage", "s", "foretold, s", "processor, s", "memory, GiB", "with files, GiB", "written, GiB"]
    print_rows(case.name, columns, rows, console)
    inner = result["stages"]["index"]["stages_s"]
    print_rows("index", list(inner), [list(inner.values())], console)
    asked = [
        [name, said.get("first_ms"), said["single"]["median"], said["single"]["p95"], said["batched"]["median"]]
        for name, said in result["questions"].items()
        if "single" in said
    ]
    print_rows("milliseconds a question", ["method", "first", "alone", "alone, p95", "of 32"], asked, console)
    for check in result["checks"]:
        if not check["passed"]:
            console.print(f"[red]FAILED[/red] {check['name']}: {check['found']}, wanted {check['wanted']}")
