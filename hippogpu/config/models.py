"""Which language model is asked, and how passages are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hippogpu.config.checks import check_types, require

EngineName = Literal["http", "vllm"]
ExtractorName = Literal["auto", "spacy", "http", "vllm", "replay", "none"]
Prompting = Literal["two-step", "joint"]
LlmTask = Literal["extract", "entities", "filter", "answer"]


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """Which language model answers, and how it is reached.

    engine            "http" for any server that speaks the OpenAI protocol, "vllm" for vLLM in this process
    url               base address of the API (https://host/v1), for http
    model             name of the model, or for vllm a name or folder; "" when none is configured
    key_variable      environment variable that holds the API key
    in_flight         requests held at once, at least 1
    timeout_s         seconds that one request may take
    attempts          how often a request is sent before a busy or broken server is given up on
    temperature       0 is greedy
    window            most tokens of prompt and reply together, for vllm and plan; 0 for the model's own
    data_parallel     copies of the model, each on its own GPUs, for vllm
    tensor_parallel   GPUs that share one copy, for vllm
    gpu_memory        share of each GPU's memory that vllm may take, in (0, 1]
    dtype             number type of the weights for vllm ("auto", "float32", "bfloat16", …)
    remember          keep replies in the index folder, so that the same request is never paid twice
    prompt_price      price of a million prompt tokens; -1 for the table's
    cached_price      price of a million prompt tokens from the server's prefix cache; -1 for the table's
    completion_price  price of a million tokens of replies; -1 for the table's
    """

    engine: EngineName = "http"
    url: str = ""
    model: str = ""
    key_variable: str = "HIPPOGPU_LLM_API_KEY"
    in_flight: int = 64
    timeout_s: float = 120.0
    attempts: int = 6
    temperature: float = 0.0
    window: int = 0
    data_parallel: int = 1
    tensor_parallel: int = 1
    gpu_memory: float = 0.9
    dtype: str = "auto"
    remember: bool = True
    prompt_price: float = -1.0
    cached_price: float = -1.0
    completion_price: float = -1.0

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("in_flight", "attempts", "data_parallel", "tensor_parallel"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "timeout_s", 0.0 < self.timeout_s < float("inf"), "above 0")
        require(self, "temperature", 0.0 <= self.temperature <= 2.0, "in [0, 2]")
        require(self, "window", self.window == 0 or self.window >= 256, "0 (the model's own) or at least 256")
        require(self, "gpu_memory", 0.0 < self.gpu_memory <= 1.0, "in (0, 1]")
        require(self, "url", not self.url or self.url.startswith(("http://", "https://")), "an http(s) address")

    @property
    def configured(self) -> bool:
        """Whether there is enough here to ask a model."""
        return bool(self.model) and (self.engine == "vllm" or bool(self.url))


@dataclass(frozen=True, slots=True)
class ExtractConfig:
    """How passages are read for triples.

    extractor        "auto" takes the configured language model, else spaCy
    prompting        "two-step" asks for entities, then for triples (the papers'); "joint" asks for both at once
    verify           ask again, of each passage, which of its triples it really states
    max_tokens       most tokens of a reply at first; a reply that was cut is asked for again with twice as many
    largest_tokens   most tokens that a reply is ever given
    tries            how often a passage is asked for in one run when the reply cannot be used
    quarantine_after failed runs after which a passage is left alone until --retry-failed
    spacy_model      name of the spaCy model; "" for the small English one
    """

    extractor: ExtractorName = "auto"
    prompting: Prompting = "two-step"
    verify: bool = False
    max_tokens: int = 1024
    largest_tokens: int = 4096
    tries: int = 3
    quarantine_after: int = 3
    spacy_model: str = ""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("max_tokens", "tries", "quarantine_after"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "largest_tokens", self.largest_tokens >= self.max_tokens, "at least max_tokens")
