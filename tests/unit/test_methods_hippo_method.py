"""The method hippo as a whole: what comes back for ordinary questions, and for odd ones on odd indexes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hippo_cases import ASKED, HIPPO, every_edge, worked
from method_cases import BACKENDS, asked, loaded, method_rows, rank
from small_index import PASSAGES, WIDTH, index_of, open_index, stating

from hippogpu import Ranking, Searcher
from hippogpu.config import SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError, UsageError
from hippogpu.methods import Loaded, QuestionEntities, Verdict
from hippogpu.methods.hippo.method import NO_START, UNREAD
from hippogpu.openie.nothing import NoExtractor
from hippogpu.types import Floats, KeptFact, UserEdge

SETTINGS: list[dict[str, Any]] = [
    *({}, {"names": False}, {"pairs": False}, {"names": False, "pairs": False}, {"lexical_passages": 0}),
    *({"rerank": "lead"}, {"rerank": "none"}, {"focus": 3.0}, {"hubs": 0.3}, {"synonyms": False}, {"pool": 1}),
    *({"solver": "power"}, {"solver": "chebyshev"}, {"damping": 0.0}, {"passage_weight": 0.0}, {"link": "phrase"}),
    *({"link": "entity"}, {"specificity": False}, {"lexical_weight": 0.0}, {"partners": 1}, {"doubt": 0.5}),
]
QUESTIONS = [*ASKED, "wer schrieb die Notizen?", "谁写了笔记？", "?!", "word " * 500]
NAMES = [["Ada"]] * len(QUESTIONS)


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_edge(tmp_path_factory.mktemp("method") / "small.hippo")


@pytest.fixture(scope="module")
def fast(edges: Path) -> Loaded:
    return loaded(edges, "cpu")


@pytest.fixture(scope="module", params=BACKENDS)
def here(edges: Path, request: pytest.FixtureRequest) -> Loaded:
    return loaded(edges, request.param)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_passage_comes_once_by_finite_scores_that_never_ascend(here: Loaded, settings: dict[str, Any]) -> None:
    for row in rank(here, QUESTIONS, replace(HIPPO, **settings), NAMES, k=99):
        assert sorted(row.rows.tolist()) == list(range(len(here.snapshot.passages)))
        assert np.isfinite(row.scores).all()
        assert (np.diff(row.scores) <= 0).all()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_first_passages_are_the_same_for_any_k(fast: Loaded, settings: dict[str, Any]) -> None:
    config = replace(HIPPO, **settings)
    one, all_ = (rank(fast, ASKED, config, NAMES[:4], k=k) for k in (1, 50))
    assert [row.rows.tolist() for row in one] == [row.rows[:1].tolist() for row in all_]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_batch_scores_as_its_questions_alone(fast: Loaded, settings: dict[str, Any]) -> None:
    config = replace(HIPPO, **settings)
    together = method_rows(fast, ASKED, config, NAMES[:4])
    alone = [method_rows(fast, [one], config, [["Ada"]])[0] for one in ASKED]
    assert together == pytest.approx(np.array(alone), abs=1e-3)


def test_passages_outside_the_pool_follow_it_in_the_order_of_the_graph(here: Loaded) -> None:
    config = replace(HIPPO, pool=1)
    found = worked(here, config)
    for row, pool, order in zip(rank(here, ASKED, config), found.pools, found.masses.total(config), strict=True):
        inside, outside = np.split(row.rows, [len(pool.rows)])
        assert set(inside.tolist()) == set(pool.rows.tolist())
        assert outside.tolist() == [one for one in np.argsort(-order, kind="stable") if one not in inside]


def test_led_by_the_nearest_passage_the_others_keep_the_order_of_the_graph(here: Loaded) -> None:
    led, plain = (rank(here, ASKED, replace(HIPPO, rerank=rule)) for rule in ("lead", "none"))
    nearest = np.argmax(worked(here, HIPPO).texts.nearest, axis=1)
    for row, graph, leader in zip(led, plain, nearest, strict=True):
        assert row.rows.tolist() == [leader, *(one for one in graph.rows if one != leader)]
    assert [row.rows[0] for row in led] != [row.rows[0] for row in plain]


def test_the_nearest_passage_leads_also_where_nothing_has_mass(here: Loaded) -> None:
    config = replace(HIPPO, rerank="lead", passage_weight=0.0, names=False)
    asked_by_none = asked(["Otto"], fact_filter=Judging(lambda facts: Verdict(())))
    (row,) = rank(here, asked_by_none, config)
    assert row.rows[0] == worked(here, config, ["Otto"]).texts.nearest[0].argmax() != 0


def test_the_phrases_that_a_question_names_are_seeds_and_can_be_left_out(here: Loaded) -> None:
    with_names, without = (
        rank(here, ["did Otto burn coal?"], replace(HIPPO, names=names))[0] for names in (True, False)
    )
    assert {seed.phrase for seed in with_names.seeds[len(without.seeds) :]} == {"otto", "coal"}


def test_a_named_phrase_that_no_passage_mentions_is_a_seed_of_one(here: Loaded) -> None:
    (row,) = rank(here, ["what is in a mine"], HIPPO)
    assert [seed.weight for seed in row.seeds if seed.phrase == "a mine"] == [1.0]


class Judging:
    """A filter that says of each question's facts what a function says."""

    name = "judging"

    def __init__(self, say: Any) -> None:
        self._say = say

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        return [self._say(row) for row in candidates]


