"""The user edges of an index, and how they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hippogpu.corpus import edge_fault
from hippogpu.errors import IndexDamagedError
from hippogpu.index.holdings import Holdings
from hippogpu.store import Passages
from hippogpu.text import TextRule, normalise
from hippogpu.types import Refusal, UserEdge

Key = tuple[tuple[str, ...], tuple[str, ...], str]


class EdgeReport(NamedTuple):
    """What became of the edges of one call. An edge is known by its two ends, in either order, and its kind.

    added, updated, unchanged : new edges; known edges with another weight; known edges as they were
    duplicates                : an edge again with the same weight
    refused                   : an edge again with another weight, or one that this index cannot hold, and why
    """

    added: int
    updated: int
    unchanged: int
    duplicates: int
    refused: tuple[Refusal, ...]


class PlacedEdges(NamedTuple):
    """User edges in an order of their own, phrases normalised, and the passages (by number) each id stands for."""

    edges: tuple[UserEdge, ...]
    rows: Mapping[str, Sequence[int]]


class EdgeHoldings:
    """The user edges of an index by their ends and kind. Phrases are held normalised, and which came first is not."""

    def __init__(self, stored: Iterable[UserEdge], holdings: Holdings, *, rule: TextRule) -> None:
        self._rule: TextRule = rule
        self._weights: dict[Key, float] = {}
        for edge in stored:
            if edge_fault(edge) is not None or not all(id_ in holdings for id_ in edge.passages):
                raise IndexDamagedError(f"The stored user edge {_name(edge)} is none. Restore the index from a copy.")
            self._weights[edge.passages, edge.phrases, edge.kind] = edge.weight
        self._committed = dict(self._weights)

    @property
    def changed(self) -> bool:
        """Whether there is anything else than what is committed."""
        return self._weights != self._committed

    def committed(self) -> None:
        """Takes note that all this is stored now."""
        self._committed = dict(self._weights)

    def add(self, edges: Iterable[UserEdge], holdings: Holdings) -> EdgeReport:
        """Takes in edges between passages that are held and phrases."""
        counts: Counter[str] = Counter()
        refused: list[Refusal] = []
        taken: dict[Key, float] = {}
        for number, edge in enumerate(edges, start=1):
            key = self._key(edge, holdings)
            if isinstance(key, str):
                refused.append(Refusal(edge.where or f"edge {number}", key))
            elif key not in taken:
                taken[key] = weight = float(edge.weight)
                counts[_became(self._weights.get(key), weight)] += 1
                self._weights[key] = weight
            elif taken[key] == edge.weight:
                counts["duplicates"] += 1
            else:
                again = (
                    f"the same ends and kind '{edge.kind}' came before with the weight {taken[key]:g}, which was kept"
                )
                refused.append(Refusal(edge.where or f"edge {number}", again))
        added, updated, unchanged = (counts[name] for name in ("added", "updated", "unchanged"))
        return EdgeReport(added, updated, unchanged, counts["duplicates"], tuple(refused))

    def forget_ends(self, holdings: Holdings) -> int:
        """Removes the edges of passages that are no longer held; how many there were."""
        gone = [key for key in self._weights if not all(id_ in holdings for id_ in key[0])]
        for key in gone:
            del self._weights[key]
        return len(gone)

    def placed(self, holdings: Holdings, passages: Passages) -> PlacedEdges:
        """All edges, in an order that does not depend on when each came."""
        edges = tuple(UserEdge(*key, self._weights[key]) for key in sorted(self._weights))
        row_of = dict(zip(passages.ids, passages.rows.tolist(), strict=True))
        named = {id_ for edge in edges for id_ in edge.passages}
        return PlacedEdges(edges, {id_: sorted({row_of[one] for one in holdings.standing_for(id_)}) for id_ in named})

    def _key(self, edge: UserEdge, holdings: Holdings) -> Key | str:
        """What the edge is known by, or why it is refused."""
        fault = edge_fault(edge)
        if fault is not None:
            return fault
        missing = next((id_ for id_ in edge.passages if id_ not in holdings), None)
        if missing is not None:
            return f"no passage of the index has the id '{missing}'"
        phrases = sorted(normalise(phrase, self._rule) for phrase in edge.phrases)
        if not all(phrases):
            return f"a phrase has no letter or number: {', '.join(map(repr, edge.phrases))}"
        if len(set(phrases)) < len(phrases):
            return f"its phrases {edge.phrases[0]!r} and {edge.phrases[1]!r} are one: '{phrases[0]}'"
        return tuple(sorted(edge.passages)), tuple(phrases), edge.kind


def _became(known: float | None, weight: float) -> str:
    if known is None:
        return "added"
    return "unchanged" if known == weight else "updated"


def _name(edge: UserEdge) -> str:
    return f"'{edge.kind}' of {(*edge.passages, *edge.phrases)}"
