"""HippoRAG 2 on small indexes: facts, filter, walk and fallback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from small_index import WIDTH, index_of, stating

from hippogpu.backends import load_backend, power_steps
from hippogpu.config import BackendName, FilterFails, SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.methods import Asked, Clock, Loaded, Queries, Ranked, Verdict, load
from hippogpu.methods.dense import rank_dense
from hippogpu.methods.hippo2 import NO_FACT, NO_MASS, rank_hippo2
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import KeptFact

QUESTIONS = ["who wrote notes?", "what did Charles Babbage build?", "steam"]
BACKENDS: tuple[BackendName, ...] = ("cpu", "reference")


def loaded(root: Path, backend: BackendName = "reference") -> Loaded:
    return load(load_snapshot(root, current_manifest(root)), load_backend(backend))


Keep = Callable[[str, Sequence[KeptFact]], Sequence[int] | str]


class Keeping:
    """A filter that keeps what a function of one question says; a text in place of numbers is why it fails."""

    name = "keeping"

    def __init__(self, keep: Keep) -> None:
        self.keep = keep

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        kept = [self.keep(question, row) for question, row in zip(questions, candidates, strict=True)]
        return [Verdict((), row) if isinstance(row, str) else Verdict(tuple(row)) for row in kept]


class FewVerdicts:
    """A filter that forgets all questions but one."""

    name = "few"

    def __call__(self, questions: Sequence[str], candidates: object) -> list[Verdict]:
        return [Verdict(())]


def asked(questions: Sequence[str], keep: Keep | None = None) -> Asked:
    rows = HashingEmbedder(WIDTH).encode(questions)
    return Asked(questions, Queries(rows, rows), Keeping(keep or (lambda _, facts: range(len(facts)))))


def ranked(
    made: Loaded,
    questions: Sequence[str] = QUESTIONS,
    *,
    k: int = 9,
    config: SearchConfig = SearchConfig(method="hippo2"),  # noqa: B008
    keep: Keep | None = None,
) -> list[Ranked]:
    return rank_hippo2(made, asked(questions, keep), k=k, config=config, clock=Clock())


def kept_facts(result: Ranked) -> list[str]:
    return [" ".join(fact[:3]) for fact in result.facts]


def test_the_nearest_facts_are_kept_best_first_with_scores_from_one_down(made: Path) -> None:
    scores = HashingEmbedder(WIDTH).encode(QUESTIONS[:1]) @ loaded(made).snapshot.fact_vectors.T
    result = ranked(loaded(made))[0]
    texts = loaded(made).snapshot.tables.facts.text
    assert kept_facts(result) == [texts[i] for i in np.argsort(-scores[0], kind="stable")[:5]]
    assert result.facts[0].score == 1
    assert all(0 <= fact.score <= 1 for fact in result.facts)


def test_the_walk_is_the_solution_from_the_seeds_of_the_method(made: Path) -> None:
    here, result = loaded(made), ranked(loaded(made), config=SearchConfig(method="hippo2", solver="power"))[0]
    texts = list(here.snapshot.tables.facts.text)
    kept = [(texts.index(" ".join(fact[:3])), fact.score) for fact in result.facts]
    seeds = phrase_seeds(kept, here.snapshot.tables.facts, here.mention_counts, top_phrases=5)
    dense = HashingEmbedder(WIDTH).encode(QUESTIONS[:1]).astype(float) @ here.passages.T
    spread = (dense - dense.min()) / (dense.max() - dense.min())
    reset = reset_vectors([seeds], spread, passage_weight=0.05, nodes=here.graph.nodes)
    mass = here.backend.solve(here.graph, reset, damping=0.5, steps=power_steps(0.5, 1e-12))[0, :5]
    assert result.rows.tolist() == np.argsort(-mass, kind="stable").tolist()
    assert result.scores == pytest.approx(mass[result.rows], abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_descend_and_sum_to_at_most_one(made: Path, backend: BackendName) -> None:
    for result in ranked(loaded(made, backend)):
        assert np.all(np.diff(result.scores) <= 0)
        assert 0 < result.scores.sum() <= 1 + 1e-6
        assert (result.solver, result.fallback, result.certified) == ("diffused", None, True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_ranks_as_its_questions_alone(made: Path, backend: BackendName) -> None:
    questions = [*QUESTIONS, "Ada Lovelace", "nothing at all", "the election", "engines"]
    together = ranked(loaded(made, backend), questions)
    alone = [ranked(loaded(made, backend), [question])[0] for question in questions]
    assert [r.rows.tolist() for r in together] == [r.rows.tolist() for r in alone]
    assert [kept_facts(r) for r in together] == [kept_facts(r) for r in alone]


@pytest.mark.parametrize("k", [1, 4, 5, 6, 1000])
def test_k_passages_come_back_or_all(made: Path, k: int) -> None:
    assert [len(result.rows) for result in ranked(loaded(made), k=k)] == [min(k, 5)] * 3
    dense = rank_dense(loaded(made), asked(QUESTIONS), k=k, clock=Clock())
    assert [len(result.rows) for result in dense] == [min(k, 5)] * 3


def test_a_filter_that_keeps_nothing_leaves_the_dense_ranking_and_says_so(made: Path) -> None:
    here = loaded(made)
    dense = rank_dense(here, asked(QUESTIONS), k=9, clock=Clock())
    for result, plain in zip(ranked(here, keep=lambda *_: []), dense, strict=True):
        assert result.rows.tolist() == plain.rows.tolist()
        assert (result.fallback, result.solver, result.facts, result.seeds) == (NO_FACT, None, (), ())
        assert (result.scores[0], result.scores[-1]) == (1, 0)


def test_one_question_of_a_batch_falls_back_alone(made: Path) -> None:
    here = loaded(made)
    mixed = ranked(here, keep=lambda question, facts: [] if question == QUESTIONS[1] else range(len(facts)))
    assert [result.fallback for result in mixed] == [None, NO_FACT, None]
    assert mixed[2].rows.tolist() == ranked(here)[2].rows.tolist()


def test_the_filter_sees_the_candidates_and_its_choice_is_what_stays(made: Path) -> None:
    seen: list[tuple[str, int]] = []
    results = ranked(loaded(made), keep=lambda question, facts: seen.append((question, len(facts))) or [3, 1])
    assert seen == [(question, 5) for question in QUESTIONS]
    everything = ranked(loaded(made))
    assert [list(r.facts) for r in results] == [[e.facts[1], e.facts[3]] for e in everything]


@pytest.mark.parametrize(("fails", "kept"), [("keep", 5), ("drop", 0)])
def test_a_filter_that_fails_keeps_all_or_none_as_the_settings_say_and_is_told(
    made: Path, fails: FilterFails, kept: int
) -> None:
    keep = lambda question, facts: "no reply" if question == QUESTIONS[1] else [0]  # noqa: E731
    results = ranked(loaded(made), config=SearchConfig(method="hippo2", filter_fails=fails), keep=keep)
    assert [len(r.facts) for r in results] == [1, kept, 1]
    assert [r.filter_failure for r in results] == [None, "no reply", None]
    assert results[1].fallback == (None if kept else NO_FACT)


def test_a_filter_that_keeps_what_is_no_candidate_is_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="'keeping' kept candidate 5 of 5"):
        ranked(loaded(made), keep=lambda *_: [5])


def test_a_filter_without_a_verdict_for_each_question_is_refused(made: Path) -> None:
    short = asked(QUESTIONS)._replace(fact_filter=FewVerdicts())
    with pytest.raises(UsageError, match="1 verdicts for 3 questions"):
        rank_hippo2(loaded(made), short, k=1, config=SearchConfig(method="hippo2"), clock=Clock())


def test_seeds_that_weigh_nothing_fall_back_and_say_so(made: Path) -> None:
    config = SearchConfig(method="hippo2", passage_weight=0.0, top_facts=7)
    result = ranked(loaded(made), config=config, keep=lambda _, facts: [6])[0]
    assert (result.fallback, result.facts[0].score) == (NO_MASS, 0)


def test_a_kept_fact_of_score_zero_is_walked_from_the_passages(made: Path) -> None:
    result = ranked(loaded(made), config=SearchConfig(method="hippo2", top_facts=7), keep=lambda _, facts: [6])[0]
    assert (result.fallback, [seed.weight for seed in result.seeds]) == (None, [0, 0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_without_facts_ranks_by_dense_similarity_and_says_so(root: Path, backend: BackendName) -> None:
    index_of(root, [stating("a", "one"), stating("b", "two")])
    result = ranked(loaded(root, backend), ["one"])[0]
    assert (result.fallback, result.rows.tolist()) == (NO_FACT, [0, 1])


def test_one_passage_without_facts_scores_one(root: Path) -> None:
    index_of(root, [stating("a", "alone")])
    result = ranked(loaded(root), ["who?"])[0]
    assert (result.rows.tolist(), result.scores.tolist()) == ([0], [1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [2, 7, 37])
def test_passages_of_one_vector_share_their_seeds_evenly(root: Path, backend: BackendName, count: int) -> None:
    texts = [f"{'abcdef|is|letters'.title()}{' ' * i}" for i in range(count)]
    index_of(root, [stating(f"p{i}", text) for i, text in enumerate(texts)])
    result = ranked(loaded(root, backend), ["letters of the alphabet"], k=count)[0]
    assert result.rows.tolist() == list(range(count))
    assert np.ptp(result.scores) < 1e-6


def test_a_single_fact_scores_one(root: Path) -> None:
    index_of(root, [stating("a", "Ada|wrote|notes"), stating("b", "nothing")])
    assert ranked(loaded(root), ["Babbage"])[0].facts == (KeptFact("ada", "wrote", "notes", 1.0),)


def test_without_damping_the_ranking_is_that_of_the_reset(made: Path) -> None:
    result = ranked(loaded(made), config=SearchConfig(method="hippo2", damping=0.0))[0]
    dense = rank_dense(loaded(made), asked(QUESTIONS[:1]), k=9, clock=Clock())[0]
    assert result.rows.tolist() == dense.rows.tolist()
