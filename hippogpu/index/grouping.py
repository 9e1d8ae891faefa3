"""What an index holds for each passage: itself, or its chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hippogpu.config import IndexConfig
from hippogpu.corpus import chunk
from hippogpu.embed import Embedder
from hippogpu.errors import CorpusError
from hippogpu.index.holdings import chunk_of_another, unstorable
from hippogpu.types import Passage, Refusal

_CALLS_ITSELF_A_CHUNK = "its id and 'chunk_of' name it a chunk, which in this index only chunking does; give another id"


class Grouped(NamedTuple):
    """Ids with what stands for each, and the passages that cannot be stored, with the reason."""

    groups: tuple[tuple[str, list[Passage]], ...]
    unfit: tuple[Refusal, ...]


def grouped(passages: Iterable[Passage], config: IndexConfig, embedder: Embedder) -> Grouped:
    """All passages in groups, before any is taken in: chunking may fail at any."""
    groups: list[tuple[str, list[Passage]]] = []
    unfit: list[Refusal] = []
    for passage in passages:
        reason = unstorable(passage)
        if reason is None and config.chunk_tokens and chunk_of_another(passage):
            reason = _CALLS_ITSELF_A_CHUNK
        if reason is None:
            try:
                groups.append((passage.id, _parts(passage, config, embedder)))
            except CorpusError as error:
                reason = str(error)
        if reason is not None:
            unfit.append(Refusal(f"passage '{passage.id}'", reason))
    return Grouped(tuple(groups), tuple(unfit))


def _parts(passage: Passage, config: IndexConfig, embedder: Embedder) -> list[Passage]:
    if not config.chunk_tokens:
        return [passage]
    return chunk(
        passage,
        window_tokens=config.chunk_tokens,
        overlap_tokens=config.chunk_overlap,
        token_counts=embedder.token_counts,
    )
