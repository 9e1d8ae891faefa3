"""python -m bench scale quality: which passages an index of a size holds, and how it is made of the pool."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.scale import quality, quality_index
from bench.scale.quality import Bench, Case, cases_of, results_of, run_cases
from bench.scale.quality_asking import METHODS
from bench.scale.quality_corpus import (
    ASKED,
    OLD,
    OTHERS,
    Questions,
    Sea,
    by_digest,
    by_source,
    chosen,
    read_asked,
    read_sea,
    with_copies,
    write_corpus,
)
from bench.scale.quality_index import Pooled, make_index, ready_pool
from hippogpu.config import IndexConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import CorpusError, UsageError
from hippogpu.index import Index
from hippogpu.store import current_manifest
from hippogpu.types import Floats, Passage, Record, Triple

WORDS = ("river", "mountain", "painter", "town", "bridge", "poet", "harbour")


class Reader:
    """Says of each passage what its title lies beside."""

    name = "words"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for passage in passages:
            yield Record(passage.id, tuple(Triple(passage.title, "has", word) for word in passage.text.split()[2:]))


class Counting(HashingEmbedder):
    """Keeps the texts that it was asked for."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        self.asked += texts
        return super().encode(texts, instruction=instruction)


def rows(name: str, count: int) -> list[dict[str, str]]:
    return [
        {
            "_id": f"{name}{i}",
            "title": f"{name} {i}",
            "text": f"Of {name} {WORDS[i % 7]} {WORDS[i % 3]}",
            "source": "vital",
        }
        for i in range(count)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in (*ASKED, *OTHERS):
        (folder / name).mkdir(parents=True)
        write(folder / name / "corpus.jsonl", rows(name, 7))
    for name in ASKED:
        asked = {"_id": "q", "question": f"Which {name} has a bridge?", "supporting_ids": [f"{name}4", f"{name}1"]}
        write(folder / name / "queries.jsonl", [asked])
    (folder / "scale").mkdir()
    for name, count in (("wiki_passages", 5), ("eb4_passages", 9)):
        with lzma.open(folder / "scale" / f"{name}.jsonl.xz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows(name, count))
    return folder


def write(path: Path, values: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


@pytest.fixture
def sea(data: Path) -> Sea:
    return read_sea(data, 45)


@pytest.fixture
def asked(data: Path, sea: Sea) -> Questions:
    return read_asked(data, sea)


@pytest.fixture
def pool(tmp_path: Path, sea: Sea) -> Path:
    root = tmp_path / "work" / quality_index.POOL
    with Index.open(root, extractor=Reader(), embedder=HashingEmbedder(64)) as index:
        index.add(sea.passages)
        index.commit()
    return root


def test_the_sea_is_modern_first_and_the_encyclopaedia_fills_it_up(sea: Sea) -> None:
    assert (len(sea.passages), sea.modern, sea.asked) == (45, 40, 14)
    assert [passage.meta["source"] == OLD for passage in sea.passages] == [False] * 40 + [True] * 5


def test_a_greater_sea_begins_with_a_smaller_one(data: Path) -> None:
    assert list(read_sea(data, 49).passages[:43]) == list(read_sea(data, 43).passages)


def test_a_copy_with_other_white_space_is_left_out_and_gold_goes_to_the_one_that_stays(data: Path) -> None:
    copied = [*rows("2wiki", 7), {"_id": "copy", "title": "2wiki 4", "text": "Of  2wiki\nbridge mountain "}]
    write(data / "2wiki" / "corpus.jsonl", copied)
    write(data / "2wiki" / "queries.jsonl", [{"_id": "q", "question": "Which?", "supporting_ids": ["copy"]}])
    sea = read_sea(data, 40)
    assert (sea.asked, dict(sea.kept_as)) == (14, {"2wiki:copy": "2wiki:2wiki4"})
    assert read_asked(data, sea).gold["2wiki:q"] == {"2wiki:2wiki4": 1}


def test_a_folder_without_the_sets_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"musique_dev.*--data"):
        read_sea(tmp_path, 10)


@pytest.mark.parametrize("order", ["near", "mixed"])
def test_each_size_holds_the_gold_and_all_smaller_sizes(sea: Sea, asked: Questions, order: Any) -> None:
    held: set[str] = set()
    for size in (4, 7, 14, 31, 40, 45):
        ids = {passage.id for passage in chosen(sea, asked.golden(), size, order)}
        assert len(ids) == size
        assert held | asked.golden() <= ids
        held = ids


def test_distractors_come_from_the_asked_sets_first_and_from_1810_last(sea: Sea, asked: Questions) -> None:
    counts = [tuple(by_source(chosen(sea, asked.golden(), size)).values()) for size in (9, 14, 20, 40, 43)]
    assert counts == [(9, 0, 0), (14, 0, 0), (14, 6, 0), (14, 26, 0), (14, 26, 3)]


def test_mixed_distractors_are_of_all_modern_passages(sea: Sea, asked: Questions) -> None:
    found = by_source(chosen(sea, asked.golden(), 20, "mixed"))
    assert found["modern_rest"] > 6
    assert found["of_1810"] == 0


def test_a_size_without_room_for_the_gold_is_refused(sea: Sea, asked: Questions) -> None:
    with pytest.raises(UsageError, match=r"from 4 to 45 passages\. Got 3"):
        chosen(sea, asked.golden(), 3)


def test_rows_of_an_index_say_nothing_of_where_passages_are_from(sea: Sea) -> None:
    assert by_digest(sea.passages) == by_digest(list(sea.passages)[::-1])
    assert [passage.id for passage in by_digest(sea.passages)] != [passage.id for passage in sea.passages]


def test_gold_with_a_copy_of_few_other_words_is_counted() -> None:
    one = Passage("a", "Port Blair", "the capital of the islands in the bay of Bengal, a town")
    other = Passage("b", "Port-Blair", "The capital of the islands in the bay of Bengal; a port, a town.")
    assert with_copies([one, other], {"a"}) == 1
    assert with_copies([one, other], {"a", "b"}) == 0
    assert with_copies([one, other._replace(text="a town elsewhere")], {"a"}) == 0


def test_what_the_pool_has_is_not_encoded_again(pool: Path, sea: Sea) -> None:
    inner = Counting()
    pooled = Pooled(pool, inner)
    whole = f"{sea.passages[3].title}\n{sea.passages[3].text}"
    made = pooled.encode(["new", whole, "river", "newer"])
    assert (inner.asked, pooled.encoded) == (["new", "newer"], 2)
    np.testing.assert_array_equal(made, HashingEmbedder(64).encode(["new", whole, "river", "newer"]))


def test_an_index_of_the_pool_is_the_index_that_reads_and_encodes_itself(pool: Path, sea: Sea, tmp_path: Path) -> None:
    some = by_digest(sea.passages[::2])
    inner = Counting()
    report = make_index(tmp_path / "own", pool, some, Pooled(pool, inner), IndexConfig())
    with Index.open(tmp_path / "other", extractor=Reader(), embedder=HashingEmbedder(64)) as index:
        index.add(some)
        index.commit(diffuse="never")
    assert report.counts["facts"] > 0
    assert inner.asked == []
    assert current_manifest(tmp_path / "own").files == current_manifest(tmp_path / "other").files


def test_the_pool_is_made_by_the_verb_extended_by_it_and_used_as_it_is(
    sea: Sea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality_index, "ENCODER", "hashing:64")
    monkeypatch.setattr(quality_index, "EXTRACTOR", "none")
    generations = []
    for count in (5, 9, 7):
        write_corpus(tmp_path / quality_index.CORPUS, sea.passages[:count])
        root = ready_pool(tmp_path, sea.passages[:count])
        generations.append((current_manifest(root).generation, current_manifest(root).counts["passages"]))
    assert generations == [(1, 5), (2, 9), (2, 9)]


def test_synonyms_are_exact_up_to_a_size_and_both_at_the_last_of_them() -> None:
    assert cases_of([50, 20, 70], 50) == [
        *(Case(20, "exact"), Case(50, "exact"), Case(70, "cells"), Case(50, "cells")),
        Case(70, "cells, quantised facts"),
    ]
    assert cases_of([20], 50, "mixed") == [Case(20, "exact", "mixed")]


def test_cases_are_measured_once_and_an_index_is_gone_afterwards(
    pool: Path, sea: Sea, asked: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality, "ENCODER", "hashing:64")
    said: list[str] = []
    bench = Bench(pool.parent, sea, asked, said.append)
    stored: dict[str, dict[str, Any]] = {}
    cases = [Case(14), Case(45, "cells, quantised facts")]
    for _ in range(2):
        assert run_cases(bench, cases, lambda case, result: stored.update({case.name: result}))
    assert said[-2:] == [f"{case.name}: was done before" for case in cases]
    assert list((pool.parent / "index").iterdir()) == []
    small, great = stored.values()
    assert (small["counts"]["passages"], great["sources"]["of_1810"], great["encoded_anew"]) == (14, 5, 0)
    assert list(small["methods"]) == list(METHODS)
    both = small["methods"]["hippo2"]["groups"]["both"]
    assert both["questions"] == 2
    assert both["intervals"]["recall@5"][0] <= both["values"]["recall@5"] <= both["intervals"]["recall@5"][1]
    assert results_of(bench, stored)["questions"] == {"both": 2, "musique_dev": 1, "2wiki": 1}
