"""What a commit costs as an index grows: python -m bench growth CORPUS... --openie FILE..."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
import typer
from rich.console import Console

from bench.checks import Check, all_passed, equal
from bench.growing import AllSeen, Commit, files_of, grow, one_commit
from bench.measure import spread
from bench.report import machine, print_checks, print_rows, write_json
from bench.stored import Stored, read_stored
from hippogpu.config import DiffuseRule
from hippogpu.embed import embedder_from_name
from hippogpu.errors import UsageError

MARKS = (10, 100, 500, 1000, 2000, 4000)
SHARES_OF = (1000, 4000)
# Commits on each side of a mark whose times are taken together.
_NEAR = 2
# Stages that are not one look at each thing there is; diffusion walks the whole graph, as often as the rule says.
NOT_LINEAR = ("synonyms", "diffuse")


def growth(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders of passages.")],
    openie: Annotated[list[Path], typer.Option("--openie", metavar="FILE", help="Their extractions, one a corpus.")],
    batch: Annotated[int, typer.Option("--batch", min=1, help="Passages a commit.")] = 10,
    passages: Annotated[int, typer.Option("--passages", min=2, help="Passages in the end.")] = 4000,
    encoder: Annotated[str, typer.Option("--encoder", metavar="NAME", help="hashing:WIDTH or minilm.")] = "hashing:384",
    diffuse: Annotated[
        list[str] | None, typer.Option("--diffuse", help="Rule of the commits, auto or never; repeatable (never).")
    ] = None,
    work: Annotated[
        Path | None, typer.Option("--work", metavar="DIR", help="Where indexes are made (a temporary folder).")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the result here.")] = None,
) -> None:
    """Grow an index by small batches, and beside it build indexes of the same passages in one commit.

    Exit 1 when a grown index is not, file for file, the one built at once: then no time is reported.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    stored = read_stored(corpora, openie)
    if len(stored.passages) < passages:
        raise UsageError(f"The corpora hold {len(stored.passages)} passages with an extraction, fewer than {passages}.")
    marks = [mark for mark in MARKS if batch <= mark < passages] + [passages]
    result: dict[str, Any] = {
        "bench": "growth",
        "machine": machine(),
        "corpora": [path.name for path in corpora],
        "settings": {"batch": batch, "passages": passages, "encoder": encoder},
        "rules": {},
    }
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for rule in _rules(diffuse):
            checks += _measure(result, Path(folder), stored, marks, rule)
        if all_passed(checks):
            result["shares"] = [_share(Path(folder), stored, encoder, size) for size in _shares(len(stored.passages))]
    result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
    print_checks(checks, console)
    if result["passed"]:
        show(result, console)
    else:
        del result["rules"]
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def _rules(given: Sequence[str] | None) -> list[DiffuseRule]:
    names = {rule: rule for rule in get_args(DiffuseRule)}
    unknown = [name for name in given or () if name not in names]
    if unknown:
        raise UsageError(f"--diffuse must be one of {', '.join(names)}. Got '{unknown[0]}'.")
    return [names[name] for name in given or ["never"]]


def _measure(
    result: dict[str, Any], folder: Path, stored: Stored, marks: Sequence[int], rule: DiffuseRule
) -> list[Check]:
    """Puts one rule's figures into the result; the checks they depend on."""
    encoder, batch, passages = (result["settings"][name] for name in ("encoder", "batch", "passages"))
    # What is compiled at first use is not the first commit's.
    one_commit(folder / f"first-{rule}", stored, embedder_from_name(encoder), batch, diffuse=rule)
    seen = AllSeen(embedder_from_name(encoder))
    commits = grow(folder / f"grown-{rule}", stored, seen, batch=batch, passages=passages, diffuse=rule)
    shots = {
        mark: one_commit(folder / f"at-once-{rule}-{mark}", stored, embedder_from_name(encoder), mark, diffuse=rule)
        for mark in marks
    }
    # An encoder may round otherwise in other batches, so the check is built of the vectors that the growth has seen.
    again = folder / f"again-{rule}"
    one_commit(again, stored, seen, passages, diffuse=rule)
    result["counts"] = dict(shots[passages].counts)
    result["rules"][rule] = figures(commits, shots, marks, batch)
    grown, whole = files_of(folder / f"grown-{rule}"), files_of(again)
    differing = sorted(role for role in grown | whole if grown.get(role) != whole.get(role))
    what = "phrases, facts, vectors, synonyms, graph"
    return [
        equal(f"--diffuse {rule}: files ({what}) compared with those of one commit", len(grown), len(whole)),
        equal(f"--diffuse {rule}: files that differ", differing, []),
    ]


