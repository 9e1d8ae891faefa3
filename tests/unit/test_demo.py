"""The shipped data, and the demo as README shows it, with the default encoder."""

import gzip
import json
from pathlib import Path

import pytest

from hippogpu.corpus import read_qrels, read_queries
from hippogpu.demo import DemoReport, demo_folder, demo_passages, demo_questions, run_demo
from hippogpu.openie import ReplayExtractor

PACKED = ("corpus.jsonl.gz", "openie.jsonl.gz", "queries.jsonl.gz")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.hippo"


@pytest.fixture(scope="module")
def report(index: Path) -> DemoReport:
    return run_demo(index)


def test_there_are_250_passages_with_ids_of_their_own() -> None:
    assert len({passage.id for passage in demo_passages()}) == 250


def test_every_passage_has_a_stored_extraction_and_none_is_left_over() -> None:
    extractor = ReplayExtractor(demo_folder() / "openie.jsonl.gz")
    records = list(extractor.extract(demo_passages()))
    assert (len(extractor), extractor.unused, [record.error for record in records if record.error]) == (250, 0, [])


def test_every_gold_passage_of_every_question_is_shipped() -> None:
    ids = {passage.id for passage in demo_passages()}
    assert all(set(query.supporting) <= ids for query in read_queries(demo_folder() / "queries.jsonl.gz").queries)


def test_the_judgements_say_what_the_questions_say() -> None:
    queries = read_queries(demo_folder() / "queries.jsonl.gz").queries
    assert read_qrels(demo_folder() / "qrels.tsv").scores == {q.id: dict.fromkeys(q.supporting, 1) for q in queries}


def test_the_questions_shown_are_those_marked_in_the_file() -> None:
    rows = map(json.loads, gzip.decompress((demo_folder() / "queries.jsonl.gz").read_bytes()).splitlines())
    assert [row["_id"] for row in rows if row["demo"]] == [question.id for question in demo_questions()]


@pytest.mark.parametrize("name", PACKED)
def test_packed_files_hold_no_time_of_packing(name: str) -> None:
    assert (demo_folder() / name).read_bytes()[4:8] == bytes(4)


def test_the_data_stays_small() -> None:
    assert sum(file.stat().st_size for file in demo_folder().iterdir()) < 300_000


def test_every_data_file_is_attributed() -> None:
    said = (demo_folder() / "ATTRIBUTION.md").read_text("utf-8")
    assert all(f"`{file.name}`" in said for file in demo_folder().iterdir() if file.suffix != ".md")


@pytest.mark.parametrize("number", range(3))
def test_hippo_has_every_gold_passage_in_its_top_five(report: DemoReport, number: int) -> None:
    answer = report.answers[number]
    assert set(answer.gold) <= {hit.passage.id for hit in answer.ranking.hits[:5]}


@pytest.mark.parametrize("number", range(3))
def test_dense_search_ranks_a_gold_passage_below_fifteen(report: DemoReport, number: int) -> None:
    answer = report.answers[number]
    ranks = {hit.passage.id: rank for hit, rank in zip(answer.ranking.hits, answer.dense_ranks, strict=True)}
    assert max(ranks[id_] for id_ in answer.gold) > 15


def test_the_demo_answers_by_hippo_without_falling_back(report: DemoReport) -> None:
    assert {(answer.ranking.method, answer.ranking.fallback) for answer in report.answers} == {("hippo", None)}


def test_a_second_run_uses_the_index_that_is_there(report: DemoReport, index: Path) -> None:
    again = run_demo(index)
    assert (report.commit.changed, again.commit.changed) == (True, False)


def test_a_second_run_answers_the_same(report: DemoReport, index: Path) -> None:
    again = run_demo(index)
    hits = [[answer.ranking.hits for answer in run.answers] for run in (report, again)]
    assert hits[0] == hits[1]
