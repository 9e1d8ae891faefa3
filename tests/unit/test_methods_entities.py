"""The entities of questions: names in a text, spaCy's, those of a file, and which reader the settings open."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from method_cases import Naming
from small_index import WIDTH

from hippogpu.config import SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import CorpusError, UsageError
from hippogpu.methods import Clock, Needs, QuestionEntities, Tools, ask
from hippogpu.methods.given_entities import NOT_GIVEN, GivenEntities, read_entities
from hippogpu.methods.question_names import Span, names_in


def marked(question: str, *names: str) -> list[Span]:
    return [Span(question.index(name), question.index(name) + len(name)) for name in names]


@pytest.mark.parametrize(
    ("question", "model", "names"),
    [
        ("Were Scott Derrickson and Ed Wood of the same nationality?", ["Scott Derrickson", "Ed Wood"], None),
        (
            "Which band, Letters to Cleo or Screaming Trees?",
            ["Letters", "Cleo"],
            ["Letters to Cleo", "Screaming Trees"],
        ),
        ("Are Esma Sultan Mansion and it near?", ["Esma", "Sultan Mansion"], ["Esma Sultan Mansion"]),
        ('When was "Shut Up, Make Love" by Poison sung?', ["Make Love", "Poison"], ["Shut Up, Make Love", "Poison"]),
        ("Are Local H both from here?", ["Are Local H"], ["Local H"]),
        ("Who was the father of the IFFHS founder in 1992?", [], ["IFFHS"]),
        ("who was hank snow?", ["hank snow"], ["hank snow"]),
        ("What is it?", [], []),
        ("Was it Ada's, or the Ada's?", ["Ada's", "the Ada's"], ["Ada"]),
        ("北京在哪里?", ["北京"], ["北京"]),
    ],
)
def test_names_are_what_is_marked_quoted_or_capitalised(
    question: str, model: list[str], names: list[str] | None
) -> None:
    assert list(names_in(question, marked(question, *model), "en")) == (model if names is None else names)


needs_spacy = pytest.mark.skipif(importlib.util.find_spec("spacy") is None, reason="needs the extra nlp")


@needs_spacy
def test_spacy_names_the_entities_of_each_question() -> None:
    from hippogpu.methods.spacy_entities import SpacyEntities

    reader = SpacyEntities()
    read = reader(["Where did Charles Babbage meet Ada Lovelace in 1833?", "what is it?", "\ud800"])
    assert read[0].names == ("Charles Babbage", "Ada Lovelace")
    assert [(row.names, row.failure) for row in read[1:]] == [((), None)] * 2


@needs_spacy
def test_a_question_that_a_pipe_fails_on_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from hippogpu.methods import spacy_entities

    reader, names_of = spacy_entities.SpacyEntities(), spacy_entities._names

    def names(document: Any, language: str) -> tuple[str, ...]:
        if "bad" in document.text:
            raise ValueError("broken")
        return names_of(document, language)

    monkeypatch.setattr(spacy_entities, "_names", names)
    read = reader(["Where is London?", "a bad one", "Where is Paris?"])
    assert [row.names for row in read] == [("London",), (), ("Paris",)]
    assert read[1].failure == "spaCy failed on it: ValueError: broken"


def test_given_entities_are_found_by_the_text_of_the_question() -> None:
    reader = GivenEntities({"Who  was\nAda?": ["Ada"], "who was ada?": []})
    assert reader([" Who was Ada? ", "who was ada?", "Who?"]) == [
        QuestionEntities(("Ada",)),
        QuestionEntities(()),
        QuestionEntities((), NOT_GIVEN),
    ]


def test_the_name_of_given_entities_tells_their_content() -> None:
    one, same, other = (GivenEntities({"a": names}) for names in (["b"], ("b",), ["c"]))
    assert one.name == same.name != other.name


@pytest.mark.parametrize("name", ["entities.jsonl", "entities.jsonl.gz"])
def test_entities_are_read_from_a_file_and_what_is_none_is_refused(tmp_path: Path, name: str) -> None:
    rows: list[Any] = [
        {"_id": "q1", "question": "Who was Ada?", "entities": ["Ada"]},
        {"question": "Who was Ada?", "entities": ["Ada"]},
        {"question": "Who was Ada?", "entities": ["Byron"]},
        {"question": "No list?", "entities": "Ada"},
        {"question": "No text?", "entities": [1]},
        {"entities": ["Ada"]},
        ["Ada"],
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    read = read_entities(path)
    assert read.entities(["Who was Ada?"]) == [QuestionEntities(("Ada",))]
    assert [refusal.where.rpartition(":")[2] for refusal in read.refusals] == ["3", "4", "5", "6", "7"]
    assert "came before with other entities" in read.refusals[0].reason


@pytest.mark.parametrize(("content", "said"), [("", "empty"), ('{"question": "?"}\n', "1 refused")])
def test_a_file_without_entities_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "none.jsonl").write_text(content)
    with pytest.raises(CorpusError, match=rf"No entities of questions in .*{said}"):
        read_entities(tmp_path / "none.jsonl")


def question_for(source: Any, reader: Any) -> Any:
    config = SearchConfig(method="hippo2", entities=source)
    tools = Tools(HashingEmbedder(WIDTH), entity_reader=reader)
    return ask(tools, ["?"], Needs(entities=True), config=config, rule="unicode", clock=Clock()).entities


@pytest.mark.parametrize("source", ["llm", "given"])
def test_a_reader_with_a_model_is_the_one_given(source: str) -> None:
    assert question_for(source, Naming([QuestionEntities(("Ada",))])).read[0].names == ("Ada",)
    with pytest.raises(UsageError, match=rf"'{source}', and no reader was given.*--entities FILE"):
        question_for(source, None)


@needs_spacy
def test_another_reader_where_the_settings_say_spacy_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'naming' was given, and 'entities' of the settings is 'spacy'"):
        question_for("spacy", Naming([]))


def test_a_reader_without_a_row_for_each_question_is_refused() -> None:
    with pytest.raises(UsageError, match="'naming' gave the entities of 2 questions for 1"):
        question_for("given", Naming([QuestionEntities(())] * 2))


def test_entities_are_kept_once_as_phrases_are_told_apart() -> None:
    found = question_for("given", Naming([QuestionEntities(("Ada", "ADA!", "?", "Byron"))]))
    assert (found.read[0].names, len(found.vectors)) == (("Ada", "Byron"), 2)
