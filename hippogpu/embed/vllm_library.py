"""What encoding uses of vLLM, 0.30 to 0.33, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hippogpu.embed.encode import shortened
from hippogpu.embed.vllm_settings import VllmSettings
from hippogpu.errors import EncoderError
from hippogpu.llm.vllm_library import interrupts_held, vllm_modules
from hippogpu.types import Floats

# The file in which sentence-transformers keeps the words that stand before a text, and their name for questions.
_PROMPTS_FILE, _QUERY = "config_sentence_transformers.json", "query"
_CLOSING_S = 60.0
_WORDS = 300


class Described(NamedTuple):
    """What a model's files say, before any weights are loaded.

    commit       its revision on the hub; None for a folder
    query_prompt what stands before a question; "" when the model names nothing
    tokenizer    of the library transformers
    """

    width: int
    window: int
    commit: str | None
    query_prompt: str
    tokenizer: Any


class PoolingLibrary:
    """The library, imported; MissingExtraError, saying what for, where it is not installed."""

    def __init__(self, purpose: str) -> None:
        module = vllm_modules(purpose)
        self._vllm = module("vllm")
        self._arguments = module("vllm.engine.arg_utils")
        self._platforms = module("vllm.platforms")
        self._pooler = module("vllm.config.pooler")
        self._files = module("vllm.transformers_utils.repo_utils")
        self._tokenizers = module("vllm.tokenizers")
        self._pooling_config = module("vllm.transformers_utils.config").get_pooling_config
        self._error: type[Exception] = module("vllm.exceptions").VLLMError
        self.EngineDead: type[Exception] = module("vllm.v1.engine.exceptions").EngineDeadError

    def described(self, model: str, settings: VllmSettings) -> Described:
        """What the model's files say. EncoderError when vLLM cannot read them, or for a model that is no encoder.

        vLLM would pool whatever it is given, a model that writes text by its last token: the pooling must be the
        model's own (sentence-transformers' files say it) or the user's.
        """
        try:
            config = self._arguments.EngineArgs(**self._given(model, settings)).create_model_config()
            pooling = self._pooling_config(model, config.revision) or {}
            prompts = self._files.get_hf_file_to_dict(_PROMPTS_FILE, model, config.revision) or {}
            tokenizer = self._tokenizers.cached_tokenizer_from_config(config)
        except (OSError, ValueError, RuntimeError, self._error) as error:
            raise EncoderError(
                f"vLLM cannot use '{model}' as an encoder: {_words(error)}. "
                "Check the name and the settings behind it, or give a folder."
            ) from error
        if settings.pooling == "model" and "seq_pooling_type" not in pooling:
            raise EncoderError(
                f"The files of '{model}' do not say how the vectors of its tokens become one, so it may be no encoder. "
                f"If it is one, say how: vllm:{model}?pooling=mean (or cls, or last)."
            )
        return Described(
            width=int(config.embedding_size),
            window=int(config.max_model_len),
            commit=getattr(config.hf_config, "_commit_hash", None),
            query_prompt=_query_prompt(prompts),
            tokenizer=tokenizer,
        )

    def start(self, model: str, settings: VllmSettings) -> Any:
        """The engine, in processes of its own, which an interrupt of this one does not reach."""
        try:
            with interrupts_held():
                return self._vllm.LLM(**self._given(model, settings))
        except (OSError, ValueError, RuntimeError, self._error) as error:
            raise EncoderError(
                f"vLLM cannot run the encoder '{model}': {_words(error)}. See its own message above; with too little "
                "memory lower gpu_memory, in_flight or window, or raise tensor_parallel."
            ) from error

    def vectors(self, engine: Any, texts: list[str]) -> Floats:
        """(len(texts), w) float32, in the order of the texts, each cut to the window, scaled by vLLM to length 1."""
        try:
            outputs = engine.encode(
                texts,
                pooling_params=self._vllm.PoolingParams(use_activation=True),
                pooling_task="embed",
                tokenization_kwargs={"truncate_prompt_tokens": -1},
                use_tqdm=False,
            )
        except self.EngineDead:
            raise
        except (ValueError, self._error) as error:
            raise EncoderError(
                f"vLLM gave no vectors for {len(texts)} texts, the first being {shortened(texts[0])}: {_words(error)}. "
                "Check that the model is one for embeddings."
            ) from error
        return np.stack([output.outputs.data.float().numpy() for output in outputs])

    def close(self, engine: Any) -> None:
        """Ends the engine's processes in order: ones that are killed leave shared memory behind."""
        engine.llm_engine.engine_core.shutdown(timeout=_CLOSING_S)

    def _given(self, model: str, settings: VllmSettings) -> dict[str, Any]:
        pooler = None
        if settings.pooling != "model":
            pooler = self._pooler.PoolerConfig(seq_pooling_type=settings.pooling.upper())
        return {
            "model": model,
            "runner": "pooling",
            "dtype": settings.dtype,
            "max_model_len": settings.window or None,
            "max_num_seqs": settings.in_flight,
            "tensor_parallel_size": settings.tensor_parallel,
            "gpu_memory_utilization": settings.gpu_memory,
            "pooler_config": pooler,
            # On a processor compiling takes minutes and captured graphs do not exist.
            "enforce_eager": bool(self._platforms.current_platform.is_cpu()),
            "use_tqdm_on_load": False,
            "disable_log_stats": True,
        }


def _query_prompt(prompts: Any) -> str:
    named = prompts.get("prompts") if isinstance(prompts, dict) else None
    prompt = named.get(_QUERY) if isinstance(named, dict) else None
    return prompt if isinstance(prompt, str) else ""


def _words(error: Exception) -> str:
    return shortened(" ".join(str(error).split()).rstrip("."), _WORDS).strip("'\"")
