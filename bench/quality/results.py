"""The stored results: sets measured at different times in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippogpu.evaluate.places import write_text

RESULTS = Path(__file__).resolve().parents[1] / "results" / "quality.json"
# results · sets · a set · its rows: each row stands on a line.
_OPENED = 4
# Rows stay together only when these are equal: the same questions on the same index.
_IDENTITY = ("questions", "gold_pairs", "level", "records", "index", "k")


def read_results(path: Path) -> dict[str, Any]:
    """What is stored; empty results when there is no file."""
    if not path.is_file():
        return {"bench": "quality", "published": {}, "sets": {}}
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return stored


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """The results as JSON, a line a row, so that a change of one shows as one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, _opened(results, _OPENED) + "\n")


def _opened(value: Any, levels: int, indent: str = "\n") -> str:
    """JSON with a line for each key of the outermost levels of mappings."""
    if not levels or not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    pairs = (f"{json.dumps(key, ensure_ascii=False)}: {_opened(one, levels - 1, inner)}" for key, one in value.items())
    return "{" + inner + ("," + inner).join(pairs) + indent + "}"


def merged(results: Mapping[str, Any], name: str, found: Mapping[str, Any], published: Any) -> dict[str, Any]:
    """The results with a set's rows put in: rows of another index or of other questions go, as they would not compare.

    Of a set that was measured in part, the rows of before keep their place and their figures.
    """
    sets = dict(results["sets"])
    before = sets.get(name)
    value = dict(found)
    if before is not None and all(before.get(key) == found.get(key) for key in _IDENTITY):
        for part in ("errors", "cases"):
            if part in before or part in found:
                value[part] = {**before.get(part, {}), **found.get(part, {})}
        rows = {row: _with_speed(one, before["rows"].get(row, {})) for row, one in found["rows"].items()}
        value["rows"] = {**before["rows"], **rows}
        checks = {check["name"]: check for check in [*before["checks"], *found["checks"]]}
        value["checks"] = list(checks.values())
        value["not_run"] = [
            row for row in found["order"] if row in {*before["not_run"], *found["not_run"]} - value["rows"].keys()
        ]
    sets[name] = value
    return {**results, "published": published, "sets": sets}


def _with_speed(row: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The row; a run that timed nothing keeps the speed of an earlier one of the same settings."""
    kept = before.get("queries_per_s") if before.get("settings") == row.get("settings") else None
    return {**row, "queries_per_s": kept} if kept and "queries_per_s" not in row else dict(row)
