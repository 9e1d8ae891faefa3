"""CURRENT and the manifest it names: read only when they are what was written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_index import PASSAGES, index_of, stating

from hippogpu.errors import IndexDamagedError, IndexMissingError
from hippogpu.store import current_manifest, generations
from hippogpu.store.generations import manifest_path

FORMAT_1 = Path(__file__).parents[1] / "formats" / "format-1"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two generations."""
    root = tmp_path_factory.mktemp("pointer") / "small.hippo"
    index_of(root)
    index_of(root, [*PASSAGES, stating("new", "x|y|zzz")])
    return root


@pytest.fixture
def copied(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "small.hippo"))


def damaged(root: Path, name: str) -> bool:
    """Whether opening is refused in words that name the file and a way out."""
    with pytest.raises(IndexDamagedError) as caught:
        current_manifest(root)
    return name in str(caught.value) and "Restore" in str(caught.value)


def test_current_holds_the_generation_and_the_digest_of_its_manifest(kept: Path) -> None:
    digest = hashlib.sha256(manifest_path(kept, 2).read_bytes()).hexdigest()
    assert (kept / "CURRENT").read_bytes() == f"0000000002 {digest}\n".encode()


@pytest.mark.parametrize("bit", [0x01, 0x10, 0x20, 0x80])
def test_a_flipped_bit_anywhere_in_current_is_damage(copied: Path, bit: int) -> None:
    good = (copied / "CURRENT").read_bytes()
    for at in range(len(good)):
        (copied / "CURRENT").write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        assert damaged(copied, "CURRENT")


def test_a_current_that_was_cut_or_lengthened_is_damage(copied: Path) -> None:
    good = (copied / "CURRENT").read_bytes()
    for content in (*(good[:size] for size in range(len(good))), good + b"\n", good + b" ", b" " + good):
        (copied / "CURRENT").write_bytes(content)
        assert damaged(copied, "CURRENT")


def test_a_flipped_bit_anywhere_in_the_manifest_is_damage(copied: Path) -> None:
    path = manifest_path(copied, 2)
    good = path.read_bytes()
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        assert damaged(copied, str(path))


def test_an_index_of_format_1_needs_no_digest(tmp_path: Path) -> None:
    root = Path(shutil.copytree(FORMAT_1, tmp_path / "old.hippo"))
    assert (current_manifest(root).format, re.fullmatch(rb"0000000001\n", (root / "CURRENT").read_bytes())) != (2, None)


def test_a_later_format_without_a_digest_is_damage(copied: Path) -> None:
    (copied / "CURRENT").write_text("0000000002\n")
    assert damaged(copied, "lacks the SHA-256")


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def huge(path: Path) -> None:
    """A file of no bytes on disk that says it has a terabyte."""
    os.truncate(path, 1 << 40)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("spoil", [linked, a_pipe, a_folder, huge])
@pytest.mark.parametrize("name", ["CURRENT", "manifests/0000000002.json"])
def test_what_is_no_small_plain_file_is_damage_and_is_not_read(
    copied: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    spoil(copied / name)
    assert damaged(copied, name)


def test_a_link_that_leads_nowhere_in_place_of_current_is_not_a_folder_without_an_index(copied: Path) -> None:
    (copied / "CURRENT").unlink()
    (copied / "CURRENT").symlink_to(copied / "gone")
    assert generations.has_index(copied)
    assert damaged(copied, "CURRENT")


def test_a_removed_current_is_a_folder_without_an_index(copied: Path) -> None:
    (copied / "CURRENT").unlink()
    with pytest.raises(IndexMissingError):
        current_manifest(copied)


def test_a_generation_that_came_and_cleared_the_one_before_while_it_was_opened_is_no_damage(
    copied: Path, monkeypatch
) -> None:
    new, old = (copied / "CURRENT").read_bytes(), manifest_path(copied, 1)
    digest = hashlib.sha256(old.read_bytes()).hexdigest()
    (copied / "CURRENT").write_text(f"0000000001 {digest}\n")
    real = generations.from_json

    def cleared(*_: object) -> None:
        monkeypatch.setattr(generations, "from_json", real)
        (copied / "CURRENT").write_bytes(new)
        raise IndexDamagedError("0000000001.json is missing")

    monkeypatch.setattr(generations, "from_json", cleared)
    assert current_manifest(copied).generation == 2


def test_the_digest_in_a_message_is_the_one_that_would_be_right(copied: Path) -> None:
    path = manifest_path(copied, 2)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"created": "then"}))
    assert damaged(copied, hashlib.sha256(path.read_bytes()).hexdigest())
