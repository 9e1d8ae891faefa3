"""When an index is diffused, what marks the result stale, and what a search does meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_index import PASSAGES, Saying, file_of, hashes, index_of, open_index, stating

from hippogpu import Index, RunConfig, SearchConfig, Searcher, diffuse_index
from hippogpu.backends import load_backend
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import HippoError, IndexDamagedError, IndexLockedError, IndexMissingError, UsageError
from hippogpu.index import diffusing
from hippogpu.store import current_manifest, verify

QUESTIONS = ["what did ada lovelace write?", "who built the engine?"]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """An index that was never diffused."""
    root = tmp_path / "plain.hippo"
    with open_index(root) as index:
        index.add(PASSAGES)
        index.commit(diffuse="never")
    return root


def served(root: Path, **settings: object) -> list[tuple[str | None, bool | None]]:
    rankings = Searcher.open(root).rank(QUESTIONS, k=3, config=SearchConfig(method="hippo2", **settings))  # type: ignore[arg-type]
    return [(ranking.solver, ranking.certified) for ranking in rankings]


def lists(root: Path, **settings: object) -> list[list[str]]:
    rankings = Searcher.open(root).rank(QUESTIONS, k=3, config=SearchConfig(method="hippo2", **settings))  # type: ignore[arg-type]
    return [[hit.passage.id for hit in ranking.hits] for ranking in rankings]


def state(root: Path) -> str:
    return current_manifest(root).diffusion_state


def test_a_commit_diffuses_what_is_quick(tmp_path: Path) -> None:
    report = index_of(tmp_path / "made.hippo")
    assert (report.generation, report.diffusion, state(tmp_path / "made.hippo")) == (1, "fresh", "fresh")


def test_auto_takes_diffused_when_it_is_fresh_and_power_otherwise(plain: Path) -> None:
    assert (state(plain), served(plain)) == ("none", [("power", None)] * 2)
    diffuse_index(plain)
    assert (state(plain), served(plain)) == ("fresh", [("diffused", True)] * 2)


@pytest.mark.parametrize("solver", ["power", "chebyshev", "diffused"])
def test_every_solver_ranks_alike(tmp_path: Path, solver: str) -> None:
    index_of(tmp_path / "made.hippo")
    alike = lists(tmp_path / "made.hippo", solver=solver, epsilon=1e-8)
    assert alike == lists(tmp_path / "made.hippo", solver="power", tolerance=1e-12)


def test_a_solver_that_cannot_serve_says_what_to_do(plain: Path) -> None:
    with pytest.raises(UsageError, match=r"not there.*hippogpu diffuse DIR"):
        served(plain, solver="diffused")
    diffuse_index(plain, damping=0.4)
    with pytest.raises(UsageError, match=r"made for the damping 0\.4, not 0\.5"):
        served(plain, solver="diffused")
    assert served(plain) == [("power", None)] * 2


def test_new_passages_make_it_stale_and_its_files_leave(plain: Path) -> None:
    diffuse_index(plain)
    with open_index(plain) as index:
        index.add([stating("p9", "Ada Lovelace|met|Mary Somerville")])
        report = index.commit(diffuse="never")
    assert (report.diffusion, state(plain), served(plain)[0]) == ("stale", "stale", ("power", None))
    assert not [role for role in current_manifest(plain).files if role.startswith("diffused")]


def test_new_metadata_alone_leaves_it_fresh(plain: Path) -> None:
    diffuse_index(plain)
    with open_index(plain) as index:
        index.add([PASSAGES[0]._replace(meta={"seen": 1})])
        report = index.commit(diffuse="never")
    assert (report.changed, report.diffusion, served(plain)[0]) == (True, "fresh", ("diffused", True))


def test_diffusing_twice_does_nothing_the_second_time(plain: Path) -> None:
    first, second = diffuse_index(plain), diffuse_index(plain)
    assert (first.generation, first.changed, second.generation, second.changed) == (2, True, 2, False)


def test_a_diffused_index_is_the_one_of_a_commit_that_diffuses(plain: Path, tmp_path: Path) -> None:
    diffuse_index(plain)
    index_of(tmp_path / "made.hippo")
    assert hashes(plain) == hashes(tmp_path / "made.hippo")
    assert verify(plain, full=True) == []


def test_what_takes_long_is_left_by_auto_and_done_after_the_commit_by_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffusing, "AUTO_SECONDS", 0.0)
    assert index_of(tmp_path / "auto.hippo").diffusion == "none"
    with open_index(tmp_path / "always.hippo") as index:
        index.add(PASSAGES)
        report = index.commit(diffuse="always")
    assert (report.generation, report.diffusion) == (2, "fresh")


def test_always_diffuses_an_index_that_did_not_change(plain: Path) -> None:
    with open_index(plain) as index:
        index.add(PASSAGES)
        report = index.commit(diffuse="always")
    assert (report.generation, report.changed, report.diffusion) == (2, True, "fresh")


def test_only_one_writer_diffuses(plain: Path) -> None:
    with open_index(plain), pytest.raises(IndexLockedError):
        diffuse_index(plain)


def test_a_folder_without_an_index_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(IndexMissingError):
        diffuse_index(tmp_path / "none.hippo")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from hippogpu import RunConfig, diffuse_index
def die(done, whole):
    if done >= 16: os.kill(os.getpid(), signal.SIGKILL)
diffuse_index(sys.argv[1], run=RunConfig(budget_bytes=2**20), on_progress=die)
"""


