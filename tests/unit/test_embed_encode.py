"""Encoding many texts once each."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.embed import count_truncated, encode_all
from hippogpu.embed.encode import BLOCK_CHARACTERS
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import EncoderError, UsageError
from hippogpu.testing.embedders import DictCache, TableEmbedder
from hippogpu.text import readable
from hippogpu.types import Floats

TABLE = {"a": [1.0, 0.0], "bb": [0.0, 1.0], "ccc": [1.0, 1.0], "dddd": [1.0, -1.0]}


def table() -> TableEmbedder:
    return TableEmbedder(TABLE)


class Broken(TableEmbedder):
    def __init__(self, rows: Floats) -> None:
        super().__init__(TABLE, name="broken")
        self._broken = rows

    def encode(self, texts: object, *, instruction: str = "") -> Floats:
        return self._broken


def test_rows_stand_in_the_order_of_the_texts_with_repeats() -> None:
    rows = encode_all(["ccc", "a", "ccc", "bb"], table())
    assert np.allclose(rows, [[0.5**0.5, 0.5**0.5], [1, 0], [0.5**0.5, 0.5**0.5], [0, 1]])


def test_no_texts_give_no_rows() -> None:
    assert encode_all([], table()).shape == (0, 2)


def test_each_distinct_text_is_encoded_once_shortest_first() -> None:
    embedder = table()
    encode_all(["dddd", "a", "ccc", "a", "bb", "dddd"], embedder, batch_texts=2)
    assert embedder.calls == [["a", "bb"], ["ccc", "dddd"]]


def test_known_texts_are_not_encoded_again() -> None:
    embedder, known = table(), DictCache({"bb": np.array([-1, 0], np.float32)}, width=2)
    rows = encode_all(["a", "bb", "bb"], embedder, known=known)
    assert embedder.calls == [["a"]]
    assert np.array_equal(rows, [[1, 0], [-1, 0], [-1, 0]])


def test_with_all_texts_known_the_encoder_is_not_called() -> None:
    embedder, known = table(), DictCache({"a": np.array([1, 0], np.float32)}, width=2)
    encode_all(["a", "a"], embedder, known=known)
    assert embedder.calls == []


def test_each_finished_block_is_handed_on_with_its_rows() -> None:
    blocks: list[tuple[list[str], Floats]] = []
    rows = encode_all(list(TABLE), table(), on_batch=lambda texts, rows: blocks.append((texts, rows)), batch_texts=3)
    assert [texts for texts, _ in blocks] == [["a", "bb", "ccc"], ["dddd"]]
    assert np.array_equal(np.concatenate([block for _, block in blocks]), rows)


def test_blocks_before_a_failure_were_handed_on() -> None:
    blocks: list[list[str]] = []
    with pytest.raises(KeyError):
        encode_all(["a", "unknown"], table(), on_batch=lambda texts, _: blocks.append(texts), batch_texts=1)
    assert blocks == [["a"]]


def test_long_texts_make_smaller_blocks() -> None:
    texts = [f"{i} " + "x" * (BLOCK_CHARACTERS // 2) for i in range(3)]
    sizes: list[int] = []
    encode_all(texts, HashingEmbedder(8), on_batch=lambda block, _: sizes.append(len(block)))
    assert sizes == [1, 1, 1]


def test_progress_starts_at_nothing_never_falls_and_ends_at_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    encode_all(list(TABLE), table(), on_progress=lambda done, whole: seen.append((done, whole)), batch_texts=1)
    done = [step for step, _ in seen]
    assert done[0] == 0
    assert done == sorted(done)
    assert seen[-1][0] == seen[-1][1]


def test_progress_counts_a_long_text_as_more_work_than_a_short_one() -> None:
    seen: list[int] = []
    encode_all(["a", "b" * 1000], HashingEmbedder(8), on_progress=lambda done, _: seen.append(done), batch_texts=1)
    assert seen[2] - seen[1] > 50 * (seen[1] - seen[0])


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([[np.nan, 1.0]], "not finite"),
        ([[0.0, 0.0]], "length 0"),
        ([[1.01, 0.0]], "length 1.01"),
        ([[1.0, 0.0, 0.0]], r"shape \(1, 3\)"),
        ([[1.0, 0.0], [1.0, 0.0]], r"shape \(2, 2\)"),
    ],
)
def test_rows_that_are_no_unit_vectors_name_the_encoder_and_the_text(rows: list[list[float]], what: str) -> None:
    text = "a long text " * 20
    with pytest.raises(EncoderError, match=what) as caught:
        encode_all([text], Broken(np.array(rows, np.float32)))
    assert "'broken'" in str(caught.value)
    assert "'a long text a long text" in str(caught.value)
    assert text not in str(caught.value)


def test_a_cache_of_another_width_is_refused() -> None:
    with pytest.raises(EncoderError, match=r"shape \(1, 3\)"):
        encode_all(["a"], table(), known=DictCache({"a": np.array([1, 0, 0], np.float32)}, width=3))


def test_the_instruction_reaches_the_encoder() -> None:
    embedder = TableEmbedder({"ask: a": [1.0, 0.0]})
    assert np.array_equal(encode_all(["a"], embedder, instruction="ask: "), [[1, 0]])


def test_blocks_of_no_texts_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="Got 0"):
        encode_all(["a"], table(), batch_texts=0)


def test_an_encoder_without_a_window_truncates_nothing() -> None:
    assert count_truncated(["word " * 10000], table()) == 0


def test_a_lone_surrogate_is_read_as_the_replacement_character() -> None:
    assert readable("a\ud800b🙂") == "a\ufffdb🙂"
