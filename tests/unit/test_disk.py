"""Room that is taken on the disk before it is mapped, and folders of other work that go."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hippogpu.disk import allocate, forget_others
from hippogpu.errors import StoredIndexError


def test_room_keeps_what_it_held_unless_it_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "room"
    path.write_bytes(b"held")
    allocate(path, 10, anew=False)
    assert path.read_bytes() == b"held" + bytes(6)
    allocate(path, 3, anew=True)
    assert path.read_bytes() == bytes(3)


def test_room_on_a_full_disk_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StoredIndexError, match="Make room"):
        allocate(tmp_path / "room", 10, anew=True)


@pytest.mark.parametrize("anew", [True, False])
def test_room_is_never_taken_through_a_link(tmp_path: Path, anew: bool) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    (tmp_path / "room").symlink_to(other)
    if anew:
        allocate(tmp_path / "room", 10, anew=True)
    else:
        with pytest.raises(StoredIndexError):
            allocate(tmp_path / "room", 10, anew=False)
    assert other.read_bytes() == b"mine"


def test_folders_of_other_work_go_and_no_others(tmp_path: Path) -> None:
    for name in ("cells-1", "cells-2", "tables-1"):
        (tmp_path / name).mkdir()
    forget_others(tmp_path / "cells-2", "cells-*")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells-2", "tables-1"]


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "cells-1").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoredIndexError, match="link"):
        forget_others(tmp_path / "link" / "cells-2", "cells-*")
    assert (tmp_path / "real" / "cells-1").is_dir()
