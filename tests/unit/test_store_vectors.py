"""Vectors that are kept between a crash and the next commit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hippogpu.store import StoredVectors

TEXTS = ["one", "北京", "", "\ud800"]
ROWS = np.eye(4, dtype=np.float32)


def stored(folder: Path, *, encoder: str = "e", width: int = 4) -> StoredVectors:
    return StoredVectors(folder, encoder, width)


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/vectors-*.arrow"))


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


@pytest.mark.parametrize("at", [0, 100, -1])
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
    (segments(tmp_path)[0].parent / ".vectors.123.tmp").write_bytes(b"half")
    assert stored(tmp_path).get(TEXTS)[0].all()


def test_clearing_removes_the_segments(tmp_path: Path) -> None:
    known = stored(tmp_path)
    known.keep(TEXTS, ROWS)
    known.clear()
    assert segments(tmp_path) == []
    assert not stored(tmp_path).get(TEXTS)[0].any()
