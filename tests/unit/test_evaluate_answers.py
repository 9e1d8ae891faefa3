"""Exact match and token F1, by cases made by hand."""

import pytest

from hippogpu.errors import UsageError
from hippogpu.evaluate import evaluate_answers, exact_match, mean_intervals, normalise_answer, token_f1


@pytest.mark.parametrize(
    ("answer", "normalised"),
    [
        ("The Beatles", "beatles"),
        ("  A  man,\tan   island ", "man island"),
        ("U.S.", "us"),
        ("twenty-one", "twentyone"),
        ("“Curly” quotes — and dashes", "curly quotes and dashes"),
        ("$5 + 3 = ~8", "5 3 8"),
        ("Theatre another", "theatre another"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("東京、日本", "東京日本"),
        ("हिन्दी", "हिन्दी"),
        ("the", ""),
    ],
)
def test_answers_are_normalised_as_squad_does(answer: str, normalised: str) -> None:
    assert normalise_answer(answer) == normalised


def test_articles_go_after_punctuation() -> None:
    assert normalise_answer("the-man") == "theman"


@pytest.mark.parametrize(("answer", "match"), [("the red house.", 1.0), ("Red", 0.0), ("RH", 1.0)])
def test_exact_match_looks_at_every_alias(answer: str, match: float) -> None:
    assert exact_match(answer, ["The Red House", "R.H."]) == match


def test_f1_is_the_harmonic_mean_of_token_precision_and_recall() -> None:
    precision, recall = 2 / 3, 2 / 4
    wanted = 2 * precision * recall / (precision + recall)
    assert token_f1("red house books", ["big red house library"]) == pytest.approx(wanted)


def test_f1_counts_a_repeated_token_as_often_as_both_have_it() -> None:
    assert token_f1("no no no", ["no no yes"]) == pytest.approx(2 / 3)


def test_f1_is_that_of_the_best_alias() -> None:
    assert token_f1("New York City", ["NYC", "New York City", "York"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "golds", "f1"), [("", [""], 1.0), ("the", ["a"], 1.0), ("", ["x"], 0.0), ("x", [], 0.0)]
)
def test_f1_without_tokens_is_1_only_when_neither_side_has_any(answer: str, golds: list[str], f1: float) -> None:
    assert token_f1(answer, golds) == f1


def test_answers_are_averaged_over_the_questions_whose_answer_is_known() -> None:
    found = evaluate_answers({"q1": "Red House", "q2": "red", "q3": "?"}, {"q1": ["red house"], "q2": ["red house"]})
    assert (found.values, found.without_gold) == ({"em": 0.5, "f1": pytest.approx((1 + 2 / 3) / 2)}, ("q3",))


def test_answers_have_intervals_as_rankings_have() -> None:
    found = mean_intervals(evaluate_answers({"q1": "a b", "q2": "b"}, {"q1": ["b"], "q2": ["c"]}))
    assert (found["em"].low, found["em"].high, found["f1"].high) == (0.0, 1.0, 1.0)


def test_no_known_answer_at_all_is_an_error() -> None:
    with pytest.raises(UsageError, match="same ids"):
        evaluate_answers({"q1": "x"}, {"q1": []})