def test_where_the_filter_keeps_nothing_names_and_texts_rank(here: Loaded) -> None:
    none = Judging(lambda facts: Verdict(()))
    named, unnamed = rank(here, asked(["who is Otto?", "zzz"], fact_filter=none), HIPPO)
    assert (named.facts, unnamed.facts) == ((), ())
    assert (named.fallback, unnamed.fallback) == (None, NO_START)
    assert [seed.phrase for seed in named.seeds] == ["otto"]


@pytest.mark.parametrize(("rule", "facts"), [("keep", 3), ("drop", 0)])
def test_a_filter_that_fails_keeps_or_drops_all_facts_and_says_so(here: Loaded, rule: Any, facts: int) -> None:
    failing = asked(ASKED[:1], fact_filter=Judging(lambda row: Verdict((), "no reply")))
    (row,) = rank(here, failing, replace(HIPPO, filter_fails=rule))
    assert (row.filter_failure, len(row.facts)) == ("no reply", facts)


def test_as_many_facts_go_to_the_filter_as_lead_facts_says(here: Loaded) -> None:
    counts = [len(rank(here, ASKED[:1], replace(HIPPO, lead_facts=lead))[0].facts) for lead in (1, 3, 99)]
    assert counts == [1, 3, len(here.snapshot.tables.facts)]


def test_a_doubted_question_starts_from_no_fact_and_tells_of_none(here: Loaded) -> None:
    (row,) = rank(here, ["zzz"], replace(HIPPO, doubt=0.99))
    assert (row.facts, row.seeds, row.fallback) == ((), (), NO_START)
    assert not worked(here, replace(HIPPO, doubt=0.99), ["zzz"]).masses.facts.any()


def test_only_questions_whose_nearest_fact_is_too_far_are_doubted(here: Loaded) -> None:
    questions = ["Otto met Ida", "zzz"]
    sure, doubted = rank(here, questions, replace(HIPPO, doubt=0.9))
    assert (len(sure.facts), len(doubted.facts)) == (3, 0)


@pytest.mark.parametrize("link", ["entity", "phrase"])
def test_doubt_is_about_facts_and_leaves_other_links_alone(here: Loaded, link: Any) -> None:
    plain, doubting = (
        rank(here, ASKED, replace(HIPPO, link=link, doubt=doubt), [["Ada"]] * 4) for doubt in (-1.0, 0.99)
    )
    assert [row.rows.tolist() for row in plain] == [row.rows.tolist() for row in doubting]


