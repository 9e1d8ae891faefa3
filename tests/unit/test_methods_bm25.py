"""BM25: its words, its weights against the formula written out, and what it says of questions it cannot rank."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from bm25s import BM25
from method_cases import loaded, method_rows, rank
from small_index import index_of, stating

from hippogpu.config import SearchConfig
from hippogpu.errors import IndexDamagedError
from hippogpu.methods import Loaded
from hippogpu.methods.bm25 import NO_WORD
from hippogpu.methods.derived import Derived
from hippogpu.methods.lexical import asked_words, lexical_scores, word_counts
from hippogpu.types import Ragged
from hippogpu.words import count_words, words_of

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


def counting(texts: Sequence[str]) -> Loaded:
    """As much of an index as words are weighed by."""
    snapshot = SimpleNamespace(words=count_words(texts, [""] * len(texts)))
    return cast(Loaded, SimpleNamespace(snapshot=snapshot, derived=Derived()))


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (2.0, 0.0)])
def test_scores_are_those_of_bm25s_to_the_bit(k1: float, b: float) -> None:
    drawn = random.Random(7)
    texts = [" ".join(f"w{int(drawn.paretovariate(0.7))}" for _ in range(drawn.randrange(60))) for _ in range(333)]
    questions = [f"w1 w2 {text[:80]}" for text in texts[:33]]
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in words_of(text)] for text in texts]
    peer = BM25(method="lucene", k1=k1, b=b)
    peer.index((rows, numbers), create_empty_token=False, show_progress=False)
    config = SearchConfig(method="bm25", bm25_k1=k1, bm25_b=b, bm25_common=1.0)
    for question, scores in zip(questions, lexical_scores(counting(texts), questions, config=config), strict=True):
        known = [word for word in dict.fromkeys(words_of(question)) if word in numbers]
        expected = np.zeros(len(texts), np.float32)
        for word in known:
            expected += peer.get_scores_from_ids([numbers[word]])
        assert scores.tolist() == expected.tolist()


def told(here: Loaded, question: str, config: SearchConfig) -> list[str]:
    (numbers,) = asked_words(here, [question], config)
    return [word_counts(here).words[number] for number in numbers.tolist()]


def test_words_in_too_many_passages_count_nothing() -> None:
    here = counting([f"common {'half' if number % 2 else 'word'} w{number}" for number in range(40)])
    config = SearchConfig(method="hippo2", bm25_common=0.5)
    assert told(here, "w0 half common word half unknown", config) == ["w0", "half", "word"]
    assert not lexical_scores(here, ["common"], config=config).any()


def test_in_a_small_corpus_no_word_is_too_common() -> None:
    assert told(counting(["common"] * 10), "common", SearchConfig(method="hippo2", bm25_common=0.1)) == ["common"]


def test_an_entry_that_names_no_passage_is_refused() -> None:
    here = counting(TEXTS)
    words = word_counts(here)
    for wrong in (-1, len(TEXTS)):
        passages = Ragged(words.passages.indptr, np.full_like(words.passages.values, wrong))
        spoiled = SimpleNamespace(words=replace(words, passages=passages))
        with pytest.raises(IndexDamagedError, match="word_passages"):
            lexical_scores(cast(Loaded, SimpleNamespace(snapshot=spoiled, derived=Derived())), ["dog"])


def test_an_entry_that_counts_nothing_is_refused_and_divides_by_nothing() -> None:
    words = word_counts(counting(TEXTS))
    spoiled = SimpleNamespace(words=replace(words, counts=np.zeros_like(words.counts)))
    with pytest.raises(IndexDamagedError, match="word_counts"):
        lexical_scores(
            cast(Loaded, SimpleNamespace(snapshot=spoiled, derived=Derived())),
            ["dog"],
            config=SearchConfig(method="bm25", bm25_k1=0.0),
        )


@pytest.mark.parametrize("texts", [["!!!"], ["!!!", "?"]])
def test_a_corpus_without_words_scores_nothing(root: Path, texts: list[str]) -> None:
    index_of(root, [stating(f"p{number}", text) for number, text in enumerate(texts)])
    assert lexical_scores(loaded(root), ["a word", ""]).tolist() == [[0.0] * len(texts)] * 2


def test_words_are_counted_once_for_all_threads_where_the_index_holds_none(texts: Path) -> None:
    whole, found = loaded(texts), []
    here = whole._replace(snapshot=replace(whole.snapshot, words=None))
    threads = [threading.Thread(target=lambda: found.append(word_counts(here))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(words) for words in found} == {id(word_counts(here))}
    assert lexical_scores(here, QUESTIONS).tolist() == lexical_scores(whole, QUESTIONS).tolist()
