"""The verb eval: columns, levels, foreign runs, comparisons, reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_index import PASSAGES, Saying, index_of

from hippogpu import Index, IndexConfig
from hippogpu.cli import app
from hippogpu.cli.variants import columns_of
from hippogpu.config import SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError, UsageError
from hippogpu.evaluate import read_run
from hippogpu.searcher import Searcher
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.testing.llm_server import LlmServer
from hippogpu.types import Passage

QUERIES = (
    {"_id": "q1", "question": "Who built the engine?", "supporting_ids": ["p1", "p2"]},
    {"_id": "q2", "question": "Is Oliver Badman a politician?", "supporting_ids": ["p0"]},
)
CHUNKS = IndexConfig(chunk_tokens=8, chunk_overlap=0)
TWINS = [Passage("p5", "Oliver Badman", "he|won|again"), Passage("p6", "", "untitled|is|this")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("evaluate") / "x.hippo"
    index_of(root, [*PASSAGES, *TWINS])
    (root.parent / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUERIES))
    return root


def run_eval(folder: Path, *more: str) -> Ran:
    return run_verb(app, "eval", str(folder), "--queries", str(folder.parent / "queries.jsonl"), *more)


def objects(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def names(*, methods: list[str] | None = None, variants: list[str] | None = None) -> list[str]:
    found = columns_of(SearchConfig(), methods=methods or [], variants=variants or [], values=[], default=["hippo2"])
    return [column.name for column in found]


def test_a_variant_changes_the_settings_it_names_and_no_other() -> None:
    start = SearchConfig(top_facts=7)
    found = columns_of(start, methods=[], variants=["far: damping=0.7, method=dense"], values=[], default=[])
    assert [(c.name, c.settings) for c in found] == [("far", SearchConfig(top_facts=7, damping=0.7, method="dense"))]


def test_set_holds_for_every_column() -> None:
    found = columns_of(
        SearchConfig(), methods=["dense"], variants=["x: top_facts=3"], values=["damping=0.25"], default=[]
    )
    assert [column.settings.damping for column in found] == [0.25, 0.25]


def test_a_variant_without_a_name_is_called_by_its_text() -> None:
    assert names(variants=["damping=0.7"]) == ["damping=0.7"]


def test_the_default_columns_stand_only_where_none_is_named() -> None:
    assert [names(), names(methods=["dense"]), names(variants=["a: top_facts=1"])] == [["hippo2"], ["dense"], ["a"]]


@pytest.mark.parametrize(
    "variant",
    ["x: dampnig=0.5", "x: damping", "x: damping=2.0", "x: synonyms=maybe", ": damping=0.7", "x: damping=0.5\npool=3"],
)
def test_a_variant_with_a_wrong_setting_is_an_error(variant: str) -> None:
    with pytest.raises(ConfigError):
        names(variants=[variant])


def test_a_method_is_not_set_for_every_column(folder: Path) -> None:
    ran = run_eval(folder, "--set", "method=bm25")
    assert (ran.code, "--method bm25" in ran.err) == (2, True)


def test_a_setting_that_no_column_takes_is_refused(folder: Path) -> None:
    ran = run_eval(folder, "--set", "damping=0.5", "--run", "r.trec")
    assert (ran.code, "changes no column" in ran.err) == (2, True)


def test_two_columns_of_one_name_are_an_error() -> None:
    with pytest.raises(UsageError, match="'dense'"):
        names(methods=["dense", "dense"])


def test_json_has_an_interval_beside_each_measure(folder: Path) -> None:
    value = objects(run_eval(folder, "--method", "dense", "--json"))[0]
    assert all(
        value[f"{name}_ci"][0] <= value[name] <= value[f"{name}_ci"][1] for name in ("recall@5", "mrr", "ndcg@10")
    )


def test_json_without_intervals_has_none(folder: Path) -> None:
    value = objects(run_eval(folder, "--method", "dense", "--no-ci", "--json"))[0]
    assert (value["level"], [name for name in value if name.endswith("_ci")]) == ("passage", [])


def test_a_column_is_compared_with_the_first(folder: Path) -> None:
    second = objects(run_eval(folder, "--method", "dense", "--variant", "again: method=dense", "--json"))[1]
    assert (second["difference"]["to"], second["difference"]["recall@5"]["verdict"]) == ("dense", "tie")


def test_the_table_names_the_level_and_the_verdict(folder: Path) -> None:
    out = run_eval(folder, "--method", "hippo2", "--method", "dense").out
    assert all(word in out for word in ("2 questions, passage level, percent", "dense less hippo2", "tie"))


def test_a_filter_by_a_language_model_is_a_column_like_others(folder: Path) -> None:
    with LlmServer() as server:
        words = ["--method", "hippo2", "--variant", "judged: method=hippo2, filter=llm", "--json"]
        ran = run_eval(folder, *words, "--url", server.url, "--model", "m")
    assert [row["method"] for row in objects(ran)] == ["hippo2", "judged"]
    assert "filter: 2 questions" in ran.err


def test_a_filter_without_its_model_names_the_options(folder: Path) -> None:
    ran = run_eval(folder, "--set", "filter=llm")
    assert (ran.code, "--url URL" in ran.err) == (2, True)


def test_titles_count_once_at_title_level(folder: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(json.dumps({"_id": "q", "question": "Badman?", "supporting_ids": ["p0", "p5"]}) + "\n")
    found = [
        objects(
            run_verb(
                app, "eval", str(folder), "--queries", str(queries), "--method", "dense", "--level", level, "--json"
            )
        )
        for level in ("passage", "title")
    ]
    assert found[0][0]["recall@1"] == 0.5
    assert (found[1][0]["recall@1"], found[1][0]["level"]) == (1.0, "title")


def test_gold_that_is_a_title_is_told_to_be_measured_by_title(folder: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(json.dumps({"_id": "q", "question": "Badman?", "supporting_ids": ["Oliver Badman"]}) + "\n")
    words = ["eval", str(folder), "--queries", str(queries), "--method", "dense", "--json"]
    by_passage, by_title = run_verb(app, *words), run_verb(app, *words, "--level", "title")
    assert ("--level title" in by_passage.err, objects(by_passage)[0]["absent"]) == (True, 1)
    assert (objects(by_title)[0]["absent"], objects(by_title)[0]["recall@20"]) == (0, 1.0)


def test_the_questions_that_changed_are_listed_with_their_ranks(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "poor.trec").write_text("q1 Q0 p2 1 9 poor\nq2 Q0 p3 1 9 poor\n")
    ran = run_eval(
        folder, "--method", "dense", "--run", str(tmp_path / "poor.trec"), "--diff", "--measure", "recall@20", "--json"
    )
    last = objects(ran)[-1]
    assert last["diff"] == ["dense", "poor (poor.trec)"]
    assert [(q["query_id"], q["change"]) for q in last["questions"]] == [("q1", "lost"), ("q2", "lost")]
    assert last["questions"][0]["gold"][1]["ranks"][1] == 1


def test_diff_needs_two_columns(folder: Path) -> None:
    ran = run_eval(folder, "--method", "dense", "--diff")
    assert (ran.code, "two columns" in ran.err) == (2, True)


def test_a_saved_run_measures_as_the_method_that_made_it(folder: Path, tmp_path: Path) -> None:
    saved = objects(run_eval(folder, "--method", "dense", "--save-run", str(tmp_path / "runs"), "--json"))[0]
    words = ["eval", "--queries", str(folder.parent / "queries.jsonl"), "--qrels", str(tmp_path / "runs" / "qrels.txt")]
    again = objects(run_verb(app, *words, "--run", str(tmp_path / "runs" / "dense.trec"), "--json"))[0]
    measures = [name for name in saved if "@" in name or name.startswith("mrr")]
    assert [saved[name] for name in measures] == [again[name] for name in measures]


def test_bad_lines_of_a_run_are_listed_and_fail_the_call(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r.trec").write_text("q1 Q0 p2 1 9 poor\nq1 p3\n")
    ran = run_eval(folder, "--run", str(tmp_path / "r.trec"))
    assert (ran.code, "r.trec:2" in ran.err, "1 questions are not in the run" in ran.err) == (1, True, True)


def test_a_run_of_other_questions_is_an_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r.trec").write_text("other Q0 p2 1 9 poor\n")
    ran = run_eval(folder, "--run", str(tmp_path / "r.trec"))
    assert (ran.code, "none of the questions" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [["eval", "--method", "dense"], ["eval"], ["eval", "--run", "r", "--level", "title"]])
def test_what_needs_an_index_says_so(folder: Path, words: list[str]) -> None:
    ran = run_verb(app, *words, "--queries", str(folder.parent / "queries.jsonl"))
    assert (ran.code, "Name the index" in ran.err) == (2, True)


@pytest.mark.parametrize(("name", "begin"), [("r.md", "# Evaluation"), ("r.html", "<!doctype html>")])
def test_a_report_is_markdown_or_html_by_its_name(folder: Path, tmp_path: Path, name: str, begin: str) -> None:
    run_eval(folder, "--output", str(tmp_path / name), "--diff")
    text = (tmp_path / name).read_text()
    assert (text.startswith(begin), "2 questions, passage level" in text, "R@5" in text) == (True, True, True)


def test_markup_in_questions_and_names_is_shown_and_not_obeyed(folder: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    rows = [{"_id": "q", "question": "Badman [click](//evil) <img>?", "supporting_ids": ["p0"]}]
    queries.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "r.trec").write_text("q Q0 p2 1 9 **poor**\n")
    words = ["eval", str(folder), "--queries", str(queries), "--method", "dense", "--run", str(tmp_path / "r.trec")]
    run_verb(app, *words, "--diff", "--measure", "recall@20", "--output", str(tmp_path / "r.html"))
    text = (tmp_path / "r.html").read_text()
    assert ("[click](//evil) &lt;img&gt;?" in text, "href" in text, "<strong>" in text) == (True, False, False)


def test_a_markdown_report_has_its_plots_beside_it_and_html_inside(folder: Path, tmp_path: Path) -> None:
    for name in ("r.md", "h.html"):
        run_eval(folder, "--output", str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["r-all_recall-5.svg", "r-recall-5.svg"]
    assert ((tmp_path / "r.md").read_text().count(".svg)"), (tmp_path / "h.html").read_text().count("<svg")) == (2, 2)


def test_json_names_the_settings_that_are_not_the_defaults(folder: Path) -> None:
    value = objects(run_eval(folder, "--variant", "x: method=dense, damping=0.7", "--json"))[0]
    assert value["settings"] == {"method": "dense", "damping": 0.7}


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents of twelve chunks, and one of two, in Markdown."""
    root = tmp_path_factory.mktemp("chunked") / "x.hippo"
    texts = {f"d{i}": " ".join(f"Engine {i} {j} is here now." for j in range(12)) for i in range(3)}
    texts["m"] = "## Head\nDogs bark at night today.\n\n## Tail\nCats sleep all day long."
    with Index.open(root, extractor=Saying(), embedder=Words(), config=CHUNKS, encoder_spec="hashing:32") as index:
        index.add([Passage(id_, f"Doc {id_}", text) for id_, text in texts.items()])
        index.commit()
    rows = [{"_id": "q", "question": "Engine 0", "supporting_ids": ["m"]}]
    (root.parent / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


class Words(HashingEmbedder):
    """Its tokens are words."""

    def __init__(self) -> None:
        super().__init__(32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


@pytest.mark.parametrize("level", ["passage", "title"])
def test_chunks_of_a_few_documents_do_not_use_up_the_depth(chunked: Path, level: str) -> None:
    value = objects(run_eval(chunked, "--method", "dense", "-k", "5", "--level", level, "--json"))[0]
    assert value["recall@5"] == 1.0


def test_a_gold_title_is_that_of_the_whole_document(chunked: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(json.dumps({"_id": "q", "question": "Dogs?", "supporting_ids": ["Doc m"]}) + "\n")
    words = ["eval", str(chunked), "--queries", str(queries), "--method", "dense", "--level", "title", "--json"]
    value = objects(run_verb(app, *words))[0]
    assert (value["absent"], value["recall@20"]) == (0, 1.0)


def test_two_ids_of_one_passage_that_are_gold_count_once_and_it_is_told(tmp_path: Path) -> None:
    index_of(tmp_path / "x.hippo", [*PASSAGES, PASSAGES[1]._replace(id="twin")])
    row = {"_id": "q", "question": "Who wrote notes?", "supporting_ids": ["p1", "twin"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(row) + "\n")
    ran = run_eval(tmp_path / "x.hippo", "--method", "dense", "--json")
    assert (objects(ran)[0]["recall@20"], objects(ran)[0]["merged"]) == (1.0, 1)
    assert "1 gold ids name a passage that is gold under another id" in ran.err


def test_without_an_index_nobody_knows_how_much_gold_is_absent(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r.trec").write_text("q1 Q0 p2 1 9 poor\n")
    words = ["--queries", str(folder.parent / "queries.jsonl"), "--run", str(tmp_path / "r.trec"), "--json"]
    assert objects(run_verb(app, "eval", *words))[0]["absent"] is None


def test_eval_keeps_no_text_of_a_ranking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("all rankings at once")

    monkeypatch.setattr(Searcher, "rank", refuse)
    assert run_eval(folder, "--method", "dense").code == 0


def test_a_report_of_another_form_is_refused_before_anything_is_measured(folder: Path, tmp_path: Path) -> None:
    ran = run_eval(folder, "--output", str(tmp_path / "r.pdf"))
    assert (ran.code, ran.out, ".md or .html" in ran.err) == (2, "", True)


@pytest.mark.parametrize("words", [["--output", "no/r.md"], ["--output", "link.md"], ["--save-run", "file/runs"]])
def test_a_place_that_takes_no_report_is_refused_before_anything_is_measured(
    folder: Path, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link.md").symlink_to(tmp_path / "file")
    ran = run_eval(folder, words[0], str(tmp_path / words[1]))
    assert (ran.code, ran.out, (tmp_path / "file").read_text()) == (2, "", "kept")


@pytest.mark.parametrize("link", ["qrels.txt", "dense.trec"])
def test_a_saved_run_is_not_written_through_a_link(folder: Path, tmp_path: Path, link: str) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / link).symlink_to(tmp_path / "other")
    ran = run_eval(folder, "--method", "dense", "--save-run", str(tmp_path))
    assert (ran.code, (tmp_path / "other").read_text()) == (2, "kept")


def test_saved_runs_hold_what_was_ranked(folder: Path, tmp_path: Path) -> None:
    run_eval(folder, "--variant", "a b/c: method=dense", "--save-run", str(tmp_path))
    assert set(read_run(tmp_path / "a-b-c.trec").ranked) == {"q1", "q2"}
