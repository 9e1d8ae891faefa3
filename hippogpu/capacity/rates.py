"""How fast a machine does each kind of work: measured on two cores, or arithmetic from what is published of a card."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from hippogpu.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rates:
    """Work a second.

    read_gbs          GB/s of vectors that one question alone is multiplied by
    product_gflops    GFLOP/s of the product of a batch of 32 questions with many vectors
    near_gflops       GFLOP/s of the products by which all phrases are compared, in 16 bits on a card
    cells_gflops      GFLOP/s of the smaller products by which phrases are compared in cells
    exact_pairs       synonyms whose cosine is worked out again in float64
    encode_gflops     GFLOP/s of an encoder's products, in 16 bits on a card
    scan_gbs          GB/s of the bytes of facts in cells that one core looks up
    cores             processors that questions of a batch are spread over
    walk_edges        edges times questions of a walk of 32 questions, at a million nodes
    walk_edges_alone  the same for one question
    push_edges        edges that a push touches
    diffuse_edges     edges times columns of a diffusion, its check in float64 included, at a million nodes
    decline           all edge rates fall as nodes^-decline: fewer neighbours are in a cache
    sort_keys         keys that are sorted, merged or counted while the graph is made
    tabulate_facts    statements that become table rows
    count_words       words that are counted, each where it stands
    write_gbs         GB/s of files hashed, written and waited for
    replay_passages   passages whose stored extraction is read
    spacy_passages    passages that spaCy reads, on all cores
    llm_tokens        tokens that a language model reads and writes
    text_ms           milliseconds to encode a text, before its letters; all cores together
    letter_ms         milliseconds to encode a byte of it
    tokenise_mbs      MB of text that the host cuts into tokens a second, for an encoder on a card
    """

    read_gbs: float = 16.0
    product_gflops: float = 130.0
    near_gflops: float = 130.0
    cells_gflops: float = 40.0
    exact_pairs: float = 2.0e6
    encode_gflops: float = 100.0
    scan_gbs: float = 1.0
    cores: float = 2.0
    walk_edges: float = 4.5e9
    walk_edges_alone: float = 3.4e8
    push_edges: float = 4.0e7
    diffuse_edges: float = 1.5e9
    decline: float = 0.3
    sort_keys: float = 1.2e7
    tabulate_facts: float = 1.0e5
    count_words: float = 1.5e6
    write_gbs: float = 0.6
    replay_passages: float = 2.5e4
    spacy_passages: float = 160.0
    llm_tokens: float = 7400.0
    text_ms: float = 0.25
    letter_ms: float = 0.0243
    tokenise_mbs: float = 6.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            real = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            least = 0.0 if item.name in ("decline", "letter_ms", "text_ms") else 1e-12
            if not real or value < least:
                raise UsageError(f"The rate '{item.name}' must be a number above 0. Got {value!r}.")

    def at(self, edges: float, nodes: int) -> float:
        """A rate of edges at that many nodes."""
        rate: float = edges * (max(nodes, 1) / 1e6) ** -self.decline
        return rate


TWO_CORES = Rates()
"""Measured on two cores of an AMD EPYC (Zen 4) and of an Intel Xeon: docs/ppr.md, docs/encoders.md, docs/spacy.md and
docs/capacity.md say by what. llm_tokens is one H100 with an 8B model, published for vLLM."""

SHARE_OF_PEAK = 0.5
"""What of a card's published peaks our arithmetic counts on. No card was measured."""
_PUSH_SHARE, _STEP_BYTES_AN_EDGE = 0.02, 4


def card_rates(bandwidth_gbs: float, gflops: float, tensor_gflops: float, *, host: Rates = TWO_CORES) -> Rates:
    """Rates of a card by arithmetic: half its peak bandwidth and products; the host does what it did.

    A walk of a batch reads one float32 a neighbour and column; one question alone reads a line of 32 bytes for each. A
    push is held by latency: a fiftieth of the bandwidth in lines of 32 bytes.
    """
    moved = SHARE_OF_PEAK * bandwidth_gbs * 1e9
    return replace(
        host,
        read_gbs=moved / 1e9,
        product_gflops=SHARE_OF_PEAK * gflops,
        near_gflops=SHARE_OF_PEAK * tensor_gflops,
        encode_gflops=SHARE_OF_PEAK * tensor_gflops,
        walk_edges=moved / _STEP_BYTES_AN_EDGE,
        walk_edges_alone=moved / 32,
        push_edges=_PUSH_SHARE * moved / 32 * 10,
        diffuse_edges=moved / (2 * _STEP_BYTES_AN_EDGE),
        decline=0.0,
    )


def read_rates(path: Path, start: Rates = TWO_CORES) -> Rates:
    """Rates with those of a TOML file in place; UsageError for a name that is none."""
    try:
        values: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The rates {path} cannot be read: {error.strerror}. Check --rates.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The rates {path} are no TOML: {error}. Correct that line.") from error
    known = [item.name for item in fields(Rates)]
    for name in values:
        if name not in known:
            raise UsageError(f"{path}: there is no rate '{name}'. Rates are: {', '.join(known)}.")
    return replace(start, **values)


def rates_toml(rates: Rates) -> str:
    """The rates as a file that read_rates takes."""
    return "".join(f"{name} = {value:.4g}\n" for name, value in asdict(rates).items())
