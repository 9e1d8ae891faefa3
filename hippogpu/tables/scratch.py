"""Numbers and texts that grow on disk while tables are made, and finished runs that a killed process leaves behind.

A folder of scratch belongs to one set of records (its name says which). A run is one file, run-<number>-<16 hex of its
sha256>.block, whose arrays are mapped. The others are made anew by every process.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.disk import allocate, failures_of, make_own_folder, new_file, open_plain, write_all
from hippogpu.errors import IndexDamagedError
from hippogpu.tables.reading import NO_TEXT, Run
from hippogpu.text_columns import TextColumn, texts_array

_ALIGNMENT = 64
_HEAD_BYTES = 8
_TEXTS, _NUMBERS = ("phrases", "predicates", "texts"), ("counts", "subject", "predicate", "object", "text")


class Growing:
    """Pieces of bytes, one behind another, in a new file of the folder, which is mapped when all are there."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.part"
        with failures_of(self._path):
            make_own_folder(folder)
            self._opened = new_file(self._path)
            self._handle = self._opened.__enter__()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def append(self, piece: NDArray[Any] | memoryview) -> None:
        with failures_of(self._path):
            write_all(self._handle, piece if isinstance(piece, memoryview) else _bytes(piece))

    def mapped(self) -> memoryview:
        """All that was appended."""
        with failures_of(self._path):
            handle = open_plain(self._path)
            try:
                return _map(handle)
            finally:
                os.close(handle)


class GrowingTexts:
    """Texts, one behind another, in two new files of the folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path, self._letters, self._starts = (
            folder / name,
            Growing(folder, name),
            Growing(folder, f"{name}-starts"),
        )
        self._end, self.count = 0, 0
        self._starts.append(np.zeros(1, np.int64))

    def append(self, texts: pa.Array[Any]) -> None:
        if not len(texts):
            return
        starts, letters = _buffers(texts)
        self._letters.append(letters[int(starts[0]) : int(starts[-1])])
        self._starts.append(starts[1:] - starts[0] + self._end)
        self._end += int(starts[-1] - starts[0])
        self.count += len(texts)

    def column(self) -> TextColumn:
        starts = np.frombuffer(self._starts.mapped(), np.int64)
        return TextColumn(starts, self._letters.mapped(), refuse=_refusing(self._path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._letters.__exit__(kind, error, trace)
        self._starts.__exit__(kind, error, trace)


def room(folder: Path, name: str, count: int, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Zeros that lie in a new file of the folder, to be written to."""
    path = folder / f"{name}.part"
    size = count * np.dtype(dtype).itemsize
    if not size:
        return np.empty(0, dtype)
    with failures_of(path):
        make_own_folder(folder)
        allocate(path, size, anew=True)
        return np.asarray(np.memmap(path, dtype, "r+", shape=(count,)))


