"""The rules that make facts of sentences and their entities, without any model."""

from __future__ import annotations

from hippogpu.openie.sentence_facts import Entity, Sentence, sentence_facts
from hippogpu.types import Record


def sentence(text: str, *entities: tuple[str, str]) -> Sentence:
    return Sentence(text, [Entity(found, label, len(found.split())) for found, label in entities])


def ends(record: Record) -> list[tuple[str, str]]:
    return [(triple.subject, triple.object) for triple in record.triples]


BORN = sentence("He was born in Montebello in 1946.", ("Montebello", "GPE"), ("1946", "DATE"))


def test_a_sentence_joins_the_title_to_itself_and_to_each_entity() -> None:
    assert ends(sentence_facts("p", "Oliver Badman", [BORN], "en")) == [
        ("Oliver Badman", "Oliver Badman"),
        ("Oliver Badman", "Montebello"),
    ]


def test_title_and_sentence_are_what_is_encoded() -> None:
    texts = {triple.text for triple in sentence_facts("p", "Oliver Badman", [BORN], "en").triples}
    assert texts == {"Oliver Badman He was born in Montebello in 1946."}


def test_the_sentence_is_the_predicate_so_that_two_sentences_are_two_facts() -> None:
    again = sentence("Montebello made him mayor.", ("Montebello", "GPE"))
    predicates = {triple.predicate for triple in sentence_facts("p", "Oliver Badman", [BORN, again], "en").triples}
    assert predicates == {"He was born in Montebello in 1946.", "Montebello made him mayor."}


def test_a_sentence_without_entities_still_states_its_title() -> None:
    assert ends(sentence_facts("p", "Rain", [sentence("It falls.")], "en")) == [("Rain", "Rain")]


def test_the_title_in_another_spelling_is_no_second_phrase() -> None:
    facts = sentence_facts("p", "Oliver Badman", [sentence("OLIVER BADMAN sang.", ("OLIVER BADMAN", "PERSON"))], "en")
    assert ends(facts) == [("Oliver Badman", "Oliver Badman")]


def test_without_a_title_the_first_entity_stands_for_it() -> None:
    facts = sentence_facts("p", " — ", [sentence("Then it rained."), BORN], "en")
    assert {triple.subject for triple in facts.triples} == {"Montebello"}


def test_without_title_and_entities_there_are_no_facts_and_no_error() -> None:
    assert sentence_facts("p", "", [sentence("Then it rained.")], "en") == Record("p", ())


def test_articles_possessives_and_quotes_are_taken_off() -> None:
    found = sentence("…", ("The Hague's", "GPE"), ("“Hamlet”", "WORK_OF_ART"), ("the United States", "GPE"))
    assert sentence_facts("p", "T", [found], "en").entities == ("Hague", "Hamlet", "United States")


def test_articles_of_other_languages_stay() -> None:
    assert sentence_facts("p", "T", [sentence("…", ("A Coruña", "LOC"))], "es").entities == ("A Coruña",)


def test_numbers_dates_letters_and_long_spans_are_dropped() -> None:
    long = " ".join(["word"] * 9)
    found = sentence("…", ("12", "CARDINAL"), ("May 1", "DATE"), ("747", "PRODUCT"), ("X", "ORG"), (long, "ORG"))
    assert sentence_facts("p", "T", [found], "en").entities == ()


def test_a_year_as_a_name_and_a_single_ideograph_are_kept() -> None:
    found = sentence("…", ("1984", "WORK_OF_ART"), ("秦", "GPE"))
    assert sentence_facts("p", "T", [found], "en").entities == ("1984", "秦")


def test_a_repeated_sentence_states_its_facts_once() -> None:
    assert len(sentence_facts("p", "T", [BORN, BORN], "en").triples) == 2
