"""python -m bench quality: recipes, indexes that are reused, checks, rows, errors and cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from quality_cases import ROWS, write_data, write_recipe

from bench.__main__ import app
from bench.checks import Check
from bench.quality.command import measure_recipe
from bench.quality.errors import CLASSES, _class, _Known
from bench.quality.recipe import RECIPES, read_recipe, shipped_recipes
from bench.quality.results import merged, read_results, write_results
from hippogpu.errors import ConfigError, UsageError
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.testing.llm_server import LlmServer
from hippogpu.types import KeptFact, Ranking, Seed

pytest.importorskip("yaml", reason="the extra 'bench' is not installed")

SHIPPED = shipped_recipes()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quality")
    write_data(folder / "data")
    (folder / "work").mkdir()
    return folder


def measure(place: Path, recipe: Path, **more: Any) -> tuple[dict[str, Any], list[Check]]:
    return measure_recipe(read_recipe(recipe), place / "data", place / "work", more.pop("given", {}), **more)


def run(place: Path, recipe: Path, *more: str) -> Ran:
    words = ["quality", "--recipe", str(recipe), "--data", str(place / "data"), "--work", str(place / "work")]
    return run_verb(app, *words, "--repeats", "0", *more)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_can_be_read(name: str) -> None:
    recipe = read_recipe(Path(name))
    assert (recipe.name, bool(recipe.rows)) == (name, True)


def test_no_shipped_recipe_names_a_folder_of_one_machine() -> None:
    assert [
        path.name for path in RECIPES.glob("*.yaml") if "/work" in path.read_text() or "/tmp" in path.read_text()
    ] == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tilte": "x"}, "'tilte'"),
        ({"use": "test"}, "'test'"),
        ({"expected": {"nobody": {"mrr": 1}}}, "nobody"),
        ({"rows": [{"name": "x"}]}, "'name' and 'method'"),
        ({"rows": [{"name": "x", "method": "magic"}]}, "'method'"),
        ({"rows": [{"name": "x", "method": "dense", "settings": {"dampnig": 1}}]}, "'dampnig'"),
        ({"rows": [ROWS[0], ROWS[0]]}, "two rows"),
        ({"rows": [{**ROWS[0], "than": "y"}]}, "'y'"),
        ({"records": {"url": "x"}}, "'records'"),
        ({"records": ["file"]}, "'records'"),
        ({"rows": [{**ROWS[0], "settings": [1]}]}, "'settings'"),
        ({"rows": [{**ROWS[0], "name": 7}]}, "'name'"),
        ({"k": "20"}, "'k'"),
        ({"k": 0}, "'k'"),
        ({"tolerance": "0.1"}, "'tolerance'"),
        ({"expected": ["dense"]}, "'expected'"),
        ({"expected": {"dense": {"mrr": "1"}}}, "'expected'"),
        ({"index": "../other"}, "'index'"),
        ({"index": ".."}, "'index'"),
        ({"llm_records": "no"}, "'llm_records'"),
        ({"title": None}, "'title'"),
    ],
)
def test_a_recipe_with_a_mistake_names_it(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=r"tiny\.yaml") as error:
        read_recipe(write_recipe(tmp_path, **changed))
    assert said in str(error.value)


def test_rows_that_include_themselves_are_refused(tmp_path: Path) -> None:
    (tmp_path / "again.yaml").write_text("- {include: again.yaml}")
    with pytest.raises(ConfigError, match="which includes itself"):
        read_recipe(write_recipe(tmp_path, rows="again.yaml"))


def test_a_recipe_that_lacks_a_key_names_it(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "use"}))
    with pytest.raises(ConfigError, match="lacks the key 'use'"):
        read_recipe(path)


def test_a_recipe_runs_nothing_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_recipe(path)


@pytest.mark.parametrize(("pattern", "names"), [("hippo2", ["hippo2"]), ("hippo2, *", ["hippo2, far", "hippo2, llm"])])
def test_rows_are_chosen_by_name_or_pattern(tmp_path: Path, pattern: str, names: list[str]) -> None:
    assert [row.name for row in read_recipe(write_recipe(tmp_path)).chosen([pattern])] == names


def test_a_pattern_that_fits_no_row_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'hippo2, far'"):
        read_recipe(write_recipe(tmp_path)).chosen(["magic"])


def test_a_recipe_that_is_not_there_is_an_error_that_lists_those_that_are() -> None:
    with pytest.raises(ConfigError, match="musique_dev"):
        read_recipe(Path("musik"))


def test_every_row_has_values_intervals_and_its_command(place: Path, tmp_path: Path) -> None:
    value, checks = measure(place, write_recipe(tmp_path))
    assert all(check.passed for check in checks)
    assert list(value["rows"]) == ["dense", "bm25", "hippo2", "hippo2, far"]
    for row in value["rows"].values():
        low, high = row["intervals"]["recall@5"]
        assert low <= row["values"]["recall@5"] <= high
    assert "--recipe tiny --only 'hippo2, far' --data DATA" in value["rows"]["hippo2, far"]["command"]


def test_a_row_that_needs_a_model_is_named_and_not_run_without_one(place: Path, tmp_path: Path) -> None:
    assert measure(place, write_recipe(tmp_path))[0]["not_run"] == ["hippo2, llm"]


def test_a_row_that_needs_a_model_asks_it_and_is_not_timed(place: Path, tmp_path: Path) -> None:
    with LlmServer() as server:
        (tmp_path / "c.toml").write_text(f'[llm]\nurl = "{server.url}"\nmodel = "m"\n')
        found = measure(place, write_recipe(tmp_path), only=["hippo2, llm"], config=tmp_path / "c.toml", repeats=2)[0]
    row = found["rows"]["hippo2, llm"]
    assert (row["filter_failures"], "queries_per_s" in row, row["command"].endswith("--config FILE")) == (
        {},
        False,
        True,
    )
    assert (
        row["facts_kept"] < measure(place, write_recipe(tmp_path), only=["hippo2"])[0]["rows"]["hippo2"]["facts_kept"]
    )


def test_failures_under_a_filter_look_at_what_it_was_given(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.quality.errors.DEPTH", 1)  # so that both questions of two gold passages fail
    with LlmServer() as server:
        (tmp_path / "c.toml").write_text(f'[llm]\nurl = "{server.url}"\nmodel = "m"\n')
        found = measure(place, write_recipe(tmp_path), only=["hippo2, llm"], config=tmp_path / "c.toml", errors=True)[
            0
        ]["errors"]
    examples = [one for rows in found["hippo2, llm"]["examples"].values() for one in rows]
    assert len(examples) >= 2
    assert all(set(one["kept"]) < set(one["candidates"]) for one in examples)


def test_a_single_row_is_still_compared_with_the_baselines(place: Path, tmp_path: Path) -> None:
    value = measure(place, write_recipe(tmp_path), only=["hippo2, far"])[0]
    assert list(value["rows"]) == ["hippo2, far"]
    assert list(value["rows"]["hippo2, far"]["against"]) == ["dense", "bm25", "hippo2"]


def test_a_rerun_builds_no_new_generation(place: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    measure(place, recipe)
    pointer = (place / "work" / "tiny.hippo" / "CURRENT").read_bytes()
    measure(place, recipe)
    assert (place / "work" / "tiny.hippo" / "CURRENT").read_bytes() == pointer


def test_a_given_index_is_used_and_left_as_it_is(place: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, index="elsewhere")
    measure(place, write_recipe(tmp_path))
    made = place / "work" / "tiny.hippo"
    checks = measure(place, recipe, given={"elsewhere": made})[1]
    assert (all(check.passed for check in checks), (place / "work" / "elsewhere.hippo").exists()) == (True, False)


def test_an_index_of_other_passages_fails_its_check_and_nothing_is_timed(place: Path, tmp_path: Path) -> None:
    measure(place, write_recipe(tmp_path))
    other = write_data(tmp_path / "data")
    corpus = other / "tiny" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("Cats sleep", "Cats eat"))
    read, given = read_recipe(write_recipe(tmp_path)), {"tiny": place / "work" / "tiny.hippo"}
    value, checks = measure_recipe(read, other, tmp_path, given, only=["dense"], repeats=2)
    assert [check.found for check in checks if not check.passed] == [["p5"]]
    assert "queries_per_s" not in value["rows"]["dense"]


def test_a_set_whose_checks_pass_is_timed(place: Path, tmp_path: Path) -> None:
    value = measure(place, write_recipe(tmp_path), only=["dense"], repeats=2)[0]
    assert (value["rows"]["dense"]["queries_per_s"]["repeats"], value["rows"]["dense"]["queries_per_s"]["batch"]) == (
        2,
        3,
    )


@pytest.mark.parametrize(("off", "code"), [(0.0, 0), (1.0, 1)])
def test_a_figure_that_is_off_fails_the_run(place: Path, tmp_path: Path, off: float, code: int) -> None:
    value = measure(place, write_recipe(tmp_path))[0]["rows"]["dense"]["values"]["recall@5"]
    recipe = write_recipe(tmp_path, expected={"dense": {"recall@5": 100 * value + off}}, tolerance=0.5)
    assert run(place, recipe, "--only", "dense").code == code


def test_a_folder_of_data_that_is_not_there_is_a_wrong_call(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data DIR"):
        measure(place, write_recipe(tmp_path, data="nowhere"))


def test_failures_are_sorted_into_the_papers_classes(place: Path, tmp_path: Path) -> None:
    errors = measure(place, write_recipe(tmp_path, k=5), errors=True)[0]["errors"]["hippo2"]
    assert list(errors["classes"]) == list(CLASSES)
    assert sum(errors["classes"].values()) == errors["failed"] == sum(map(len, errors["examples"].values()))


def test_a_gold_passage_without_facts_leaves_no_usable_fact(place: Path, tmp_path: Path) -> None:
    rows = [{**ROWS[2], "settings": {"passage_weight": 0.0, "top_facts": 2}}]
    errors = measure(place, write_recipe(tmp_path, rows=rows), errors=True)[0]["errors"]["hippo2"]
    assert [example["query_id"] for example in errors["examples"]["no usable fact"]] == ["q3"]


FACT, OTHER = KeptFact("a", "is", "b", 1.0), KeptFact("x", "is", "y", 1.0)


@pytest.mark.parametrize(
    ("facts", "seeds", "candidates", "kind"),
    [
        ([FACT], ["a"], [FACT], "walk failed"),
        ([FACT, OTHER], ["x"], [FACT, OTHER], "seeds missing"),
        ([OTHER], ["x"], [FACT, OTHER], "filter removed the usable"),
        ([], [], [FACT], "filter emptied"),
        ([OTHER], ["x"], [OTHER], "no usable fact"),
    ],
)
def test_the_first_class_that_fits_names_a_failure(
    facts: list[KeptFact], seeds: list[str], candidates: list[KeptFact], kind: str
) -> None:
    known = _Known({"g": {("a", "is", "b")}, "h": set()}, {"g": {"a", "b"}, "h": {"z"}})
    ranking = Ranking("?", (), "hippo2", facts=tuple(facts), seeds=tuple(Seed(name, 1.0) for name in seeds))
    assert _class(["g", "h"], ranking, candidates, known) == kind


def test_a_row_without_facts_has_no_classes_of_failures(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'dense' keeps no facts"):
        measure(place, write_recipe(tmp_path), errors=True, only=["dense"])


def test_cases_rank_within_the_group_and_show_a_path(tmp_path: Path) -> None:
    write_data(tmp_path / "data", grouped=True)
    value = measure(tmp_path, write_recipe(tmp_path, cases=True, rows=ROWS[:3]))[0]
    passage = value["cases"]["q1"]["passages"]["p2"]
    assert all(1 <= rank <= 4 for rank in passage["ranks"].values())
    assert "montebello" in " ".join(passage["paths"]["hippo2"]).casefold()


def test_parts_of_a_set_are_put_together(place: Path, tmp_path: Path) -> None:
    recipe, file = write_recipe(tmp_path), tmp_path / "r.json"
    for row in ("dense", "bm25"):
        run(place, recipe, "--only", row, "--json", str(file))
    assert list(read_results(file)["sets"]["tiny"]["rows"]) == ["dense", "bm25"]


def test_rows_of_another_index_are_not_kept_beside_new_ones(place: Path, tmp_path: Path) -> None:
    value = measure(place, write_recipe(tmp_path), only=["dense"])[0]
    before = merged(read_results(tmp_path / "none"), "tiny", {**value, "rows": {"bm25": {}}, "gold_pairs": 7}, {})
    assert list(merged(before, "tiny", value, {})["sets"]["tiny"]["rows"]) == ["dense"]


def test_a_run_that_times_nothing_keeps_the_speed_that_was_measured(place: Path, tmp_path: Path) -> None:
    value = measure(place, write_recipe(tmp_path), only=["dense"])[0]
    timed = {**value, "rows": {"dense": {**value["rows"]["dense"], "queries_per_s": {"median": 5.0}}}}
    before = merged(read_results(tmp_path / "none"), "tiny", timed, {})
    assert merged(before, "tiny", value, {})["sets"]["tiny"]["rows"]["dense"]["queries_per_s"] == {"median": 5.0}


def test_results_that_could_not_be_written_are_refused_before_anything_is_measured(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "r.json").symlink_to(tmp_path / "other")
    for file in ("r.json", "other/r.json"):
        ran = run(place, write_recipe(tmp_path), "--only", "dense", "--json", str(tmp_path / file))
        assert (ran.code, "dense" in ran.out, (tmp_path / "other").read_text()) == (2, False, "kept")


def test_titles_of_many_passages_do_not_use_up_the_depth(tmp_path: Path) -> None:
    corpus = write_data(tmp_path / "data") / "tiny" / "corpus.jsonl"
    for title in ("Steam", "Charles Babbage", "Cats", "Rockland County", "Weather"):
        corpus.write_text(corpus.read_text().replace(f'"title": "{title}"', '"title": "Same"'))
    recipe = write_recipe(tmp_path, level="title", k=5, rows=ROWS[:1])
    value = measure_recipe(read_recipe(recipe), tmp_path / "data", tmp_path, {})[0]
    assert value["rows"]["dense"]["values"]["recall@5"] == 1.0


def test_stored_results_hold_no_folder_of_this_machine(place: Path, tmp_path: Path) -> None:
    run(place, write_recipe(tmp_path), "--json", str(tmp_path / "r.json"))
    assert str(place) not in (tmp_path / "r.json").read_text()


def test_results_are_stored_as_the_same_values_with_a_line_a_row(tmp_path: Path) -> None:
    results = {"bench": "quality", "published": {}, "sets": {"a": {"rows": {"x": {"v": [1]}, "é": {}}, "checks": []}}}
    write_results(tmp_path / "r.json", results)
    assert json.loads((tmp_path / "r.json").read_text()) == results
    assert '    "x": {"v": [1]},' in (tmp_path / "r.json").read_text().splitlines()


def test_a_row_that_was_run_before_is_not_called_not_run(place: Path, tmp_path: Path) -> None:
    value, _ = measure(place, write_recipe(tmp_path), only=["dense"])
    asked = {**value, "rows": {**value["rows"], "hippo2, llm": value["rows"]["dense"]}, "not_run": []}
    before = merged(read_results(tmp_path / "none"), "tiny", asked, {})
    after = merged(before, "tiny", {**value, "not_run": ["hippo2, llm"]}, {})["sets"]["tiny"]
    assert (after["not_run"], "hippo2, llm" in after["rows"]) == ([], True)
