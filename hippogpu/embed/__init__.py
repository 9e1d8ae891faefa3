"""Text to unit vectors: one seam, several encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hippogpu.embed.encode import count_truncated, encode_all
from hippogpu.errors import ConfigError
from hippogpu.types import Bools, Floats

__all__ = ["Embedder", "VectorCache", "count_truncated", "default_embedder", "embedder_from_name", "encode_all"]


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


class VectorCache(Protocol):
    """Vectors that were encoded before, by the same encoder with the same instruction."""

    def get(self, texts: Sequence[str]) -> tuple[Bools, Floats]:
        """Which of the texts are known, (len(texts),) bool, and the vectors of those only, in the same order."""
        ...


def default_embedder() -> Embedder:
    """all-MiniLM-L6-v2 on the CPU; EncoderError when its weights are nowhere to be found."""
    from hippogpu.embed.minilm import MiniLM

    return MiniLM()


def embedder_from_name(spec: str) -> Embedder:
    """The encoder that a command line or a configuration names; ConfigError, listing the choices, for another name.

    minilm | st:NAME | vllm:NAME | vllm:NAME?KEY=VALUE&… | http:URL#MODEL | hashing | hashing:WIDTH
    NAME is a model's name on the hub or its folder, the keys are those of embed.vllm_settings.VllmSettings. URL may
    stand alone: https://host/v1#MODEL is the same as http:https://host/v1#MODEL.
    """
    kind, _, rest = spec.partition(":")
    if spec == "minilm":
        return default_embedder()
    if kind == "st" and rest:
        from hippogpu.embed.st import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(rest)
    if kind == "vllm" and rest and not rest.startswith("?"):
        from hippogpu.embed.vllm import vllm_embedder

        return vllm_embedder(rest)
    if kind in ("http", "https") and "#" in rest:
        return _http(spec)
    if kind == "hashing" and (spec == "hashing" or rest.isdecimal()):
        from hippogpu.embed.hashing import DEFAULT_WIDTH, HashingEmbedder

        return HashingEmbedder(int(rest) if rest else DEFAULT_WIDTH)
    raise ConfigError(
        f"No encoder is called '{spec}'. Use minilm, st:NAME, vllm:NAME, http:URL#MODEL (for example "
        "http://localhost:8000/v1#BAAI/bge-m3), hashing or hashing:WIDTH."
    )


def _http(spec: str) -> Embedder:
    from hippogpu.embed.http import HttpEmbedder

    address = spec.removeprefix("http:")
    if not address.startswith(("http://", "https://")):
        address = spec
    url, _, model = address.partition("#")
    return HttpEmbedder(url, model)