def figures(commits: Sequence[Commit], shots: Mapping[int, Commit], marks: Sequence[int], batch: int) -> dict[str, Any]:
    """Seconds a commit at each mark, whole and by stage, beside those of a build at once, and how they grow."""
    at = np.array([commit.passages for commit in commits])
    whole, linear = np.array([c.seconds for c in commits]), np.array([linear_seconds(c) for c in commits])
    rows = []
    for mark in marks:
        near = [commit for commit in commits if abs(commit.passages - mark) <= _NEAR * batch]
        stages = dict.fromkeys(stage for commit in near for stage in commit.stages)
        rows.append(
            {
                "passages": mark,
                "commit_s": spread([commit.seconds for commit in near]),
                "linear_s": spread([linear_seconds(commit) for commit in near]),
                "stages_s": {name: spread([c.stages.get(name, 0.0) for c in near]) for name in stages},
                "one_shot_s": round(shots[mark].seconds, 4),
                "one_shot_stages_s": {name: round(spent, 4) for name, spent in shots[mark].stages.items()},
            }
        )
    return {
        "commits": len(commits),
        "total_s": round(float(whole.sum()), 2),
        "one_shot_s": round(shots[marks[-1]].seconds, 2),
        "exponent": exponent(at, whole),
        "exponent_linear": exponent(at, linear),
        "marks": rows,
        "every_commit_s": [round(float(value), 4) for value in whole],
    }


def linear_seconds(commit: Commit) -> float:
    """The seconds of a commit without the stages that are not expected to look at all there is."""
    return commit.seconds - sum(commit.stages.get(name, 0.0) for name in NOT_LINEAR)


def exponent(at: np.ndarray[Any, Any], seconds: np.ndarray[Any, Any]) -> float | None:
    """The b of seconds = a·passages^b, by least squares of logarithms, from an eighth of the passages on."""
    late = at >= at[-1] / 8
    if late.sum() < 3:
        return None
    return round(float(np.polyfit(np.log(at[late]), np.log(seconds[late]), 1)[0]), 3)


def _share_of(size: int) -> int:
    """One in a hundred, rounded up."""
    return -(-size // 100)


def _shares(available: int) -> list[int]:
    return [size for size in SHARES_OF if size + _share_of(size) <= available]


def _share(folder: Path, stored: Stored, encoder: str, size: int) -> dict[str, Any]:
    """Adding one passage in a hundred to an index, beside building it at once, diffusion as by default in both."""
    root, more = folder / f"share-{size}", size + _share_of(size)
    one_commit(root, stored, embedder_from_name(encoder), size, diffuse="auto")
    added = one_commit(root, stored, embedder_from_name(encoder), more, diffuse="auto", start=size)
    whole = one_commit(folder / f"share-{size}-at-once", stored, embedder_from_name(encoder), more, diffuse="auto")
    return {
        "passages": size,
        "added": more - size,
        "added_s": round(added.seconds, 4),
        "added_stages_s": {name: round(spent, 4) for name, spent in added.stages.items()},
        "one_shot_s": round(whole.seconds, 4),
        "share_of_one_shot": round(added.seconds / whole.seconds, 4),
    }


def show(result: Mapping[str, Any], console: Console) -> None:
    """The figures as tables."""
    for rule, found in result["rules"].items():
        stages = list(dict.fromkeys(name for row in found["marks"] for name in row["stages_s"]))
        rows = [
            [
                *(row[name] for name in ("passages", "commit_s", "linear_s", "one_shot_s")),
                *(row["stages_s"][name]["median"] if name in row["stages_s"] else None for name in stages),
            ]
            for row in found["marks"]
        ]
        columns = ["passages", "a commit", "of which linear", "at once", *stages]
        print_rows(f"seconds, --diffuse {rule}; median (least–greatest)", columns, rows, console)
        console.print(
            f"{found['commits']} commits took {found['total_s']:,.1f} s, one of all {found['one_shot_s']:,.1f} s; "
            f"a commit grows as passages^{found['exponent']}, its linear stages as passages^{found['exponent_linear']}"
        )
    names = ("passages", "added", "added_s", "one_shot_s", "share_of_one_shot")
    rows = [[row[name] for name in names] for row in result["shares"]]
    print_rows("adding 1 %", ["passages", "added", "seconds", "at once", "share"], rows, console)
