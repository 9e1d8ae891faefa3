"""Which settings make an index fit a device, and the settings that are recommended for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hippogpu.capacity.arrays import Array, served
from hippogpu.capacity.asking import held_bytes
from hippogpu.capacity.counts import Counts
from hippogpu.capacity.devices import FREE_SHARE, Device
from hippogpu.config import IndexConfig, RunConfig, SearchConfig, as_mapping, with_values

LADDER: tuple[Mapping[str, str], ...] = (
    {},
    {"fact_vectors": "float16", "phrase_vectors": "float16"},
    {"fact_vectors": "int8", "phrase_vectors": "float16"},
    {"fact_vectors": "int8", "phrase_vectors": "int8", "passage_vectors": "float16"},
    {"fact_vectors": "int8", "phrase_vectors": "int8", "passage_vectors": "int8"},
    {"fact_vectors": "int8", "phrase_vectors": "int8", "passage_vectors": "int8", "fact_search": "ivfpq"},
)
"""Settings in the order in which they are tried: each row gives up a little more for less memory."""

_HOST_ALONE = ("word", "title_words", "lengths", "first ids", "mention")
"""Beginnings of the names of arrays that stay with the host when a card serves."""


class Fit(NamedTuple):
    """What serving takes of a device: bytes of its memory, and whether that is there.

    settings : those of the ladder with which it fits first, {} where the plan's own do, None where none does
    """

    device: str
    memory_bytes: int
    needed_bytes: int
    fits: bool
    settings: Mapping[str, str] | None
    with_settings_bytes: int


def fitted(
    counts: Counts,
    width: int,
    config: IndexConfig,
    search: SearchConfig,
    run: RunConfig,
    device: Device,
    *,
    diffused: bool,
) -> Fit:
    """Whether the plan's own settings fit the device, else the first of the ladder that do."""

    def takes(settings: Mapping[str, str]) -> int:
        return needed_bytes(
            counts, width, with_values(config, settings), search, run, diffused=diffused, is_gpu=device.is_gpu
        )

    room, own = int(FREE_SHARE * device.memory_bytes), takes({})
    for settings in LADDER:
        size = takes(_not_larger(config, settings))
        if size <= room:
            changed = _not_larger(config, settings) if own > room else {}
            return Fit(device.name, device.memory_bytes, own, own <= room, changed, size if own > room else own)
    return Fit(device.name, device.memory_bytes, own, fits=False, settings=None, with_settings_bytes=size)


def needed_bytes(
    counts: Counts,
    width: int,
    config: IndexConfig,
    search: SearchConfig,
    run: RunConfig,
    *,
    diffused: bool,
    is_gpu: bool,
) -> int:
    """Bytes that serving needs where it computes: its arrays, and the budget or one question, whichever is more.

    A file that the host maps counts as memory: without it each question would read it from the disk.
    """
    arrays = served(counts, width, config, search, diffused=diffused)
    walks = not diffused and search.method not in ("dense", "bm25")
    work = max(run.budget_bytes, held_bytes(counts, search.method, walks=walks))
    return work + sum(array.bytes for array in arrays if _is_held(array, config, is_gpu=is_gpu))


def _is_held(array: Array, config: IndexConfig, *, is_gpu: bool) -> bool:
    """Whether an array must lie where it is computed with; of facts in cells the shortlist alone is read."""
    if config.fact_search == "ivfpq" and array.name in ("fact_vectors", "fact_scales"):
        return False
    return not (is_gpu and array.name.startswith(_HOST_ALONE))


_SMALLER = {"float32": 0, "float16": 1, "int8": 2, "exact": 0, "ivfpq": 1}


def _not_larger(config: IndexConfig, settings: Mapping[str, str]) -> Mapping[str, str]:
    """The settings that make something smaller than the configuration has it already."""
    own = as_mapping(config)
    return {name: value for name, value in settings.items() if _SMALLER[value] > _SMALLER[own[name]]}