def test_entities_that_could_not_be_read_leave_names_and_texts(here: Loaded) -> None:
    unread = asked(["who is Otto?", "zzz"], entities=[QuestionEntities((), "no reply")] * 2)
    rows = rank(here, unread, replace(HIPPO, link="entity"))
    assert [row.fallback for row in rows] == [UNREAD.format("no reply")] * 2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"passage_nodes": False}, UsageError, "walks over passages"),
        ({"doubt": 1.5}, ConfigError, "'doubt' of SearchConfig must be"),
        ({"lead_facts": 0}, ConfigError, "'lead_facts' of SearchConfig must be"),
        ({"pool": 0}, ConfigError, "'pool' of SearchConfig must be"),
        ({"partners": 0}, ConfigError, "'partners' of SearchConfig must be"),
        ({"focus": float("inf")}, ConfigError, "'focus' of SearchConfig must be"),
        ({"hubs": -1.0}, ConfigError, "'hubs' of SearchConfig must be"),
        ({"push_epsilon": 0.0}, ConfigError, "'push_epsilon' of SearchConfig must be"),
        ({"lexical_passages": -1}, ConfigError, "'lexical_passages' of SearchConfig must be"),
        ({"rerank": "best"}, ConfigError, "'rerank' of SearchConfig must be"),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused(
    here: Loaded, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rank(here, ASKED, replace(HIPPO, **settings))


class Alike(HashingEmbedder):
    """An encoder to which all texts are one."""

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        return np.full((len(texts), WIDTH), WIDTH**-0.5, np.float32)


def odd_index(kind: str, root: Path) -> Loaded:
    """An index that lacks something."""
    if kind == "alike":
        index_of(root, PASSAGES, embedder=Alike(WIDTH))
    elif kind == "own edges":
        with open_index(root, extractor=NoExtractor()) as index:  # type: ignore[arg-type]
            index.add([stating("a", "one"), stating("b", "two"), stating("c", "three")])
            index.add_edges([UserEdge(("a",), ("a tag",)), UserEdge(("b", "c"))])
            index.commit()
    else:
        texts = {"no facts": ["one", "two"], "one passage": ["Ada|wrote|notes"], "no words": ["?!", "--"]}[kind]
        index_of(root, [stating(f"p{i}", text) for i, text in enumerate(texts)])
    return loaded(root, "cpu")


@pytest.mark.parametrize("kind", ["alike", "own edges", "no facts", "one passage", "no words"])
def test_odd_indexes_rank_every_passage_by_any_settings(root: Path, kind: str) -> None:
    here = odd_index(kind, root)
    for settings in SETTINGS:
        for row in rank(here, ["zzz", "a tag"], replace(HIPPO, **settings), [[], ["a tag"]]):
            assert sorted(row.rows.tolist()) == list(range(len(here.snapshot.passages)))
            assert np.isfinite(row.scores).all()


def test_passages_that_are_all_alike_keep_their_order_where_nothing_tells_them_apart(root: Path) -> None:
    index_of(root, [stating(f"p{i}", f"word{i}") for i in range(5)], embedder=Alike(WIDTH))
    (row,) = rank(loaded(root), ["zzz"], HIPPO)
    assert (row.rows.tolist(), len(set(row.scores.tolist()))) == ([0, 1, 2, 3, 4], 1)


def test_an_index_that_lost_all_passages_has_no_hits(root: Path) -> None:
    index_of(root, PASSAGES[:1])
    with open_index(root) as index:
        index.delete([PASSAGES[0].id])
        index.commit()
    (ranking,) = Searcher.open(root).rank(["steam"], config=HIPPO)
    assert ranking.hits == ()


def test_its_scores_are_fused_with_those_of_others(here: Loaded) -> None:
    (row,) = rank(here, ASKED[:1], SearchConfig(method="fusion", fuse="hippo+dense"))
    assert len(row.rows) == len(here.snapshot.passages)


@pytest.mark.parametrize("settings", [{}, {"focus": 2.0, "hubs": 0.2, "synonyms": False}], ids=str)
def test_threads_that_share_a_new_searcher_all_get_the_same(edges: Path, settings: dict[str, Any]) -> None:
    config, start = replace(HIPPO, **settings), Barrier(8)
    wanted, shared = Searcher.open(edges).rank(ASKED, config=config), Searcher.open(edges)

    def ask(_: int) -> list[Ranking]:
        start.wait()
        return shared.rank(ASKED, config=config)

    with ThreadPoolExecutor(8) as threads:
        for rankings in threads.map(ask, range(8)):
            assert [ranking.hits for ranking in rankings] == [ranking.hits for ranking in wanted]


def test_to_choose_a_method_loads_no_compiler() -> None:
    script = "import sys, hippogpu.methods; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
