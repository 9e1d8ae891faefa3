"""The plan of an index beside indexes that were built, and what it says of sizes that were not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from small_index import WIDTH, Saying, index_of, stating

from hippogpu import IndexConfig, Passage, RunConfig, SearchConfig
from hippogpu.capacity import (
    CARDS,
    PUBLISHED,
    TWO_CORES,
    Counts,
    IndexPlan,
    counted,
    device_from_name,
    encoder_from_name,
    foreseen,
    plan_index,
    proportions_of,
    rates_toml,
    read_rates,
    sample_of,
    sampled_proportions,
    settings_toml,
)
from hippogpu.capacity.arrays import fact_cells, index_files
from hippogpu.config import VectorType, read_configs
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.nearest.quantising import learned
from hippogpu.store import Manifest, current_manifest, load_snapshot

# Headers and padding of files, of which the plan knows the size of all together but not of each.
WITHIN, FRAME = 0.02, 600
PASSAGES = 301


def corpus(count: int = PASSAGES) -> list[Passage]:
    """Passages that share phrases, with titles and texts of different lengths; every seventh states nothing."""
    return [
        stating(
            f"p{number}",
            "nothing is stated here" * (number % 3 + 1)
            if number % 7 == 0
            else ";".join(
                f"thing {(number * step) % 97}|is near|place {(number + step) % 89} of é" for step in (1, 2, 3)
            ),
            title=f"Page {number}" if number % 2 else "",
        )
        for number in range(count)
    ]


def built(root: Path, config: IndexConfig) -> Manifest:
    index_of(root, corpus(), config=config)
    return current_manifest(root)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_the_files_of_an_index_are_as_large_as_its_counts_say(tmp_path: Path, kind: VectorType) -> None:
    config = IndexConfig(passage_vectors=kind, phrase_vectors=kind, fact_vectors=kind)
    manifest = built(tmp_path / "x.hippo", config)
    planned = {array.name: array.bytes for array in index_files(with_texts(tmp_path / "x.hippo"), WIDTH, config)}
    held = {role: entry.bytes for role, entry in manifest.files.items()}
    assert set(held) <= set(planned)
    assert {role: (size, planned[role]) for role, size in held.items() if not near(planned[role], size)} == {}


def with_texts(root: Path) -> Counts:
    """The counts of an index, the bytes of its texts counted text by text."""
    snapshot = load_snapshot(root, current_manifest(root))
    passages, facts = snapshot.passages, snapshot.tables.facts
    return replace(
        counted(snapshot.manifest),
        ids_bytes=letters(passages.ids, passages.titles, passages.metas),
        passages_bytes=letters(passages.wholes, passages.extractors),
        phrases_bytes=letters(snapshot.tables.phrases),
        facts_bytes=letters(facts.predicate, facts.text),
        word_bytes=letters(snapshot.words.words) if snapshot.words else 0,
    )


def letters(*columns: Iterable[str]) -> int:
    return sum(len(text.encode()) for column in columns for text in column)


def near(planned: int, held: int) -> bool:
    return abs(planned - held) <= WITHIN * held + FRAME


def test_texts_are_counted_from_the_sizes_of_their_files(tmp_path: Path) -> None:
    manifest = built(tmp_path / "x.hippo", IndexConfig())
    seen, known = counted(manifest), with_texts(tmp_path / "x.hippo")
    assert [
        name
        for name in ("ids", "passages", "phrases", "facts")
        if not near(getattr(seen, f"{name}_bytes"), getattr(known, f"{name}_bytes") + 1000)
    ] == []


def test_the_facts_in_cells_are_as_large_as_planned() -> None:
    texts = [f"fact {number} of {number % 7}" for number in range(700)]
    quantiser = learned(HashingEmbedder(48).encode(texts))
    planned = {array.name: array.bytes for array in fact_cells(len(texts), 48)}
    assert near(planned["fact_centroids"], quantiser.centroids.nbytes)
    assert near(planned["fact_codebooks"], quantiser.codebooks.nbytes)


def test_an_index_of_its_own_size_has_its_own_counts(tmp_path: Path) -> None:
    counts = counted(built(tmp_path / "x.hippo", IndexConfig()))
    assert foreseen(counts.passages, proportions_of(counts)) == counts


def test_the_published_proportions_give_the_published_graph() -> None:
    counts = foreseen(11_656)
    published = {"phrases": 85_288, "fact_pairs": 140_830, "mentions": 132_586, "synonyms": 1_125_951}
    assert {name: round(getattr(counts, name) / count, 3) for name, count in published.items()} == dict.fromkeys(
        published, 1.0
    )


def planned(passages: int = 1_000_000, device: str = "cpu:24", encoder: str = "minilm", **settings: str) -> IndexPlan:
    config = IndexConfig(**settings)  # type: ignore[arg-type]
    return plan_index(foreseen(passages), encoder_from_name(encoder), device_from_name(device), config=config)


@pytest.mark.parametrize("passages", [1, 16, 1_000_000, 10**9])
def test_every_size_has_a_plan(passages: int) -> None:
    plan = planned(passages)
    assert all(array.bytes > 0 for array in plan.files)
    assert all(stage.seconds is not None and stage.seconds >= 0 for stage in plan.stages)


def test_beyond_32_bits_numbers_take_eight_bytes_and_the_plan_says_where_one_index_ends() -> None:
    plan = planned(10**9)
    assert next(array.item_bytes for array in plan.files if array.name == "graph_indices") == 8
    assert any("258,204,1" in line for line in plan.notes)
    assert planned(1_000_000).notes == []


def test_recommended_settings_are_a_configuration_with_which_the_index_fits(tmp_path: Path) -> None:
    plan = planned(4_000_000, "gpu:80", "1024")
    (tmp_path / "c.toml").write_text(settings_toml(plan.settings))
    configs = read_configs(tmp_path / "c.toml")
    assert not plan.fits[0].fits
    assert configs.index is not None
    again = plan_index(plan.counts, plan.encoder, plan.device, config=configs.index)
    assert again.fits[0].fits


def test_smaller_vectors_are_never_undone_by_a_recommendation() -> None:
    plan = planned(1_000_000, "gpu:24", fact_vectors="int8")
    assert plan.fits[0].fits
    assert "fact_vectors" not in plan.settings.get("index", {})


def test_an_exact_search_of_synonyms_that_takes_days_is_recommended_as_cells() -> None:
    assert planned().settings["index"]["synonym_search"] == "cells"
    assert "synonym_search" not in planned(10_000).settings.get("index", {})


def test_an_index_that_no_setting_fits_is_told_so() -> None:
    plan = planned(10**8, "gpu:24")
    assert plan.fits[0].settings is None
    assert any("Nothing makes this index fit" in line for line in plan.notes)


def test_a_wider_budget_lets_more_questions_walk_together_and_each_costs_less() -> None:
    counts, encoder, device = foreseen(1_000_000), encoder_from_name("minilm"), device_from_name("cpu")
    few, many = (plan_index(counts, encoder, device, run=RunConfig(budget_bytes=budget)) for budget in (2**29, 2**35))
    walked = [
        next(q.batch_ms for q in plan.questions if (q.method, q.solver) == ("hippo2", "power")) for plan in (few, many)
    ]
    assert few.at_once < many.at_once
    assert walked[1] < walked[0] / 4


@pytest.mark.parametrize(
    ("name", "gigabytes", "is_gpu"),
    [("cpu", 24 * 1.073741824, False), ("64", 64 * 1.073741824, False), ("gpu:48", 48, True), ("H200", 141, True)],
)
def test_devices_are_named_by_kind_card_or_memory(name: str, gigabytes: float, is_gpu: bool) -> None:
    device = device_from_name(name)
    assert device.memory_bytes / 1e9 == pytest.approx(gigabytes)
    assert device.is_gpu is is_gpu


@pytest.mark.parametrize("name", ["", "tpu", "cpu:0", "gpu:", "cpu:x", "-3"])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="device"):
        device_from_name(name)


def test_a_card_is_named_by_its_memory_has_the_rates_of_the_nearest_that_is_as_large() -> None:
    assert device_from_name("gpu:141").rates == device_from_name("h200").rates
    assert set(CARDS) >= {"l4", "h100", "h200"}


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("minilm", 384),
        ("768", 768),
        ("hashing:64", 64),
        ("st:nvidia/NV-Embed-v2", 4096),
        ("http:http://x/v1#bge-m3", 1024),
    ],
)
def test_encoders_are_named_as_everywhere_or_by_their_width(name: str, width: int) -> None:
    assert encoder_from_name(name).width == width


@pytest.mark.parametrize("name", ["", "0", "st:unheard-of", "hashing:x", "9999999999"])
def test_an_encoder_of_unknown_width_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="width"):
        encoder_from_name(name)


def test_of_a_width_alone_nothing_is_said_of_time() -> None:
    plan = planned(1000, encoder="768")
    assert next(stage.seconds for stage in plan.stages if stage.name == "encode") is None
    assert any("encode" in line for line in plan.notes)


def test_rates_come_back_from_their_file(tmp_path: Path) -> None:
    (tmp_path / "rates.toml").write_text(rates_toml(TWO_CORES))
    assert read_rates(tmp_path / "rates.toml") == TWO_CORES


@pytest.mark.parametrize("text", ["read_gbs = 0", "read_gbs = 'x'", "speed = 3", "read_gbs =", "read_gbs = nan"])
def test_rates_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rates.toml").write_text(text)
    with pytest.raises(UsageError):
        read_rates(tmp_path / "rates.toml")


@pytest.mark.parametrize("passages", [0, -1, 10**12 + 1])
def test_an_index_of_no_passages_or_too_many_is_not_planned(passages: int) -> None:
    with pytest.raises(UsageError, match="passages"):
        foreseen(passages)


def test_a_sample_tells_statements_and_texts_of_the_whole() -> None:
    passages = corpus(500)
    sampled = sample_of(passages, 200)
    found = sampled_proportions(sampled, Saying(), IndexConfig(), passages=500)
    assert sampled.whole == 500
    assert len({passage.id for passage in sampled.passages}) == 200
    assert found.statements == pytest.approx(3 * 6 / 7, rel=0.1)
    assert found.passages_bytes == pytest.approx(
        letters([p.title + "\n" * bool(p.title) + p.text for p in passages]) / 500, rel=0.1
    )
    # 97 and 89 names in all, however many passages there are: a fixed power of the sample overstates it at most.
    assert 0.3 < found.phrases < 2
    assert sampled_proportions(sampled, Saying(), IndexConfig(), passages=50_000).phrases < found.phrases / 5


def test_a_sample_that_nobody_reads_tells_of_texts_alone() -> None:
    found = sampled_proportions(sample_of(corpus(64), 32), None, IndexConfig(), passages=64)
    assert found.phrases == PUBLISHED.phrases
    assert found.passages_bytes != PUBLISHED.passages_bytes


def test_a_corpus_of_a_few_passages_is_no_sample() -> None:
    with pytest.raises(UsageError, match="at least 16"):
        sample_of(corpus(15), 32)


def test_what_serves_depends_on_the_method() -> None:
    counts, encoder, device = foreseen(1000), encoder_from_name("minilm"), device_from_name("cpu")
    served = {
        method: {array.name for array in plan_index(counts, encoder, device, search=SearchConfig(method=method)).served}
        for method in ("dense", "hippo2", "hippo", "hippo1")
    }
    assert "fact_vectors" not in served["dense"]
    assert "word_passages" in served["hippo"] - served["hippo2"]
    assert "phrase_vectors" in served["hippo1"] - served["hippo2"]
