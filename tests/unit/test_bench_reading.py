"""What python -m bench reading measures, and that the guide's tables are those of the stored result."""

from __future__ import annotations

import json
from pathlib import Path

from small_index import Counting

from bench.ideal_thoughts import ideal_thoughts
from bench.reading import answered, filtered, named
from bench.reading_page import PAGE, stored_result, with_tables
from hippogpu import Searcher
from hippogpu.config import AnswerConfig
from hippogpu.corpus import Query, read_queries
from hippogpu.llm import Llm
from hippogpu.testing.engines import ScriptedEngine

ASKED = [
    Query("q0", "What did Ada Lovelace write?", ("notes",), ("p1",)),
    Query("q1", "Who built the engine?", ("Charles Babbage",), ("p2",)),
]
REPLIES = {
    "keep": {"keep": [1]},
    "entities": {"entities": ["Ada Lovelace", "Nobody"]},
    "thought": {"thought": "Charles Babbage built the engine.", "passages": [1], "answer": "Charles Babbage"},
}


def model() -> Llm:
    return Llm(ScriptedEngine(lambda request: json.dumps(REPLIES[next(iter(request.schema["properties"]))])))


def test_the_figures_of_each_task_are_those_of_its_replies(made: Path) -> None:
    searcher, config = Searcher.open(made, embedder=Counting()), AnswerConfig()
    kept, names = filtered(model(), searcher, ASKED, config), named(model(), ASKED, config)
    answers = answered(model(), searcher, ASKED, config, ircot=True)
    assert (kept.row["kept_share"], kept.row["failed"]) == (0.2, 0)
    assert (names.row["names"], names.row["names_in_the_question"]) == (4, 1)
    assert (answers.row["em"], answers.row["stops"], answers.row["cited"]) == (0.5, {"answer": 2}, 2)
    assert all(check.passed for task in (kept, names, answers) for check in task.checks)


def test_ideal_thoughts_find_what_the_question_alone_does_not_name(made: Path, tmp_path: Path) -> None:
    hops = [
        {"question": "Ada Lovelace >> knew", "answer": "Charles Babbage"},
        {"question": "#1 >> built", "answer": "the engine"},
    ]
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"_id": "q", "question": "Ada?", "supporting_ids": ["p1", "p2"], "hops": hops}) + "\n")
    found = ideal_thoughts(Searcher.open(made, embedder=Counting()), path, read_queries(path).queries)
    assert [(one["method"], one["steps"]) for one in found] == [
        ("hippo2", 2),
        ("hippo2", 4),
        ("dense", 2),
        ("dense", 4),
    ]
    assert all(len(recall) == 5 for one in found for recall in one["recall"].values())


def test_the_tables_of_the_guide_are_those_of_the_stored_result() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, stored_result()) == page


def test_the_stored_result_passed_every_check() -> None:
    assert [check["name"] for check in stored_result()["checks"] if not check["passed"]] == []
