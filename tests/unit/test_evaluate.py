"""Measures of rankings, checked against values worked out by hand."""

import math
import sys
from pathlib import Path

import ir_measures
import pytest

from hippogpu.errors import MissingExtraError, UsageError
from hippogpu.evaluate import Evaluation, evaluate, one_id_each, ranked_ids, titles_of, write_trec
from hippogpu.types import Passage

RANKED = {"q1": ["a", "x", "b", "y"], "q2": ["x", "c"], "q3": ["x", "y"]}
GOLD = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1}}


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate(RANKED, GOLD)


def chunk_of(parent: str, number: int) -> Passage:
    return Passage(f"{parent}#{number}", "t", "x", {"chunk_of": parent})


def test_recall_is_the_share_of_gold_within_k(evaluation: Evaluation) -> None:
    found = [evaluation.values[f"recall@{k}"] for k in (1, 2, 5, 10, 20)]
    assert found == pytest.approx([0.5 / 3, 1.5 / 3, 2 / 3, 2 / 3, 2 / 3])


def test_all_recall_needs_every_gold_passage_within_k(evaluation: Evaluation) -> None:
    assert [evaluation.by_query["q1"][f"all_recall@{k}"] for k in (2, 5)] == [0.0, 1.0]


def test_all_recall_is_averaged_over_the_questions(evaluation: Evaluation) -> None:
    assert [evaluation.values[f"all_recall@{k}"] for k in (2, 5)] == pytest.approx([1 / 3, 2 / 3])


def test_mrr_is_the_mean_of_one_over_the_first_gold_rank(evaluation: Evaluation) -> None:
    assert evaluation.values["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_ndcg_discounts_by_the_logarithm_of_the_rank(evaluation: Evaluation) -> None:
    best = 1 + 1 / math.log2(3)
    assert evaluation.by_query["q1"]["ndcg@10"] == pytest.approx((1 + 1 / math.log2(4)) / best)


def test_the_order_given_is_the_order_measured() -> None:
    ids = [f"p{number:03}" for number in range(100)]
    places = [evaluate({"q": ids}, {"q": {id_: 1}}).by_query["q"]["mrr"] for id_ in ids[::9]]
    assert places == pytest.approx([1 / (1 + place) for place in range(0, 100, 9)])


def test_a_question_without_hits_counts_as_zero() -> None:
    assert evaluate({"q1": ["a"], "q2": []}, {"q1": {"a": 1}, "q2": {"a": 1}}).values["recall@5"] == 0.5


def test_no_hits_at_all_is_zero() -> None:
    assert set(evaluate({"q": []}, {"q": {"a": 1}}).values.values()) == {0.0}


def test_a_question_without_gold_is_left_out_and_named() -> None:
    result = evaluate({"q1": ["a"], "q9": ["a"]}, {"q1": {"a": 1}, "q9": {"a": 0}})
    assert (result.queries, result.without_gold, result.values["recall@1"]) == (1, ("q9",), 1.0)


def test_gold_that_no_ranking_could_find_is_named() -> None:
    assert evaluate(RANKED, GOLD, known=["a", "b", "c", "x", "y"]).absent == ("d",)


def test_absent_gold_still_counts_against_recall() -> None:
    assert evaluate({"q": ["a"]}, {"q": {"a": 1, "gone": 1}}, known=["a"]).values["recall@20"] == 0.5


def test_no_gold_for_any_question_is_an_error() -> None:
    with pytest.raises(UsageError, match="same ids"):
        evaluate({"q1": ["a"]}, {"other": {"a": 1}})


def test_a_ranking_that_repeats_a_passage_is_an_error() -> None:
    with pytest.raises(UsageError, match="'q' repeats"):
        evaluate({"q": ["a", "b", "a"]}, {"q": {"a": 1}})


def test_ids_may_be_any_text() -> None:
    ids = ["é 巴黎", "a\tb", "🙂"]
    assert evaluate({"q ü": ids}, {"q ü": {"🙂": 1}}).values["mrr"] == pytest.approx(1 / 3)


def test_measuring_without_ir_measures_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtraError, match="eval"):
        evaluate(RANKED, GOLD)


def test_json_has_the_documented_keys(evaluation: Evaluation) -> None:
    recalls = [f"recall@{k}" for k in (1, 2, 5, 10, 20)]
    assert list(evaluation.as_json("dense")) == [
        *("method", "queries", *recalls, *(f"all_recall@{k}" for k in (2, 5, 10, 20)), "mrr", "ndcg@10", "level")
    ]


