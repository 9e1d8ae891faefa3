"""Which extractor a run uses, how it is told to stop, and what it reports."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from hippogpu.config import Configs, ExtractConfig, ExtractorName, LlmConfig, Prompting, with_values
from hippogpu.disk import refuse_link
from hippogpu.errors import ConfigError, UsageError
from hippogpu.index.cleaning import REPLIES
from hippogpu.index.logs import used_extractors
from hippogpu.llm import Llm, Prices, open_llm, prices_of
from hippogpu.openie import Extractor, LlmExtractor, NoExtractor, ReplayExtractor
from hippogpu.store import current_manifest, has_index, logs_folder

SPACY = "spacy-"


class Asked(NamedTuple):
    """What the command line says of extraction; None where it says nothing."""

    extractor: ExtractorName | None
    openie: Path | None
    url: str | None
    model: str | None
    prompting: Prompting | None


class Chosen(NamedTuple):
    """The extractor of a run, None for the logs alone; the language model it asks, if it does, and its prices."""

    extractor: Extractor | None
    config: ExtractConfig
    llm: Llm | None = None
    prices: Prices | None = None


@contextmanager
def chosen_extractor(folder: Path, configs: Configs, asked: Asked) -> Iterator[Chosen]:
    """The extractor that the command line, else the configuration, else the folder asks for; closed at the end."""
    values = {"extractor": asked.extractor, "prompting": asked.prompting}
    config = with_values(configs.extract, {name: value for name, value in values.items() if value is not None})
    model = _model(configs.llm_for("extract"), asked)
    name = _name(folder, config, model, asked)
    with ExitStack() as held:
        if name == "http" or name == "vllm":
            settings = with_values(model, {"engine": name})
            llm = held.enter_context(_opened(folder, settings))
            extractor = LlmExtractor(llm, config, temperature=model.temperature)
            yield Chosen(extractor, config, llm, prices_of(settings))
        else:
            yield Chosen(_without_model(name, config, asked.openie), config)


def _model(config: LlmConfig, asked: Asked) -> LlmConfig:
    values = {"url": asked.url, "model": asked.model}
    return with_values(config, {name: value for name, value in values.items() if value is not None})


def _name(folder: Path, config: ExtractConfig, model: LlmConfig, asked: Asked) -> str:
    """What "auto" comes to; "" for the logs alone."""
    if asked.openie is not None:
        if config.extractor not in ("auto", "replay"):
            raise UsageError(f"--openie replays stored extractions, so --extractor cannot be '{config.extractor}'.")
        return "replay"
    if config.extractor != "auto":
        return config.extractor
    if model.configured or asked.url or asked.model:
        return model.engine
    used = used_extractors(folder)
    if not used and not _has_records(folder):
        return "spacy"
    last = (used or [""])[-1]
    if last == NoExtractor.name:
        return "none"
    return "spacy" if last.startswith(SPACY) else ""


def _has_records(folder: Path) -> bool:
    """Whether somebody has read a passage of the index there."""
    if not has_index(folder):
        return False
    counts = current_manifest(folder).counts
    return counts.get("without_record", 0) < counts.get("passages", 0)


def _opened(folder: Path, settings: LlmConfig) -> Llm:
    if not settings.configured:
        missing = "a model" if settings.url or settings.engine == "vllm" else "an address and a model"
        raise ConfigError(
            f"The extractor '{settings.engine}' needs {missing}. Give --url URL and --model NAME, or 'url' and 'model' "
            "under [llm] of --config."
        )
    refuse_link(logs_folder(folder))
    return open_llm(settings, replies=logs_folder(folder) / REPLIES)


def _without_model(name: str, config: ExtractConfig, openie: Path | None) -> Extractor | None:
    if name == "replay":
        if openie is None:
            raise UsageError("The extractor 'replay' needs the stored extractions: --openie FILE.")
        return ReplayExtractor(openie)
    if name == "spacy":
        from hippogpu.openie.spacy import SpacyExtractor

        return SpacyExtractor(config.spacy_model)
    return NoExtractor() if name == "none" else None


@contextmanager
def draining() -> Iterator[Callable[[], bool]]:
    """Whether the run was told to stop: by the first Ctrl-C or SIGTERM; the second one stops it at once."""
    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        os.write(2, b"\nStopping: what is under way is finished first. Once more stops at once.\n")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
