"""The extraction of a run: shown on the way, and reported at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hippogpu.cli.extracting import SPACY, Chosen
from hippogpu.cli.output import Show, count_rows, note, note_list, people, table
from hippogpu.corpus import read_edges
from hippogpu.index import EdgeReport, Index
from hippogpu.llm import cost
from hippogpu.openie import ExtractionProgress, ExtractionReport, ReplayExtractor
from hippogpu.openie.statistics import LengthRow
from hippogpu.types import Refusal, UserEdge

_LENGTH_COLUMNS = {
    "passages": "passages",
    "without": "no triple",
    "failed": "failed",
    "triples_a_passage": "triples",
    "triples_a_100_words": "per 100 words",
    "dropped": "dropped",
}


def add_edges(writer: Index, files: Iterable[Path]) -> EdgeReport:
    """Takes the edges of all files into the index; what was refused of any is listed together."""
    edges: list[UserEdge] = []
    refused: list[Refusal] = []
    for file in files:
        read = read_edges(file)
        edges.extend(read.edges)
        refused.extend(read.refusals)
    report = writer.add_edges(edges)
    return report._replace(refused=(*refused, *report.refused))


def extract(
    writer: Index, chosen: Chosen, stop: Callable[[], bool], show: Show, *, retry_failed: bool, forced: bool
) -> ExtractionReport:
    """Reads what has no record yet, or all, and shows passages and tokens a second and the failures so far."""
    started = time.monotonic()

    def on_progress(so_far: ExtractionProgress, wanted: int) -> None:
        show("extract", so_far.ids, wanted, pace(so_far, time.monotonic() - started))

    return writer.extract(
        quarantine_after=chosen.config.quarantine_after,
        retry_failed=retry_failed,
        forced=forced,
        stop=stop,
        on_progress=on_progress,
    )


def pace(so_far: ExtractionProgress, seconds: float) -> str:
    """Passages and tokens a second, and failures, in one line."""
    seconds = max(seconds, 1e-9)
    parts = [f"{so_far.done / seconds:.1f}/s"]
    if so_far.usage.prompt:
        parts.append(f"tokens/s {so_far.usage.prompt / seconds:,.0f} in {so_far.usage.completion / seconds:,.0f} out")
    if so_far.failed:
        parts.append(f"{so_far.failed:,} failed")
    return ", ".join(parts)


def refusals_of(chosen: Chosen) -> tuple[Refusal, ...]:
    """The rows that a file of stored extractions could not be read from."""
    return tuple(chosen.extractor.refusals) if isinstance(chosen.extractor, ReplayExtractor) else ()


def extraction_value(chosen: Chosen, report: ExtractionReport) -> dict[str, Any]:
    """The report of an extraction as JSON."""
    value: dict[str, Any] = {
        "extractor": chosen.extractor.name if chosen.extractor else None,
        "extracted": report.done,
        "reused": report.reused,
        "failed": [{"id": id_, "reason": reason} for id_, reason in report.failed],
        "quarantined": [{"id": id_, "reason": reason} for id_, reason in report.quarantined],
        "untouched": report.untouched,
        "drops": dict(report.drops),
        "forced": report.forced or None,
        "seconds": round(report.seconds, 3),
        "passages_a_second": round(report.done / report.seconds, 3) if report.seconds else None,
        "by_length": [_length_value(row) for row in report.by_length],
        "records": dict(report.records),
        "log_damage": list(report.damage),
        "log_torn": None if report.torn is None else str(report.torn.moved_to),
    }
    return value | ({"model": _model_value(chosen, report)} if chosen.llm else {})


def _length_value(row: LengthRow) -> dict[str, Any]:
    rates = {name: round(getattr(row, name), 2) for name in ("triples_a_passage", "triples_a_100_words")}
    return row._asdict() | rates


def _model_value(chosen: Chosen, report: ExtractionReport) -> dict[str, Any]:
    """What the language model was asked, and what that costs where its prices are known."""
    assert chosen.llm is not None
    spent, prices = chosen.llm.spent, chosen.prices
    return {
        "name": chosen.llm.model,
        "endpoint": chosen.llm.endpoint,
        "requests": spent.requests,
        "tries": spent.tries,
        "remembered": spent.remembered,
        "failed": spent.failed,
        "tokens": report.usage._asdict(),
        "uncounted": spent.uncounted,
        "tokens_a_second": round(sum(report.usage[::2]) / report.seconds, 1) if report.seconds else None,
        "cost": round(cost(report.usage, prices), 6) if prices and not spent.uncounted else None,
        "notes": list(chosen.llm.notes),
    }


def show_extraction(value: dict[str, Any]) -> None:
    """The same as tables."""
    out = people()
    names = ("extracted", "reused", "failed", "quarantined", "untouched")
    counts = {name: len(value[name]) if isinstance(value[name], list) else value[name] for name in names}
    speed = f", {value['passages_a_second']:,.1f} passages/s" if value["extracted"] else ""
    tried = value["extracted"] or value["failed"]
    title = f"Extraction by {value['extractor']}{speed}" if tried else "Extraction: nothing was read"
    out.print(table(title, list(counts), [[f"{count:,}" for count in counts.values()]]))
    if value["records"]:
        out.print(table("Records by extractor", ["extractor", "passages"], _rows(value["records"])))
    if value["drops"]:
        out.print(table("Dropped from replies", ["reason", "count"], count_rows(value["drops"])))
    lengths = [row for row in value["by_length"] if row["passages"]]
    if value["extracted"] and lengths:
        rows = [[_length(row["most_words"]), *(f"{row[name]:,}" for name in _LENGTH_COLUMNS)] for row in lengths]
        out.print(table("By length", ["words", *_LENGTH_COLUMNS.values()], rows))
    if "model" in value and value["model"]["requests"]:
        _show_model(value["model"])


def _length(most_words: int | None) -> str:
    """The words of a range of lengths; None is the one without an end."""
    return "more" if most_words is None else f"to {most_words}"


def _rows(counts: Mapping[str, float]) -> list[list[str]]:
    return [[name, f"{count:,}"] for name, count in counts.items()]


def _show_model(model: dict[str, Any]) -> None:
    price = "unknown" if model["cost"] is None else f"{model['cost']:,.4f}"
    counts = {name: model[name] for name in ("requests", "tries", "remembered", "failed", "uncounted")}
    counts |= {f"{name} tokens": count for name, count in model["tokens"].items()}
    counts["tokens a second"] = model["tokens_a_second"]
    rows = _rows(counts)
    people().print(table(f"{model['name']} at {model['endpoint']}", ["what", "count"], [*rows, ["cost", price]]))
    for line in model["notes"]:
        people().print(line, markup=False)


def tell(chosen: Chosen, report: ExtractionReport, *, quiet: bool) -> None:
    """What a user should know of an extraction, on stderr: passages without a record, the logs, and who read."""
    note_list("Without extraction", [f"{id_}: {why}" for id_, why in report.failed])
    alone = [f"{id_}: {why}" for id_, why in report.quarantined]
    note_list("Left alone after repeated failures (--retry-failed tries them again)", alone)
    note_list("Damaged lines of extraction logs, passed over", report.damage)
    if report.forced and report.reused:
        note(
            f"Goes on with the forced reading of {report.forced}: {report.reused:,} passages were read since. To begin "
            "anew, give it up first: gc --unfinished.",
            quiet=quiet,
        )
    if report.torn is not None:
        size, place = report.torn
        note(f"The last line of the log was cut short: its {size:,} bytes were moved to {place}.", quiet=quiet)
    if chosen.extractor is not None:
        _tell_reader(chosen.extractor.name, report, quiet=quiet)


def _tell_reader(name: str, report: ExtractionReport, *, quiet: bool) -> None:
    """Why the extractor had nothing to read, or what a language model would have done otherwise."""
    others = " or ".join(other for other in report.records if other != name)
    if others and not (report.done or report.failed):
        note(f"Every passage keeps the record it has, by {others}. --force extract reads them anew.", quiet=quiet)
    if name.startswith(SPACY) and report.done:
        note(
            f"Read by {name}, without a language model: entities and the sentences they stand in. A language model "
            "states which relation holds between them, and reads other languages: --force extract with --url and "
            "--model. See docs/llm.md.",
            quiet=quiet,
        )
