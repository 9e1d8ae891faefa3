"""A reader of an index with the models that its settings name: what judges facts, what reads entities of questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from hippogpu.config import Configs, EntitySource, SearchConfig, with_values
from hippogpu.embed import Embedder
from hippogpu.methods.entities import EntityReader
from hippogpu.methods.given_entities import read_entities
from hippogpu.searcher import Searcher


class Source(NamedTuple):
    """Who names the entities of questions: the name of the source, the entities of a file, its refused lines."""

    name: EntitySource
    given: EntityReader | None = None
    refused: tuple[str, ...] = ()


class Opened(NamedTuple):
    """A searcher, the settings to search by, and the names of the models that decide what it finds."""

    searcher: Searcher
    settings: SearchConfig
    models: Mapping[str, str]


def entity_source(asked: str | None, configured: EntitySource) -> Source:
    """What --entities names: spacy, llm or a file of entities; without it, what is configured."""
    if asked is None or asked in ("spacy", "llm"):
        return Source(cast("EntitySource", asked or configured))
    read = read_entities(Path(asked))
    return Source("given", read.entities, tuple(f"{item.where}: {item.reason}" for item in read.refusals))


@contextmanager
def open_searcher(
    folder: Path,
    configs: Configs,
    source: Source,
    *,
    embedder: Embedder | None,
    asked: tuple[str | None, str | None],
    quiet: bool,
) -> Iterator[Opened]:
    """The searcher with its models open; they are closed, and told of, at the end.

    asked : address and name of the language model of the command line
    """
    settings = with_values(configs.search, {"entities": source.name})
    configs = replace(configs, search=settings)
    if settings.filter not in ("llm", "cross-encoder") and source.name != "llm":
        reader = source.given if source.name == "given" else None
        searcher = Searcher.open(folder, embedder=embedder, run=configs.run, entity_reader=reader)
        yield Opened(searcher, settings, _named(entities=reader))
        return
    # Language models are looked for only where one is asked.
    from hippogpu.cli import models

    said = models.Asked(*asked)
    with (
        models.open_fact_filter(configs, folder, asked=said, quiet=quiet) as judge,
        models.open_entity_reader(configs, folder, source.name, asked=said, quiet=quiet) as opened,
    ):
        reader = source.given if source.name == "given" else opened
        searcher = Searcher.open(folder, embedder=embedder, run=configs.run, fact_filter=judge, entity_reader=reader)
        filter_by = {} if judge is None else {"filter by": judge.name}
        yield Opened(searcher, settings, {**filter_by, **_named(entities=reader)})


def _named(*, entities: EntityReader | None) -> dict[str, str]:
    return {} if entities is None else {"entities by": entities.name}
