"""Readers of questions and gold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hippogpu.corpus import Query, read_qrels, read_queries
from hippogpu.errors import CorpusError
from hippogpu.types import Refusal


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_question_has_its_answers_and_gold_without_repeats(tmp_path: Path) -> None:
    line = (
        '{"_id": 1, "question": "Who?", "answer": "A", "answer_aliases": ["B", "A"],'
        ' "supporting_ids": ["p", 2, "p"], "group": "g", "type": "2hop"}'
    )
    queries = read_queries(written(tmp_path / "q.jsonl", line)).queries
    assert queries == (Query("1", "Who?", ("A", "B"), ("p", "2"), "g"),)


def test_a_beir_folder_gives_its_questions_under_text(tmp_path: Path) -> None:
    written(tmp_path / "queries.jsonl", '{"_id": "q", "text": "Who?", "answer": null}\n')
    assert read_queries(tmp_path).queries == (Query("q", "Who?"),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"question": "Who?"}', "no '_id' field"),
        ('{"_id": "x", "question": " "}', "no 'question'"),
        ('{"_id": "x"}', "no 'question'"),
        ('{"_id": "x", "question": "Who?", "answer": {}}', "'answer' is not a list"),
        ('{"_id": "x", "question": "Who?", "answer": 3}', "'answer' is not text but a number"),
        ('{"_id": "q", "question": "Other?"}', "id 'q' came before"),
        ("{", "not JSON"),
    ],
)
def test_a_bad_question_is_refused_alone(tmp_path: Path, line: str, reason: str) -> None:
    good = '{"_id": "q", "question": "Who?"}'
    result = read_queries(written(tmp_path / "q.jsonl", f"{good}\n{line}\n"))
    assert (len(result.queries), len(result.refusals)) == (1, 1)
    assert result.refusals[0].reason.startswith(reason)


@pytest.mark.parametrize("content", ["", "{\n"])
def test_a_file_without_questions_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(CorpusError, match="No question in"):
        read_queries(written(tmp_path / "q.jsonl", content))


@pytest.mark.parametrize(
    "content",
    ["query-id\tcorpus-id\tscore\nq\tp 1\t1\nq\tp2\t0\n", "q\tp 1\t1\r\nq\tp2\t0\n", "q\t0\tp 1\t1\nq 0 p2 0\n"],
)
def test_beir_and_trec_judgements_read_alike(tmp_path: Path, content: str) -> None:
    assert read_qrels(written(tmp_path / "q.tsv", content)) == ({"q": {"p 1": 1, "p2": 0}}, ())


@pytest.mark.parametrize("name", ["qrels/test.tsv", "qrels.tsv"])
def test_a_folder_gives_its_judgements(tmp_path: Path, name: str) -> None:
    written(tmp_path / name, "q\tp\t1\n")
    assert read_qrels(tmp_path).scores == {"q": {"p": 1}}


@pytest.mark.parametrize("line", ["q\tp", "q\tp2\thigh", "q\tp\t2", "a b c d e"])
def test_a_bad_judgement_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "q.tsv", f"query-id\tcorpus-id\tscore\nq\tp\t1\n{line}\n")
    result = read_qrels(path)
    assert (result.scores, [r.where for r in result.refusals]) == ({"q": {"p": 1}}, [f"{path}:3"])


def test_only_the_first_line_may_be_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "q.tsv", "a\tb\tc\nd\te\tf\nq\tp\t1\n")
    assert read_qrels(path).refusals == (Refusal(f"{path}:2", "the score 'f' is no whole number"),)


def test_a_folder_without_judgements_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        read_qrels(tmp_path)
