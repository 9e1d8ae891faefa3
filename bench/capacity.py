"""python -m bench capacity: what `plan index` foretells of the indexes of the scale bench, beside what they took."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.capacity import PUBLISHED, Counts, IndexPlan, device_from_name, encoder_from_name, foreseen, plan_index
from hippogpu.capacity.counts import WORDS_POWER, text_table_bytes
from hippogpu.config import IndexConfig, with_values

RESULTS, PROCESSOR, PAGE = (
    Path("bench/results/scale.json"),
    Path("bench/results/capacity.json"),
    Path("docs/capacity.md"),
)
"""Indexes of the scale bench; and two that were made on a machine that was never quiet, timed by the processor."""

BYTES_WITHIN, TIMES_WITHIN = 0.2, 2.0
QUIET, LEAST_S, LEAST_MS, LEAST_BYTES, LEAST_PROCESSOR_S = 2.5, 2.0, 1.0, 2**28, 5.0
"""Times count where the load before was less; shorter ones are start-up, smaller peaks are the program's own."""
_BLOCK = re.compile(r"(<!-- capacity tables -->\n).*(<!-- /capacity tables -->)", re.DOTALL)


class Row(NamedTuple):
    """A figure that was foretold and measured. held: whether it must be within the limits (a time of a quiet run)."""

    case: str
    what: str
    unit: str
    planned: float
    measured: float
    held: bool

    @property
    def ratio(self) -> float:
        return self.planned / self.measured

    @property
    def within(self) -> bool:
        if self.unit == "bytes":
            return abs(self.ratio - 1) <= BYTES_WITHIN
        return 1 / TIMES_WITHIN <= self.ratio <= TIMES_WITHIN


