"""python -m bench learn: a planted direction is found, folds are held out, sets for reporting are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from quality_cases import write_data, write_recipe
from rich.console import Console

import bench.learn as learning
from bench.__main__ import app
from bench.learn import FOLDS, Pools, Trained, fit, held_out, measured, pools_of
from hippogpu.config import SearchConfig
from hippogpu.errors import ConfigError
from hippogpu.methods.hippo.evidence import EVIDENCE
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.types import AnyFloats

pytest.importorskip("yaml", reason="the extra 'bench' is not installed")

KINDS = len(EVIDENCE)
ALL = range(KINDS)
PLANTED = np.array([2.0, -1.0, 0.0, 3.0, 0.0, 0.5, -2.0, 1.0])


def planted(questions: int, *, width: int = 20, seed: int = 0) -> Pools:
    """Pools of random evidence, of odd lengths, whose gold passage is drawn by exp(PLANTED · evidence)."""
    random = np.random.default_rng(seed)
    evidence = random.uniform(0, 1, (questions, width, KINDS))
    there = np.arange(width) < random.integers(2, width + 1, questions)[:, None]
    noise = random.gumbel(size=(questions, width))
    best = np.argmax(np.where(there, evidence @ PLANTED + noise, -np.inf), axis=1)
    gold = np.arange(width) == best[:, None]
    return Pools(np.where(there[:, :, None], evidence, 0.0), gold, there, np.ones(questions, np.int32))


def lone(pools: Pools, name: str = "a", weight: float = 1.0) -> Trained:
    return Trained(name, weight, pools)


def loss_of(pools: Pools, weights: AnyFloats, *, l2: float) -> float:
    """As the head of bench/learn.py has it, question by question."""
    total = 0.0
    for evidence, gold, there in zip(pools.evidence, pools.gold, pools.there, strict=True):
        scores = evidence[there] @ weights
        shares = np.exp(scores) / np.exp(scores).sum()
        total += np.log(shares[gold[there]]).mean() if gold.any() else 0.0
    return -total / len(pools.gold) + l2 * float(weights @ weights)


def test_a_planted_direction_is_found() -> None:
    found = fit([lone(planted(4000))], ALL, l2=0.0)
    assert found == pytest.approx(PLANTED, abs=0.35)


def test_the_weights_are_where_the_loss_is_least() -> None:
    pools, random = planted(60), np.random.default_rng(1)
    pools.gold[:3] = False
    pools.gold[3, :2] = True  # of two gold passages each counts half
    found = fit([lone(pools)], ALL, l2=0.01)
    least = loss_of(pools, found, l2=0.01)
    for _ in range(30):
        assert loss_of(pools, found + random.normal(0, 0.05, KINDS), l2=0.01) > least


def test_a_penalty_shortens_the_weights() -> None:
    sizes = [np.linalg.norm(fit([lone(planted(200))], ALL, l2=l2)) for l2 in (0.0, 0.01, 0.1, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.1


def test_only_the_columns_asked_for_are_weighed() -> None:
    pools = planted(200)
    others = pools._replace(evidence=pools.evidence.copy())
    others.evidence[:, :, 1] = 99.0
    assert fit([lone(pools)], [0, 3], l2=0.01) == pytest.approx(fit([lone(others)], [0, 3], l2=0.01))


def test_a_set_counts_by_its_weight_and_not_by_its_questions() -> None:
    one, other = planted(50), planted(50, seed=1)
    twice = Pools(*(np.concatenate([array, array]) for array in other))
    found = fit([lone(one), lone(other, "b", 0.5)], ALL, l2=0.01)
    assert fit([lone(one), lone(twice, "b", 0.5)], ALL, l2=0.01) == pytest.approx(found, abs=1e-3)
    assert fit([lone(one), lone(other, "b", 2.0)], ALL, l2=0.01) != pytest.approx(found, abs=1e-2)


def test_questions_without_gold_in_their_pool_still_count_for_the_size_of_their_set() -> None:
    # Half of the set teaches nothing: the rest is worth half, which a penalty of twice the strength is as well.
    pools = planted(40)
    pools.gold[::2] = False
    rest = pools.rows(pools.gold.any(axis=1))
    assert fit([lone(pools)], ALL, l2=0.01) == pytest.approx(fit([lone(rest)], ALL, l2=0.02), abs=1e-3)
    assert fit([lone(pools)], ALL, l2=0.01) != pytest.approx(fit([lone(rest)], ALL, l2=0.01), abs=1e-2)


def test_questions_without_gold_in_their_pool_teach_nothing() -> None:
    pools = planted(40)
    pools.gold[::2] = False
    other = pools._replace(evidence=pools.evidence.copy())
    other.evidence[::2] = 0.5
    assert fit([lone(pools)], ALL, l2=0.01) == pytest.approx(fit([lone(other)], ALL, l2=0.01))


def test_no_fold_is_measured_by_weights_that_saw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pools, seen = planted(23), list[set[float]]()
    marks = pools.evidence[:, 0, 0]  # tells a question from all others

    def fit_seen(sets: list[Trained], columns: range, *, l2: float) -> AnyFloats:
        seen.append({float(mark) for one in sets for mark in one.pools.evidence[:, 0, 0]})
        return np.ones(len(columns))

    def measure(some: Pools, columns: range, weights: AnyFloats) -> AnyFloats:
        assert seen[-1].isdisjoint(some.evidence[:, 0, 0].tolist())
        assert len(seen[-1]) + len(some.gold) == len(set(marks.tolist()))
        return np.zeros((len(some.gold), 6))

    monkeypatch.setattr(learning, "fit", fit_seen)
    monkeypatch.setattr(learning, "measured", measure)
    held_out([lone(pools), lone(pools, "again")], ALL, l2=0.01)
    assert len(seen) == FOLDS


def test_held_out_figures_are_means_over_all_questions_in_percent() -> None:
    pools = planted(23)
    table = held_out(
        [lone(pools), lone(pools._replace(gold=pools.there, known=pools.there.sum(axis=1)), "all")], ALL, l2=1
    )
    assert list(table) == ["a", "all"]
    assert table["a"]["recall@20"] == table["all"]["recall@20"] == 100.0
    assert 0 < table["a"]["recall@1"] < 100


def test_figures_are_those_worked_out_by_hand() -> None:
    evidence = np.zeros((2, 6, KINDS))
    evidence[:, :, 0] = [[6, 5, 4, 3, 2, 1], [1, 2, 3, 9, 9, 9]]
    there = np.array([[True] * 6, [True] * 3 + [False] * 3])
    gold = np.array([[1, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0]], bool)
    found = measured(Pools(evidence, gold, there, np.array([3, 2], np.int32)), [0], np.ones(1))
    assert found == pytest.approx(np.array([[1 / 3, 1 / 3, 2 / 3, 1, 1, 0], [0, 0.5, 0.5, 0.5, 0.5, 0]]))


def test_of_equal_scores_the_lower_passage_comes_first() -> None:
    evidence, gold = np.zeros((1, 1000, KINDS)), (np.arange(1000) == 3)[None]
    evidence[0, 1::2, 0] = 1.0
    pools = Pools(evidence, gold, np.ones((1, 1000), bool), np.ones(1, np.int32))
    assert measured(pools, [0], np.ones(1))[0].tolist() == [0, 1, 1, 1, 1, 1]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Data, and a plan that learns from it."""
    write_data(tmp_path / "data")
    recipe = write_recipe(tmp_path, use="train")
    (tmp_path / "learn.yaml").write_text(json.dumps({"sets": {str(recipe): 1.0}, "l2": 0.1}))
    return tmp_path


