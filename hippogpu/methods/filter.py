"""Recognition memory: which of the candidate facts a question keeps. HippoRAG 2, section 3.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hippogpu.types import KeptFact

FactFilter = Callable[[str, Sequence[KeptFact]], Sequence[int]]
"""A question and its candidates, best first, to the numbers of those it keeps."""


def keep_all(question: str, candidates: Sequence[KeptFact]) -> Sequence[int]:
    """The filter 'none': every candidate is kept."""
    return range(len(candidates))
