"""BM25: its words, its weights against the formula written out, and what it says of questions it cannot rank."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from method_cases import loaded, method_rows, rank
from small_index import index_of, stating

from hippogpu.config import SearchConfig
from hippogpu.methods.bm25 import NO_WORD
from hippogpu.methods.lexical import build_lexical_index, lexical_index, lexical_scores, words_of

CONFIG = SearchConfig(method="bm25")
TEXTS = [
    "The cat sat on the mat, the cat slept",
    "A dog sat",
    "Cats and dogs: a study of pets",
    "the the the",
    "!!!",
    "École de Paris; the ÉCOLE",
]
QUESTIONS = ["Where did the cat sit?", "dog dog sat", "école", "a study of the mat", "nothing known"]


def naive(texts: Sequence[str], question: str, *, k1: float = 0.9, b: float = 0.4) -> list[float]:
    """Σ idf · tf ÷ (tf + k1·(1 − b + b·length ÷ mean)) over the distinct words, idf = ln(1 + (N − n + ½) ÷ (n + ½))."""
    rows = [words_of(text) for text in texts]
    mean, scores = sum(map(len, rows)) / len(rows), []
    for row in rows:
        score = 0.0
        for word in set(words_of(question)) & set(row):
            holding = sum(word in other for other in rows)
            idf = math.log(1 + (len(rows) - holding + 0.5) / (holding + 0.5))
            score += idf * row.count(word) / (row.count(word) + k1 * (1 - b + b * len(row) / mean))
        scores.append(score)
    return scores


@pytest.fixture
def texts(root: Path) -> Path:
    index_of(root, [stating(f"p{number}", text) for number, text in enumerate(TEXTS)])
    return root


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (0.1, 1.0), (1.5, 0.0)])
def test_scores_are_those_of_the_formula(texts: Path, question: str, k1: float, b: float) -> None:
    config = SearchConfig(method="bm25", bm25_k1=k1, bm25_b=b)
    assert method_rows(loaded(texts), [question], config)[0] == pytest.approx(
        naive(TEXTS, question, k1=k1, b=b), rel=1e-6
    )


def test_passages_come_best_first_and_those_without_a_shared_word_not_at_all(texts: Path) -> None:
    (found,) = rank(loaded(texts), ["dog dog sat"], CONFIG)
    assert (found.rows.tolist(), found.fallback) == ([1, 0], None)


def test_a_question_of_unknown_words_has_no_hits_and_says_so(texts: Path) -> None:
    (found,) = rank(loaded(texts), ["zebra"], CONFIG)
    assert (len(found.rows), found.fallback) == (0, NO_WORD)


def test_equal_scores_go_to_the_lower_row(root: Path) -> None:
    index_of(root, [stating("a", "one apple"), stating("b", "two pears"), stating("c", "one  apple")])
    (found,) = rank(loaded(root), ["apple"], CONFIG)
    assert found.rows.tolist() == [0, 2]


def test_the_title_counts(root: Path) -> None:
    index_of(root, [stating("a", "a politician"), stating("b", "a politician", title="Oliver Badman")])
    assert rank(loaded(root), ["Badman"], CONFIG)[0].rows.tolist() == [1]


def test_a_batch_scores_as_its_questions_alone(texts: Path) -> None:
    together = lexical_scores(loaded(texts), QUESTIONS)
    alone = [lexical_scores(loaded(texts), [question])[0] for question in QUESTIONS]
    assert (together.tolist(), together.dtype.name) == ([row.tolist() for row in alone], "float32")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("O'Neil's U.S. café", ["o", "neil", "s", "u", "s", "café"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("北京大学", ["北京", "京大", "大学"]),
        ("東", ["東"]),
        ("the 東京tower 2", ["the", "東京", "tower", "2"]),
        ("…", []),
    ],
)
def test_words_are_those_of_normalised_text(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_words_in_too_many_passages_count_nothing() -> None:
    texts = [f"common {'half' if number % 2 else 'word'} w{number}" for number in range(40)]
    index = build_lexical_index(texts, SearchConfig(method="hippo2", bm25_common=0.5))
    assert {"common", "half", "word", "w0"} & index.words.keys() == {"half", "word", "w0"}
    assert len(index.words) == index.weights.shape[0]


def test_in_a_small_corpus_no_word_is_too_common() -> None:
    assert "common" in build_lexical_index(["common"] * 10, SearchConfig(method="hippo2", bm25_common=0.1)).words


@pytest.mark.parametrize("texts", [["!!!"], ["!!!", "?"]])
def test_a_corpus_without_words_scores_nothing(root: Path, texts: list[str]) -> None:
    index_of(root, [stating(f"p{number}", text) for number, text in enumerate(texts)])
    assert lexical_scores(loaded(root), ["a word", ""]).tolist() == [[0.0] * len(texts)] * 2


def test_the_index_is_made_once_for_all_threads_and_again_for_other_settings(texts: Path) -> None:
    here, found = loaded(texts), []
    threads = [threading.Thread(target=lambda: found.append(lexical_index(here, CONFIG))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(index) for index in found} == {id(lexical_index(here, CONFIG))}
    others = [SearchConfig(bm25_k1=1.2), SearchConfig(bm25_b=0.1), SearchConfig(bm25_common=0.9)]
    assert not {id(lexical_index(here, other)) for other in others} & {id(found[0])}
