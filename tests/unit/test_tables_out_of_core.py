"""Tables made in runs on disk are those made in memory, and those of dictionaries and loops."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hippogpu.config import PROFILES, IndexConfig
from hippogpu.errors import IndexDamagedError, StoredIndexError
from hippogpu.tables import Tabulated, count_fact_pairs, fact_pairs, fact_text, tabulate
from hippogpu.tables.merging import merge_texts
from hippogpu.tables.reading import Run
from hippogpu.tables.scratch import GrowingTexts, stored_run, write_run
from hippogpu.text import normalise, readable
from hippogpu.text_columns import TextColumn
from hippogpu.types import Record, Tables, Triple, UserEdge

CONFIGS = (PROFILES["default"], PROFILES["oracle"])
RECORDS = Path(__file__).resolve().parents[2] / "hippogpu" / "demo"
# Some runs of a few texts each.
TINY = 20_000
# Above U+FFFF, where UTF-16 would sort otherwise, and two that normalisation joins.
WORDS = ("a", "B", "b", "c!", "—", "", "é", "e\u0301", "北京", "\uffdc", "\U00010428", "\U0002f81a", "zz top")


def record(*triples: tuple[str | None, ...]) -> Record:
    return Record("p", tuple(Triple(*triple) for triple in triples))  # type: ignore[arg-type]


def by_dictionaries(records: Sequence[Record | None], config: IndexConfig) -> dict[str, Any]:
    """What tables hold, said plainly."""
    stated: list[list[tuple[str, str, str]]] = []
    texts: dict[tuple[str, str, str], str] = {}
    for one in records:
        stated.append([])
        for triple in one.triples if one else ():
            subject, predicate, object_ = (normalise(field, config.text_rule) for field in triple[:3])
            if config.keep_empty or (subject and object_):
                key = (subject, predicate, object_)
                stated[-1].append(key)
                own = fact_text(key, config.fact_text) if triple.text is None else readable(triple.text)
                texts.setdefault(key, own)
    facts = sorted(texts)
    phrases = sorted({phrase for fact in facts for phrase in (fact[0], fact[2])})
    return {
        "phrases": phrases,
        "facts": facts,
        "texts": [texts[fact] for fact in facts],
        "statements": [[facts.index(key) for key in row] for row in stated],
        "mentions": [sorted({phrases.index(end) for key in row for end in (key[0], key[2])}) for row in stated],
    }


def held(made: Tabulated) -> dict[str, Any]:
    tables = made.tables.check()
    facts, phrases = tables.facts, list(tables.phrases)
    ends = zip(facts.subject, facts.predicate, facts.object, strict=True)
    return {
        "phrases": phrases,
        "facts": [(phrases[subject], predicate, phrases[object_]) for subject, predicate, object_ in ends],
        "texts": list(facts.text),
        "statements": [tables.statements.row(i).tolist() for i in range(len(tables.statements))],
        "mentions": [tables.mentions.row(i).tolist() for i in range(len(tables.mentions))],
    }


def _arrays(tables: Tables) -> list[np.ndarray]:
    rows = [column for ragged in (tables.mentions, tables.statements) for column in (ragged.indptr, ragged.values)]
    return [*rows, *tables.user_edges, tables.facts.subject, tables.facts.object]


def same(one: Tabulated, other: Tabulated) -> bool:
    """Array for array, text for text."""
    arrays = list(zip(_arrays(one.tables), _arrays(other.tables), strict=True))
    texts = [(made.tables.phrases, made.tables.facts.predicate, made.tables.facts.text) for made in (one, other)]
    return (
        all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)
        and all(list(a) == list(b) for a, b in zip(*texts, strict=True))
        and dict(one.dropped) == dict(other.dropped)
    )


FIELD = st.sampled_from(WORDS)
TEXT = st.none() | st.sampled_from(["A. First.", "B. Second.", "half \ud800"])
ROWS = st.lists(st.none() | st.builds(record, *[st.tuples(FIELD, FIELD, FIELD, TEXT)] * 2), max_size=12)


@settings(deadline=None)
@given(rows=ROWS, config=st.sampled_from(CONFIGS))
def test_tables_are_those_of_dictionaries_and_loops(rows: list[Record | None], config: IndexConfig) -> None:
    assert held(tabulate(rows, config)) == by_dictionaries(rows, config)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
@given(rows=ROWS, config=st.sampled_from(CONFIGS), budget=st.sampled_from([1, 3000]))
def test_runs_on_disk_make_the_tables_of_memory(
    rows: list[Record | None], config: IndexConfig, budget: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    assert same(tabulate(rows, config, scratch=scratch, budget_bytes=budget), tabulate(rows, config))


def demo_records() -> list[Record]:
    """Real records: those of the demonstration."""
    path = next(RECORDS.rglob("openie*"))
    content = path.read_bytes()
    values = [json.loads(row) for row in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()]
    return [Record(v["_id"], tuple(Triple(*map(str, t)) for t in v["triples"] if len(t) == 3)) for v in values]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("budget", [20_000, 60_000])
def test_real_records_make_the_same_tables_in_many_runs(config: IndexConfig, budget: int, tmp_path: Path) -> None:
    records = demo_records()
    whole = tabulate(records, config)
    parts = tabulate(records, config, scratch=tmp_path, budget_bytes=budget)
    assert isinstance(parts.tables.phrases, TextColumn)
    assert same(parts, whole)
    assert len(list(tmp_path.glob("run-*"))) > 1


EDGES = (
    UserEdge(("p", "q"), (), "link", 2.0),
    UserEdge(("q",), ("a tag",)),
    UserEdge((), ("\U00010428", "a"), "x", 0.5),
)


def test_user_edges_name_phrases_of_tables_in_runs_too(tmp_path: Path) -> None:
    records = [record(("a", "p", w)) for w in WORDS if w] * 3
    rows = {"p": [0, 5], "q": [3]}
    made = [
        tabulate(records, CONFIGS[0], edges=EDGES, rows=rows, scratch=scratch, budget_bytes=1500)
        for scratch in (tmp_path, None)
    ]
    assert same(*made)
    assert "a tag" in list(made[0].tables.phrases)


class Killed(Exception):
    pass


def until(records: Sequence[Record], end: int, seen: list[int]) -> Iterator[Record]:
    for number, one in enumerate(records):
        if number == end:
            raise Killed
        seen.append(number)
        yield one


class Counting(Sequence[Record]):
    """Records that note which of them are read."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.read = records, list[int]()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, i: Any) -> Any:
        self.read.append(i)
        return self.records[i]


