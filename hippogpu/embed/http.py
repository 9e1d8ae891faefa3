"""Vectors from any server that speaks the OpenAI embeddings protocol."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hippogpu.config import LlmConfig
from hippogpu.embed.encode import estimated_token_counts, shortened
from hippogpu.errors import ConfigError, EncoderError, require_extra
from hippogpu.llm.access import access_to, certificates, headers_of, usable_proxies
from hippogpu.llm.retry import BUSY, asked_wait_s, wait_s
from hippogpu.llm.words import masked
from hippogpu.llm.words import shortened as in_one_line
from hippogpu.text import readable
from hippogpu.types import Floats

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "HIPPOGPU_EMBED_API_KEY"


class HttpEmbedder:
    """A model behind POST {url}/embeddings, url being the base of the API (https://host/v1).

    name is "http:" and the model: the address is no part of the identity, so a server may move. The key is read from
    the environment variable key_variable when it is set. A request that finds the server busy or unreachable is
    repeated, at most `attempts` times in all, after a doubling wait with jitter or the server's Retry-After (60 s at
    most). width is asked of the server (one request) unless given. Vectors are scaled to length 1.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        width: int | None = None,
        window: int | None = None,
        query_to_fact: str = "",
        query_to_passage: str = "",
        key_variable: str = KEY_VARIABLE,
        batch_texts: int = 64,
        attempts: int = 5,
        timeout_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")) or not model:
            raise ConfigError(f"The http encoder needs an http(s) URL and a model. Got '{url}' and '{model}'.")
        if batch_texts < 1 or attempts < 1:
            raise ConfigError(f"'batch_texts' and 'attempts' must be at least 1. Got {batch_texts} and {attempts}.")
        self._httpx = cast("Any", require_extra("httpx", package="httpx", extra="http", purpose="The http encoder"))
        access = access_to(LlmConfig(url=url, model=model, key_variable=key_variable), self._httpx)
        with usable_proxies(self._httpx):
            self._client: httpx.Client = self._httpx.Client(
                timeout=timeout_s, headers=headers_of(access), verify=certificates(self._httpx)
            )
        self._url = f"{access.endpoint}/embeddings"
        self._secrets = access.secrets
        self._model = model
        self._width = width
        self._batch_texts, self._attempts, self._sleep = batch_texts, attempts, sleep
        self._key_variable = key_variable
        self.name = f"http:{model}"
        self.window = window
        self.query_to_fact = query_to_fact
        self.query_to_passage = query_to_passage

    @property
    def width(self) -> int:
        """w, as given or as the server's first reply shows."""
        if self._width is None:
            self._width = self._request(["width"]).shape[1]
        return self._width

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), w) float32; the instruction is put before each text."""
        prefixed = [readable(instruction + text) for text in texts]
        rows = np.empty((len(prefixed), self.width), np.float32)
        for begin in range(0, len(prefixed), self._batch_texts):
            batch = prefixed[begin : begin + self._batch_texts]
            rows[begin : begin + len(batch)] = self._request(batch)
        return rows

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """An estimate, words × 1.3: the server's tokenizer is not at hand."""
        return estimated_token_counts(texts)

    def close(self) -> None:
        """Closes the connections; the embedder cannot be used afterwards."""
        self._client.close()

    def _request(self, texts: list[str]) -> Floats:
        body: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        return self._unit(self._vectors(self._post(body), texts), texts)

    def _post(self, body: dict[str, object]) -> httpx.Response:
        problem = ""
        for attempt in range(self._attempts):
            asked: float | None = None
            try:
                response = self._client.post(self._url, json=body)
            except self._httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if response.status_code == 200:
                    return response
                problem = f"status {response.status_code}: {in_one_line(masked(response.text, self._secrets))}"
                if response.status_code not in BUSY:
                    raise EncoderError(self._failed(problem))
                asked = asked_wait_s(response.headers, now=datetime.now(UTC))
            if attempt + 1 < self._attempts:
                self._sleep(wait_s(attempt, asked, random.random()))
        raise EncoderError(self._failed(f"{problem} ({self._attempts} attempts)"))

    def _failed(self, problem: str) -> str:
        return f"'{self._url}' gave no vectors: {problem}. Check the address, the model and {self._key_variable}."

    def _vectors(self, response: httpx.Response, texts: list[str]) -> Floats:
        """(texts, width) as the server sent them, in the order of `index`; or EncoderError."""
        try:
            items = response.json()["data"]
            order = [int(item.get("index", place)) for place, item in enumerate(items)]
            rows = np.array([item["embedding"] for item in items], dtype=np.float32)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EncoderError(self._wrong(f"a reply that cannot be read ({type(error).__name__})", texts)) from error
        if sorted(order) != list(range(len(texts))):
            raise EncoderError(self._wrong(f"{len(order)} vectors for {len(texts)} texts", texts))
        if rows.ndim != 2 or rows.shape[1] != (self._width or rows.shape[1]):
            raise EncoderError(self._wrong(f"vectors of shape {rows.shape}, not of width {self._width}", texts))
        placed = np.empty_like(rows)
        placed[order] = rows
        return placed

    def _unit(self, rows: Floats, texts: list[str]) -> Floats:
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if len(bad):
            raise EncoderError(self._wrong("a vector that is zero or not finite", [texts[int(bad[0])]]))
        unit: Floats = (rows / lengths[:, None]).astype(np.float32)
        return unit

    def _wrong(self, what: str, texts: list[str]) -> str:
        return (
            f"The encoder '{self.name}' at '{self._url}' sent {what}; the first text was {shortened(texts[0])}. "
            "Check that the model is one for embeddings."
        )
