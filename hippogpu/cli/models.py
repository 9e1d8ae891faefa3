"""The models that a verb needs at question time: opened by what the settings name, closed and told of at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hippogpu.cli.output import note, note_list
from hippogpu.config import Configs, EntitySource, LlmConfig, LlmTask, with_values
from hippogpu.disk import refuse_link
from hippogpu.errors import ConfigError, StoredIndexError
from hippogpu.index.cleaning import REPLIES
from hippogpu.llm import Llm, open_llm
from hippogpu.methods.entities import EntityReader
from hippogpu.methods.filter import FactFilter
from hippogpu.reading import CrossEncoderFilter, LlmEntities, LlmFilter
from hippogpu.reading.asking import Cost
from hippogpu.store import current_manifest, logs_folder


class Asked(NamedTuple):
    """What the command line says of the language model; None where it says nothing."""

    url: str | None = None
    model: str | None = None


NOT_ASKED = Asked()


@contextmanager
def open_fact_filter(
    configs: Configs, folder: Path, *, asked: Asked = NOT_ASKED, quiet: bool = False
) -> Iterator[FactFilter | None]:
    """The filter that the settings name, where it needs a model; None for those that a Searcher has itself.

    At the end it is closed, and what it kept and where it failed is told on stderr. ConfigError when no model is
    configured, or the cross-encoder cannot be loaded.
    """
    if configs.search.filter == "cross-encoder":
        yield CrossEncoderFilter(configs.search.filter_model)
        return
    if configs.search.filter != "llm":
        yield None
        return
    settings = model_for(configs, "filter", asked)
    with opened_model(settings, folder, purpose="The filter 'llm'", quiet=quiet) as llm:
        judge = LlmFilter(llm, configs.answer, temperature=settings.temperature)
        yield judge
        _tell_filter(judge, quiet=quiet)


@contextmanager
def open_entity_reader(
    configs: Configs, folder: Path, name: EntitySource, *, asked: Asked = NOT_ASKED, quiet: bool = False
) -> Iterator[EntityReader | None]:
    """The reader of that name, where it needs a language model; None for the others. Closed and told of at the end."""
    if name != "llm":
        yield None
        return
    settings = model_for(configs, "entities", asked)
    with opened_model(settings, folder, purpose="Entities by 'llm'", quiet=quiet) as llm:
        reader = LlmEntities(llm, configs.answer, temperature=settings.temperature)
        yield reader
        _tell_entities(reader, quiet=quiet)


@contextmanager
def opened_model(settings: LlmConfig, folder: Path, *, purpose: str, quiet: bool = False) -> Iterator[Llm]:
    """The language model, which keeps its replies in the index folder; where that cannot be written it says so.

    purpose begins the ConfigError that says what to configure.
    """
    if not settings.configured:
        missing = "a model" if settings.url or settings.engine == "vllm" else "an address and a model"
        raise ConfigError(
            f"{purpose} needs {missing}. Give --url URL and --model NAME, or 'url' and 'model' under [llm] of --config."
        )
    with _with_replies(settings, folder, quiet=quiet) as llm:
        yield llm
        for told in llm.notes:
            note(told, quiet=quiet)


def model_for(configs: Configs, task: LlmTask, asked: Asked) -> LlmConfig:
    """The language model of a task, as the configuration and then the command line say."""
    values = {name: value for name, value in asked._asdict().items() if value is not None}
    return with_values(configs.llm_for(task), values)


def cost_text(cost: Cost) -> str:
    """Replies and tokens in words."""
    remembered = f" ({cost.remembered:,} remembered)" if cost.remembered else ""
    usage = cost.usage
    replies = "1 reply" if cost.requests == 1 else f"{cost.requests:,} replies"
    return f"{replies}{remembered}, tokens {usage.prompt:,} in, {usage.completion:,} out"


def _with_replies(settings: LlmConfig, folder: Path, *, quiet: bool) -> Llm:
    current_manifest(folder)  # a reply cache would make the folder of an index that is not there
    logs = logs_folder(folder)
    refuse_link(logs)
    try:
        return open_llm(settings, replies=logs / REPLIES)
    except StoredIndexError as error:
        note(f"Replies are not remembered: {error}", quiet=quiet)
        return open_llm(settings, replies=None)


def _tell_filter(judge: LlmFilter, *, quiet: bool) -> None:
    report = judge.report
    if report.asked:
        unknown = f", {report.unknown:,} named that were no candidate" if report.unknown else ""
        note(
            f"filter: {report.asked:,} questions, {report.kept:,} of {report.kept + report.dropped:,} facts kept"
            f"{unknown}, {report.failed:,} failed; {cost_text(report.cost)}",
            quiet=quiet,
        )
    note_list("Questions whose facts could not be judged", [f"{one}: {why}" for one, why in report.failures])


def _tell_entities(reader: LlmEntities, *, quiet: bool) -> None:
    report = reader.report
    if report.asked:
        note(
            f"entities: {report.asked:,} questions, {report.names:,} names, {report.without:,} without, "
            f"{report.failed:,} failed; {cost_text(report.cost)}",
            quiet=quiet,
        )
    note_list("Questions whose entities could not be read", [f"{one}: {why}" for one, why in report.failures])
