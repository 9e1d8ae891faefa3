"""The extractor with the real small English model, and its processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hippogpu.openie.spacy import SpacyExtractor
from hippogpu.openie.spacy_model import find_model
from hippogpu.openie.spacy_reader import SpacyReader
from hippogpu.types import Passage, Record

spacy: Any = pytest.importorskip("spacy")

BADMAN = Passage("b", "Oliver Badman", "Oliver Badman is a politician from New York. He met Angela Merkel in Berlin.")
GERMAN = Passage("g", "Elbe", "Die Elbe ist einer der längsten Flüsse und mündet bei Cuxhaven in die Nordsee.")


@pytest.fixture(scope="module")
def reader() -> SpacyReader:
    return SpacyReader(find_model())


def numbered(count: int) -> list[Passage]:
    return [Passage(f"p{i}", f"Town {i}", f"Town {i} lies in France. It is not Berlin.") for i in range(count)]


def by_id(records: Iterator[Record] | list[Record]) -> dict[str, Record]:
    return {record.passage_id: record for record in records}


def test_only_sentences_and_entities_are_worked_out(reader: SpacyReader) -> None:
    assert reader.pipes == ("senter", "ner")


def test_entities_of_each_sentence_are_joined_to_the_title(reader: SpacyReader) -> None:
    [record] = reader.read([BADMAN])
    found = {(triple.predicate.split()[0], triple.object) for triple in record.triples}
    assert found >= {("Oliver", "New York"), ("He", "Angela Merkel"), ("He", "Berlin"), ("He", "Oliver Badman")}


def test_a_refused_passage_leaves_its_neighbours_alone(reader: SpacyReader) -> None:
    alone = reader.read([BADMAN])[0]
    records = reader.read([GERMAN, BADMAN, GERMAN])
    assert [record.error is None for record in records] == [False, True, False]
    assert records[1] == alone


def test_a_text_longer_than_the_model_reads_says_to_split_it(reader: SpacyReader) -> None:
    [record] = reader.read([Passage("p", "", "a " * 500_001)])
    assert record.error is not None
    assert "1000002 characters" in record.error
    assert "--chunk" in record.error


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\0", "Angela\0Merkel went to Berlin.\0", "\ud800 in Berlin", "—"])
def test_odd_texts_give_a_record_without_error(reader: SpacyReader, text: str) -> None:
    for title in ("", "Title", "\0", "\udfff"):
        [record] = reader.read([Passage("p", title, text)])
        assert record.error is None


def test_a_long_sentence_is_cut_into_pieces_that_an_encoder_reads(reader: SpacyReader) -> None:
    [record] = reader.read([Passage("p", "List", "Angela Merkel, Barack Obama, " * 400)])
    assert max(len(triple.predicate) for triple in record.triples) <= 1000
    assert {"Angela Merkel", "Barack Obama"} <= set(record.entities)


def test_a_text_that_a_pipe_fails_on_gives_one_error(tmp_path: Path) -> None:
    failing = SpacyReader(find_model(_picky_model(tmp_path)))
    first, failed, last = failing.read([BADMAN, Passage("f", "", "Do not read this in Berlin."), BADMAN])
    assert failed.error == "spaCy failed on the passage: ValueError: it says not to"
    assert first.entities == last.entities == ("Berlin",)


def test_processes_say_what_one_reader_says(reader: SpacyReader) -> None:
    passages = [*numbered(70), GERMAN]
    assert by_id(SpacyExtractor(processes=2).extract(passages)) == by_id(reader.read(passages))


def test_no_passages_start_no_process() -> None:
    assert list(SpacyExtractor().extract([])) == []


def _picky_model(folder: Path) -> str:
    """A model that knows Berlin and fails on "not"."""

    def fail_on_not(document: Any) -> Any:
        if "not" in [token.text for token in document]:
            raise ValueError("it says not to")
        return document

    spacy.Language.component("hippogpu_test_picky", func=fail_on_not)
    pipeline = _berlin()
    pipeline.add_pipe("hippogpu_test_picky")
    pipeline.to_disk(folder)
    return str(folder)


def _berlin() -> Any:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Berlin"}])
    return pipeline
