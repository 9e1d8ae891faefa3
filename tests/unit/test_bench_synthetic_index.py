"""python -m bench.synthetic_index: an index of invented content that everything can read."""

from __future__ import annotations

from pathlib import Path

from bench.synthetic_index import write_index
from hippogpu.searcher import Searcher


def test_a_small_index_of_invented_content_is_whole_and_searched(tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "x.hippo", 50, width=16)
    assert manifest.counts["passages"] == 50
    assert len(Searcher.open(tmp_path / "x.hippo").rank(["Page 7"], k=5)[0].hits) == 5
