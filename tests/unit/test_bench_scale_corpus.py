"""bench.scale.corpus: seeded corpora whose index has the published proportions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.ppr.synthetic import MUSIQUE
from bench.scale.corpus import CORPUS, LEAST_PASSAGES, QUESTIONS, RECORDS, write_corpus
from bench.scale.phrases import scattered, universe
from hippogpu.corpus import read_corpus
from hippogpu.embed import embedder_from_name
from hippogpu.index import Index
from hippogpu.openie import ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.text import normalise

# Five groups of a law that is drawn, at a size where the greatest circles are few.
PROPORTION = 0.1


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, 2000)
    return folder


@pytest.fixture(scope="module")
def index(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("index") / "x.hippo"
    replay, embedder = ReplayExtractor(small / RECORDS), embedder_from_name("hashing:384")
    with Index.open(root, extractor=replay, embedder=embedder, encoder_spec="hashing:384") as writer:
        assert not writer.add(read_corpus([small / CORPUS]).passages).refused
        writer.commit(diffuse="never")
    return root


def test_the_index_of_a_corpus_has_the_published_proportions(index: Path) -> None:
    counts = Searcher.open(index).manifest.counts
    found = {name: counts[name] / counts["passages"] for name in ("phrases", "fact_pairs", "mentions", "synonyms")}
    published = dict(zip(found, (MUSIQUE.phrases, MUSIQUE.facts, MUSIQUE.mentions, MUSIQUE.synonyms), strict=True))
    assert found == pytest.approx(published, rel=PROPORTION)


def test_the_default_method_finds_the_passage_that_a_question_was_made_of(index: Path, small: Path) -> None:
    asked = lines(small / QUESTIONS)[:20]
    texts = [str(row["question"]) for row in asked]
    rankings = Searcher.open(index).rank(texts, k=5)
    golds = [row["supporting_ids"] for row in asked]
    found = [gold[0] in [hit.passage.id for hit in ranking.hits] for gold, ranking in zip(golds, rankings, strict=True)]  # type: ignore[index]
    assert np.mean(found) > 0.9


def test_a_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_corpus(tmp_path / name, LEAST_PASSAGES, seed=seed)
    for name in (CORPUS, RECORDS, QUESTIONS):
        first, second, third = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert first == second != third


def test_every_passage_has_a_record_and_every_text_names_its_entities(small: Path) -> None:
    passages, records = lines(small / CORPUS), lines(small / RECORDS)
    assert [row["_id"] for row in passages] == [row["_id"] for row in records]
    for passage, record in zip(passages, records, strict=True):
        assert all(name in str(passage["text"]) for name in record["entities"])  # type: ignore[attr-defined]


def test_some_passages_state_nothing_and_the_texts_have_600_characters(small: Path) -> None:
    barren = [row["_id"] for row in lines(small / RECORDS) if not row["triples"]]
    lengths = [len(str(row["text"])) for row in lines(small / CORPUS)]
    assert 0 < len(barren) < 20
    assert np.mean(lengths) == pytest.approx(600, rel=PROPORTION)


@pytest.mark.parametrize("count", [3650, 3651, 14_600, 10**9])
def test_phrases_are_distinct_by_number_at_any_size(count: int) -> None:
    numbers = np.unique(np.linspace(0, count - 1, 3000).astype(np.int64))
    texts = {normalise(text) for text in universe(count).texts(numbers).to_pylist()}
    assert len(texts) == len(numbers)


@pytest.mark.parametrize("count", [1, 2, 31, 1000])
def test_scattering_is_one_to_one(count: int) -> None:
    for turn in (0, 1):
        assert sorted(scattered(np.arange(count), count, turn=turn)) == list(range(count))


def test_too_small_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="smallest corpus"):
        write_corpus(tmp_path, LEAST_PASSAGES - 1)
