"""The index of a recipe: found and checked to be the one that is meant, else built, resuming what was begun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.checks import Check, equal
from bench.oracle.data import OracleEmbedder, read_oracle, read_source
from bench.quality.recipe import Recipe
from hippogpu.config import PROFILES, ProfileName
from hippogpu.corpus import read_corpus
from hippogpu.embed import Embedder, embedder_from_name
from hippogpu.errors import ConfigError, UsageError
from hippogpu.index import Index
from hippogpu.index.logs import used_extractors
from hippogpu.openie import Extractor, ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.store import current_manifest, has_index
from hippogpu.types import Passage

_SHOWN = 3


class Place(NamedTuple):
    """Where the data of a recipe lies and where its index is, or is to be."""

    data: Path
    root: Path
    given: bool


def place_of(recipe: Recipe, data: Path, work: Path, given: dict[str, Path]) -> Place:
    """given : folders by the recipe's index name (--index NAME=DIR); else DIR is NAME.hippo in the work folder."""
    folder = data / recipe.data
    if not folder.is_dir():
        raise UsageError(f"There is no folder '{folder}'. Pass the one that holds '{recipe.data}': --data DIR.")
    return Place(folder, given.get(recipe.index, work / f"{recipe.index}.hippo"), recipe.index in given)


def embedder_for(recipe: Recipe, place: Place, data: Path) -> Embedder:
    """The recipe's encoder, or one that knows its stored vectors alone."""
    if not recipe.vectors:
        return embedder_from_name(recipe.encoder)
    return OracleEmbedder(read_oracle(data / recipe.vectors), read_source(place.data))


def ready_index(recipe: Recipe, place: Place, embedder: Embedder) -> tuple[list[Check], dict[str, Any]]:
    """Checks that the index is the recipe's, after it was built where there was none; and what it holds.

    An index that was given is only read. Nothing is encoded for one that is whole.
    """
    passages = tuple(read_corpus([place.data]).passages)
    if place.given and not has_index(place.root):
        raise ConfigError(f"There is no index '{place.root}'. Name one that exists: --index {recipe.index}=DIR.")
    if not has_index(place.root) or (not place.given and _count(place.root) < len(passages)):
        _build(recipe, place, embedder, passages)
    return _identity(recipe, place, embedder, passages)


def extractor_of(recipe: Recipe, place: Place) -> Extractor:
    """Who reads the passages: the stored extractions, or spaCy."""
    if "file" in recipe.records:
        return ReplayExtractor(place.data / recipe.records["file"])
    if recipe.records["extractor"] != "spacy":
        raise ConfigError(f"A recipe's extractor is 'spacy'. Got '{recipe.records['extractor']}'.")
    from hippogpu.openie.spacy import SpacyExtractor

    return SpacyExtractor()


def _build(recipe: Recipe, place: Place, embedder: Embedder, passages: Sequence[Passage]) -> None:
    spec = "" if recipe.vectors else recipe.encoder
    config = PROFILES[_profile(recipe)]
    with Index.open(
        place.root, extractor=extractor_of(recipe, place), embedder=embedder, config=config, encoder_spec=spec
    ) as index:
        index.add(passages)
        index.commit()


def _identity(
    recipe: Recipe, place: Place, embedder: Embedder, passages: Sequence[Passage]
) -> tuple[list[Check], dict[str, Any]]:
    """Passages, rules, encoder and records, each compared with what the recipe asks for."""
    manifest = current_manifest(place.root)
    searcher = Searcher.open(place.root, embedder=embedder)
    aliases = searcher.aliases()
    wanted = {passage.id: (passage.title, passage.text) for passage in passages}
    held = {
        id_: (passage.title, passage.text)
        for passage in (searcher.passage(row) for row in range(manifest.counts["passages"]))
        for id_ in aliases[passage.id]
    }
    strays = sorted(id_ for id_ in wanted.keys() | held.keys() if wanted.get(id_) != held.get(id_))
    name = f"{recipe.name}: "
    checks = [
        equal(f"{name}passages that are not the corpus's", strays[:_SHOWN] if strays else 0, 0),
        equal(f"{name}encoder", manifest.encoder.name, embedder.name),
        equal(f"{name}profile", manifest.config == PROFILES[_profile(recipe)], True),
        Check(f"{name}records", *_records(recipe, place)),
    ]
    return checks, {"counts": dict(manifest.counts), "encoder": manifest.encoder.name, "profile": recipe.profile}


def _records(recipe: Recipe, place: Place) -> tuple[list[str], str, bool]:
    """Who read the index, who should have, and whether they agree."""
    used = used_extractors(place.root)
    if "file" in recipe.records:
        wanted = ReplayExtractor(place.data / recipe.records["file"]).name
        return used, wanted, used == [wanted]
    wanted = f"{recipe.records['extractor']}-"
    return used, f"{wanted}…", len(used) == 1 and used[0].startswith(wanted)


def _profile(recipe: Recipe) -> ProfileName:
    return "oracle" if recipe.profile == "oracle" else "default"


def _count(root: Path) -> int:
    return current_manifest(root).counts["passages"]
