"""Which model is found, what of it is loaded, and what is said when it is not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hippogpu.errors import ConfigError, MissingExtraError, UsageError
from hippogpu.openie.spacy import SpacyExtractor
from hippogpu.openie.spacy_model import find_model, load_pipeline
from hippogpu.openie.spacy_reader import SpacyReader
from hippogpu.types import Passage, Record

spacy: Any = pytest.importorskip("spacy")


def saved(folder: Path, language: str, patterns: dict[str, str]) -> str:
    """A model of that language that knows these names, in a folder."""
    pipeline = spacy.blank(language)
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": name} for name, label in patterns.items()])
    pipeline.meta["name"], pipeline.meta["version"] = "names", "1.2.3"
    pipeline.to_disk(folder)
    return str(folder)


def read(model: str, title: str, text: str) -> Record:
    return SpacyReader(find_model(model)).read([Passage("p", title, text)])[0]


def test_the_small_english_model_is_found_without_a_name() -> None:
    assert find_model().language == "en"


def test_the_name_says_model_version_and_rules(tmp_path: Path) -> None:
    extractor = SpacyExtractor(saved(tmp_path / "model", "de", {"Elbe": "LOC"}))
    assert extractor.name.startswith("spacy-de_names-1.2.3-")


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"hippogpu\[nlp\]"):
        SpacyExtractor()


def test_an_absent_model_says_how_to_install_it() -> None:
    with pytest.raises(ConfigError, match="python -m spacy download de_core_news_sm"):
        SpacyExtractor("de_core_news_sm")


def test_without_an_english_model_both_names_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hippogpu.openie.spacy_model.DEFAULT_MODELS", ("no_model_sm", "no_model_sm_again"))
    with pytest.raises(ConfigError, match=r"no_model_sm and no_model_sm_again.*hippogpu\[nlp\]"):
        SpacyExtractor()


def test_a_folder_whose_meta_says_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="does not say language, name and version"):
        SpacyExtractor(str(tmp_path))


def test_a_model_that_finds_no_entities_is_refused(tmp_path: Path) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(tmp_path)
    with pytest.raises(ConfigError, match=r"finds no entities \(its pipes: sentencizer\)"):
        load_pipeline(find_model(str(tmp_path)))


def test_a_negative_number_of_processes_is_refused() -> None:
    with pytest.raises(UsageError, match="Got -1"):
        SpacyExtractor(processes=-1)


def test_a_model_without_a_parser_works_by_punctuation_and_its_entities(tmp_path: Path) -> None:
    model = saved(tmp_path, "de", {"Elbe": "LOC", "Nordsee": "LOC", "Dresden": "LOC"})
    record = read(model, "Fluss", "Die Elbe mündet in die Nordsee. Sie fließt auch durch die Stadt Dresden.")
    assert [(t.predicate, t.object) for t in record.triples] == [
        ("Die Elbe mündet in die Nordsee.", "Fluss"),
        ("Die Elbe mündet in die Nordsee.", "Elbe"),
        ("Die Elbe mündet in die Nordsee.", "Nordsee"),
        ("Sie fließt auch durch die Stadt Dresden.", "Fluss"),
        ("Sie fließt auch durch die Stadt Dresden.", "Dresden"),
    ]


def test_a_language_without_spaces_keeps_its_names_apart(tmp_path: Path) -> None:
    model = saved(tmp_path, "zh", {"青藏高原": "LOC", "渤海": "LOC"})
    record = read(model, "黄河", "黄河是中国第二长的河流，发源于青藏高原。黄河流经九个省区，最后注入渤海。")
    assert record.entities == ("青藏高原", "渤海")
    assert [triple.predicate for triple in record.triples[::2]] == [
        "黄河是中国第二长的河流，发源于青藏高原。",
        "黄河流经九个省区，最后注入渤海。",
    ]


def test_a_passage_in_another_language_than_the_model_is_named(tmp_path: Path) -> None:
    model = saved(tmp_path, "de", {"Elbe": "LOC"})
    record = read(model, "Loire", "La Loire est le plus long fleuve de France et se jette dans l'océan Atlantique.")
    assert record.error == (
        "the passage seems to be French; the spaCy model reads German. Name a model for it with spacy_model under "
        "[extract], or configure a language model"
    )


def test_a_model_of_several_languages_takes_german_and_refuses_chinese(tmp_path: Path) -> None:
    reader = SpacyReader(find_model(saved(tmp_path, "xx", {"Elbe": "LOC"})))
    german = Passage("g", "", "Die Elbe mündet bei Cuxhaven in die Nordsee.")
    chinese = Passage("c", "", "黄河是中国第二长的河流，发源于青藏高原，流经九个省区，最后注入渤海。")
    errors = [record.error is None for record in reader.read([german, chinese])]
    assert errors == [True, False]
