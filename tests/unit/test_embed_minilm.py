"""The default encoder against vectors that sentence-transformers 6.2 (torch 2.13, float32, CPU) computed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hippogpu.embed import count_truncated, default_embedder
from hippogpu.embed.minilm import BATCH_TOKENS, MiniLM, _groups
from hippogpu.errors import ConfigError
from hippogpu.testing.embedders import ROW_TOLERANCE, check_embedder

DATA = Path(__file__).parent / "data"
TEXTS: list[str] = json.loads((DATA / "minilm_texts.json").read_text("utf-8"))
EXPECTED = np.load(DATA / "minilm_vectors.npy")


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=2)


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_minilm_keeps_the_promises_of_an_embedder(minilm: MiniLM) -> None:
    check_embedder(minilm)


@pytest.mark.parametrize("i", range(len(TEXTS)))
def test_each_vector_equals_that_of_sentence_transformers(minilm: MiniLM, i: int) -> None:
    assert np.abs(minilm.encode([TEXTS[i]])[0] - EXPECTED[i]).max() <= ROW_TOLERANCE


def test_a_batch_equals_sentence_transformers(minilm: MiniLM) -> None:
    assert np.abs(minilm.encode(TEXTS) - EXPECTED).max() <= ROW_TOLERANCE


@pytest.mark.parametrize("copies", [1, 7, 33])
def test_many_batches_on_two_threads_give_the_rows_of_one(minilm: MiniLM, copies: int) -> None:
    texts = [f"{text} {i}" for i in range(copies) for text in TEXTS]
    alone = MiniLM(threads=1).encode(texts)
    assert np.abs(minilm.encode(texts) - alone).max() <= ROW_TOLERANCE


def test_every_length_up_to_the_window_is_the_same_alone_and_among_others(minilm: MiniLM) -> None:
    texts = ["river " * n for n in (1, 2, 3, 4, 5, 29, 30, 31, 62, 253, 254, 255)]
    alone = np.concatenate([minilm.encode([text]) for text in texts])
    assert np.abs(minilm.encode(texts) - alone).max() <= ROW_TOLERANCE


def test_only_the_first_254_tokens_of_a_text_count(minilm: MiniLM) -> None:
    same = minilm.encode(["river " * 254 + "sea", "river " * 254 + "mountain"])
    assert np.array_equal(same[0], same[1])
    other = minilm.encode(["river " * 253 + "sea", "river " * 253 + "mountain"])
    assert np.abs(other[0] - other[1]).max() > ROW_TOLERANCE


def test_token_counts_are_of_the_whole_text_with_both_special_tokens(minilm: MiniLM) -> None:
    assert minilm.token_counts(["", "river", "river " * 300]) == [2, 3, 302]


def test_texts_beyond_256_tokens_are_counted_as_truncated(minilm: MiniLM) -> None:
    assert count_truncated(["river " * 254, "river " * 255, "river"], minilm) == 1


def test_an_instruction_is_put_before_the_text(minilm: MiniLM) -> None:
    told = minilm.encode(["the sea"], instruction="Find: ")
    assert np.abs(told - minilm.encode(["Find: the sea"])).max() <= ROW_TOLERANCE


def test_the_name_says_model_and_revision_and_nothing_of_the_machine() -> None:
    assert default_embedder().name == "all-MiniLM-L6-v2@53aa5117"


def test_blas_has_its_threads_back_after_a_call(minilm: MiniLM) -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        minilm.encode(["river " * 200] * 3 + [f"sea {i} " * 100 for i in range(20)])
        assert blas_threads() == before


def test_calls_from_several_threads_do_not_mix_their_rows(minilm: MiniLM) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(minilm.encode, [TEXTS] * 8))
    assert max(float(np.abs(rows - EXPECTED).max()) for rows in results) <= ROW_TOLERANCE


def test_groups_hold_every_row_once_within_the_budget() -> None:
    lengths = [int(n) for n in np.random.default_rng(0).integers(2, 257, 1000)]
    groups = _groups(lengths, 2)
    assert sorted(row for group in groups for row in group) == list(range(1000))
    assert max(sum(lengths[row] for row in group) for group in groups) <= BATCH_TOKENS


def test_no_threads_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="Got 0"):
        MiniLM(threads=0)
