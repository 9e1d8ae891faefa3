"""Files of an index: written whole, refused when they are not what the manifest says, named when altered."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from small_index import Saying, file_of, index_of, open_index

from hippogpu import SearchConfig, Searcher
from hippogpu.disk import make_folder, write_atomically
from hippogpu.errors import HippoError, IndexDamagedError, StoredIndexError
from hippogpu.store import current_manifest, load_snapshot, verify
from hippogpu.store.columns import read_table
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.store.mapped import read_array, sha256_of

ROLES = (
    *("ids", "passages", "phrases", "facts", "words"),
    *("mentions_indptr", "mentions", "statements_indptr", "statements"),
    *("passage_vectors", "phrase_vectors", "fact_vectors", "graph_indptr", "graph_indices", "graph_weights"),
    *("synonym_source", "synonym_target", "synonym_weight", "diffused_vectors", "diffused_ones"),
    *("word_indptr", "word_passages", "word_counts", "word_lengths", "title_words_indptr", "title_words"),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store") / "small.hippo"
    index_of(root)
    return root


@pytest.fixture
def spoiled(kept: Path, tmp_path: Path) -> Path:
    """A copy of one index, to be spoiled."""
    return Path(shutil.copytree(kept, tmp_path / "small.hippo"))


def opened(root: Path) -> None:
    load_snapshot(root, current_manifest(root))


def refused(root: Path, name: str) -> bool:
    """Whether opening the index is refused in words that name the file."""
    with pytest.raises(IndexDamagedError) as caught:
        opened(root)
    return name in str(caught.value)


@pytest.mark.parametrize(
    "array", [np.arange(6, dtype=np.int64), np.ones((2, 3), np.float32), np.empty((0, 4), np.float32)]
)
def test_an_array_comes_back_as_it_was_and_cannot_be_written_to(tmp_path: Path, array: np.ndarray) -> None:
    entry = write_array(tmp_path, "numbers", array)
    back = read_array(tmp_path, entry)
    assert np.array_equal(back, array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert 0 in array.shape or not back.flags.writeable


def test_an_array_is_an_ordinary_npy_file(tmp_path: Path) -> None:
    entry = write_array(tmp_path, "numbers", np.arange(6)[::2])
    assert np.load(tmp_path / entry.file, allow_pickle=False).tolist() == [0, 2, 4]


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["北京", "", "a\0b"], pa.large_string())})
    back = read_table(tmp_path, write_table(tmp_path, "texts", table), table.schema)
    assert list(back.texts["text"]) == ["北京", "", "a\0b"]


def test_a_file_is_named_by_its_role_and_content(tmp_path: Path) -> None:
    one, again, other = (write_array(tmp_path, "numbers", np.array(n)) for n in ([1], [1], [2]))
    assert one == again != other
    assert one.file == f"numbers-{one.sha256[:16]}.npy"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([one.file, other.file])


def test_objects_are_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_array(tmp_path, "numbers", np.array([{}], object))
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "CURRENT", content)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("CURRENT", b"new")]


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


STEPS = ((errno.ENOSPC, "Make room"), (errno.EDQUOT, "quota"), (errno.EACCES, "permissions"), (errno.EIO, "the disk"))


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize(("code", "step"), STEPS)
def test_a_failed_write_names_the_path_the_reason_and_the_next_step(
    tmp_path: Path, monkeypatch, call: str, code: int, step: str
) -> None:
    monkeypatch.setattr(os, call, failing(code))
    with pytest.raises(StoredIndexError, match=rf"numbers.* cannot be written: {os.strerror(code)}.*as it was.*{step}"):
        write_array(tmp_path, "numbers", np.arange(7))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_table_that_cannot_be_written_is_told_as_an_array_is(tmp_path: Path, monkeypatch, call: str) -> None:
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))
    with pytest.raises(StoredIndexError, match="No space left"):
        write_table(tmp_path, "texts", pa.table({"text": pa.array(["a"] * 31, pa.large_string())}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, 31, 1 << 20, (1 << 20) + 1, 3_000_001])
def test_writes_that_the_system_takes_in_part_come_out_whole(tmp_path: Path, monkeypatch, size: int) -> None:
    real, array = os.write, np.arange(size, dtype=np.uint8)
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[: max(1, len(data) // 3)]))
    entry = write_array(tmp_path, "numbers", array)
    monkeypatch.undo()
    assert sha256_of(tmp_path / entry.file) == entry.sha256
    assert np.array_equal(read_array(tmp_path, entry), array)


def test_a_system_that_takes_nothing_is_not_asked_for_ever(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "write", lambda handle, data: 0)
    with pytest.raises(OSError, match="takes no more bytes"):
        write_atomically(tmp_path / "CURRENT", b"x")


def test_replacing_a_file_in_vain_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path, monkeypatch) -> None:
    write_atomically(tmp_path / "CURRENT", b"old")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match=r"CURRENT") as told:
        write_atomically(tmp_path / "CURRENT", b"new")
    assert told.value.errno == errno.EIO
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("CURRENT", b"old")]


def test_a_temporary_name_that_is_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"dear")
    (tmp_path / f".CURRENT.{os.getpid()}.tmp").symlink_to(tmp_path / "outside")
    write_atomically(tmp_path / "CURRENT", b"new")
    assert (tmp_path / "outside").read_bytes() == b"dear"


def test_a_folder_that_is_a_link_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "files").symlink_to(tmp_path / "outside")
    with pytest.raises(StoredIndexError, match="files' is a symbolic link"):
        write_array(tmp_path / "files", "numbers", np.arange(7))
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_name_of_every_folder_that_is_made_is_made_durable(tmp_path: Path, monkeypatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert synced == [str(tmp_path), str(tmp_path / "a")]


def test_the_roles_are_all_of_them(kept: Path) -> None:
    assert set(current_manifest(kept).files) == set(ROLES)


def test_an_index_that_was_just_written_has_no_problem(kept: Path) -> None:
    assert (verify(kept), verify(kept, full=True)) == ([], [])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def replaced_by_an_archive(path: Path) -> None:
    """NumPy would open an archive as a mapping of arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", b"")
    content = buffer.getvalue()
    path.write_bytes(content + bytes(max(0, path.stat().st_size - len(content))))


