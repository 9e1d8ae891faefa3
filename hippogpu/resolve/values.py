"""What the rules work on and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hippogpu.resolve.meeting import Meeting
from hippogpu.types import AnyFloats, Bools, Longs

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of an index as the rules see them.

    words   the words of each · number: of each phrase · count: of passages that mention each
    given   words that are given names
    bracketed, unbracketed   titles that end in a bracket, normalised, with what is before it; and all other first lines
    """

    texts: Sequence[str]
    words: Sequence[Words]
    number: Mapping[str, int]
    meeting: Meeting
    given: frozenset[str]
    bracketed: Sequence[tuple[str, str]]
    unbracketed: frozenset[str]


class Found(NamedTuple):
    """Pairs of phrases that one kind of evidence joins, in no order and perhaps repeated, with weights in (0, 1].

    refused : pairs or names that looked alike and were left alone, by reason
    """

    one: Longs
    other: Longs
    weight: AnyFloats
    refused: Mapping[str, int]


def found(
    pairs: Iterable[tuple[int, int]], weight: float | Sequence[float], refused: Mapping[str, int] | None = None
) -> Found:
    """Found from pairs of numbers with a weight each, or one for all."""
    ends = np.array(list(pairs), np.int64).reshape(-1, 2)
    weights = np.broadcast_to(np.asarray(weight, np.float64), len(ends))
    return Found(ends[:, 0], ends[:, 1], weights, refused or {})


LEAST_SHARE = 0.2
FEW = "few of the short name's passages have both"


def shared(
    pairs: Sequence[tuple[int, int]], weight: float, phrases: Phrases
) -> tuple[list[tuple[int, int]], list[float], int]:
    """Pairs whose second is a short name that others may have too: the weight times its passages' share with both.

    Below LEAST_SHARE a pair is left out; how many were is told. So no name has more than 1 / LEAST_SHARE such partners
    that never meet in one passage, however many bear it.
    """
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    share = phrases.meeting.share(ends[:, 1], ends[:, 0])
    enough = share >= LEAST_SHARE
    return list(map(tuple, ends[enough].tolist())), (weight * share[enough]).tolist(), int((~enough).sum())


def only(pairs: Sequence[tuple[int, int]], holds: Callable[[Longs, Longs], Bools]) -> tuple[list[tuple[int, int]], int]:
    """The pairs for which something holds, and how many were left out."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    kept = holds(ends[:, 0], ends[:, 1])
    return [pair for pair, keeps in zip(pairs, kept.tolist(), strict=True) if keeps], int((~kept).sum())
