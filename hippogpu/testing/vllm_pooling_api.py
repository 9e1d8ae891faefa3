"""A fake of the part of vLLM that encoding uses: vectors of hashed words in place of a model's."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.testing.vllm_api import EngineDeadError, VLLMClientError, VLLMError, stand_in
from hippogpu.types import Floats

# A text has one token a word, one before them and one behind.
SPECIAL_TOKENS = 2
QUERY_PROMPT = "Find what answers: "


@dataclass(frozen=True)
class EngineArgs:
    """Stands for vLLM's, with the arguments that are given and no others."""

    model: str
    runner: str
    dtype: str
    max_model_len: int | None
    max_num_seqs: int
    tensor_parallel_size: int
    gpu_memory_utilization: float
    pooler_config: PoolerConfig | None
    enforce_eager: bool
    use_tqdm_on_load: bool
    disable_log_stats: bool


@dataclass(frozen=True)
class PoolerConfig:
    """Stands for vLLM's."""

    seq_pooling_type: str


@dataclass(frozen=True)
class PoolingParams:
    """Stands for vLLM's; without use_activation the vectors keep the length that they have."""

    use_activation: bool | None = None


@dataclass
class FakePooling:
    """A fake vLLM with one model for embeddings, of 16 numbers a text.

    window      the tokens that it reads
    commit      of the model on the hub
    pooling     what its files say of pooling; None for a model that writes text
    files       its other files, by name
    scale       the length of its vectors, also when they are asked to have length 1
    broken      raised when the model's files are read, when set
    start       raised instead of starting, when set
    refuse      the error that a text meets, None for none
    calls       ("start", ""), ("encode", number of texts) and ("shutdown", ""), in order
    described, started : what the model was described, and started, with
    blocked     signals that were blocked while the engine started
    """

    window: int = 12
    commit: str | None = "0123456789abcdef"
    pooling: dict[str, Any] | None = field(default_factory=lambda: {"seq_pooling_type": "MEAN"})
    files: dict[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    broken: Exception | None = None
    start: BaseException | None = None
    refuse: Callable[[str], BaseException | None] = lambda text: None
    calls: list[tuple[str, Any]] = field(default_factory=list)
    described: list[EngineArgs] = field(default_factory=list)
    started: list[EngineArgs] = field(default_factory=list)
    blocked: set[signal.Signals] = field(default_factory=set)

    def modules(self) -> dict[str, ModuleType]:
        """Stand-ins for vLLM's modules by name, to be put into sys.modules."""
        contents: dict[str, dict[str, Any]] = {
            "vllm": {"LLM": self._llm, "PoolingParams": PoolingParams},
            "vllm.engine.arg_utils": {"EngineArgs": self._arguments},
            "vllm.platforms": {"current_platform": SimpleNamespace(is_cpu=lambda: True)},
            "vllm.config.pooler": {"PoolerConfig": PoolerConfig},
            "vllm.transformers_utils.repo_utils": {"get_hf_file_to_dict": self._file},
            "vllm.transformers_utils.config": {"get_pooling_config": lambda model, revision="main": self.pooling},
            "vllm.tokenizers": {"cached_tokenizer_from_config": lambda model_config: tokenize},
            "vllm.exceptions": {"VLLMError": VLLMError},
            "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
        }
        return {name: stand_in(name, content) for name, content in contents.items()}

    def _arguments(self, **given: Any) -> SimpleNamespace:
        arguments = EngineArgs(**given)
        self.described.append(arguments)
        return SimpleNamespace(create_model_config=lambda: self._described(arguments))

    def _described(self, arguments: EngineArgs) -> SimpleNamespace:
        if self.broken is not None:
            raise self.broken
        hub = SimpleNamespace(_commit_hash=self.commit)
        window = arguments.max_model_len or self.window
        return SimpleNamespace(embedding_size=16, max_model_len=window, hf_config=hub, revision=None)

    def _file(self, file_name: str, model: str, revision: str | None = "main") -> Any:
        return self.files.get(file_name)

    def _llm(self, **given: Any) -> FakeLLM:
        # As the start of the first process does.
        resource_tracker.ensure_running()
        self.blocked = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
        self.started.append(EngineArgs(**given))
        self.calls.append(("start", ""))
        if self.start is not None:
            raise self.start
        return FakeLLM(self, self.started[-1].max_model_len or self.window)


class FakeLLM:
    """Stands for vLLM's LLM; when it has been shut down it is dead."""

    def __init__(self, fake: FakePooling, window: int) -> None:
        self._fake, self._window, self._dead = fake, window, False
        self._hashing = HashingEmbedder(16)
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=self._shut))

    def encode(
        self,
        prompts: Sequence[str],
        pooling_params: PoolingParams | None = None,
        *,
        use_tqdm: bool = True,
        pooling_task: str | None = None,
        tokenization_kwargs: dict[str, Any] | None = None,
    ) -> list[Any]:
        """A vector a text; a text that is longer than the window is refused unless it is to be cut."""
        assert pooling_task == "embed", f"the task is {pooling_task}"
        assert not use_tqdm, "a bar would be drawn"
        if self._dead:
            raise EngineDeadError("gone")
        self._fake.calls.append(("encode", len(prompts)))
        cut = (tokenization_kwargs or {}).get("truncate_prompt_tokens") == -1
        return [self._output(text, cut, pooling_params or PoolingParams()) for text in prompts]

    def _output(self, text: str, cut: bool, params: PoolingParams) -> SimpleNamespace:
        error = self._fake.refuse(text)
        if error is not None:
            raise error
        words = text.split()
        most = self._window - SPECIAL_TOKENS
        if len(words) > most and not cut:
            raise VLLMClientError(f"This model's maximum context length is {self._window} tokens.")
        row = self._hashing.encode([" ".join(words[:most])])[0] * np.float32(self._fake.scale)
        length = np.float32(1) if params.use_activation else np.float32(3)
        return SimpleNamespace(outputs=SimpleNamespace(data=FakeTensor(row * length)))

    def _shut(self, timeout: float | None = None) -> None:
        self._dead = True
        self._fake.calls.append(("shutdown", ""))


class FakeTensor:
    """Stands for a tensor on the processor."""

    def __init__(self, row: Floats) -> None:
        self._row = row

    def float(self) -> FakeTensor:
        """In float32, which it is."""
        return self

    def numpy(self) -> Floats:
        """The array."""
        return self._row


def tokenize(texts: Sequence[str], *, truncation: bool, verbose: bool) -> dict[str, list[list[int]]]:
    """Stands for a tokenizer of the library transformers: one token a word, and the special ones."""
    assert not truncation, "a text would be cut"
    assert not verbose, "a warning would be written for each long text"
    return {"input_ids": [[1] * (len(text.split()) + SPECIAL_TOKENS) for text in texts]}