SPOIL = (Path.unlink, cut, lengthened, emptied, linked, replaced_by_a_folder, zeroed, replaced_by_an_archive)


@pytest.mark.parametrize("spoil", SPOIL)
@pytest.mark.parametrize("role", ROLES)
def test_a_file_that_is_not_whole_is_refused_at_open_by_name(
    spoiled: Path, role: str, spoil: Callable[[Path], None]
) -> None:
    path = file_of(spoiled, role)
    spoil(path)
    assert refused(spoiled, path.name)
    assert [path.name in problem for problem in verify(spoiled)] == [True]


def retyped(path: Path) -> None:
    """The same number of bytes under a header of another type."""
    old, new = {"<i8": ("<i8", "<u8"), "<i4": ("<i4", "<u4"), "<f4": ("<f4", "<i4"), "|u1": ("|u1", "|i1")}[_type(path)]
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), 1))


def _type(path: Path) -> str:
    return np.load(path).dtype.str


@pytest.mark.parametrize("role", ROLES[5:])
def test_an_array_of_another_type_is_refused_at_open_by_name(spoiled: Path, role: str) -> None:
    retyped(file_of(spoiled, role))
    assert refused(spoiled, file_of(spoiled, role).name)


@pytest.mark.parametrize(
    ("role", "other"), [("mentions", "mentions_indptr"), ("facts", "ids"), ("phrases", "passages")]
)
def test_swapped_files_are_refused_at_open_by_name(spoiled: Path, role: str, other: str) -> None:
    one, two = file_of(spoiled, role), file_of(spoiled, other)
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    assert refused(spoiled, one.name) or refused(spoiled, two.name)


def flips(size: int, step: int) -> Iterator[tuple[int, int]]:
    return ((at, bit) for at in range(0, size, step) for bit in (0x01, 0x10, 0x80))


@pytest.mark.parametrize("role", ROLES)
def test_a_flipped_bit_anywhere_never_crashes_an_open(spoiled: Path, role: str) -> None:
    path, manifest = file_of(spoiled, role), current_manifest(spoiled)
    good = path.read_bytes()
    for at, bit in flips(len(good), 23):
        path.write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        with suppress(IndexDamagedError):
            load_snapshot(spoiled, manifest)


@pytest.mark.parametrize("role", ROLES)
def test_a_flipped_bit_in_any_file_is_named_by_a_full_verification(spoiled: Path, role: str) -> None:
    path = file_of(spoiled, role)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert [(path.name in line, "SHA-256" in line) for line in verify(spoiled, full=True)] == [(True, True)]


@pytest.mark.parametrize(
    "role", ["graph_indices", "graph_indptr", "mentions", "mentions_indptr", "statements", "facts"]
)
@pytest.mark.parametrize("value", [0x7F, 0xFF])
def test_numbers_that_point_outside_their_table_are_an_error_and_no_crash(spoiled: Path, role: str, value: int) -> None:
    path = file_of(spoiled, role)
    content = bytearray(path.read_bytes())
    at = content.index((0).to_bytes(4, "little"), 600) if role == "facts" else 131
    content[at : at + 4] = bytes([value]) * 4
    path.write_bytes(content)
    with pytest.raises(HippoError):
        Searcher.open(spoiled).rank(["who?"], config=SearchConfig())


def test_an_id_that_names_no_passage_is_refused_at_open(spoiled: Path) -> None:
    path = file_of(spoiled, "ids")
    content = path.read_bytes()
    rows = np.arange(5, dtype=np.int32).tobytes()
    path.write_bytes(content.replace(rows, rows[:-1] + b"\x7f"))
    with pytest.raises(IndexDamagedError, match=r"outside \[0, 5\)"):
        opened(spoiled)


def test_a_damaged_index_is_refused_to_writers_too_and_let_go(spoiled: Path) -> None:
    cut(file_of(spoiled, "mentions"))
    for _ in range(2):
        with pytest.raises(IndexDamagedError, match="mentions-"):
            open_index(spoiled, extractor=Saying())


def test_only_the_names_of_index_files_are_paths(kept: Path) -> None:
    text = next((kept / "manifests").iterdir()).read_text()
    assert all("/" not in entry["file"] for entry in json.loads(text)["files"].values())


def test_an_entry_of_another_shape_is_refused(tmp_path: Path) -> None:
    entry = write_array(tmp_path, "numbers", np.arange(6, dtype=np.int32))
    for shape in ((5,), (2, 3), (6, 1), (), (10**30,)):
        with pytest.raises(IndexDamagedError, match=entry.file):
            read_array(tmp_path, Entry(entry.file, entry.bytes, entry.sha256, "<i4", shape))


def test_missing_values_in_a_table_are_refused(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["a", None], pa.large_string())})
    with pytest.raises(IndexDamagedError, match="missing values"):
        read_table(tmp_path, write_table(tmp_path, "texts", table), table.schema)