def test_measures_that_look_further_than_the_ranking_are_left_out() -> None:
    names = evaluate(RANKED, GOLD, depth=5).values
    assert list(names) == ["recall@1", "recall@2", "recall@5", "all_recall@2", "all_recall@5", "mrr"]


def test_chunks_count_once_for_their_parent_at_the_best_place() -> None:
    hits = [chunk_of("a", 3), Passage("b", "t", "x"), chunk_of("a", 0), chunk_of("c", 0)]
    assert ranked_ids(hits, {}, ()) == ["a", "b", "c"]


def test_an_id_that_only_looks_like_a_chunk_keeps_its_name() -> None:
    assert ranked_ids([Passage("C#1", "t", "x")], {}, ()) == ["C#1"]


def test_a_passage_counts_under_the_one_of_its_ids_that_is_gold() -> None:
    assert ranked_ids([Passage("a", "t", "x")], {"a": ["a", "twin"]}, ["twin"]) == ["twin"]


def test_a_chunk_counts_under_the_parent_of_a_twin_that_is_gold() -> None:
    aliases = {"a#0": ["a#0", "a", "b#0", "b"]}
    assert ranked_ids([chunk_of("a", 0)], aliases, ["b"]) == ["b"]


def test_two_gold_ids_of_one_passage_are_one_of_the_greater_relevance() -> None:
    aliases = {"a": ["a", "twin"], "b": ["b"]}
    gold, merged = one_id_each({"q": {"twin": 1, "a": 2, "gone": 1}, "r": {"a": 1}}, aliases)
    assert (gold, merged) == ({"q": {"twin": 2, "gone": 1}, "r": {"a": 1}}, 1)


def test_documents_that_share_a_chunk_and_no_more_stay_two_gold_ids() -> None:
    aliases = {"a#0": ["a#0", "a", "b#0", "b"], "a#1": ["a#1", "a"], "b#1": ["b#1", "b"]}
    assert one_id_each({"q": {"a": 1, "b": 1}}, aliases)[1] == 0


def test_twin_documents_in_chunks_are_one_gold_id() -> None:
    aliases = {"a#0": ["a#0", "a", "b#0", "b"], "a#1": ["a#1", "a", "b#1", "b"]}
    assert one_id_each({"q": {"a": 1, "b": 1}}, aliases) == ({"q": {"a": 1}}, 1)


def test_a_chunk_and_its_parent_have_the_title_without_headings() -> None:
    metas = [("a#0", "One › A"), ("a#1", "One › B › C"), ("a#2", "One › B")]
    passages = [*(Passage(id_, title, "x", {"chunk_of": "a"}) for id_, title in metas), Passage("b", "Two › D", "x")]
    aliases = {id_: [id_, "a"] for id_, _ in metas}
    assert titles_of(passages, aliases) == {**dict.fromkeys(["a#0", "a", "a#1", "a#2"], "One"), "b": "Two › D"}


def test_a_trec_run_gives_the_same_order_to_a_tool_that_sorts_by_score(tmp_path: Path) -> None:
    write_trec(tmp_path / "run", RANKED, tag="hippo2")
    read: dict[str, list[tuple[float, str]]] = {}
    for row in ir_measures.read_trec_run(str(tmp_path / "run")):
        read.setdefault(row.query_id, []).append((-row.score, row.doc_id))
    assert {query: [id_ for _, id_ in sorted(rows)] for query, rows in read.items()} == RANKED


def test_a_trec_run_has_six_columns(tmp_path: Path) -> None:
    write_trec(tmp_path / "run", {"q": ["a", "b"]}, tag="hippo2")
    assert (tmp_path / "run").read_text() == "q Q0 a 1 2 hippo2\nq Q0 b 2 1 hippo2\n"


@pytest.mark.parametrize(("query", "passage", "tag"), [("q 1", "a", "t"), ("q", "a\u00a0b", "t"), ("q", "a", "")])
def test_a_trec_run_refuses_names_with_white_space(tmp_path: Path, query: str, passage: str, tag: str) -> None:
    with pytest.raises(UsageError, match="TREC"):
        write_trec(tmp_path / "run", {query: [passage]}, tag=tag)
