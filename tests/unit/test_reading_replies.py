"""What is read of replies about questions, whatever form a model gives them."""

from __future__ import annotations

import time

import pytest

from hippogpu.reading.asking import Read
from hippogpu.reading.replies import (
    KeptNumbers,
    cited_numbers,
    kept_reader,
    marked_answer,
    read_answer,
    read_entities,
    read_thought,
)
from hippogpu.types import KeptFact

FACTS = [
    KeptFact("orla fenwick", "founded", "fenwick quartet", 1.0),
    KeptFact("fenwick quartet", "is based in", "leith", 0.8),
    KeptFact("orla fenwick", "was born in", "perth", 0.5),
]


def kept(text: str) -> Read[KeptNumbers]:
    return kept_reader(FACTS)(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"keep": [1, 3]}',
        '```json\n{"keep": [3, 1, 3]}\n```',
        "<think>Facts 1, 2 and 3.</think>\n[1, 3]",
        '{"keep": ["1", "3."]}',
        '{"Kept facts": [1.0, 3.0]}',
        '{"keep": "1, 3"}',
        '{"keep": "[1; 3]"}',
        '{"drop": [2], "keep": [1, 3]}',
        '{"keep": [["Orla Fenwick", "founded", "Fenwick Quartet"], ["Orla Fenwick", "was born in", "Perth"]], '
        '"drop": [["fenwick quartet", "is based in", "leith"]]}',
        '{"keep": [{"number": 1}, {"number": 3}]}',
        "[true, false, true]",
        '{"fact": [["Orla Fenwick", "founded", "Fenwick Quartet"], ["Orla Fenwick", "was born in", "Perth."]]}',
        '[{"subject": "Orla Fenwick", "predicate": "founded", "object": "Fenwick Quartet"},'
        '{"subject": "orla  fenwick", "predicate": "was born in", "object": "perth"}]',
    ],
)
def test_facts_are_kept_by_number_or_by_their_words(text: str) -> None:
    assert kept(text) == Read(KeptNumbers((0, 2), 0))


@pytest.mark.parametrize("text", ['{"keep": 2}', '{"kept": "2"}', '{"keep": {"number": 2}}', "2"])
def test_one_number_is_a_list_of_itself(text: str) -> None:
    assert kept(text) == Read(KeptNumbers((1,), 0))


@pytest.mark.parametrize(
    "text",
    ['{"drop": [1, 2]}', '{"leave out": [1]}', '{"drop": [["orla fenwick", "founded", "fenwick quartet"]]}', "{}"],
)
def test_a_list_under_another_name_is_a_fault_and_not_taken_for_what_is_kept(text: str) -> None:
    read = kept(text)
    assert read.value is None
    assert "nothing to keep" in str(read.fault)


@pytest.mark.parametrize("text", ['{"keep": []}', "[]"])
def test_an_empty_list_keeps_nothing_and_is_a_reply(text: str) -> None:
    assert kept(text) == Read(KeptNumbers((), 0))


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ('{"keep": [1, 4]}', 1),
        ('{"keep": [1, 17, 17, 4]}', 2),
        (
            '[["orla fenwick", "founded", "fenwick quartet"], ["orla fenwick", "founded", "fenwick quartets"]]',
            1,
        ),
    ],
)
def test_what_is_no_candidate_is_dropped_and_counted_never_taken_for_its_neighbour(text: str, unknown: int) -> None:
    assert kept(text) == Read(KeptNumbers((0,), unknown))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! I keep the first.",
        '{"keep": [0, 1]}',
        '{"keep": "all"}',
        "[1] and [2]",
        "[true]",
        "null",
        '{"keep": [[a?, b]]}',
    ],
)
def test_a_reply_that_cannot_be_believed_has_a_fault_and_no_value(text: str) -> None:
    read = kept(text)
    assert (read.value, bool(read.fault), read.truncated) == (None, True, False)


@pytest.mark.parametrize("text", ['{"keep": [1, ', "[1", "<think>The first"])
def test_a_reply_that_was_cut_says_so(text: str) -> None:
    assert kept(text).truncated


