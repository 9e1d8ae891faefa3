"""Every past format is opened as it was written, answers, and is taken on to the format of today."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from make import EDGES, PASSAGES, make, opened

from hippogpu import Passage, Searcher
from hippogpu.store import current_manifest, load_snapshot, verify
from hippogpu.store.manifest import FORMAT

HERE = Path(__file__).parent
PAST = sorted(HERE.glob("format-*"), key=lambda path: int(path.name.split("-")[1]))


@pytest.fixture(params=PAST, ids=lambda path: path.name)
def past(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an index as an earlier program wrote it."""
    return Path(shutil.copytree(request.param, tmp_path / "past"))


def arrays(root: Path) -> dict[str, str]:
    return {role: entry.sha256 for role, entry in current_manifest(root).files.items()}


def test_each_format_up_to_todays_has_its_index() -> None:
    assert [current_manifest(path).format for path in PAST] == list(range(1, FORMAT + 1))


def test_it_opens_whole(past: Path) -> None:
    assert verify(past, full=True) == []
    assert current_manifest(past).diffusion_state == "fresh"


def test_it_holds_its_passages_under_their_ids(past: Path) -> None:
    passages = load_snapshot(past, current_manifest(past)).passages
    held = [passages.named(number) for number in range(len(passages.ids))]
    # In format 1 an id of a text that came before has the title of the first.
    twin = PASSAGES[5] if current_manifest(past).format > 1 else PASSAGES[2]._replace(id="twin", meta=PASSAGES[5].meta)
    assert held == [*PASSAGES[:5], twin]


def test_it_answers_as_an_index_of_today(past: Path, tmp_path: Path) -> None:
    make(tmp_path / "today")
    old, new = (Searcher.open(root).rank(["who built the engine?"], k=9)[0] for root in (past, tmp_path / "today"))
    assert [(hit.passage.id, hit.score) for hit in old.hits] == [(hit.passage.id, hit.score) for hit in new.hits]


def test_a_run_over_the_same_corpus_takes_it_on_to_todays_index(past: Path, tmp_path: Path) -> None:
    make(tmp_path / "today")
    make(past)
    more = Passage("more", "", "steam|drives|the engine")
    for root in (past, tmp_path / "today"):
        with opened(root) as index:
            index.add([more])
            index.commit()
    assert current_manifest(past).format == FORMAT
    assert arrays(past) == arrays(tmp_path / "today")


def test_it_loses_passages_as_an_index_of_today(past: Path, tmp_path: Path) -> None:
    with opened(past) as index:
        index.add(PASSAGES)
        index.delete(["p0"])
        index.commit()
    with opened(tmp_path / "never") as index:
        index.add(PASSAGES[1:])
        index.add_edges(EDGES[1:])
        index.commit()
    assert arrays(past) == arrays(tmp_path / "never")
