"""Two methods question by question, titles, groups, and encoding once."""

from collections.abc import Iterator, Sequence

import pytest
from small_index import Counting

from hippogpu.config import SearchConfig
from hippogpu.corpus import Query
from hippogpu.errors import UsageError
from hippogpu.evaluate import EncodedOnce, Ranked, ask, ask_named, evaluate, question_changes, to_titles
from hippogpu.types import Hit, Passage, Ranking

GOLD = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1}, "q4": {"e": 1}}
FIRST = {"q1": ["a", "x", "b"], "q2": ["c"], "q3": ["x", "d"], "q4": ["e"]}
SECOND = {"q1": ["a", "b"], "q2": ["x"], "q3": ["d"], "q4": ["e", "x"]}


def side(ranked: dict[str, list[str]]) -> Ranked:
    return Ranked(ranked, evaluate(ranked, GOLD))


def test_each_question_is_gained_lost_moved_or_the_same() -> None:
    changes = question_changes(side(FIRST), side(SECOND), GOLD, measure="recall@2")
    assert {change.query: change.change for change in changes} == {
        **{"q1": "gained", "q2": "lost"},
        **{"q3": "moved", "q4": "same"},
    }


def test_each_gold_passage_has_its_rank_under_both() -> None:
    change = question_changes(side(FIRST), side(SECOND), GOLD)[0]
    assert [tuple(place) for place in change.gold] == [("a", 1, 1), ("b", 3, 2)]


def test_a_gold_passage_that_is_not_ranked_has_no_rank() -> None:
    assert question_changes(side(FIRST), side(SECOND), GOLD)[1].gold[0].second is None


def test_a_measure_that_the_rankings_do_not_tell_is_an_error_that_lists_those() -> None:
    with pytest.raises(UsageError, match=r"recall@1, "):
        question_changes(side(FIRST), side(SECOND), GOLD, measure="recall@7")


TITLES = {"a": "Alpha", "a2": "Alpha", "b": "Beta", "x": ""}


def test_a_title_counts_once_at_its_best_place() -> None:
    assert to_titles({"q": ["x", "a2", "b", "a"]}, {}, TITLES).ranked == {"q": ["x", "Alpha", "Beta"]}


def test_gold_passages_of_one_title_are_one_gold_title() -> None:
    assert to_titles({}, {"q": {"a": 1, "a2": 2, "b": 1}}, TITLES).gold == {"q": {"Alpha": 2, "Beta": 1}}


def test_a_gold_title_has_the_greatest_relevance_in_whatever_order() -> None:
    assert to_titles({}, {"q": {"a": 2, "a2": 1}}, TITLES).gold == {"q": {"Alpha": 2}}


def test_gold_may_be_a_title_already() -> None:
    found = to_titles({}, {"q": {"Beta": 1, "nowhere": 1}}, TITLES)
    assert (found.gold, found.unplaced) == ({"q": {"Beta": 1, "nowhere": 1}}, ("nowhere",))


class Listing:
    """Ranks the passages in their order."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def rank_batches(self, questions: Sequence[str], *, k: int, config: SearchConfig) -> Iterator[list[Ranking]]:
        self.asked.append(k)
        hits = tuple(Hit(Passage(f"p{i}", "", "x", {"group": "even" if i % 2 == 0 else "odd"}), 1.0) for i in range(9))
        for question in questions:
            yield [Ranking(question, hits[:k], "dense")]


def test_a_question_with_a_group_gets_passages_of_that_group_alone() -> None:
    queries = [Query("q1", "one", group="odd"), Query("q2", "two"), Query("q3", "three", group="even")]
    found = ask(Listing(), queries, k=3, config=SearchConfig(), passages=9)
    ids = [[hit.passage.id for hit in ranking.hits] for ranking in found]
    assert ids == [["p1", "p3", "p5"], ["p0", "p1", "p2"], ["p0", "p2", "p4"]]


def test_only_questions_with_a_group_rank_all_passages() -> None:
    listing = Listing()
    ask(listing, [Query("q1", "one", group="odd"), Query("q2", "two")], k=3, config=SearchConfig(), passages=9)
    assert sorted(listing.asked) == [3, 9]


def parity(_: Query, ranking: Ranking) -> list[str]:
    """Two names for nine passages: as titles, or as chunks of two parents."""
    return list(dict.fromkeys(str(hit.passage.meta["group"]) for hit in ranking.hits))


def test_a_question_is_ranked_deeper_until_it_has_enough_names() -> None:
    listing = Listing()
    found = list(ask_named(listing, [Query("q", "one")], parity, k=2, config=SearchConfig(), passages=9))
    assert ([one.names for one in found], listing.asked) == ([["even", "odd"]], [2])
    found = list(ask_named(listing, [Query("q", "one")], parity, k=3, config=SearchConfig(), passages=9))
    assert ([one.names for one in found], listing.asked) == ([["even", "odd"]], [2, 3, 6, 9])


def test_questions_are_ranked_in_blocks_that_hold_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hippogpu.evaluate.asking._HITS", 20)
    listing, queries = Listing(), [Query(f"q{i}", "one", group="odd") for i in range(5)]
    found = ask(listing, queries, k=3, config=SearchConfig(), passages=9)
    assert (listing.asked, [len(one.hits) for one in found]) == ([9, 9, 9], [3] * 5)


def test_a_question_is_encoded_once_however_often_it_is_asked() -> None:
    inner = Counting()
    once = EncodedOnce(inner)
    rows = [once.encode(["a", "b"]), once.encode(["b", "a"])]
    assert (inner.texts, rows[0].tolist()) == (["a", "b"], rows[1][::-1].tolist())


def test_another_instruction_is_another_text() -> None:
    inner = Counting()
    once = EncodedOnce(inner)
    once.encode(["a"]), once.encode(["a"], instruction="find: ")
    assert len(inner.texts) == 2
