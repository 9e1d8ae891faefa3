"""The benches of load: arrivals and the queue by a made-up clock, and the verbs on a small index."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import typer

from bench import latency, throughput
from bench import load as shared
from bench.arrivals import Served, poisson_arrivals, serve
from hippogpu import Ranking, SearchConfig, Searcher
from hippogpu.embed import encode_all
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import EncoderError, UsageError
from hippogpu.testing.cli import Ran, run_verb

app = typer.Typer()
app.command("latency")(latency.latency)
app.command("throughput")(throughput.throughput)


class Clock:
    """Time that passes only in sleep and in service: a fixed part and a part a question."""

    def __init__(self, fixed: float, each: float) -> None:
        self.now, self.fixed, self.each = 0.0, fixed, each
        self.asked: list[str] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def ask(self, texts: Sequence[str]) -> None:
        self.asked += texts
        self.now += self.fixed + self.each * len(texts)


def served(arrivals: Sequence[float], clock: Clock, *, most: int = 8) -> Served:
    return serve(np.array(arrivals), ["a", "b", "c"], clock.ask, most=most, clock=clock, sleep=clock.sleep)


def test_latency_is_queueing_and_service() -> None:
    result = served([1.0, 1.1, 1.2, 5.0], Clock(0.5, 0.0))
    assert result.batches == [1, 2, 1]
    assert result.queueing_ms == pytest.approx([0, 400, 300, 0])
    assert result.latency_ms == pytest.approx([500, 900, 800, 500])


def test_a_batch_takes_what_waits_and_no_more_than_the_most() -> None:
    clock = Clock(1.0, 0.0)
    assert served([0.0, *np.linspace(0.1, 0.9, 7)], clock, most=4).batches == [1, 4, 3]
    assert clock.asked == ["a", "b", "c", "a", "b", "c", "a", "b"]


@pytest.mark.parametrize(("rate", "sustained"), [(5.0, True), (9.0, True), (12.0, False), (40.0, False)])
def test_a_rate_beyond_the_capacity_is_told_from_one_below(rate: float, sustained: bool) -> None:
    """One at a time in 0.1 s: the capacity is 10 a second."""
    result = served(poisson_arrivals(rate, 60.0, 1).tolist(), Clock(0.0, 0.1), most=1)
    assert result.sustained is sustained


def test_arrivals_come_at_the_rate_and_scatter_as_those_of_poisson() -> None:
    times = poisson_arrivals(50.0, 200.0, 3)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(10_000, rel=0.05)
    assert times.max() < 200
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_arrivals_are_those_of_their_seed() -> None:
    assert np.array_equal(poisson_arrivals(9.0, 20.0, 5), poisson_arrivals(9.0, 20.0, 5))
    assert not np.array_equal(poisson_arrivals(9.0, 20.0, 5)[:9], poisson_arrivals(9.0, 20.0, 6)[:9])
    assert len(poisson_arrivals(0.01, 0.1, 5)) == 1


def test_percentiles_are_those_of_each_pass() -> None:
    found = shared.percentiles([list(range(101)), list(range(100, 201))])
    assert (found["p95"]["least"], found["p95"]["greatest"]) == (95, 195)
    assert found["p50"] == {"median": 100, "least": 50, "greatest": 150, "repeats": 2}


def test_a_request_bears_the_time_of_its_whole_batch_by_stage() -> None:
    rankings = [Ranking("a", (), "dense", ms={"encode": 2.0}), Ranking("b", (), "dense", ms={"encode": 3.0, "push": 1})]
    request = shared.timed(lambda texts: rankings, ["a", "b"])
    assert request.stages == {"encode": 5.0, "push": 1.0, "rest": pytest.approx(request.ms - 6)}


def test_a_table_of_vectors_answers_as_its_encoder_and_refuses_other_texts() -> None:
    inner = HashingEmbedder(16)
    table = shared.VectorTable(inner, ["who", "where"])
    assert np.array_equal(encode_all(["where", "who"], table), inner.encode(["where", "who"]))
    with pytest.raises(EncoderError, match="when"):
        table.encode(["when"])


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [{"_id": f"q{n}", "question": f"Who built engine number {n % 9}?"} for n in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run_bench(verb: str, made: Path, queries: Path, *more: str) -> Ran:
    quick = ["--batch", "1", "--batch", "4", "--seconds", "0.05", "--repeats", "2", "-k", "3"]
    return run_verb(app, verb, str(made), "--queries", str(queries), *quick, *more)


def test_repeats_of_a_question_do_not_fill_a_batch(made: Path, queries: Path) -> None:
    with pytest.raises(UsageError, match=r"9 distinct questions.*batch of 10"):
        shared.open_load(made, queries, SearchConfig(), [1, 10], k=3, backend="auto", encode=True)


@pytest.mark.parametrize("encoder", [[], ["--no-encoder"]])
def test_latency_reports_each_size_and_stage(made: Path, queries: Path, tmp_path: Path, encoder: list[str]) -> None:
    ran = run_bench("latency", made, queries, "--json", str(tmp_path / "out.json"), *encoder)
    result = json.loads((tmp_path / "out.json").read_text())
    assert (ran.code, list(result["batches"]), result["questions"]) == (0, ["1", "4"], 9)
    four = result["batches"]["4"]
    assert min(four["requests"]) >= shared.LEAST_REQUESTS
    assert 0 < four["ms_a_question"]["p50"]["median"] * 4 == pytest.approx(four["ms_a_request"]["p50"]["median"], 1e-3)
    assert {"encode", "select"} <= four["stages_ms_a_question"].keys()
    assert ("beforehand" in result["encoder"]) is bool(encoder)


def test_throughput_measures_both_loops(made: Path, queries: Path, tmp_path: Path) -> None:
    ran = run_bench("throughput", made, queries, "--json", str(tmp_path / "out.json"), "--no-encoder")
    result = json.loads((tmp_path / "out.json").read_text())
    rates = [point["rate"] for point in result["open_loop"]]
    assert (ran.code, result["most_at_once"]) == (0, 4)
    assert rates == pytest.approx([share * result["capacity"] for share in throughput.SHARES], rel=1e-3)


def test_the_plot_shows_each_percentile_and_what_was_not_sustained(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs the extra bench")
    latency_ms = {name: {"median": 5.0} for name in ("p50", "p95", "p99")}
    points = [{"rate": rate, "sustained": rate < 100, "latency_ms": latency_ms} for rate in (50.0, 150.0)]
    throughput.draw({"open_loop": points, "capacity": 100.0}, tmp_path / "out.svg")
    text = (tmp_path / "out.svg").read_text()
    assert all(f"<!-- {label} -->" in text for label in ("p50", "p95", "p99", "not sustained"))


def test_given_rates_are_taken(made: Path, queries: Path, tmp_path: Path) -> None:
    run_bench("throughput", made, queries, "--json", str(tmp_path / "out.json"), "--rate", "40", "--rate", "20")
    result = json.loads((tmp_path / "out.json").read_text())
    assert [point["rate"] for point in result["open_loop"]] == [20, 40]


@pytest.mark.parametrize(("verb", "timing"), [("latency", "batches"), ("throughput", "closed_loop")])
def test_nothing_is_timed_when_batches_differ_from_single_calls(
    made: Path, queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, timing: str
) -> None:
    rank = Searcher.rank

    def wrong(self: Searcher, texts: Sequence[str], *, k: int, config: SearchConfig) -> list[Ranking]:
        return rank(self, texts, k=k - (len(texts) > 1), config=config)

    monkeypatch.setattr(Searcher, "rank", wrong)
    ran = run_bench(verb, made, queries, "--json", str(tmp_path / "out.json"))
    result = json.loads((tmp_path / "out.json").read_text())
    assert (ran.code, result["passed"], timing in result) == (1, False, False)


def test_stages_that_a_request_has_not_count_as_nothing() -> None:
    requests = [
        shared.Request(2, 9.0, {"push": 4.0}),
        shared.Request(2, 9.0, {}),
        shared.Request(2, 9.0, {"push": 8.0}),
    ]
    assert latency.stages([requests])["push"]["median"] == 2.0
