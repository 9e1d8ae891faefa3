"""Small indexes as methods take them, and questions with all that any of them needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from small_index import WIDTH

from hippogpu.backends import load_backend
from hippogpu.config import BackendName, SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.methods import (
    Asked,
    Clock,
    EntityVectors,
    FactFilter,
    KeepAll,
    Loaded,
    Needs,
    QuestionEntities,
    Ranked,
    Tools,
    ask,
    load,
    method_of,
)
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats

QUESTIONS = ["who wrote notes?", "what did Charles Babbage build?", "steam"]
BACKENDS: tuple[BackendName, ...] = ("cpu", "reference")


class Naming:
    """A reader that hands out what it was made with, in order."""

    name = "naming"

    def __init__(self, rows: Sequence[QuestionEntities]) -> None:
        self._rows = rows

    def __call__(self, questions: Sequence[str]) -> Sequence[QuestionEntities]:
        return self._rows


def loaded(root: Path, backend: BackendName = "reference") -> Loaded:
    return load(load_snapshot(root, current_manifest(root)), load_backend(backend))


def asked(
    questions: Sequence[str],
    *,
    entities: Sequence[QuestionEntities] | None = None,
    fact_filter: FactFilter | None = None,
) -> Asked:
    """The questions with vectors of the hashing encoder, and with entities where they are given."""
    reader = None if entities is None else Naming(entities)
    tools = Tools(HashingEmbedder(WIDTH), entity_reader=reader)
    needs = Needs(passages=True, facts=True, entities=entities is not None)
    config = SearchConfig(entities="given")
    made = ask(tools, questions, needs, config=config, rule="unicode", clock=Clock())
    return made._replace(fact_filter=fact_filter or KeepAll())


def entities_of(names: Sequence[Sequence[str]]) -> EntityVectors:
    """Entities as they are put to a method."""
    found = asked([""] * len(names), entities=[QuestionEntities(tuple(row)) for row in names]).entities
    assert found is not None
    return found


def rank(
    here: Loaded,
    questions: Sequence[str] | Asked,
    config: SearchConfig,
    names: Sequence[Sequence[str]] | None = None,
    *,
    k: int = 99,
) -> list[Ranked]:
    """The rankings of the method of the settings; names : the entities of each question."""
    return method_of(config.method).rank(here, _asked(questions, names), k=k, config=config, clock=Clock())


def method_rows(
    here: Loaded, questions: Sequence[str] | Asked, config: SearchConfig, names: Sequence[Sequence[str]] | None = None
) -> AnyFloats:
    """The scores (B, P) of the method of the settings."""
    return method_of(config.method).score(here, _asked(questions, names), config=config, clock=Clock()).scores


def _asked(questions: Sequence[str] | Asked, names: Sequence[Sequence[str]] | None) -> Asked:
    if isinstance(questions, Asked):
        return questions
    read = None if names is None else [QuestionEntities(tuple(row)) for row in names]
    return asked(questions, entities=read)
