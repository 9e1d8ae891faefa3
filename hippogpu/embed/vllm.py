"""An encoder that vLLM runs in this process: for large models and large corpora on GPUs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from hippogpu.embed.encode import checked
from hippogpu.embed.identity import model_identity
from hippogpu.embed.vllm_library import PoolingLibrary
from hippogpu.embed.vllm_settings import VllmSettings, read_settings
from hippogpu.errors import EncoderError
from hippogpu.llm.vllm_guard import EngineGuard
from hippogpu.llm.words import without_stop
from hippogpu.text import readable
from hippogpu.types import Floats

# Texts that are handed to the engine together; it takes what it has room for, two steps' worth at a time.
_BLOCK_TEXTS = 4096


class VllmEmbedder:
    """A model for embeddings, by name on the hub or by folder, that vLLM runs on this machine's GPUs or processor.

    Making it reads the model's files; the engine starts with the first text. close lets the engine and its memory go,
    and the next text would start it again; the end of the program closes it too. query_to_fact and query_to_passage
    are the model's own prompt for questions unless given. name is "vllm:" and the model's name, then "@" and the
    first eight digits of its revision on the hub, or of the sha256 of its weights when it is a folder, then the
    pooling and the window where they are not the model's own.

    vLLM starts processes that import the main module again: a script needs its `if __name__ == "__main__":`. They end
    with this process, however it ends.
    MissingExtraError without vLLM; EncoderError when it cannot load the model.
    """

    def __init__(
        self,
        model: str,
        settings: VllmSettings | None = None,
        *,
        query_to_fact: str | None = None,
        query_to_passage: str | None = None,
    ) -> None:
        self._model, self._settings = model, settings or VllmSettings()
        self._library = PoolingLibrary(f"The encoder 'vllm:{model}'")
        described = self._library.described(model, self._settings)
        self.name = f"vllm:{model_identity(model, described.commit)}{_of_its_own(self._settings)}"
        self.width = described.width
        self.window: int | None = described.window
        self.query_to_fact = described.query_prompt if query_to_fact is None else query_to_fact
        self.query_to_passage = described.query_prompt if query_to_passage is None else query_to_passage
        self._tokenizer = described.tokenizer
        # The engine cuts with the same tokenizer, whose cutting is a state of it.
        self._lock = threading.Lock()
        self._engine: Any = None
        self._end: weakref.finalize[..., Any] | None = None

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), w) float32; the instruction is put before each text.

        What is longer than the window is cut there. EncoderError when the engine dies or refuses a text: it is closed
        then, and the next call starts another.
        """
        rows = np.empty((len(texts), self.width), np.float32)
        for begin in range(0, len(texts), _BLOCK_TEXTS):
            block = [readable(instruction + text) for text in texts[begin : begin + _BLOCK_TEXTS]]
            with self._lock:
                rows[begin : begin + len(block)] = self._encoded(block)
        return rows

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each whole text has, special tokens included, nothing cut."""
        if not texts:
            return []
        with self._lock:
            encoded = self._tokenizer([readable(text) for text in texts], truncation=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def close(self) -> None:
        """Ends vLLM's processes; a second close does nothing."""
        self._engine = None
        if self._end is not None:
            self._end()

    def _encoded(self, texts: list[str]) -> Floats:
        done = False
        try:
            rows = checked(self._library.vectors(self._started(), texts), texts, self)
            done = True
        except self._library.EngineDead as error:
            raise EncoderError(
                f"The vLLM engine of '{self._model}' stopped: {without_stop(str(error))}. See its own message above; "
                "with too little memory lower gpu_memory, in_flight or window, then run again."
            ) from error
        finally:
            if not done:
                # Texts of a call that was broken off would come out with the next one's.
                self.close()
        return rows

    def _started(self) -> Any:
        if self._engine is None:
            guard = EngineGuard()
            try:
                engine = self._library.start(self._model, self._settings)
            except BaseException:
                guard.close()
                raise
            guard.ready()
            self._engine = engine
            self._end = weakref.finalize(self, _ended, self._library, engine, guard)
        return self._engine


def vllm_embedder(spec: str) -> VllmEmbedder:
    """The encoder of NAME or NAME?KEY=VALUE&KEY=VALUE, the keys being those of VllmSettings."""
    model, _, settings = spec.partition("?")
    return VllmEmbedder(model, read_settings(settings))


def _ended(library: PoolingLibrary, engine: Any, guard: EngineGuard) -> None:
    try:
        library.close(engine)
    finally:
        guard.close()


def _of_its_own(settings: VllmSettings) -> str:
    """What of the settings makes other vectors, in the spelling of a name; "" for the model's own."""
    items = [f"pooling={settings.pooling}"] if settings.pooling != "model" else []
    items += [f"window={settings.window}"] if settings.window else []
    return "?" + "&".join(items) if items else ""