def test_a_killed_run_goes_on_behind_its_last_finished_run(tmp_path: Path) -> None:
    records = demo_records()
    with pytest.raises(Killed):
        tabulate(until(records, len(records) - 2, []), CONFIGS[0], scratch=tmp_path, budget_bytes=TINY)
    kept = len(list(tmp_path.glob("run-*.block")))
    assert kept > 1
    again = Counting(records)
    assert same(tabulate(again, CONFIGS[0], scratch=tmp_path, budget_bytes=TINY), tabulate(records, CONFIGS[0]))
    assert again.read[0] > 0
    assert again.read == list(range(again.read[0], len(records)))


@pytest.mark.parametrize("place", [0, 70, -1])
def test_a_damaged_run_and_those_behind_it_are_made_again(place: int, tmp_path: Path) -> None:
    records = demo_records()
    tabulate(records, CONFIGS[0], scratch=tmp_path, budget_bytes=TINY)
    run = sorted(tmp_path.glob("run-*.block"))[1]
    content = bytearray(run.read_bytes())
    content[place] ^= 1
    run.write_bytes(content)
    again = Counting(records)
    assert same(tabulate(again, CONFIGS[0], scratch=tmp_path, budget_bytes=TINY), tabulate(records, CONFIGS[0]))
    assert again.read


@pytest.mark.parametrize("budget", [30_000, 40_000, 50_000, 60_000])
def test_runs_behind_a_damaged_one_are_not_taken_by_a_run_of_another_budget(budget: int, tmp_path: Path) -> None:
    records = demo_records()
    tabulate(records, CONFIGS[0], scratch=tmp_path, budget_bytes=TINY)
    sorted(tmp_path.glob("run-*.block"))[0].write_bytes(b"spoiled")
    again = tabulate(records, CONFIGS[0], scratch=tmp_path, budget_bytes=budget)
    assert same(again, tabulate(records, CONFIGS[0]))


def beyond(column: str) -> dict[str, Any]:
    return {column: np.full(1, 10**6, np.int32)}


def unruly(starts: list[int], letters: bytes) -> TextColumn:
    return TextColumn(np.array(starts, np.int64), memoryview(letters), refuse=IndexDamagedError)


STRANGE: dict[str, dict[str, Any]] = {
    "a phrase beyond": beyond("subject"),
    "an object beyond": beyond("object"),
    "a predicate beyond": beyond("predicate"),
    "a text beyond": beyond("text"),
    "more statements than there are": beyond("counts"),
    "texts that fall": {"phrases": unruly([1, 0, 2], b"ab")},
    "texts that are none": {"phrases": unruly([0, 1, 2], b"a\xff")},
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_run_that_a_stranger_wrote_under_a_right_name_is_not_read(what: str, tmp_path: Path) -> None:
    one = [np.zeros(1, np.int32)] * 4
    run = Run(unruly([0, 1, 2], b"ab"), unruly([0, 1], b"p"), unruly([0], b""), np.ones(1, np.int32), *one, 0)
    run = run._replace(object=np.ones(1, np.int32), text=np.full(1, -1, np.int32))
    write_run(tmp_path, 0, run)
    assert stored_run(tmp_path, 0) is not None
    write_run(tmp_path, 1, run._replace(**STRANGE[what]))
    assert stored_run(tmp_path, 1) is None
    assert not list(tmp_path.glob("run-000001-*"))


def test_a_link_in_the_place_of_scratch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoredIndexError, match="symbolic link"):
        tabulate(demo_records(), CONFIGS[0], scratch=tmp_path / "link", budget_bytes=TINY)
    assert not list((tmp_path / "real").iterdir())


def test_progress_counts_passages(tmp_path: Path) -> None:
    seen: list[int] = []
    records = demo_records()
    tabulate(records, CONFIGS[0], scratch=tmp_path, budget_bytes=TINY, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(records)
    assert len(seen) > 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(columns=st.lists(st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)), max_size=5))
def test_columns_are_merged_by_code_point_whatever_the_budget(
    columns: list[set[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ordered = [sorted(column) for column in columns]
    for budget in (1, 300, 1 << 20):
        ranks = [np.full(len(column), -1, np.int32) for column in ordered]
        with GrowingTexts(tmp_path_factory.mktemp("merged"), "texts") as into:
            if ordered:
                merge_texts(ordered, ranks, into, budget_bytes=budget)
            merged = list(into.column())
        assert merged == sorted(set(chain.from_iterable(columns)))
        assert [[merged[i] for i in rank] for rank in ranks] == ordered


@given(ROWS)
def test_pairs_of_facts_are_counted_without_their_statements(rows: list[Record | None]) -> None:
    tables = tabulate(rows, CONFIGS[0]).tables
    assert count_fact_pairs(tables) == len(fact_pairs(tables)[0])
