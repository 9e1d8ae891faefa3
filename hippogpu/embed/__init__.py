"""Text to unit vectors: one seam, several encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hippogpu.types import Floats


class Embedder(Protocol):
    """Anything that turns texts into unit vectors.

    name             what is stored in the index and must match when it is opened again (model and its revision)
    width            w, the length of a vector
    window           the most tokens it reads of one text; None when it does not say
    query_to_fact    instruction put before a question that is compared with facts ("" when it has none)
    query_to_passage the same for passages
    """

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def window(self) -> int | None: ...
    @property
    def query_to_fact(self) -> str: ...
    @property
    def query_to_passage(self) -> str: ...

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), w) float32, rows in the order given."""
        ...

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each whole text has, special tokens included, nothing cut."""
        ...
