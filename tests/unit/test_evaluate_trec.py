"""TREC runs and qrels, in and out."""

from pathlib import Path

import ir_measures
import pytest

from hippogpu.corpus import read_qrels
from hippogpu.errors import CorpusError, UsageError
from hippogpu.evaluate import evaluate, read_run, write_qrels, write_trec

RANKED = {"q1": ["b", "a", "ü"], "q2": ["c"], "q3": []}
GOLD = {"q1": {"a": 1, "b": 2}, "q2": {"d": 1}}


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_trec(tmp_path / "r", RANKED, tag="mine")
    read = read_run(tmp_path / "r")
    assert (read.ranked, read.tag, read.refusals) == ({"q1": ["b", "a", "ü"], "q2": ["c"]}, "mine", ())


def test_qrels_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_qrels(tmp_path / "q.txt", GOLD)
    assert read_qrels(tmp_path / "q.txt").scores == GOLD


def test_our_measures_of_a_file_are_those_of_ir_measures_on_the_same_files(tmp_path: Path) -> None:
    write_trec(tmp_path / "r", RANKED, tag="t")
    write_qrels(tmp_path / "q", GOLD)
    measures = [ir_measures.R @ 1, ir_measures.R @ 5, ir_measures.RR, ir_measures.nDCG @ 10]
    run, qrels = ir_measures.read_trec_run(str(tmp_path / "r")), ir_measures.read_trec_qrels(str(tmp_path / "q"))
    theirs = ir_measures.calc_aggregate(measures, list(qrels), list(run))
    ours = evaluate(read_run(tmp_path / "r").ranked, GOLD).values
    names = ("recall@1", "recall@5", "mrr", "ndcg@10")
    assert [ours[name] for name in names] == pytest.approx([theirs[measure] for measure in measures])


def test_scores_decide_and_the_rank_column_does_not(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("q Q0 low 1 0.5 t\nq Q0 high 2 7e-1 t\n")
    assert read_run(tmp_path / "r").ranked == {"q": ["high", "low"]}


def test_equal_scores_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("".join(f"q Q0 {id_} 1 0.5 t\n" for id_ in "zamb"))
    assert read_run(tmp_path / "r").ranked["q"] == list("zamb")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"q Q0 b 1 0.5", "5 columns, not 6"),
        (b"q Q0 b 1 high t", "'high' is no number"),
        (b"q Q0 b 1 nan t", "not finite"),
        (b"q Q0 b\xff 1 0.5 t", "not UTF-8"),
        (b"q Q0 a 2 0.4 t", "'a' came before"),
    ],
)
def test_a_bad_line_is_refused_by_its_number_and_the_others_are_kept(tmp_path: Path, line: bytes, reason: str) -> None:
    (tmp_path / "r").write_bytes(b"q Q0 a 1 0.9 t\n" + line + b"\nq Q0 c 2 0.1 t\n")
    read = read_run(tmp_path / "r")
    assert read.ranked == {"q": ["a", "c"]}
    assert [(refusal.where.endswith("r:2"), reason in refusal.reason) for refusal in read.refusals] == [(True, True)]


@pytest.mark.parametrize("content", ["", "\n\n", "query\tid\n"])
def test_a_file_that_is_no_run_is_an_error_that_shows_the_form(tmp_path: Path, content: str) -> None:
    (tmp_path / "r").write_text(content)
    with pytest.raises(CorpusError, match="query Q0 passage rank score tag"):
        read_run(tmp_path / "r")


def test_qrels_refuse_names_with_white_space(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TREC qrels"):
        write_qrels(tmp_path / "q", {"q": {"a b": 1}})
