"""Readers beside a writer that commits all the time: python -m bench concurrent."""

from __future__ import annotations

import json as json_text
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from bench.checks import Check, all_passed, at_most, equal
from bench.measure import spread
from bench.readers.content import record_path
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.config import BackendName

# What a reader may hold more after the last generation than after the tenth: the noise of its memory allocator.
MEMORY_MIB = 32.0
_EARLY, _WAIT_S = 10, 600


class Case(NamedTuple):
    """So many processes of so many threads, on a backend, under one of numba's threading layers."""

    processes: int
    threads: int
    backend: BackendName = "cpu"
    layer: str = "omp"

    def __str__(self) -> str:
        return f"{self.processes} × {self.threads}, {self.backend}, {self.layer}"


CASES = (
    Case(1, 16),
    Case(1, 16, layer="workqueue"),
    Case(4, 1),
    Case(4, 1, layer="workqueue"),
    Case(1, 16, backend="reference"),
)


def concurrent(
    generations: Annotated[int, typer.Option("--generations", min=2, help="Commits beside the readers.")] = 50,
    passages: Annotated[int, typer.Option("--passages", min=24, help="Passages of the index.")] = 1000,
    work: Annotated[
        Path | None, typer.Option("--work", metavar="DIR", help="Where indexes are made (a temporary folder).")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the result here.")] = None,
) -> None:
    """Check, for threads and for processes, that every answer is wholly of one generation and that memory stays flat.

    Exit 1 when a check failed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    checks: list[Check] = []
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory(dir=work) as folder:
            seen = run_case(Path(folder), case, generations=generations, passages=passages)
        checks += checked(case, seen, generations)
        rows.append(figures(case, seen))
    result: dict[str, Any] = {
        "bench": "concurrent",
        "machine": machine(),
        "settings": {"generations": generations, "passages": passages},
        "passed": all_passed(checks),
        "checks": [check._asdict() for check in checks],
        "cases": rows,
    }
    print_checks(checks, console)
    show(result, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


class Seen(NamedTuple):
    """What the writer reports, what each reader reports, and the digests of each generation's own answers."""

    writer: Mapping[str, Any]
    readers: Sequence[Mapping[str, Any]]
    recorded: Mapping[str, Mapping[str, str]]


def run_case(folder: Path, case: Case, *, generations: int, passages: int) -> Seen:
    """Starts the writer, then the readers, lets all go, and ends the readers when the writer is done."""
    root = folder / "rewritten.hippo"
    writer = _start("bench.readers.writer", str(root), str(generations), str(passages), case.backend, layer=case.layer)
    readers = []
    try:
        _await(writer, "ready")
        for _ in range(case.processes):
            words = (str(root), str(case.threads), case.backend)
            readers.append(_start("bench.readers.reader", *words, layer=case.layer))
        for reader in readers:
            _await(reader, "reading")
        wrote = _finish(writer)
        read = [_finish(reader) for reader in readers]
    finally:
        for process in (writer, *readers):
            process.kill()
            process.wait()
    recorded = {
        str(generation): json_text.loads(record_path(root, generation).read_text(encoding="ascii"))
        for generation in range(1, generations + 1)
    }
    return Seen(wrote, read, recorded)


def checked(case: Case, seen: Seen, generations: int) -> list[Check]:
    """Every promise of the readers, over all of them."""
    readers = seen.readers
    digests = [
        (generation, key, value)
        for reader in readers
        for generation, found in reader["digests"].items()
        for key, values in found.items()
        for value in values
    ]
    wrong = sum(seen.recorded[generation][key] != value for generation, key, value in digests)
    early, late = held(seen)
    files = max(sample["maps"] for reader in readers for sample in reader["samples"][:1])
    return [
        equal(f"{case}: errors", [error for reader in readers for error in reader["errors"]], []),
        equal(f"{case}: answers unlike those of their generation", wrong, 0),
        equal(f"{case}: calls of more than one generation", sum(reader["mixed"] for reader in readers), 0),
        equal(f"{case}: generations going back", sum(reader["backwards"] for reader in readers), 0),
        equal(f"{case}: where readers end", sorted({last for r in readers for last in r["last"]}), [generations]),
        at_most(f"{case}: MiB more than early", (late["rss"] - early["rss"]) / 2**20, MEMORY_MIB),
        at_most(f"{case}: mapped files when all calls are over", max(r["end"]["maps"] for r in readers), 2 * files),
        at_most(f"{case}: open files more than at first", max(_opened(reader) for reader in readers), files),
    ]


def _opened(reader: Mapping[str, Any]) -> int:
    """Files that are open when all calls are over beyond those of the start."""
    return int(reader["end"]["files"]) - int(reader["samples"][0]["files"])


def held(seen: Seen) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What the reader that grew most held after the tenth generation (or half of them) and when all calls are over."""
    pairs = []
    for reader in seen.readers:
        samples = [*reader["samples"], reader["end"]]
        early = [sample for sample in samples if sample["generation"] >= min(_EARLY, len(seen.recorded) // 2)]
        pairs.append((early[0], reader["end"]))
    return max(pairs, key=lambda pair: pair[1]["rss"] - pair[0]["rss"])


def figures(case: Case, seen: Seen) -> dict[str, Any]:
    """One row of the table."""
    early, late = held(seen)
    return {
        **case._asdict(),
        "layer": seen.readers[0]["layer"],
        "questions": sum(reader["questions"] for reader in seen.readers),
        "questions_a_second": round(sum(r["questions"] / r["seconds"] for r in seen.readers), 1),
        "generations_seen": len({generation for reader in seen.readers for generation in reader["digests"]}),
        "commit_s": spread(seen.writer["commit_s"][1:]),
        "early": dict(early),
        "late": dict(late),
    }


def show(result: Mapping[str, Any], console: Console) -> None:
    """The figures as a table."""
    rows = [
        [
            f"{row['processes']} × {row['threads']}",
            *(row[name] for name in ("backend", "layer", "questions", "questions_a_second", "generations_seen")),
            row["commit_s"],
            *([round(row[when]["rss"] / 2**20) for when in ("early", "late")],),
            *([row[when][name] for when in ("early", "late")] for name in ("files", "maps")),
        ]
        for row in result["cases"]
    ]
    columns = [
        "processes × threads",
        "backend",
        "layer",
        "questions",
        "a second",
        "generations seen",
        "seconds a commit",
    ]
    print_rows(
        "readers; after the tenth generation / at the end",
        [*columns, "MiB", "open files", "mapped files"],
        rows,
        console,
    )


def _start(module: str, *words: str, layer: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _await(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != word:
        raise RuntimeError(f"A process said {said!r} where '{word}' was due, and ended with {process.wait(_WAIT_S)}.")


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Lets the process go on to its end; its report."""
    out, _ = process.communicate("go\n", timeout=_WAIT_S)
    if process.returncode:
        raise RuntimeError(f"A process ended with {process.returncode}.")
    report: dict[str, Any] = json_text.loads(out)
    return report
