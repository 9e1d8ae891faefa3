"""A stand-in for sentence-transformers' cross-encoders: scores by a function of the pair, nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class CrossEncoders:
    """As the module sentence_transformers, for a filter that asks it for CrossEncoder(name).

    score    the model's output for a pair, before any activation
    outputs  how many outputs the models say they have
    missing  names that cannot be loaded
    calls    the pairs of each call to predict
    """

    def __init__(self, score: Callable[[str, str], float], *, outputs: int = 1, missing: Sequence[str] = ()) -> None:
        self.calls: list[list[tuple[str, str]]] = []
        self._score, self._outputs, self._missing = score, outputs, missing

    def CrossEncoder(self, name: str) -> _Model:
        """A model; OSError for one that cannot be loaded."""
        if name in self._missing:
            raise OSError(f"{name} is no folder and no model")
        return _Model(self, self._outputs)

    def predicted(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The scores of a call."""
        self.calls.append(list(pairs))
        return [self._score(question, fact) for question, fact in pairs]


class _Model:
    def __init__(self, library: CrossEncoders, outputs: int) -> None:
        self.num_labels, self._library = outputs, library

    def predict(self, pairs: Sequence[tuple[str, str]], **options: Any) -> list[float]:
        return self._library.predicted(pairs)
