"""Rankings of evaluation questions: each text encoded once, whatever the methods, and groups kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.corpus import Query
from hippogpu.embed import Embedder
from hippogpu.types import Floats, Ranking

# So many hits are held at once, with their texts: 65,536 of 1,000 characters are 64 MB.
_HITS = 1 << 16


class Ranker(Protocol):
    """What ranks passages for questions; a Searcher is one."""

    def rank_batches(self, questions: Sequence[str], *, k: int, config: SearchConfig) -> Iterator[list[Ranking]]:
        """The k best passages for each question, in the questions' order, a batch at a time."""
        ...


class Named(NamedTuple):
    """The ranking of the question at a place, and the first k distinct names of its hits."""

    place: int
    ranking: Ranking
    names: list[str]


class _Block(NamedTuple):
    place: int
    ranking: Ranking
    whole: bool


class EncodedOnce:
    """Another encoder that keeps the vector of every text it has seen, so that ten methods encode a question once.

    Nothing is forgotten: it is for the questions of an evaluation, not for a corpus.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._rows: dict[tuple[str, str], Floats] = {}
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The inner encoder's rows, (len(texts), w) float32."""
        missing = [text for text in dict.fromkeys(texts) if (instruction, text) not in self._rows]
        if missing:
            fresh = self._inner.encode(missing, instruction=instruction)
            self._rows |= {(instruction, text): row for text, row in zip(missing, fresh, strict=True)}
        rows = [self._rows[instruction, text] for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.width), np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts."""
        return self._inner.token_counts(texts)


def ask(ranker: Ranker, queries: Sequence[Query], *, k: int, config: SearchConfig, passages: int) -> list[Ranking]:
    """The k best passages of each question; of a question with a group, those among the passages of that group.

    passages : how many the index holds, P
    A grouped question ranks all P passages and keeps its group's: the graph, its weights and the scaling of scores are
    those of the whole index, which is not the same as an index of the group alone.
    """
    found = {
        one.place: replace(one.ranking, hits=one.ranking.hits[:k])
        for one in _ranked(ranker, queries, range(len(queries)), k, config, passages)
    }
    return [found[place] for place in range(len(queries))]


def ask_named(
    ranker: Ranker,
    queries: Sequence[Query],
    names: Callable[[Query, Ranking], Sequence[str]],
    *,
    k: int,
    config: SearchConfig,
    passages: int,
) -> Iterator[Named]:
    """As ask, to k distinct names a question, where several passages have one (chunks of a parent, a title).

    names : the distinct names of a ranking's hits, best first
    A question with fewer than k names is ranked again at double the depth, until it has them or all P passages are
    ranked. Rankings come as each is finished, not in the questions' order, and are not kept here.
    """
    places: Sequence[int] = range(len(queries))
    depth = k
    while places:
        short = []
        for place, ranking, whole in _ranked(ranker, queries, places, depth, config, passages):
            found = names(queries[place], ranking)
            if len(found) < k and not whole:
                short.append(place)
            else:
                yield Named(place, ranking, list(found[:k]))
        places, depth = short, min(2 * depth, passages)


def _ranked(
    ranker: Ranker, queries: Sequence[Query], places: Sequence[int], depth: int, config: SearchConfig, passages: int
) -> Iterator[_Block]:
    """The questions at those places, ranked in blocks of few hits; whole where a greater depth finds nothing more."""
    for grouped in (False, True):
        chosen = [place for place in places if (queries[place].group is not None) is grouped]
        k = max(passages, depth) if grouped else depth
        size = max(1, _HITS // k)
        for start in range(0, len(chosen), size):
            block = iter(chosen[start : start + size])
            texts = [queries[place].text for place in chosen[start : start + size]]
            for batch in ranker.rank_batches(texts, k=k, config=config):
                for ranking, place in zip(batch, block, strict=False):
                    whole = k >= passages or len(ranking.hits) < k
                    yield _Block(place, _of_group(ranking, queries[place].group) if grouped else ranking, whole)


def _of_group(ranking: Ranking, group: str | None) -> Ranking:
    return replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.passage.meta.get("group") == group))
