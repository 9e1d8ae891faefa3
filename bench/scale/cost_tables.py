"""Tables of what an index of each size costs, and of what was killed, from the stored results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hippogpu.evaluate.pages import Block, Heading, Rows, Text

GIB = 2**30
_COUNTED = ("passages", "phrases", "facts", "synonyms", "edges")

Stored = Mapping[str, Any]


def cost_blocks(results: Stored) -> list[Block]:
    """A case after the other: what it is, its stages beside what was foretold of them, and its questions."""
    blocks: list[Block] = []
    for name, case in sorted(results.get("cost", {}).items(), key=lambda item: (item[1]["passages"], item[0])):
        where, counts = case["machine"], case["counts"]
        told = ", ".join(f"{counts[what]:,} {what}" for what in _COUNTED if what in counts)
        settings = ", ".join(f"`{key} = {value}`" for key, value in case["settings"].items())
        loads = [stage["load_before"] for stage in case["stages"].values()]
        blocks += [
            Heading(name, 3),
            Text(
                f"{told}; {case['bytes'] / GIB:.2f} GiB on disk. {settings}. {where['cores']} cores, {where['date']}, "
                f"load before the stages {min(loads):.1f} to {max(loads):.1f}."
            ),
            *([] if case["passed"] else [Text(f"**Checks that failed: {_failed(case)}.**")]),
            stage_table(case),
            question_table(case),
        ]
    return blocks


def stage_table(case: Stored) -> Rows:
    """Time, memory and bytes of each stage; inside of `index` the seconds and the most memory of each step."""
    rows, foretold = [], case["predicted"]
    for name, stage in case["stages"].items():
        if name.startswith("ask "):
            continue
        cells = [_seconds(stage["wall_s"]), _seconds(foretold.get(name, {}).get("wall_s")), _seconds(stage["cpu_s"])]
        cells += [f"{stage[what] / GIB:.2f}" for what in ("anon_bytes", "peak_bytes", "written_bytes")]
        rows.append([name, *cells])
        for step, seconds in stage.get("stages_s", {}).items():
            before = foretold.get(f"{name}: {step}", {}).get("wall_s")
            held = stage.get("stages_peak_bytes", {}).get(step)
            memory = f"{held / GIB:.2f}" if held else "–"
            rows.append([f"{name}: {step}", _seconds(seconds), _seconds(before), "–", memory, "–", "–"])
    return Rows(["stage", "s", "foretold, s", "s of processor", "memory, GiB", "with files, GiB", "written, GiB"], rows)


def question_table(case: Stored) -> Rows:
    """Milliseconds a question by method and solver, and of the search of facts by store."""
    rows = []
    for name, said in case["questions"].items():
        if "single" in said:
            same = case["alike"].get(name)
            alike = f"{same['same_set']} of {same['questions']}" if same else ""
            gold = f"{said['gold_in_5']} of {said['of_batch']}"
            rows.append([name, *_times(said), f"{said['first_ms']:,.0f}", alike, gold])
            continue
        for store in ("every", "own"):
            if store in said:
                found = said[store]
                recall = f"recall of 5: {said['recall']['recall_5']:.3f}" if store == "own" and "recall" in said else ""
                rows.append([f"facts alone: {found['name']}", *_times(found), "–", recall, ""])
    columns = ["", "alone, ms", "p95", "a question of 32, ms", "alone, ms of processor", "of 32, ms of processor"]
    columns += ["first, ms", "first 20 as under power", "gold in 5"]
    return Rows(columns, rows)


def kill_blocks(results: Stored) -> list[Block]:
    """Every stage that was killed half-way, how long it took in all, and whether its index is the undisturbed one."""
    blocks: list[Block] = []
    for name, case in results.get("kills", {}).items():
        rows = [
            [
                row["stage"],
                *(_seconds(row[what]) for what in ("killed_after_s", "undisturbed_s", "wall_s")),
                ", ".join(row["differing"]) or "none",
            ]
            for row in case["kills"]
        ]
        columns = ["stage", "killed after, s", "undisturbed, s", "with the kill, s", "files that differ"]
        blocks += [Text(f"**{name}**"), Rows(columns, rows)]
    return blocks


def _times(said: Stored) -> list[str]:
    """By the clock, then by the processor: on a machine that other work shares only the latter says something."""
    single, batched = said["single"], said["batched"]
    clock = [single["median"], single["p95"], batched["median"]]
    return [*map(_ms, clock), *(_ms(times["cpu"]) if "cpu" in times else "–" for times in (single, batched))]


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _failed(case: Stored) -> str:
    return "; ".join(check["name"] for check in case["checks"] if not check["passed"])
