"""Thoughts as queries: what is searched, merged, stopped and counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from small_index import Counting

from hippogpu import SearchConfig, Searcher
from hippogpu.llm import Failure, Llm, Request
from hippogpu.reading import Retrieved, merge, retrieve
from hippogpu.testing.engines import Answer, ScriptedEngine
from hippogpu.testing.llm_questions import question_of
from hippogpu.types import Hit, Passage, Ranking

DOWN = Failure("connection refused", unreachable=True)


class Ranker:
    """Ranks three passages a query, named after it; the queries of each call are kept."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def rank(self, questions: Sequence[str], *, k: int = 10, config: SearchConfig | None = None) -> list[Ranking]:
        self.calls.append(list(questions))
        return [
            Ranking(q, hits(q, "shared", f"{q} too"), "hippo2", "power", certified=True, ms={"solve": 2.0})
            for q in questions
        ]


def hits(*names: str, scores: Sequence[float] = (0.9, 0.5, 0.1)) -> tuple[Hit, ...]:
    return tuple(Hit(Passage(name, name, f"About {name}."), score) for name, score in zip(names, scores, strict=False))


def thought(text: str, answer: str = "") -> str:
    return json.dumps({"thought": text, "answer": answer})


def run(
    answer: Callable[[Request], Answer], questions: Sequence[str] = ("q?",), *, steps: int = 2
) -> tuple[list[Retrieved], Ranker, ScriptedEngine]:
    ranker, engine = Ranker(), ScriptedEngine(answer)
    return retrieve(ranker, Llm(engine), questions, k=3, steps=steps), ranker, engine


def ids(found: Retrieved) -> list[str]:
    return [hit.passage.id for hit in found.ranking.hits]


def test_a_thought_is_the_next_query_and_both_searches_count() -> None:
    (found,), ranker, _ = run(lambda request: thought("next"))
    assert ranker.calls == [["q?"], ["next"]]
    assert (found.stop, [step.query for step in found.steps]) == ("steps", ["q?", "next"])
    assert ids(found) == ["q?", "next", "shared", "q? too", "next too"]


def test_after_the_last_search_no_thought_is_asked_for() -> None:
    (found,), ranker, engine = run(lambda request: thought("next"), steps=1)
    assert (found.stop, len(ranker.calls), engine.asked, found.cost.requests) == ("steps", 1, [], 0)


def test_a_single_search_keeps_its_scores_and_certificate() -> None:
    (found,), _, _ = run(lambda request: thought("next"), steps=1)
    assert [hit.score for hit in found.ranking.hits] == [0.9, 0.5, 0.1]
    assert (found.ranking.certified, found.ranking.method, found.ranking.query) == (True, "ircot-hippo2", "q?")


def test_a_merged_ranking_claims_no_certificate_and_adds_up_the_times() -> None:
    (found,), _, _ = run(lambda request: thought("next"))
    assert (found.ranking.certified, found.ranking.ms["solve"]) == (None, 4.0)
    assert found.ranking.ms["think"] > 0


def test_an_answer_stops_the_search() -> None:
    (found,), ranker, _ = run(lambda request: thought("It is Perth.", "Perth"), steps=4)
    assert (found.stop, len(ranker.calls), found.thoughts[0].answer) == ("answer", 1, "Perth")


def test_an_answer_marker_in_the_thought_stops_the_search() -> None:
    (found,), ranker, _ = run(lambda request: thought("So the answer is: Perth."), steps=4)
    assert (found.stop, len(ranker.calls), found.thoughts[0].answer) == ("answer", 1, "Perth")


def test_a_thought_that_was_a_query_before_stops_the_search() -> None:
    (found,), ranker, _ = run(lambda request: thought("Q!"), ["q?"], steps=4)
    assert (found.stop, len(ranker.calls)) == ("repeat", 1)


def test_a_thought_sees_the_passages_and_thoughts_so_far() -> None:
    numbers = iter(range(9))
    _, _, engine = run(lambda request: thought(f"next {next(numbers)}"), steps=3)
    last = engine.asked[-1].messages[-1].content
    assert last.startswith("Passages:\n[1] q?: About q?.\n[2] next 0: About next 0.\n[3] shared")
    assert last.endswith("Question: q?\n\nThoughts so far:\n1. next 0")


def test_every_step_ranks_the_live_questions_together() -> None:
    def answer(request: Request) -> Answer:
        return thought("done", "yes") if question_of(request.messages[-1].content) == "b?" else thought("next")

    found, ranker, engine = run(answer, ["a?", "b?", "c?"])
    assert ranker.calls == [["a?", "b?", "c?"], ["next", "next"]]
    assert [one.stop for one in found] == ["steps", "answer", "steps"]
    assert [what for what, _ in engine.events[:3]] == ["asked"] * 3


def test_a_thought_that_cannot_be_had_keeps_what_was_found_and_says_so() -> None:
    found, ranker, _ = run(lambda r: DOWN if "a?" in r.messages[-1].content else thought("next"), ["a?", "b?"])
    assert [(one.stop, one.failure) for one in found] == [("failure", "connection refused"), ("steps", None)]
    assert ids(found[0]) == ["a?", "shared", "a? too"]
    assert ranker.calls[1] == ["next"]


def test_what_a_question_costs_is_its_own_thoughts() -> None:
    found, _, _ = run(
        lambda r: thought("x", "yes") if "b?" in r.messages[-1].content else thought("n"), ["a?", "b?"], steps=3
    )
    assert [one.cost.requests for one in found] == [2, 1]
    assert all(one.cost.usage.prompt > 0 for one in found)


def test_no_questions_are_no_work() -> None:
    found, ranker, _ = run(lambda request: thought("n"), [])
    assert (found, ranker.calls) == ([], [])


def test_a_passage_counts_by_the_best_place_it_had() -> None:
    merged = merge([hits("a", "b", "c"), hits("c", "b", "d", scores=(1e-3, 1e-4, 1e-5))])
    assert [(hit.passage.id, hit.score) for hit in merged] == [("a", 1.0), ("c", 1.0), ("b", 0.5), ("d", 1 / 3)]


def test_the_scale_of_a_search_does_not_matter() -> None:
    cosines, mass = hits("a", "b", "c"), hits("d", "a", "e", scores=(4e-3, 2e-3, 1e-5))
    blown = tuple(hit._replace(score=1000 * hit.score + 7) for hit in mass)
    for rule in ("rank", "min-max"):
        assert [hit.passage.id for hit in merge([cosines, mass], rule=rule)] == [
            hit.passage.id for hit in merge([cosines, blown], rule=rule)
        ]


def test_equal_scores_are_all_ones_by_min_max() -> None:
    assert [hit.score for hit in merge([hits("a", "b", scores=(0.4, 0.4))], rule="min-max")] == [1.0, 1.0]


def test_no_searches_and_empty_ones_merge_to_nothing() -> None:
    assert (merge([]), merge([(), ()])) == ((), ())


def test_a_real_searcher_ranks_by_any_method(made: Path) -> None:
    searcher = Searcher.open(made, embedder=Counting())
    for method in ("hippo2", "dense"):
        config = SearchConfig(method=method)
        (found,) = retrieve(
            searcher, Llm(ScriptedEngine(lambda r: thought("Charles Babbage built"))), ["Ada?"], k=2, config=config
        )
        assert (found.ranking.method, found.ranking.generation, len(found.steps)) == (f"ircot-{method}", 1, 2)
        assert 2 <= len(found.ranking.hits) <= 4