def test_names_are_read_once_each_and_an_empty_list_is_a_reply() -> None:
    assert read_entities('{"entities": ["Ada  Byron", "Ada Byron", "Leith"]}') == Read(("Ada Byron", "Leith"))
    assert read_entities('{"entities": []}') == Read(())
    assert read_entities("There are none.").fault is not None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"thought": "Orla was born in Perth.", "answer": "Perth"}', "Perth"),
        ('{"thought": "Orla was born in Perth.", "answer": ""}', ""),
        ('{"thought": "Orla was born in Perth.", "answer": null}', ""),
        ('{"thought": "Orla was born in Perth.", "answer": "unknown"}', ""),
        ('{"Thought": "Orla was born in Perth. So the answer is: Perth.", "Answer": ""}', "Perth"),
        ("Orla was born in Perth. So the answer is: Perth.", "Perth"),
        ("Orla was born in Perth. The answer is still to be found.", ""),
    ],
)
def test_a_thought_answers_by_its_field_or_by_an_answer_marker(text: str, answer: str) -> None:
    thought = read_thought(text).value
    assert thought is not None
    assert (thought.answer, thought.text.startswith("Orla was born in Perth.")) == (answer, True)


@pytest.mark.parametrize("text", ["", " \n", '{"thought": "", "answer": ""}', '{"thought": [[1]]}'])
def test_no_thought_is_a_fault(text: str) -> None:
    assert read_thought(text).value is None
    assert read_thought(text).fault is not None


@pytest.mark.parametrize(
    ("text", "numbers", "answer"),
    [
        ('{"thought": "Born there [2].", "passages": [3, "2", 3], "answer": "Perth"}', (3, 2), "Perth"),
        ('{"thought": "Born there [2], [1, 4].", "answer": "Perth"}', (2, 1, 4), "Perth"),
        ('{"thought": "Born there, not as in [2].", "passages": [], "answer": true}', (), "yes"),
        ('{"thought": "Born there [2].", "passages": "the second", "answer": "Perth"}', (2,), "Perth"),
        ('{"thought": "Born there [2].", "passages": "1, 3", "answer": "Perth"}', (1, 3), "Perth"),
        ('{"thought": "", "passages": [1], "answer": ["Perth", "Leith"]}', (1,), "Perth, Leith"),
        ('{"thought": "", "passages": [1], "answer": 1978}', (1,), "1978"),
        ("She was born in Perth [2].\n**Answer:** Perth [2]", (2,), "Perth"),
        ("Thought: it is 1978 [1; 3].\nFinal answer: 1978.", (1, 3), "1978"),
    ],
)
def test_an_answer_comes_with_the_numbers_it_rests_on(text: str, numbers: tuple[int, ...], answer: str) -> None:
    read = read_answer(text).value
    assert read is not None
    assert (read.numbers, read.answer) == (numbers, answer)


@pytest.mark.parametrize("answer", ["", "Not stated.", "Unknown", "The passages do not say.", "N/A"])
def test_a_reply_without_an_answer_is_not_made_one(answer: str) -> None:
    read = read_answer(f'{{"thought": "Nothing on it.", "passages": [], "answer": "{answer}"}}').value
    assert read is not None
    assert read.answer == ""


@pytest.mark.parametrize(
    ("answer", "said"), [('"Unknown"', True), ('"Null."', True), ('""', False), ("null", False), ('"Perth"', False)]
)
def test_an_answer_that_says_in_words_that_there_is_none_is_told_apart(answer: str, said: bool) -> None:
    read = read_answer(f'{{"thought": "", "passages": [], "answer": {answer}}}').value
    marked = read_answer(f"On it: nothing.\nAnswer: {answer.strip(chr(34))}").value
    assert read is not None
    assert marked is not None
    assert (read.said_unknown, marked.said_unknown) == (said, said or answer == "null")


def test_none_is_an_answer_to_a_question_for_a_number() -> None:
    assert marked_answer("Answer: none") == "none"


@pytest.mark.parametrize(
    "text", ["", "She was born in Perth.", '{"thought": "Perth"}', '{"answer": {"town": "Perth"}}']
)
def test_a_reply_without_any_mark_of_an_answer_has_a_fault(text: str) -> None:
    assert read_answer(text).value is None
    assert read_answer(text).fault == "the reply holds no answer"


def test_brackets_that_hold_no_numbers_are_no_citations() -> None:
    assert cited_numbers("[a] [1] [12,  x] [] [2, 3] [1]") == (1, 2, 3)


@pytest.mark.parametrize("text", ["[" + "1" * 50_000, "\n" * 50_000, "so the " * 20_000, "[1," * 10_000])
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    read_answer(text), read_thought(text), kept(text)
    assert time.process_time() - began < 3.0
