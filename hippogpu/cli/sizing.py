"""The verb that says what an index of a size takes: plan index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from hippogpu.capacity import (
    TWO_CORES,
    Counts,
    IndexPlan,
    Rates,
    counted,
    device_from_name,
    encoder_from_name,
    foreseen,
    plan_index,
    proportions_of,
    rates_toml,
    read_rates,
    sample_of,
    sampled_proportions,
    settings_toml,
)
from hippogpu.cli import options
from hippogpu.cli.output import note, note_list, people, print_json, table
from hippogpu.config import Configs, ExtractorName, IndexConfig, read_configs
from hippogpu.corpus import read_corpus
from hippogpu.embed import embedder_from_name
from hippogpu.errors import UsageError
from hippogpu.openie import Extractor, ReplayExtractor
from hippogpu.store import current_manifest
from hippogpu.types import Refusal

_GB, _LEAST_SHOWN = 1e9, 0.001


class Planned(NamedTuple):
    """What the plan is of: counts, where their proportions come from, and what of a sample was not taken."""

    counts: Counts
    proportions: str
    refused: list[Refusal]


def index(
    passages: Annotated[int | None, typer.Option("--passages", help="Passages of the index.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="An encoder, or the width of its vectors.")
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="NAME", help="cpu, cpu:GIB, a card (l4, h100, h200, …), or gpu:GB.")
    ] = "cpu",
    like: Annotated[
        Path | None, typer.Option("--like", metavar="DIR", help="Take proportions, encoder and settings of an index.")
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option("--corpus", metavar="FILE", help="Take proportions of a sample of it.")
    ] = None,
    sample: Annotated[int, typer.Option("--sample", min=16, help="How many passages of CORPUS are read.")] = 400,
    extractor: options.Extractor = None,
    openie: options.OpenIe = None,
    diffuse: options.Diffuse = "always",
    rates: Annotated[Path | None, typer.Option("--rates", metavar="FILE", help="TOML with rates of a machine.")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure the rates of this machine first.")] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what an index takes: memory by array, disk by file, time by stage, cost of a question, what fits where.

    Counts are in the papers' proportions, those of an index (--like), or those of a sample (--corpus). What would make
    the index fit the device is printed as a configuration to paste. Nothing is built.

    \b
    hippogpu plan index --passages 1000000 --encoder minilm --device cpu:24
    hippogpu plan index --passages 10000000 --encoder 1024 --device h200 --json
    """
    if like is not None and corpus:
        raise UsageError("--like and --corpus both say how large things are. Give one of them.")
    configs, manifest = read_configs(config), current_manifest(like) if like else None
    encoder = encoder or (str(manifest.encoder.width) if manifest else "minilm")
    settings = configs.index or (manifest.config if manifest else IndexConfig())
    kind: ExtractorName = "replay" if openie else extractor or "spacy"
    known = _rates(rates, encoder, measure=measure, quiet=quiet)
    if manifest is not None:
        planned = _like(counted(manifest), passages, str(like))
    elif corpus:
        planned = _sampled(corpus, sample, passages, configs, kind, openie)
    elif passages is None:
        raise UsageError("For how many passages? Give --passages N, or --like DIR, or --corpus FILE.")
    else:
        planned = Planned(foreseen(passages), "published (MuSiQue)", [])
    plan = plan_index(
        planned.counts,
        encoder_from_name(encoder),
        device_from_name(device, known),
        config=settings,
        search=configs.search,
        run=configs.run,
        extractor="spacy" if kind == "auto" else kind,
        diffused=diffuse != "never",
    )
    if json:
        print_json(plan_value(plan) | {"proportions": planned.proportions, "refused": list(map(str, planned.refused))})
    else:
        _show(plan, planned.proportions)
        if measure:
            people().print("Rates of this machine, for --rates FILE:\n\n" + rates_toml(known), markup=False)
    note_list("Refused", list(map(str, planned.refused)))
    if planned.refused:
        raise typer.Exit(1)


def _rates(path: Path | None, encoder: str, *, measure: bool, quiet: bool) -> Rates:
    if path is not None and measure:
        raise UsageError("--rates and --measure both say how fast the machine is. Give one of them.")
    if path is not None:
        return read_rates(path)
    if not measure:
        return TWO_CORES
    # Numba and an encoder's weights are loaded only to be measured.
    from hippogpu.capacity.measuring import measured_rates

    note("Measuring this machine: some ten seconds.", quiet=quiet)
    return measured_rates(embedder_from_name(encoder) if encoder == "minilm" else None)


def _like(held: Counts, passages: int | None, name: str) -> Planned:
    """The counts of the index itself, or of another size in its proportions."""
    same = passages is None or passages == held.passages
    counts = held if same or passages is None else foreseen(passages, proportions_of(held))
    return Planned(counts, f"those of '{name}'", [])


def _sampled(
    corpus: list[Path],
    sample: int,
    passages: int | None,
    configs: Configs,
    kind: ExtractorName,
    openie: Path | None,
) -> Planned:
    reading = read_corpus(corpus)
    sampled = sample_of(reading.passages, sample)
    extractor = _reader(kind, openie, configs)
    config, size = configs.index or IndexConfig(), passages or sampled.whole
    found = sampled_proportions(sampled, extractor, config, passages=size)
    read = "texts alone" if extractor is None else f"read by {extractor.name}"
    return Planned(
        foreseen(size, found), f"a sample of {len(sampled.passages):,} of {sampled.whole:,}, {read}", reading.refusals
    )


