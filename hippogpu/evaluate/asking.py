"""Rankings of evaluation questions: each text encoded once, whatever the methods, and groups kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.corpus import Query
from hippogpu.embed import Embedder
from hippogpu.types import Floats, Ranking


class Ranker(Protocol):
    """What ranks passages for questions; a Searcher is one."""

    def rank(self, questions: Sequence[str], *, k: int, config: SearchConfig) -> list[Ranking]:
        """The k best passages for each question, in the questions' order."""
        ...


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
    found: dict[int, Ranking] = {}
    for grouped in (False, True):
        places = [place for place, query in enumerate(queries) if (query.group is not None) is grouped]
        if not places:
            continue
        depth = max(passages, k) if grouped else k
        rankings = ranker.rank([queries[place].text for place in places], k=depth, config=config)
        for place, ranking in zip(places, rankings, strict=True):
            found[place] = _of_group(ranking, queries[place].group, k) if grouped else ranking
    return [found[place] for place in range(len(queries))]


def _of_group(ranking: Ranking, group: str | None, k: int) -> Ranking:
    hits = [hit for hit in ranking.hits if hit.passage.meta.get("group") == group]
    return replace(ranking, hits=tuple(hits[:k]))
