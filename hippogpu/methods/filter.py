"""Recognition memory: which of the candidate facts a question keeps. HippoRAG 2, section 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hippogpu.types import KeptFact


class Verdict(NamedTuple):
    """Which candidates of one question a filter keeps: their numbers, ascending.

    failure : why they could not be judged, None when they were; then SearchConfig.filter_fails decides what is kept
    """

    kept: tuple[int, ...]
    failure: str | None = None


class FactFilter(Protocol):
    """Judges the candidate facts of many questions at once."""

    @property
    def name(self) -> str: ...

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> Sequence[Verdict]:
        """One verdict a question. candidates : the facts nearest to each question, best first, with min-max scores."""
        ...


class KeepAll:
    """The filter 'none': every candidate is kept."""

    name = "none"

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        return [Verdict(tuple(range(len(row)))) for row in candidates]