def test_a_killed_diffusion_leaves_the_index_and_goes_on(plain: Path) -> None:
    before = hashes(plain)
    script = "import hippogpu.diffuse as d; d._MOST_COLUMNS = 16\n" + KILLED
    died = subprocess.run([sys.executable, "-c", script, str(plain)], env=os.environ, check=False)
    assert died.returncode == -signal.SIGKILL
    assert (hashes(plain), served(plain)[0]) == (before, ("power", None))
    kept = sorted(path.name for path in (plain / "diffusing").rglob("*.npz"))
    assert kept == ["columns-000000.npz"]
    diffuse_index(plain)
    assert served(plain) == [("diffused", True)] * 2
    assert not (plain / "diffusing").exists()


def test_an_index_without_any_edge_is_diffused_and_served(tmp_path: Path) -> None:
    root = tmp_path / "bare.hippo"
    with open_index(root) as index:
        index.add([stating("a", "nothing"), stating("b", "is said")])
        assert index.commit().diffusion == "fresh"
    (ranking, _) = Searcher.open(root).rank(QUESTIONS, k=5, config=SearchConfig(method="hippo2"))
    assert (len(ranking.hits), ranking.fallback is not None, ranking.certified) == (2, True, None)


def test_the_public_writer_diffuses_for_the_damping_it_is_told(tmp_path: Path) -> None:
    with open_index(tmp_path / "made.hippo") as index:
        assert isinstance(index, Index)
        index.add(PASSAGES)
        index.commit(damping=0.3)
    assert served(tmp_path / "made.hippo", damping=0.3) == [("diffused", True)] * 2


def test_undoing_an_update_leaves_an_index_that_opens(plain: Path) -> None:
    diffuse_index(plain)
    for text in ("Ada Lovelace|read|books", PASSAGES[1].text):
        with open_index(plain) as index:
            index.add([PASSAGES[1]._replace(text=text)])
            index.commit(diffuse="never")
    assert (state(plain), served(plain)[0]) == ("stale", ("power", None))


def test_a_commit_leaves_no_unfinished_columns(tmp_path: Path) -> None:
    index_of(tmp_path / "made.hippo")
    assert not (tmp_path / "made.hippo" / "diffusing").exists()


def test_always_diffuses_anew_for_another_damping(plain: Path) -> None:
    diffuse_index(plain)
    with open_index(plain) as index:
        index.add(PASSAGES)
        index.commit(diffuse="always", damping=0.3)
    assert served(plain, damping=0.3) == [("diffused", True)] * 2


def test_the_way_out_names_the_damping(plain: Path) -> None:
    diffuse_index(plain)
    with pytest.raises(UsageError, match=r"hippogpu diffuse DIR --damping 0\.4"):
        served(plain, solver="diffused", damping=0.4)


@pytest.mark.parametrize("role", ["diffused_vectors", "diffused_ones"])
def test_damaged_diffused_vectors_are_refused_by_readers_and_made_again(plain: Path, role: str) -> None:
    diffuse_index(plain)
    path = file_of(plain, role)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(IndexDamagedError, match=r"Or make it again: hippogpu diffuse"):
        Searcher.open(plain)
    assert diffuse_index(plain).changed
    assert served(plain) == [("diffused", True)] * 2


def test_diffused_vectors_that_are_no_numbers_are_damage(plain: Path) -> None:
    diffuse_index(plain)
    path = file_of(plain, "diffused_ones")
    path.write_bytes(path.read_bytes()[:-4] + b"\xff\xff\xff\x7f")
    with pytest.raises(IndexDamagedError, match="no number"):
        served(plain)
    assert verify(plain, full=True) != []
    assert diffuse_index(plain).changed


def test_a_backend_that_is_not_there_is_named_before_anything_is_extracted(tmp_path: Path) -> None:
    saying = Saying()
    run = RunConfig(backend="cuda")
    if load_backend("auto").name == "cuda":
        pytest.skip("a CUDA device answers")
    with Index.open(tmp_path / "x.hippo", extractor=saying, embedder=HashingEmbedder(32), run=run) as index:
        index.add(PASSAGES)
        with pytest.raises(HippoError):
            index.commit()
    assert saying.seen == []


def test_a_batch_of_walks_is_smaller_than_one_of_diffused_rankings(plain: Path) -> None:
    diffuse_index(plain)
    reader = Searcher.open(plain)
    assert reader.batch_size(SearchConfig(method="hippo2", solver="power")) < reader.batch_size()