def write_run(folder: Path, number: int, run: Run) -> None:
    """Keeps a finished run, whole and durably or not at all."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(run, name) for name in _NUMBERS}
    for name in _TEXTS:
        starts, letters = _buffers(texts_array(getattr(run, name)))
        arrays |= {f"{name} starts": starts, f"{name} letters": letters}
    with failures_of(folder):
        make_own_folder(folder)
        with new_file(folder / f".run.{os.getpid()}.tmp") as (handle, temporary):
            digest = hashlib.sha256()
            for piece in _pieces(arrays, run.dropped):
                digest.update(piece)
                write_all(handle, memoryview(piece).cast("B"))
            os.fsync(handle)
            os.replace(temporary, folder / f"run-{number:06d}-{digest.hexdigest()[:16]}.block")


def stored_run(folder: Path, number: int) -> Run | None:
    """The run of that number, None where none is kept; one that is damaged, or none of ours, is removed."""
    for path in sorted(folder.glob(f"run-{number:06d}-*.block")):
        with failures_of(path):
            handle = open_plain(path)
            try:
                content = _map(handle)
            finally:
                os.close(handle)
            if hashlib.sha256(content).hexdigest()[:16] == path.stem[-16:]:
                run = _run_in(content, path)
                if run is not None:
                    return run
            path.unlink()
    return None


def forget_runs(folder: Path, first: int) -> None:
    """Removes the runs from that number on: what stands before them is made anew, and may end elsewhere."""
    for path in folder.glob("run-*.block"):
        if path.name[4:10] >= f"{first:06d}":
            with failures_of(path):
                path.unlink()


def _pieces(arrays: Mapping[str, NDArray[Any]], dropped: int) -> Iterable[bytes | memoryview]:
    """The bytes of a block: the length of its head, the head, and the arrays, each at a multiple of 64."""
    places, at = {}, 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, len(array), at)
        at += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    head = json.dumps({"dropped": dropped, "arrays": places}).encode()
    head += b" " * (-(len(head) + _HEAD_BYTES) % _ALIGNMENT)
    yield len(head).to_bytes(_HEAD_BYTES, "little") + head
    for array in arrays.values():
        yield _bytes(array)
        yield bytes(-array.nbytes % _ALIGNMENT)


def _run_in(content: memoryview, path: Path) -> Run | None:
    """The run of a block whose bytes are those of its name; None where it is none of ours: anyone can reckon a name."""
    try:
        begin = _HEAD_BYTES + int.from_bytes(content[:_HEAD_BYTES], "little")
        head = json.loads(bytes(content[_HEAD_BYTES:begin]))
        found = {name: _array_in(content, begin + at, count, name) for name, (_, count, at) in head["arrays"].items()}
        texts = [TextColumn(found[f"{n} starts"], found[f"{n} letters"].data, refuse=_refusing(path)) for n in _TEXTS]
        run = Run._make([*texts, *(found[name] for name in _NUMBERS), int(head["dropped"])])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return run if _is_sound(run) else None


def _array_in(content: memoryview, at: int, count: int, name: str) -> NDArray[Any]:
    kind = np.int64 if name.endswith("starts") else np.uint8 if name.endswith("letters") else np.int32
    if at < 0 or count < 0:
        raise ValueError(f"'{name}' begins at {at} with {count} numbers")
    return np.frombuffer(content, kind, count, at) if count else np.empty(0, kind)


def _is_sound(run: Run) -> bool:
    """Whether every number points inside its table and every text inside its letters: compiled code will read them."""
    for column in (run.phrases, run.predicates, run.texts):
        assert isinstance(column, TextColumn)
        starts = column.starts
        if not len(starts) or starts[0] < 0 or starts[-1] > len(column.letters) or np.any(starts[1:] < starts[:-1]):
            return False
        try:
            column.arrow().validate(full=True)
        except pa.ArrowInvalid:
            return False
    sizes = {len(run.subject), len(run.predicate), len(run.object), len(run.text), int(run.counts.sum(dtype=np.int64))}
    return (
        sizes == {len(run.subject)}
        and not np.any(run.counts < 0)
        and _below(run.subject, len(run.phrases))
        and _below(run.object, len(run.phrases))
        and _below(run.predicate, len(run.predicates))
        and _below(run.text, len(run.texts), least=NO_TEXT)
    )


def _below(numbers: NDArray[Any], most: int, *, least: int = 0) -> bool:
    return not len(numbers) or (int(numbers.min()) >= least and int(numbers.max()) < most)


def _buffers(texts: pa.Array[Any]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text begins in the letters and the one before it ends, and the letters."""
    _, places, letters = texts.buffers()
    if places is None or not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    starts = np.frombuffer(memoryview(places), np.int64, len(texts) + 1, texts.offset * 8)
    return starts, np.frombuffer(memoryview(letters or b""), np.uint8)


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).data).cast("B") if array.nbytes else memoryview(b"")


def _map(handle: int) -> memoryview:
    size = os.fstat(handle).st_size
    return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if size else b"")


class _refusing:
    """What is said of an unfinished table that was altered."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, what: str) -> IndexDamagedError:
        return IndexDamagedError(
            f"The unfinished table '{self._path}' is damaged: {what}. Remove its folder and run again; finished "
            "extractions are kept."
        )
