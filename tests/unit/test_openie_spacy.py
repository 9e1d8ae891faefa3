"""The extractor with the real small English model, and its processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hippogpu.errors import ExtractionError
from hippogpu.openie.spacy import SpacyExtractor
from hippogpu.openie.spacy_model import find_model
from hippogpu.openie.spacy_processes import Workers
from hippogpu.openie.spacy_reader import SpacyReader
from hippogpu.types import Passage, Record

spacy: Any = pytest.importorskip("spacy")

BADMAN = Passage("b", "Oliver Badman", "Oliver Badman is a politician from New York. He met Angela Merkel in Berlin.")
GERMAN = Passage("g", "Elbe", "Die Elbe ist einer der längsten Flüsse und mündet bei Cuxhaven in die Nordsee.")


@pytest.fixture(scope="module")
def reader() -> SpacyReader:
    return SpacyReader(find_model())


@pytest.fixture(scope="module")
def berlin(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that knows Berlin and loads at once."""
    folder = tmp_path_factory.mktemp("berlin")
    _berlin().to_disk(folder)
    return str(folder)


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


def test_passages_are_taken_as_they_are_read(berlin: str) -> None:
    taken: list[str] = []

    def passages() -> Iterator[Passage]:
        for passage in numbered(1000):
            taken.append(passage.id)
            yield passage

    records = SpacyExtractor(berlin, processes=1).extract(passages())
    next(records)
    assert len(taken) <= 64
    records.close()  # type: ignore[attr-defined]


def test_a_worker_that_is_killed_loses_no_passage(berlin: str) -> None:
    passages = numbered(96)
    with Workers(find_model(berlin), 1) as workers:
        records = by_id(workers.read(_killing(workers, passages)))
    assert records == by_id(SpacyReader(find_model(berlin)).read(passages))


def test_a_passage_that_kills_its_process_gives_an_error_and_its_neighbours_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _deadly_package(tmp_path, monkeypatch)
    passages = [BADMAN, Passage("d", "", "Die now in Berlin."), GERMAN._replace(text="Berlin.")]
    records = by_id(SpacyExtractor("deadly_model", processes=1).extract(passages))
    assert records["d"].error == "the spaCy process died at this passage (exit code 7)"
    assert [records[id_].entities for id_ in ("b", "g")] == [("Berlin",), ("Berlin",)]


def test_a_model_that_does_not_load_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path)
    with pytest.raises(ExtractionError, match="finds no entities"):
        list(SpacyExtractor(str(tmp_path), processes=1).extract([BADMAN]))


def test_closing_the_records_ends_the_processes(berlin: str) -> None:
    with Workers(find_model(berlin), 1) as workers:
        next(workers.read(iter([numbered(3)])))
        pids = workers.pids()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_no_passages_start_no_process() -> None:
    assert list(SpacyExtractor().extract([])) == []


def _killing(workers: Workers, passages: list[Passage]) -> Iterator[list[Passage]]:
    """Three batches; the worker is killed while it has the first."""
    yield passages[:32]
    os.kill(workers.pids()[0], signal.SIGKILL)
    yield passages[32:64]
    yield passages[64:]


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


_DEADLY = """
import os, spacy
from pathlib import Path

@spacy.Language.component("hippogpu_test_deadly")
def die(document):
    if document.text.startswith("Die"):
        os._exit(7)
    return document

def load(**settings):
    pipeline = spacy.load(Path(__file__).parent / "data", **settings)
    pipeline.add_pipe("hippogpu_test_deadly")
    return pipeline
"""


def _deadly_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed model package whose process ends at a text that begins with "Die"."""
    package = folder / "deadly_model"
    package.mkdir()
    _berlin().to_disk(package / "data")
    (package / "__init__.py").write_text(_DEADLY, encoding="utf-8")
    (package / "meta.json").write_bytes((package / "data" / "meta.json").read_bytes())
    (folder / "deadly_model-1.0.dist-info").mkdir()
    metadata = folder / "deadly_model-1.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: deadly_model\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
