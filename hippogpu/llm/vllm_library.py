"""What is used of vLLM, 0.30 to 0.33, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, cast

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError, require_extra
from hippogpu.llm.values import Request
from hippogpu.llm.words import without_stop

# Read by vLLM when it is imported and by the processes that it starts. It would log every step, and on stdout, report
# the use to its makers, and fork a process whose numerical libraries hold threads.
_QUIET = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}


class VllmLibrary:
    """The library, imported; MissingExtraError where it is not installed."""

    def __init__(self) -> None:
        module = vllm_modules("The engine 'vllm'")
        self._vllm = module("vllm")
        self._arguments = module("vllm.engine.arg_utils")
        self._async_llm = module("vllm.v1.engine.async_llm")
        self._sampling = module("vllm.sampling_params")
        self._platforms = module("vllm.platforms")
        engine_errors = module("vllm.v1.engine.exceptions")
        self.EngineDead: type[Exception] = engine_errors.EngineDeadError
        self.RequestBroken: type[Exception] = engine_errors.EngineGenerateError
        errors = module("vllm.exceptions")
        self._error: type[Exception] = errors.VLLMError
        self.RequestRefused: type[Exception] = errors.VLLMClientError
        self.template = module("vllm.renderers.params").ChatParams(
            chat_template_kwargs={"add_generation_prompt": True, "tokenize": True}
        )

    def start(self, config: LlmConfig) -> Any:
        """vLLM's asynchronous engine: the one that its server uses, and the only one with data parallelism."""
        try:
            with interrupts_held():
                return self._async_llm.AsyncLLM.from_engine_args(self._engine_arguments(config))
        except (OSError, ValueError, RuntimeError, self._error) as error:
            raise ConfigError(
                f"vLLM cannot run '{config.model}': {without_stop(str(error))}. "
                "Check [llm] model, window, gpu_memory, tensor_parallel and data_parallel."
            ) from error

    def _engine_arguments(self, config: LlmConfig) -> Any:
        return self._arguments.AsyncEngineArgs(
            model=config.model,
            dtype=config.dtype,
            # -1: the model's own, or less where the memory holds less.
            max_model_len=config.window or -1,
            max_num_seqs=config.in_flight,
            tensor_parallel_size=config.tensor_parallel,
            data_parallel_size=config.data_parallel,
            gpu_memory_utilization=config.gpu_memory,
            enable_prefix_caching=True,
            # White space is a setting of the whole engine: what a request says of it is not read.
            structured_outputs_config={"backend": "xgrammar", "disable_any_whitespace": True},
            # On a processor compiling takes minutes and captured graphs do not exist.
            enforce_eager=bool(self._platforms.current_platform.is_cpu()),
            use_tqdm_on_load=False,
            disable_log_stats=True,
        )

    def sampling(self, request: Request, *, max_tokens: int) -> Any:
        """The parameters of one request."""
        schema = request.schema
        guide = None if schema is None else self._sampling.StructuredOutputsParams(json=dict(schema))
        return self._vllm.SamplingParams(
            temperature=request.temperature,
            max_tokens=max_tokens,
            # A seed of its own keeps a request out of the batched sampler, and greedy needs none.
            seed=request.seed if request.temperature > 0 else None,
            structured_outputs=guide,
            output_kind=self._sampling.RequestOutputKind.FINAL_ONLY,
        )


def vllm_modules(purpose: str) -> Callable[[str], Any]:
    """What imports vLLM's modules by name, quietly; MissingExtraError, saying what for, where vLLM is not installed."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    return lambda name: cast(Any, require_extra(name, package="vllm", extra="vllm", purpose=purpose))


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits, and the processes started inside never see it: the caller drains, its engine goes on.

    Signals that a thread blocks stay blocked in the processes it starts.
    """
    # Its first start, which would come in the middle, unblocks interrupts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
