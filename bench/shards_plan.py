"""What an index past one machine takes: cards, bytes a card, and what a question sends between them."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.backends import steps_for
from hippogpu.capacity import Counts, device_from_name, encoder_from_name, foreseen, plan_index
from hippogpu.capacity.asking import PUSHED_EDGES
from hippogpu.capacity.devices import FREE_SHARE
from hippogpu.config import IndexConfig, SearchConfig
from hippogpu.diffuse import TOLERANCE

SIZES, WIDTHS, CARD = (10**7, 10**8, 10**9), (384, 1024), "h200"
CONFIG = IndexConfig(
    passage_vectors="int8", phrase_vectors="int8", fact_vectors="int8", synonym_search="cells", fact_search="ivfpq"
)
LINK_GBS = 50.0
"""A link of 400 Gb/s a card."""
# What a card keeps for work, and what a push sends for an edge that leads to another shard: a node and a mass.
_WORK_BYTES, _MESSAGE_BYTES = 4 * 2**30, 12
# Sizes are those of a million passages times as many: numbers inside a shard take four bytes, however many shards.
_PART = 10**6
_GRAPH = ("graph_indptr", "graph_indices", "graph_weights", "degrees")
_STAYS = ("fact_vectors", "fact_scales", "word", "title_words", "lengths", "first ids", "mention counts")
"""Arrays of the hosts: facts are scored again there, and words looked up."""


class Sharded(NamedTuple):
    """An index over many cards. Bytes and seconds of one question where nothing else is said.

    cards        : that its arrays take, phrases copied to each shard that mentions them
    card_gb      : of one card · phrase_gb: the whole graph of phrases, which each card would hold where it is copied
    power_gb     : that a walk sends, both ways, for the phrases that several shards have; power_ms on all links at once
    push_kb      : that a push of the phrase seeds sends; the passages' part needs no walk
    gather_kb    : five facts, extremes, and twenty passages of each shard
    products_ms  : reading the vectors of one card
    diffuse_h    : hours of links and cards for the diffused vectors, once · synonyms_h: hours of all cards by cells
    host_tb      : what the hosts hold together
    """

    passages: int
    width: int
    cards: int
    card_gb: float
    phrase_gb: float
    power_gb: float
    power_ms: float
    push_kb: float
    gather_kb: float
    products_ms: float
    diffuse_h: float
    synonyms_h: float
    host_tb: float


def sharded_plans(*, between: float) -> list[Sharded]:
    """All sizes and widths; between: the share of edges between phrases that lead to another shard (measured)."""
    return [_plan(size, width, between) for size in SIZES for width in WIDTHS]


def _plan(passages: int, width: int, between: float) -> Sharded:
    counts, device, parts = foreseen(_PART), device_from_name(CARD), passages // _PART
    plan = plan_index(counts, encoder_from_name(str(width)), device, config=CONFIG)
    copies = copies_of(counts)
    held = {array.name: array.bytes for array in plan.served if not array.name.startswith(_STAYS)}
    whole = parts * sum(size * (copies if name in _GRAPH else 1.0) for name, size in held.items())
    cards = max(1, -int(-whole // (FREE_SHARE * device.memory_bytes - _WORK_BYTES)))
    phrase_bytes = parts * (16 * (counts.edges - counts.mentions) + 12 * counts.phrases)
    a_step = 2 * 4 * (copies - 1) * parts * counts.phrases if cards > 1 else 0.0
    links = cards * LINK_GBS * 1e9
    steps, making = steps_for("power", 0.5, SearchConfig().tolerance), steps_for("chebyshev", 0.5, TOLERANCE)
    vectors = parts * sum(size for name, size in held.items() if "vectors" in name)
    whole_plan = plan_index(foreseen(passages), encoder_from_name(str(width)), device, config=CONFIG)
    work = {stage.name: stage.seconds or 0.0 for stage in whole_plan.stages}
    return Sharded(
        passages,
        width,
        cards,
        whole / cards / 1e9,
        phrase_bytes / 1e9,
        steps * a_step / 1e9,
        1e3 * steps * a_step / links,
        PUSHED_EDGES * between * _MESSAGE_BYTES / 1e3 if cards > 1 else 0.0,
        cards * (5 * 8 + 4 * 8 + 20 * 12) / 1e3 if cards > 1 else 0.0,
        1e3 * vectors / cards / (device.rates.read_gbs * 1e9),
        (making * a_step * (width + 1) / links + work["diffuse"] / cards) / 3600,
        work["synonyms"] / cards / 3600,
        parts * sum(array.bytes for array in plan.served if array.name.startswith(_STAYS)) / 1e12,
    )


def copies_of(counts: Counts) -> float:
    """Phrases of all shards ÷ phrases, at most: each in as many shards as passages mention it."""
    return counts.mentions / counts.phrases
