"""How long each stage of an index run takes: the work of each by its formula, divided by a rate."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.backends import steps_for
from hippogpu.capacity.arrays import index_files
from hippogpu.capacity.counts import Counts
from hippogpu.capacity.devices import Device
from hippogpu.capacity.encoders import PlannedEncoder, encode_seconds
from hippogpu.config import ExtractorName, IndexConfig
from hippogpu.diffuse import TOLERANCE
from hippogpu.synonyms.centres import Reach

# Prompts and replies of the papers' reading of MuSiQue: 9.2 and 3.0 million tokens for 11,656 passages.
TOKENS_A_PASSAGE = 1047
_FACT_TEXT_SHARE = 0.82
CODES = 256
# A product in 16 bits that is written, compared, and read once more to be listed.
_PRODUCT_BYTES = 6


class Stage(NamedTuple):
    """Seconds of a stage, None where nothing is known of its rate; of what they are made."""

    name: str
    seconds: float | None
    work: str


def stages(
    counts: Counts,
    encoder: PlannedEncoder,
    config: IndexConfig,
    device: Device,
    *,
    extractor: ExtractorName,
    damping: float = 0.5,
    diffused: bool = True,
) -> list[Stage]:
    """Every stage of a first build, in order."""
    texts = counts.passages + counts.phrases + counts.facts
    letters = counts.passages_bytes + counts.phrases_bytes + round(_FACT_TEXT_SHARE * counts.facts_bytes)
    size = sum(array.bytes for array in index_files(counts, encoder.width, config, diffused=diffused))
    rates = device.rates
    made: list[Stage] = [
        _extraction(counts, extractor, device),
        Stage("tables", counts.statements / rates.tabulate_facts, f"{counts.statements:,} statements"),
        Stage("encode", encode_seconds(encoder, device, texts, letters), f"{texts:,} texts, {letters / 1e9:.3g} GB"),
        _synonyms(counts, encoder.width, config, device),
        Stage("graph", (counts.found + counts.nonzeros) / rates.sort_keys, f"{counts.found + counts.nonzeros:,} keys"),
        Stage("words", counts.words / rates.count_words, f"{counts.words:,} words of passages"),
        Stage("commit", size / (rates.write_gbs * 1e9), f"{size / 1e9:.3g} GB hashed and written"),
    ]
    made += [_fact_cells(counts.facts, encoder.width, device)] if config.fact_search == "ivfpq" else []
    return [*made, _diffusion(counts, encoder.width, device, damping)] if diffused else made


def _extraction(counts: Counts, extractor: ExtractorName, device: Device) -> Stage:
    rates, passages = device.rates, counts.passages
    if extractor in ("http", "vllm"):
        tokens = TOKENS_A_PASSAGE * passages
        return Stage("extract", tokens / rates.llm_tokens, f"{tokens:,} tokens of a language model")
    if extractor == "none":
        return Stage("extract", 0.0, "nobody reads")
    if extractor == "replay":
        return Stage("extract", passages / rates.replay_passages, f"{passages:,} stored records")
    return Stage("extract", passages / rates.spacy_passages, f"{passages:,} passages read by spaCy")


def compared_pairs(phrases: int, config: IndexConfig) -> float:
    """Cosines that are worked out: of each two phrases once, or of each phrase with those of near cells.

    By cells a phrase is compared with all groups of cells, the cells of the nearest groups, and the phrases of the
    nearest cells (hippogpu.synonyms.centres); never with more than there are.
    """
    if config.synonym_search != "cells":
        return phrases * phrases / 2
    reach = Reach()
    groups = (phrases / reach.phrases) ** 0.5
    looked = reach.phrases * reach.cells + (1 + reach.groups) * groups
    return phrases * float(min(looked, phrases / 2))


def _synonyms(counts: Counts, width: int, config: IndexConfig, device: Device) -> Stage:
    pairs, rates = compared_pairs(counts.phrases, config), device.rates
    by_cells = config.synonym_search == "cells"
    seconds = 2 * pairs * width / (1e9 * (rates.cells_gflops if by_cells else rates.near_gflops))
    if device.is_gpu and not by_cells:
        # The products of a tile do not stay in a card's cache until those near the threshold are listed.
        seconds = max(seconds, _PRODUCT_BYTES * pairs / (rates.read_gbs * 1e9))
    # A pair that is found is worked out again in float64, whose vectors come from anywhere in memory.
    again = counts.found / rates.exact_pairs
    return Stage("synonyms", seconds + again, f"{pairs:.3g} pairs of phrases, {config.synonym_search}")


def _fact_cells(facts: int, width: int, device: Device) -> Stage:
    """Centroids and codebooks are learned from a sample in rounds, then every fact is put into a cell and encoded."""
    from hippogpu.nearest.quantising import CODE_ROUNDS, CODE_SAMPLE, ROUNDS, cells_for, sample_rows

    cells = cells_for(facts, width)
    learned = ROUNDS * cells * sample_rows(facts, width) + CODE_ROUNDS * CODES * CODE_SAMPLE
    flops = 2.0 * width * (learned + facts * (cells + CODES))
    return Stage("cells", flops / (device.rates.cells_gflops * 1e9), f"{facts:,} facts in {cells:,} cells")


def _diffusion(counts: Counts, width: int, device: Device, damping: float) -> Stage:
    steps, columns = steps_for("chebyshev", damping, TOLERANCE), width + 1
    edges = float(counts.nonzeros) * steps * columns
    seconds = edges / device.rates.at(device.rates.diffuse_edges, counts.nodes)
    return Stage("diffuse", seconds, f"{columns:,} columns, {steps} steps, {counts.nonzeros:,} non-zeros")