def _reader(kind: ExtractorName, openie: Path | None, configs: Configs) -> Extractor | None:
    """What reads a sample: stored records or spaCy; no language model is asked for an estimate."""
    if openie is not None:
        return ReplayExtractor(openie)
    if kind not in ("auto", "spacy"):
        return None
    from hippogpu.openie.spacy import SpacyExtractor

    return SpacyExtractor(configs.extract.spacy_model)


def plan_value(plan: IndexPlan) -> dict[str, Any]:
    """A plan as plain values, for JSON."""
    return {
        "passages": plan.counts.passages,
        "encoder": {"name": plan.encoder.name, "width": plan.encoder.width},
        "device": {"name": plan.device.name, "memory_bytes": plan.device.memory_bytes},
        "counts": asdict(plan.counts) | {"nodes": plan.counts.nodes, "nonzeros": plan.counts.nonzeros},
        "disk": {
            "files": {array.name: array.bytes for array in plan.files},
            "bytes": sum(array.bytes for array in plan.files),
            "while_building_bytes": plan.building_bytes,
            "log_bytes": plan.log_bytes,
        },
        "memory": {
            "arrays": {array.name: array.bytes for array in plan.served},
            "bytes": sum(array.bytes for array in plan.served),
            "questions_at_once": plan.at_once,
        },
        "stages": [stage._asdict() for stage in plan.stages],
        "peaks": [peak._asdict() for peak in plan.peaks],
        "questions": [question._asdict() for question in plan.questions],
        "fits": [fit._asdict() | {"settings": fit.settings and dict(fit.settings)} for fit in plan.fits],
        "settings": {name: dict(values) for name, values in plan.settings.items()},
        "toml": settings_toml(plan.settings),
        "rates": asdict(plan.device.rates),
        "notes": plan.notes,
    }


def _show(plan: IndexPlan, proportions: str) -> None:
    out, counts = people(), plan.counts
    title = f"{counts.passages:,} passages, {plan.encoder.name} (width {plan.encoder.width}), {plan.device.name}"
    rows = [[name.replace("_", " "), f"{value:,}"] for name, value in asdict(counts).items()]
    rows += [["nodes", f"{counts.nodes:,}"], ["non-zeros", f"{counts.nonzeros:,}"]]
    out.print(table(f"{title}; proportions: {proportions}", ["count", "about"], rows))
    out.print(table("Disk and memory, GB", ["array", "rows", "columns", "bytes each", "disk", "served"], _arrays(plan)))
    out.print(table("Building", ["stage", "time", "host memory, GiB", "work"], _stages(plan)))
    took = ["method", "solver", "ms alone", "batch", "ms in it", "MB held"]
    out.print(table(f"A question; {plan.at_once:,} walk together under the budget", took, _questions(plan)))
    out.print(table("What it works on", ["method", "solver", "GB of vectors", "GFLOP", "edges, 1e6"], _work(plan)))
    out.print(table("Serving fits", ["device", "GB needed", "as it is", "with these settings", "GB then"], _fits(plan)))
    for line in plan.notes:
        note(line)
    if plan.settings:
        out.print("Recommended, for --config FILE:\n\n" + settings_toml(plan.settings), markup=False)


def _arrays(plan: IndexPlan) -> list[list[str]]:
    """A row an array, those that are served and no files at the end; then what they sum to."""
    served = {array.name: array.bytes for array in plan.served}
    on_disk = {array.name for array in plan.files}
    rows = []
    for array in [*plan.files, *(array for array in plan.served if array.name not in on_disk)]:
        sizes = (array.bytes if array.name in on_disk else 0, served.get(array.name, 0))
        rows.append([array.name, f"{array.rows:,}", f"{array.columns:,}", str(array.item_bytes), *map(_gb, sizes)])
    rows.append(["extraction log", "", "", "", _gb(plan.log_bytes), "-"])
    rows.append(["vectors not committed yet", "", "", "", _gb(plan.building_bytes), "-"])
    whole = sum(array.bytes for array in plan.files) + plan.log_bytes + plan.building_bytes
    rows.append(["all, at the most", "", "", "", _gb(whole), _gb(sum(served.values()))])
    return rows


def _stages(plan: IndexPlan) -> list[list[str]]:
    held = {peak.stage: f"{peak.bytes / 2**30:,.1f}" for peak in plan.peaks}
    return [[stage.name, _time(stage.seconds), held.get(stage.name, "-"), stage.work] for stage in plan.stages]


def _questions(plan: IndexPlan) -> list[list[str]]:
    return [
        [
            question.method,
            question.solver,
            f"{question.alone_ms:,.1f}",
            f"{question.batch:,}",
            f"{question.batch_ms:,.1f}",
            f"{question.held_bytes / 1e6:,.0f}",
        ]
        for question in plan.questions
    ]


def _work(plan: IndexPlan) -> list[list[str]]:
    return [
        [
            question.method,
            question.solver,
            _gb(question.vector_bytes),
            f"{question.flops / 1e9:,.1f}",
            f"{question.edges / 1e6:,.1f}",
        ]
        for question in plan.questions
    ]


def _fits(plan: IndexPlan) -> list[list[str]]:
    return [
        [
            fit.device,
            _gb(fit.needed_bytes),
            "yes" if fit.fits else "no",
            _named(fit.settings),
            _gb(fit.with_settings_bytes),
        ]
        for fit in plan.fits
    ]


def _named(settings: Mapping[str, str] | None) -> str:
    if settings is None:
        return "none of those known"
    return ", ".join(f"{name} = {value}" for name, value in settings.items()) or "-"


def _gb(count: int) -> str:
    value = count / _GB
    return "-" if value == 0 else f"{value:,.3f}" if value >= _LEAST_SHOWN else "0.001"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
