"""Any sentence-transformers model, by name on the hub or by folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hippogpu.embed.encode import shortened
from hippogpu.embed.identity import model_identity
from hippogpu.errors import EncoderError, require_extra
from hippogpu.text import readable
from hippogpu.types import Floats


class SentenceTransformerEmbedder:
    """A model run by sentence-transformers, on the device that library picks unless one is given.

    name is "st:" and the model's name, then "@" and the first eight digits of its revision on the hub, or of the
    sha256 of its weights when it is a folder (a folder goes by its last part).
    """

    def __init__(
        self,
        model: str,
        *,
        query_to_fact: str = "",
        query_to_passage: str = "",
        device: str | None = None,
        batch_size: int = 64,
    ) -> None:
        library = cast(
            Any,
            require_extra(
                "sentence_transformers",
                package="sentence-transformers",
                extra="st",
                purpose=f"The encoder 'st:{model}'",
            ),
        )
        try:
            self._model = library.SentenceTransformer(model, device=device)
        except (OSError, ValueError) as error:
            raise EncoderError(
                f"sentence-transformers cannot load '{model}': {shortened(str(error), 200)}. "
                "Check the name, or give a folder."
            ) from error
        # A model's own default prompt would be put before facts and passages too.
        self._model.default_prompt_name = None
        self._batch_size = batch_size
        self.query_to_fact = query_to_fact
        self.query_to_passage = query_to_passage
        self.name = f"st:{_identity(model, self._model)}"
        self.width = _width(self._model)
        self.window: int | None = self._model.max_seq_length

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), w) float32; the instruction is put before each text."""
        if not texts:
            return np.empty((0, self.width), np.float32)
        rows = self._model.encode(
            [readable(instruction + text) for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.ascontiguousarray(rows, dtype=np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each whole text has, special tokens included, nothing cut."""
        if not texts:
            return []
        encoded = self._model.tokenizer([readable(text) for text in texts], truncation=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]


def _width(model: Any) -> int:
    # The method was renamed; the old name warns where the new one exists.
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(ask())


def _identity(name: str, model: Any) -> str:
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return model_identity(name, getattr(config, "_commit_hash", None))
