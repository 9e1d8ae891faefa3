"""The reader: what it refuses, what it hands back, and how it batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from small_index import PASSAGES, Counting, Saying, index_of

from hippogpu import Index, RunConfig, SearchConfig, Searcher
from hippogpu.config import FilterName
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import IndexMissingError, UsageError
from hippogpu.methods import METHODS, Needs, QuestionEntities, Verdict
from hippogpu.methods.bm25 import NO_WORD
from hippogpu.searcher import _BYTES_A_NODE

QUESTIONS = ["who wrote notes?", "what did Charles Babbage build?", "steam"]


FILTERS = get_args(FilterName)


class Words:
    """A reader that takes the last word of a question for its entity."""

    name = "words"

    def __call__(self, questions: Sequence[str]) -> list[QuestionEntities]:
        return [QuestionEntities(tuple(question.split()[-1:])) for question in questions]


def reading(root: Path) -> Searcher:
    return Searcher.open(root, entity_reader=Words())


class Instructed(Counting):
    """An encoder with two instructions."""

    query_to_fact, query_to_passage = "fact: ", "passage: "

    def __init__(self) -> None:
        super().__init__()
        self.instructions: list[str] = []

    def encode(self, texts: Any, *, instruction: str = "") -> Any:
        self.instructions.append(instruction)
        return super().encode(texts, instruction=instruction)


def test_rankings_come_in_the_order_of_the_questions(made: Path) -> None:
    rankings = Searcher.open(made).rank(QUESTIONS, k=2, config=SearchConfig(method="hippo2"))
    assert [(r.query, r.method, len(r.hits)) for r in rankings] == [(q, "hippo2", 2) for q in QUESTIONS]


def test_a_hit_is_the_passage_as_it_was_added(made: Path) -> None:
    hits = Searcher.open(made).rank([PASSAGES[1].text], k=1)[0].hits
    assert hits[0].passage == PASSAGES[1]


def test_no_questions_have_no_rankings(made: Path) -> None:
    assert Searcher.open(made).rank([]) == []


@pytest.mark.parametrize("question", ["", " ", "\n\t"])
def test_an_empty_question_is_refused_by_its_number(made: Path, question: str) -> None:
    with pytest.raises(UsageError, match="Question 2 is empty"):
        Searcher.open(made).rank(["who?", question])


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("questions", [[], ["who?"]])
def test_fewer_than_one_passage_is_refused(made: Path, k: int, questions: list[str]) -> None:
    with pytest.raises(UsageError, match=f"k must be at least 1. Got {k}"):
        Searcher.open(made).rank(questions, k=k)


def test_one_text_in_place_of_a_list_is_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="list of questions"):
        Searcher.open(made).rank("who?")


@pytest.mark.parametrize("method", METHODS)
def test_odd_questions_are_ranked(made: Path, method: Any) -> None:
    odd = ["!!!", "—", "\ud800", "北京", "\0", "word " * 5000]
    for ranking in reading(made).rank(odd, config=SearchConfig(method=method, entities="given")):
        assert len(ranking.hits) == 5 or (method == "bm25" and ranking.fallback == NO_WORD)


@pytest.mark.parametrize("method", METHODS)
def test_batches_of_one_rank_as_one_batch(made: Path, method: Any) -> None:
    whole, single = reading(made), reading(made)
    single._budget_bytes = 1
    config = SearchConfig(method=method, entities="given")
    assert (whole.batch_size() > 3, single.batch_size()) == (True, 1)
    one, other = (reader.rank(QUESTIONS, k=9, config=config) for reader in (whole, single))
    assert [[h.passage.id for h in r.hits] for r in one] == [[h.passage.id for h in r.hits] for r in other]
    for left, right in zip(one, other, strict=True):
        assert [h.score for h in left.hits] == pytest.approx([h.score for h in right.hits], abs=1e-6)


def test_batches_come_as_each_is_finished(made: Path) -> None:
    reader, embedder = Searcher.open(made, embedder=(counting := Counting())), counting
    reader._budget_bytes = 2 * (_BYTES_A_NODE * 15 + Needs().passage_bytes * 5)
    batches = reader.rank_batches(QUESTIONS, k=1, config=SearchConfig(method="hippo2", solver="power"))
    assert (len(next(batches)), len(embedder.texts)) == (2, 2)
    assert [len(batch) for batch in batches] == [1]


def test_dense_scores_are_cosines(made: Path) -> None:
    (ranking,) = Searcher.open(made).rank(QUESTIONS[:1], k=9, config=SearchConfig(method="dense"))
    encoder = HashingEmbedder(32)
    for hit in ranking.hits:
        text = f"{hit.passage.title}\n{hit.passage.text}" if hit.passage.title else hit.passage.text
        assert hit.score == pytest.approx(float(encoder.encode(QUESTIONS[:1])[0] @ encoder.encode([text])[0]), abs=1e-6)
    assert (ranking.solver, ranking.facts, ranking.fallback) == (None, (), None)


def test_questions_are_encoded_under_each_instruction(made: Path) -> None:
    embedder = Instructed()
    Searcher.open(made, embedder=embedder).rank(QUESTIONS)
    assert sorted(embedder.instructions) == ["fact: ", "passage: "]


def test_a_dense_ranking_encodes_for_passages_only(made: Path) -> None:
    embedder = Instructed()
    Searcher.open(made, embedder=embedder).rank(QUESTIONS, config=SearchConfig(method="dense"))
    assert embedder.instructions == ["passage: "]


def test_without_instructions_questions_are_encoded_once(made: Path) -> None:
    embedder = Counting()
    Searcher.open(made, embedder=embedder).rank(QUESTIONS)
    assert sorted(embedder.texts) == sorted(QUESTIONS)


def test_each_stage_has_its_time(made: Path) -> None:
    (ranking,) = Searcher.open(made).rank(QUESTIONS[:1], config=SearchConfig(method="hippo2"))
    assert set(ranking.ms) == {"encode", "facts", "filter", "seeds", "solve", "select"}


@pytest.mark.parametrize(
    ("method", "stages"),
    [
        ("bm25", {"encode", "lexical", "select"}),
        ("hippo1", {"entities", "encode", "seeds", "solve", "select"}),
        ("dense", {"encode", "passages"}),
    ],
)
def test_a_method_takes_the_time_of_its_own_stages_alone(made: Path, method: Any, stages: set[str]) -> None:
    (ranking,) = reading(made).rank(["steam"], config=SearchConfig(method=method, entities="given"))
    assert set(ranking.ms) == stages


def test_words_alone_are_ranked_without_an_encoder(made: Path) -> None:
    embedder = Counting()
    Searcher.open(made, embedder=embedder).rank(QUESTIONS, config=SearchConfig(method="bm25"))
    assert embedder.texts == []


class Failing:
    """A filter that can judge nothing."""

    name = "failing"

    def __call__(self, questions: Sequence[str], candidates: object) -> list[Verdict]:
        return [Verdict((), "no reply")] * len(questions)


def test_a_filter_that_was_given_judges_where_the_settings_name_a_model_and_its_failure_is_told(made: Path) -> None:
    reader = Searcher.open(made, fact_filter=Failing())
    failures = [
        reader.rank(QUESTIONS[:1], config=SearchConfig(method="hippo2", filter=name))[0].filter_failure
        for name in FILTERS
    ]
    assert failures == [None, "no reply", None, None, "no reply"]


def test_a_filter_that_needs_a_model_is_asked_for_only_where_facts_are_judged(made: Path) -> None:
    reader, config = Searcher.open(made), SearchConfig(method="hippo2", filter="llm")
    with pytest.raises(UsageError, match=r"'llm' needs a model.*Searcher.open\(fact_filter="):
        reader.rank(QUESTIONS, config=config)
    assert reader.rank(QUESTIONS, config=SearchConfig(method="dense", filter="llm"))


def test_the_entities_of_a_question_are_told(made: Path) -> None:
    (ranking,) = reading(made).rank(["what is steam"], config=SearchConfig(method="hippo1", entities="given"))
    assert [(entity.name, entity.phrase) for entity in ranking.entities] == [("steam", "steam")]


def test_both_backends_rank_alike(made: Path) -> None:
    readers = [Searcher.open(made, run=RunConfig(backend=name)) for name in ("cpu", "reference")]
    one, other = ([[h.passage.id for h in r.hits] for r in reader.rank(QUESTIONS)] for reader in readers)
    assert one == other
    assert [reader.backend for reader in readers] == ["cpu", "reference"]


def test_an_encoder_made_in_python_must_be_passed(root: Path) -> None:
    with Index.open(root, extractor=Saying(), embedder=HashingEmbedder(32)) as index:
        index.add(PASSAGES)
        index.commit()
    with pytest.raises(UsageError, match=r"hashing-32.*embedder="):
        Searcher.open(root)
    assert len(Searcher.open(root, embedder=HashingEmbedder(32)).rank(["who?"])) == 1


def test_an_index_that_is_not_there_is_said(root: Path) -> None:
    with pytest.raises(IndexMissingError, match=r"small\.hippo"):
        Searcher.open(root)


def test_an_updated_passage_is_found_by_its_new_text_in_a_new_reader(made: Path) -> None:
    index_of(made, [PASSAGES[3]._replace(text="Grace Hopper|found|the moth")])
    (ranking,) = Searcher.open(made).rank(["Grace Hopper found the moth"], k=1)
    assert ranking.hits[0].passage.id == "p3"
