"""Vectors that are kept between a crash and the next commit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hippogpu.errors import StoredIndexError
from hippogpu.precision import float_rows, rounded
from hippogpu.store import StoredVectors
from hippogpu.store.files import write_table
from hippogpu.store.text_keys import keys_of
from hippogpu.types import Floats

TEXTS = ["one", "北京", "", "\ud800"]
ROWS = np.eye(4, dtype=np.float32)


def stored(folder: Path, *, encoder: str = "e", width: int = 4) -> StoredVectors:
    return StoredVectors(folder, encoder, width)


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*-*.npy"))


def test_kept_vectors_come_back_after_opening_again(tmp_path: Path) -> None:
    stored(tmp_path).keep(TEXTS, ROWS)
    found, vectors = stored(tmp_path).get(["x", *TEXTS[::-1]])
    assert (found.tolist(), vectors.tolist()) == ([False, True, True, True, True], ROWS[::-1].tolist())


def test_vectors_known_from_elsewhere_are_not_stored(tmp_path: Path) -> None:
    known = stored(tmp_path)
    known.know(TEXTS, ROWS)
    assert known.get(["one"])[1].tolist() == [[1, 0, 0, 0]]
    assert segments(tmp_path) == []


def test_nothing_known_gives_no_rows_of_the_right_width(tmp_path: Path) -> None:
    found, vectors = stored(tmp_path).get(["x"])
    assert (found.tolist(), vectors.shape) == ([False], (0, 4))


@pytest.mark.parametrize("other", [{"encoder": "f"}, {"width": 2}])
def test_vectors_of_another_encoder_or_width_are_not_taken(tmp_path: Path, other: dict[str, object]) -> None:
    stored(tmp_path).keep(TEXTS, ROWS)
    assert not stored(tmp_path, **other).get(TEXTS)[0].any()  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [0, 100, 128, -1])
def test_a_spoiled_segment_is_removed_counted_and_said(tmp_path: Path, caplog, at: int) -> None:
    stored(tmp_path).keep(["one"], ROWS[:1])
    stored(tmp_path).keep(["two"], ROWS[1:2])
    path = segments(tmp_path)[0]
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    again = stored(tmp_path)
    assert (again.spoiled, again.get(["one", "two"])[0].sum(), path.exists()) == (1, 1, False)
    assert path.name in caplog.text


def test_a_segment_cut_short_is_spoiled(tmp_path: Path) -> None:
    stored(tmp_path).keep(TEXTS, ROWS)
    path = segments(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-8])
    assert (stored(tmp_path).spoiled, stored(tmp_path).spoiled) == (1, 0)


def test_half_written_segments_are_passed_over(tmp_path: Path) -> None:
    stored(tmp_path).keep(TEXTS, ROWS)
    (segments(tmp_path)[0].parent / ".float32.123.tmp").write_bytes(b"half")
    assert stored(tmp_path).get(TEXTS)[0].all()


def test_clearing_removes_the_segments(tmp_path: Path) -> None:
    known = stored(tmp_path)
    known.keep(TEXTS, ROWS)
    known.clear()
    assert segments(tmp_path) == []
    assert not stored(tmp_path).get(TEXTS)[0].any()


def unit_rows(rows: int, width: int, *, seed: int = 0) -> Floats:
    made = np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("width", [1, 4, 37])
def test_rows_of_each_type_come_back_bit_for_bit(tmp_path: Path, kind, width: int) -> None:
    texts, rows = [f"text {n}" for n in range(33)], rounded(unit_rows(33, width), kind)
    places = stored(tmp_path, width=width).keep(texts, rows)
    again = stored(tmp_path, width=width)
    assert np.array_equal(again.places(keys_of(texts, 33), kind), places)
    back = again.rows(places[::-1], kind)
    assert np.array_equal(float_rows(back, slice(None)), float_rows(rows, slice(None))[::-1])


def test_rows_of_float32_serve_every_type_and_smaller_ones_only_their_own(tmp_path: Path) -> None:
    known = stored(tmp_path)
    known.keep(["whole"], ROWS[:1])
    known.keep(["half"], rounded(ROWS[:1], "float16"))
    keys = keys_of(["whole", "half"], 2)
    served = {kind: (known.places(keys, kind) >= 0).tolist() for kind in ("float32", "float16", "int8")}
    assert served == {"float32": [True, False], "float16": [True, True], "int8": [True, False]}
    assert known.rows(known.places(keys[:1], "int8"), "int8").values.tolist() == [[127, 0, 0, 0]]


def test_of_equal_texts_the_one_that_came_last_counts(tmp_path: Path) -> None:
    known = stored(tmp_path)
    for row in range(3):
        known.know(["one", f"other {row}"], ROWS[[row, 3]])
    assert known.get(["one"])[1].tolist() == [[0, 0, 1, 0]]


def test_segments_of_earlier_versions_are_read_and_cleared(tmp_path: Path) -> None:
    folder = stored(tmp_path)._folder
    text = pa.array([one.encode("utf-8", "surrogatepass") for one in TEXTS], pa.large_binary())
    vector = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), 4)
    schema = pa.schema([("text", pa.large_binary()), ("vector", pa.list_(pa.float32(), 4))])
    write_table(folder, "vectors", pa.table([text, vector], schema=schema))
    known = stored(tmp_path)
    assert known.get(TEXTS)[1].tolist() == ROWS.tolist()
    known.clear()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_many_small_blocks_become_few_files_and_keep_their_places(tmp_path: Path, kind) -> None:
    known, rows = stored(tmp_path), unit_rows(100, 4)
    places = [known.keep([f"text {n}"], rounded(rows[[n]], kind)) for n in range(100)]
    assert len(segments(tmp_path)) < 20
    assert open_segments(tmp_path) < 20
    for one in (known, stored(tmp_path)):
        found = one.places(keys_of([f"text {n}" for n in range(100)], 100), kind)
        back = float_rows(one.rows(found, kind), slice(None))
        assert np.array_equal(back, float_rows(rounded(rows, kind), slice(None)))
    assert np.array_equal(known.places(keys_of([f"text {n}" for n in range(100)], 100), kind), np.concatenate(places))


def open_segments(folder: Path) -> int:
    """Open files below a folder."""
    names = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return sum(name.startswith(str(folder)) for name in names)


def test_a_segment_that_cannot_be_opened_now_is_not_removed(tmp_path: Path, monkeypatch) -> None:
    stored(tmp_path).keep(TEXTS, ROWS)

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("hippogpu.store.mapped.os.open", refuse)
        with pytest.raises(StoredIndexError, match="Too many open files"):
            stored(tmp_path)
    assert stored(tmp_path).get(TEXTS)[0].all()
