"""Facts into cells: learned once, then a block of facts at a time, so that a run that was cut short goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.disk import allocate, failures_of
from hippogpu.errors import IndexDamagedError
from hippogpu.nearest.quantising import Quantiser, Tables, cells_for, learned, pieces_for, quantised, tables_of
from hippogpu.precision import Vectors, float_rows
from hippogpu.store.fact_cells import CODE_VALUES, FactCells
from hippogpu.store.files import Entry, write_array
from hippogpu.store.mapped import read_array, sha256_of
from hippogpu.types import Ints

# Numbers of a block of facts in float32, twice of which are alive at once.
_BLOCK_NUMBERS = 2**24

OnProgress = Callable[[int, int], None]


def fact_cells(vectors: Vectors, *, scratch: Path | None = None, on_progress: OnProgress | None = None) -> FactCells:
    """The cells of the facts' vectors (F ≥ 1, w).

    scratch     : a folder for finished blocks, which a later run takes over; the codes are then mapped from it
    on_progress : called with facts done and all, after each block; learning counts as a tenth of the facts
    Beside its result it takes 5 bytes a fact, half a GiB for learning and a quarter for a block.
    """
    facts, width = vectors.shape
    learning = facts // 10

    def progress(done: float) -> None:
        if on_progress is not None:
            on_progress(int(done), facts + learning)

    keeper = _Keeper(scratch)
    quantiser = _quantiser(vectors, keeper, lambda done, whole: progress(learning * done / whole))
    cells = np.empty(facts, np.int32)
    blocks = [(number, slice(start, start + rows)) for number, start, rows in _blocks(facts, width)]
    tables = tables_of(quantiser)
    held: dict[int, NDArray[np.uint8]] = {}
    for number, here in blocks:
        cells[here], codes = _block(vectors, here, number, tables, keeper)
        if scratch is None:
            held[number] = codes
        progress(learning + here.stop)
    indptr = np.zeros(len(quantiser.centroids) + 1, np.int64)
    np.cumsum(np.bincount(cells, minlength=len(quantiser.centroids)), out=indptr[1:])
    order = np.argsort(cells, kind="stable").astype(np.int32)

    def codes_of(number: int, here: slice) -> NDArray[np.uint8]:
        # A block that lies in the folder is mapped when it is needed: of 12 million facts there can be thousands, and
        # every mapping is an open file.
        return held.pop(number) if number in held else _block(vectors, here, number, tables, keeper)[1]

    codes = _in_order(order, blocks, codes_of, keeper.room("ordered", (facts, len(tables.pieces))))
    return FactCells(quantiser.centroids, indptr, order, codes, quantiser.codebooks)


def _blocks(facts: int, width: int) -> Iterator[tuple[int, int, int]]:
    rows = max(1, _BLOCK_NUMBERS // width)
    for number, start in enumerate(range(0, facts, rows)):
        yield number, start, min(rows, facts - start)


def _quantiser(vectors: Vectors, keeper: _Keeper, on_round: OnProgress) -> Quantiser:
    facts, width = vectors.shape
    pieces, size = pieces_for(width)
    centroids = keeper.kept("centroids", "<f4", (cells_for(facts, width), width))
    codebooks = keeper.kept("codebooks", "<f4", (pieces, CODE_VALUES, size))
    if centroids is not None and codebooks is not None:
        return Quantiser(centroids, codebooks)
    made = learned(vectors, on_round=on_round)
    return Quantiser(keeper.keep("centroids", made.centroids), keeper.keep("codebooks", made.codebooks))


def _block(
    vectors: Vectors, here: slice, number: int, tables: Tables, keeper: _Keeper
) -> tuple[Ints, NDArray[np.uint8]]:
    rows, pieces = here.stop - here.start, len(tables.pieces)
    cells = keeper.kept(f"cells_{number:06d}", "<i4", (rows,))
    codes = keeper.kept(f"codes_{number:06d}", "|u1", (rows, pieces))
    if cells is not None and codes is not None:
        return cells, codes
    cells, codes = quantised(float_rows(vectors, here), tables)
    return keeper.keep(f"cells_{number:06d}", cells), keeper.keep(f"codes_{number:06d}", codes)


def _in_order(
    order: Ints,
    blocks: list[tuple[int, slice]],
    codes_of: Callable[[int, slice], NDArray[np.uint8]],
    codes: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """The codes of the facts in that order, written into the room given."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    for number, here in blocks:
        codes[places[here]] = codes_of(number, here)
    return codes


class _Keeper:
    """Arrays of a scratch folder by name, each in a file that names its content; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def keep(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """The array, from its file where there is a folder: what is mapped takes no memory for good."""
        if self._folder is None:
            return array
        return read_array(self._folder, write_array(self._folder, name, array))

    def kept(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any] | None:
        """The array of an earlier run; None where there is none that is whole and of this type and shape."""
        for path in sorted(self._folder.glob(f"{name}-*.npy")) if self._folder is not None else ():
            try:
                if path.is_symlink() or path.stem != f"{name}-{sha256_of(path)[:16]}":
                    continue
                return read_array(path.parent, Entry(path.name, path.stat().st_size, "", dtype, shape))
            except (OSError, IndexDamagedError):
                continue
        return None

    def room(self, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """Bytes to write to, on disk where there is a folder."""
        if self._folder is None:
            return np.empty(shape, np.uint8)
        path = self._folder / f"{name}.bytes"
        allocate(path, shape[0] * shape[1], anew=True)
        with failures_of(path):
            return np.asarray(np.memmap(path, np.uint8, "r+", shape=shape))
