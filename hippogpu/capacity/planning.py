"""The plan of an index: sizes, times, costs, and settings, all from counts by the formulas of this room."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from hippogpu.capacity.arrays import Array, index_files, served
from hippogpu.capacity.asking import BATCH, Question, held_bytes, questions
from hippogpu.capacity.counts import Counts
from hippogpu.capacity.devices import FREE_SHARE, Device, device_from_name
from hippogpu.capacity.encoders import PlannedEncoder
from hippogpu.capacity.fitting import Fit, fitted
from hippogpu.capacity.peaks import Peak, peaks
from hippogpu.capacity.stages import Stage, stages
from hippogpu.config import ExtractorName, IndexConfig, RunConfig, SearchConfig, with_values
from hippogpu.store.segments import row_bytes

SIZES_SHOWN = ("gpu:24", "gpu:80", "gpu:141", "cpu:24", "cpu:64")
"""Devices that every plan is held against, beside its own."""

TOO_LONG_S = 6 * 3600.0
"""An exact search of synonyms that takes longer is recommended as cells."""
_LEAST_BUDGET, _MOST_BUDGET = 256 * 2**20, 4 * 2**30
_INT32_ENDS = 2**31


class IndexPlan(NamedTuple):
    """What an index takes.

    files, served : arrays on disk, and those that questions read · stages, peaks : of a first build, on the device
    building_bytes: disk that a build needs beyond the files: encoded vectors that no commit holds yet
    log_bytes     : of the extraction log
    fits          : what serving takes of each device · settings : by table of the configuration, those recommended
    notes         : what ends or is not known at this size
    """

    counts: Counts
    encoder: PlannedEncoder
    device: Device
    files: list[Array]
    served: list[Array]
    stages: list[Stage]
    peaks: list[Peak]
    questions: list[Question]
    at_once: int
    building_bytes: int
    log_bytes: int
    fits: list[Fit]
    settings: Mapping[str, Mapping[str, str | int]]
    notes: list[str]


def plan_index(
    counts: Counts,
    encoder: PlannedEncoder,
    device: Device,
    *,
    config: IndexConfig = IndexConfig(),  # noqa: B008  (frozen)
    search: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
    extractor: ExtractorName = "spacy",
    diffused: bool = True,
) -> IndexPlan:
    """The plan of an index of those counts, built and served on the device."""
    width = encoder.width
    times = stages(counts, encoder, config, device, extractor=extractor, damping=search.damping, diffused=diffused)
    devices = [device_from_name(name, device.rates) for name in SIZES_SHOWN]
    fits = [fitted(counts, width, config, search, run, one, diffused=diffused) for one in [device, *devices]]
    return IndexPlan(
        counts,
        encoder,
        device,
        index_files(counts, width, config, diffused=diffused),
        served(counts, width, config, search, diffused=diffused),
        times,
        peaks(counts, width, config, run, diffused=diffused),
        questions(counts, width, config, search, device, budget_bytes=run.budget_bytes),
        max(1, run.budget_bytes // max(1, held_bytes(counts, "hippo2", walks=True))),
        _building_bytes(counts, width, config),
        counts.log_bytes,
        fits,
        _recommended(counts, fits[0], times, config, run, device),
        _notes(counts, times, fits[0]),
    )


def _building_bytes(counts: Counts, width: int, config: IndexConfig) -> int:
    """Vectors while they are encoded: in the type in which they will be stored, each beside the key of its text."""
    rows = (
        (counts.passages, config.passage_vectors),
        (counts.phrases, config.phrase_vectors),
        (counts.facts, config.fact_vectors),
    )
    return sum(count * row_bytes(kind, width) for count, kind in rows)


def _recommended(
    counts: Counts, fit: Fit, times: list[Stage], config: IndexConfig, run: RunConfig, device: Device
) -> dict[str, dict[str, str | int]]:
    """Settings that differ from the plan's own, by table of the configuration."""
    index: dict[str, str | int] = dict(fit.settings or {})
    synonyms = next(stage.seconds for stage in times if stage.name == "synonyms")
    if config.synonym_search == "exact" and (synonyms or 0.0) > TOO_LONG_S:
        index["synonym_search"] = "cells"
    spare = int(FREE_SHARE * device.memory_bytes) - fit.with_settings_bytes + run.budget_bytes
    budget = (
        max(_LEAST_BUDGET, min(BATCH * held_bytes(counts, "hippo2", walks=True), _MOST_BUDGET, spare // 2))
        // 2**20
        * 2**20
    )
    tables: dict[str, dict[str, str | int]] = {"index": index} if index else {}
    changes = budget > run.budget_bytes or spare < run.budget_bytes
    return tables | ({"run": {"budget_bytes": budget}} if changes else {})


def settings_toml(settings: Mapping[str, Mapping[str, str | int]]) -> str:
    """Settings as a configuration file has them; "" where there are none."""
    lines: list[str] = []
    for name, values in settings.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines)


def _notes(counts: Counts, times: list[Stage], fit: Fit) -> list[str]:
    """What ends or is not known at this size."""
    notes = []
    for what, rows in (("nodes", counts.nodes), ("facts", counts.facts), ("ids", counts.ids)):
        if rows >= _INT32_ENDS:
            most = counts.passages * (_INT32_ENDS - 1) // rows
            notes.append(
                f"{rows:,} {what} are more than 32-bit numbers count (2,147,483,647): one index of these proportions "
                f"ends at about {most:,} passages. Split the corpus into shards (docs/shards.md)."
            )
    if fit.settings is None:
        notes.append(
            f"Nothing makes this index fit {fit.device}: {fit.with_settings_bytes / 1e9:,.0f} GB are needed at the "
            "least. Take a larger device, or split the corpus into shards (docs/shards.md)."
        )
    unknown = [stage.name for stage in times if stage.seconds is None]
    if unknown:
        notes.append("Nothing is known of the speed of: " + ", ".join(unknown) + ". Name an encoder, or give --rates.")
    return notes


def with_recommended(config: IndexConfig, plan: IndexPlan) -> IndexConfig:
    """The configuration with the recommended settings of [index]."""
    return with_values(config, plan.settings.get("index", {}))