def capacity() -> None:
    """Write the tables of docs/capacity.md that hold the plans to the measurements of bench/results/scale.json."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), *stored_results(Path())), encoding="utf-8")


def stored_results(root: Path) -> list[Mapping[str, Any]]:
    """The results that are there, under the root of a checkout."""
    paths = [root / path for path in (PROCESSOR, RESULTS)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def with_tables(text: str, *results: Mapping[str, Any]) -> str:
    return _BLOCK.sub(lambda found: f"{found[1]}\n{tables(*results)}\n{found[2]}", text)


def rows(results: Mapping[str, Any]) -> list[Row]:
    """Every figure of every index that was made and passed its checks: disk, memory, stages, questions."""
    return [row for name, case in results.get("cost", {}).items() if case["passed"] for row in _rows(name, case)]


def _rows(name: str, case: Mapping[str, Any]) -> Iterator[Row]:
    plan = plan_of(case)
    planned = {array.name: array.bytes for array in plan.files}
    held = {role: size for role, size in case["file_bytes"].items() if role in planned}
    yield Row(name, "disk, all files", "bytes", sum(planned[role] for role in held), sum(held.values()), held=True)
    alone = plan_of(case, foreseen(case["passages"]))
    foretold = sum(array.bytes for array in alone.files if array.name in held)
    yield Row(name, "disk, from the number of passages alone", "bytes", foretold, sum(held.values()), held=True)
    yield from _building(name, case, plan)
    yield from _questions(name, case, plan)


def _building(name: str, case: Mapping[str, Any], plan: IndexPlan) -> Iterator[Row]:
    took, quiet = case["stages"]["index"], case["stages"]["index"]["load_before"] < QUIET
    peaks = {peak.stage: peak.bytes for peak in plan.peaks}
    for stage in plan.stages:
        seconds = took["stages_s"].get(stage.name)
        if stage.name == "diffuse" and "diffuse" in case["stages"]:
            seconds, quiet = case["stages"]["diffuse"]["wall_s"], case["stages"]["diffuse"]["load_before"] < QUIET
        if stage.seconds is not None and seconds is not None and seconds >= LEAST_S:
            yield Row(name, stage.name, "s", stage.seconds, seconds, held=quiet)
    for stage in plan.stages:
        spent = took.get("processor_s", {}).get(stage.name, 0.0)
        if stage.seconds is not None and spent >= LEAST_PROCESSOR_S:
            cores = plan.device.rates.cores
            yield Row(name, f"{stage.name}, processor time ÷ {cores:.0f}", "s", stage.seconds, spent / cores, held=True)
    whole, most = max(peaks.values()), took["anon_bytes"]
    if most >= LEAST_BYTES:
        # What an allocator keeps of what was freed is no formula's: shown, and not held.
        yield Row(name, "memory while it is built", "bytes", whole, most, held=False)


def _questions(name: str, case: Mapping[str, Any], plan: IndexPlan) -> Iterator[Row]:
    foretold = {f"{question.method} {question.solver}": question for question in plan.questions}
    for asked, found in case.get("questions", {}).items():
        solver = found.get("solver") or "none"
        question = foretold.get(f"{asked.split()[0]} {solver}")
        if question is None:
            continue
        quiet = case["stages"].get(f"ask {asked}", {}).get("load_before", QUIET) < QUIET
        for how, ms in (("single", question.alone_ms), ("batched", question.batch_ms)):
            if found[how]["median"] >= LEAST_MS:
                yield Row(name, f"{asked}, {how}", "ms", ms, found[how]["median"], held=quiet)


def plan_of(case: Mapping[str, Any], counts: Counts | None = None) -> IndexPlan:
    """The plan of an index that was made, from its settings and, unless others are given, its own counts."""
    settings = dict(case["settings"])
    encoder = encoder_from_name(settings.pop("encoder"))
    config = with_values(IndexConfig(), settings)
    return plan_index(counts or counts_of(case), encoder, device_from_name("cpu"), config=config, extractor="replay")


def counts_of(case: Mapping[str, Any]) -> Counts:
    """The counts of an index that was made; of its texts and of single arrays by the sizes of files."""
    counts, files = case["counts"], case["file_bytes"]
    rows = {name: counts[name] for name in ("ids", "passages", "phrases", "facts")}
    spare = foreseen(rows["passages"], PUBLISHED)

    def items(role: str, otherwise: int) -> int:
        return files[role] // 4 if role in files else otherwise

    def texts(role: str, columns: int, numbers: int) -> int:
        beside = text_table_bytes(0, rows[role], columns=columns, numbers=numbers)
        return max(0, files[role] - beside) if role in files else int(getattr(spare, f"{role}_bytes"))

    worded = "word_indptr" in files
    vocabulary = files["word_indptr"] // 8 if worded else round(PUBLISHED.vocabulary * rows["passages"] ** WORDS_POWER)
    return Counts(
        passages=rows["passages"],
        ids=rows["ids"],
        phrases=rows["phrases"],
        facts=rows["facts"],
        fact_pairs=counts["fact_pairs"],
        statements=items("statements", spare.statements),
        mentions=counts["mentions"],
        synonyms=counts["synonyms"],
        found=items("synonym_source", 2 * counts["synonyms"]),
        edges=counts["edges"],
        words=items("word_passages", spare.words),
        title_words=items("title_words", spare.title_words),
        vocabulary=vocabulary,
        word_bytes=max(0, files["words"] - 8 * vocabulary) if worded else round(PUBLISHED.word_bytes * vocabulary),
        log_bytes=spare.log_bytes,
        ids_bytes=texts("ids", 3, 1),
        passages_bytes=texts("passages", 2, 0),
        phrases_bytes=texts("phrases", 1, 0),
        facts_bytes=texts("facts", 2, 2),
    )


def tables(*results: Mapping[str, Any]) -> str:
    lines = ["| index | what | planned | measured | planned ÷ measured |", "|---|---|---|---|---|"]
    for row in (row for one in results for row in rows(one)):
        mark = "" if row.held else " (busy)" if row.unit != "bytes" else ""
        values = [f"{_shown(value, row.unit)}" for value in (row.planned, row.measured)]
        lines.append(f"| {row.case} | {row.what} | {values[0]} | {values[1]}{mark} | {row.ratio:.2f} |")
    return "\n".join([*lines, ""])


def _shown(value: float, unit: str) -> str:
    return f"{value / 2**20:,.0f} MiB" if unit == "bytes" else f"{value:,.3g} {unit}"
