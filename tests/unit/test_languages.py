"""Five languages from stored extractions to search results: nothing merges, nothing is lost."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hippogpu import Index, IndexConfig, ReplayExtractor, SearchConfig, Searcher, read_corpus
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.synonyms import find_synonyms
from hippogpu.types import Tables

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/languages.jsonl").read_text("utf-8").splitlines()]
LANGUAGES = ("zh", "ru", "ar", "hi", "de")
WIDTH = 1024


def rows_of(language: str) -> list[dict]:
    return [row for row in ROWS if row["language"] == language]


def built(root: Path, rows: Sequence[dict], *, config: IndexConfig | None = None) -> Path:
    """An index of these rows, through files as a user has them."""
    corpus, records = root / "corpus.jsonl", root / "records.jsonl"
    corpus.write_text(_lines(rows, ("_id", "title", "text")), "utf-8")
    records.write_text(_lines(rows, ("_id", "entities", "triples")), "utf-8")
    embedder = HashingEmbedder(WIDTH)
    folder = root / "languages.hippo"
    with Index.open(
        folder,
        extractor=ReplayExtractor(records),
        embedder=embedder,
        config=config or IndexConfig(),
        encoder_spec=f"hashing:{WIDTH}",
    ) as index:
        index.add(read_corpus([corpus]).passages)
        assert index.commit().extraction.failed == ()
    return folder


def _lines(rows: Iterable[dict], keys: Sequence[str]) -> str:
    return "".join(json.dumps({key: row[key] for key in keys}, ensure_ascii=False) + "\n" for row in rows)


def tables_of(folder: Path) -> Tables:
    return load_snapshot(folder, current_manifest(folder)).tables


def written(rows: Iterable[dict]) -> set[str]:
    """The distinct subjects and objects, composed and decomposed spellings taken as one."""
    ends = (end for row in rows for triple in row["triples"] for end in (triple[0], triple[2]))
    return {unicodedata.normalize("NFC", end) for end in ends}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One index a language."""
    return {language: built(tmp_path_factory.mktemp(language), rows_of(language)) for language in LANGUAGES}


def test_there_are_a_dozen_passages_a_language() -> None:
    assert [len(rows_of(language)) for language in LANGUAGES] == [12] * len(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_distinct_phrases_stay_distinct(indexes: dict[str, Path], language: str) -> None:
    assert len(tables_of(indexes[language]).phrases) == len(written(rows_of(language)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_phrase_is_empty_and_every_triple_is_a_fact(indexes: dict[str, Path], language: str) -> None:
    tables = tables_of(indexes[language])
    assert all(tables.phrases)
    assert len(tables.facts) == sum(len(row["triples"]) for row in rows_of(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_passage_is_found_by_its_own_facts(indexes: dict[str, Path], language: str) -> None:
    rows = rows_of(language)
    questions = [" ".join(" ".join(triple) for triple in row["triples"]) for row in rows]
    rankings = Searcher.open(indexes[language]).rank(questions, k=3, config=SearchConfig(method="hippo2"))
    assert [ranking.hits[0].passage.id for ranking in rankings] == [row["_id"] for row in rows]


@pytest.mark.parametrize("language", LANGUAGES)
def test_ids_titles_and_texts_come_back_as_they_were_written(indexes: dict[str, Path], language: str) -> None:
    rows = rows_of(language)
    ranking = Searcher.open(indexes[language]).rank([rows[0]["text"]], k=len(rows))[0]
    found = {hit.passage.id: hit.passage[1:3] for hit in ranking.hits}
    assert found == {row["_id"]: (row["title"], row["text"]) for row in rows}


def test_all_languages_in_one_index_share_no_phrase_but_numbers(tmp_path: Path) -> None:
    tables = tables_of(built(tmp_path, ROWS))
    assert len(tables.phrases) == sum(len(written(rows_of(language))) for language in LANGUAGES)


def test_the_ascii_rule_of_the_oracle_profile_merges_what_it_cannot_spell(tmp_path: Path) -> None:
    tables = tables_of(built(tmp_path, rows_of("zh"), config=IndexConfig(text_rule="ascii", keep_empty=True)))
    assert "" in tables.phrases
    assert len(tables.phrases) < len(written(rows_of("zh")))


PAIRS = [
    ("हिन्दी", "हन्द"),
    ("दिन", "दीन"),
    ("عَلَم", "عِلْم"),
    ("Ёлкино", "Елкино"),
    ("Masse", "Mäße"),
    ("北京", "東京"),
    ("İzmir", "Izmir"),
]
SAME = [
    ("Zürich", unicodedata.normalize("NFD", "Zürich")),
    ("Straße", "STRASSE"),
    ("МОСКВА", "Москва"),
    ("İstanbul", "i\u0307stanbul"),
    ("क़िला", unicodedata.normalize("NFD", "क़िला")),
    ("عمّان", unicodedata.normalize("NFD", "عمّان")),
    ("《静夜思》", "静夜思"),
]


def phrases_of(root: Path, pair: tuple[str, str]) -> Sequence[str]:
    """The phrases of two passages that state one thing each."""
    rows = [
        {"_id": f"{at}", "title": "", "text": f"{at} {name}", "entities": [name], "triples": [[name, "→", "x"]]}
        for at, name in enumerate(pair)
    ]
    return [phrase for phrase in tables_of(built(root, rows)).phrases if phrase != "x"]


@pytest.mark.parametrize("pair", PAIRS)
def test_two_words_that_a_mark_or_letter_tells_apart_are_two_phrases(tmp_path: Path, pair: tuple[str, str]) -> None:
    assert len(phrases_of(tmp_path, pair)) == 2


@pytest.mark.parametrize("pair", SAME)
def test_two_spellings_of_one_word_are_one_phrase(tmp_path: Path, pair: tuple[str, str]) -> None:
    assert len(phrases_of(tmp_path, pair)) == 1


def test_a_phrase_of_two_letters_looks_for_no_synonym_but_can_be_one() -> None:
    phrases = ["北京", "北京市", "ab", "abc"]
    vectors = HashingEmbedder(8).encode(["same"] * len(phrases))
    edges = find_synonyms(phrases, vectors, IndexConfig())
    assert set(edges.source.tolist()) == {1, 3}
    assert set(edges.target.tolist()) == {0, 1, 2, 3}