def run(place: Path) -> Ran:
    words = ["learn", "--data", str(place / "data"), "--work", str(place / "work")]
    return run_verb(app, *words, "--recipe", str(place / "learn.yaml"), "--out", str(place / "weights.json"))


def test_weights_are_written_for_each_choice_of_evidence_with_what_they_were_learned_by(place: Path) -> None:
    ran, kinds = run(place), "+".join(EVIDENCE)
    assert ran.code == 0, ran
    written = json.loads((place / "weights.json").read_text())
    assert (written["sets"], written["l2"]) == ({str(place / "tiny.yaml"): 1.0}, 0.1)
    assert (len(written["weights"]), list(written["weights"][kinds])) == (4, list(EVIDENCE))
    assert written["held_out"][kinds]["tiny"]["recall@20"] == 100.0


def test_a_set_for_reporting_is_refused_and_nothing_is_written(place: Path) -> None:
    write_recipe(place, use="report")
    with pytest.raises(ConfigError, match="is for reporting: nothing is learned from it"):
        run(place)
    assert not (place / "weights.json").exists()


def opened_pools(place: Path) -> Pools:
    bench = learning._opened(str(place / "tiny.yaml"), place / "data", place / "work", Console())
    return pools_of(bench, SearchConfig(method="hippo"))


def test_pools_know_all_gold_also_what_is_not_in_the_corpus(place: Path) -> None:
    judged = "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tgone\t1\nq1\tp3\t0\nq3\tp6\t1\n"
    (place / "data" / "tiny" / "qrels.tsv").write_text(judged)
    write_recipe(place, use="train", qrels="qrels.tsv")
    pools = opened_pools(place)
    assert (pools.known.tolist(), pools.gold.sum(axis=1).tolist()) == ([2, 1], [1, 1])


def test_pools_are_padded_to_one_width(place: Path) -> None:
    pools = opened_pools(place)
    assert pools.evidence.shape == (*pools.there.shape, KINDS) == (3, 8, KINDS)
    assert (pools.known.tolist(), pools.gold.sum(axis=1).tolist()) == ([2, 2, 1], [2, 2, 1])
