"""An encoder that is loaded when the first text has to be encoded: for work that mostly encodes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hippogpu.errors import EncoderMismatchError
from hippogpu.types import Floats

if TYPE_CHECKING:
    from hippogpu.embed import Embedder


class DeferredEmbedder:
    """The encoder of a name and width, made by `load` once it is needed.

    EncoderMismatchError, then, when what is made is another one.
    """

    def __init__(self, name: str, width: int, load: Callable[[], Embedder]) -> None:
        self.name, self.width = name, width
        self._load, self._loaded = load, None  # type: tuple[Callable[[], Embedder], Embedder | None]

    @property
    def window(self) -> int | None:
        return self._real().window

    @property
    def query_to_fact(self) -> str:
        return self._real().query_to_fact

    @property
    def query_to_passage(self) -> str:
        return self._real().query_to_passage

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        return self._real().encode(texts, instruction=instruction)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return self._real().token_counts(texts)

    def _real(self) -> Embedder:
        if self._loaded is None:
            made = self._load()
            if (made.name, made.width) != (self.name, self.width):
                raise EncoderMismatchError(
                    f"The encoder '{made.name}' (width {made.width}) is not '{self.name}' (width {self.width}), which "
                    "the index was built with. Use that one."
                )
            self._loaded = made
        return self._loaded
