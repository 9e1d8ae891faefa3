"""From a configuration to a language model that can be asked."""

from __future__ import annotations

from pathlib import Path

from hippogpu.config import LlmConfig
from hippogpu.config.checks import without_login
from hippogpu.errors import ConfigError
from hippogpu.llm.cache import ReplyCache
from hippogpu.llm.client import Llm
from hippogpu.llm.engine import Engine


def open_llm(config: LlmConfig, *, replies: Path | None) -> Llm:
    """The configured model. It keeps its replies in the file `replies` when there is one and config.remember is set.

    ConfigError when no model is configured.
    """
    engine = open_engine(config)
    try:
        cache = ReplyCache(replies) if replies is not None and config.remember else None
    except BaseException:
        engine.close()
        raise
    return Llm(engine, cache)


def open_engine(config: LlmConfig) -> Engine:
    """The engine that the configuration names; ConfigError when it names no model."""
    if not config.configured:
        wanted = "'model', a name or a folder," if config.engine == "vllm" else "'url' and 'model'"
        raise ConfigError(
            f"No language model is configured for the engine '{config.engine}'. Set {wanted} under [llm] of the "
            f"configuration. Got url '{without_login(config.url)}' and model '{config.model}'."
        )
    if config.engine == "vllm":
        from hippogpu.llm.vllm import VllmEngine

        return VllmEngine(config)
    from hippogpu.llm.http import HttpEngine

    return HttpEngine(config)
