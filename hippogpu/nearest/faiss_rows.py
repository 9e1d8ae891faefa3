"""Facts found by FAISS: a flat index of their rows, or one made of our own cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends.checks import check_topk, no_number
from hippogpu.errors import require_extra
from hippogpu.nearest.cells import PROBES, SHORTLIST
from hippogpu.nearest.faiss_gpu import MOST_ON_GPU, Gpus, all_gpus, flat_on, spread
from hippogpu.nearest.rescoring import best_by_rows
from hippogpu.nearest.seam import Near, Nearest
from hippogpu.precision import ScaledRows, Vectors, float_rows
from hippogpu.store.fact_cells import FactCells
from hippogpu.types import Floats

# Numbers of a block of rows that is handed over in float32.
_BLOCK_NUMBERS = 2**24
# Candidates beyond k: rows that differ by less than FAISS's own rounding change places.
_SPARE = 16
# What products of unit rows, summed in float32 in another order, may be off by.
_ROUNDING = 1e-5


class FaissRows(NamedTuple):
    """A FAISS index over stored rows, whose candidates are compared again by the rows themselves.

    exact  : the index has every number of the rows, so only ties and roundings are decided anew
    nbytes : what FAISS holds
    most   : rows that it can select at once
    beyond : what serves where more are asked for
    shortlist : rows that are compared again, at least · probes : cells that are looked at; None for a flat index
    """

    name: str
    index: Any
    rows: Vectors
    exact: bool
    nbytes: int
    most: int
    beyond: Nearest
    shortlist: int = 0
    probes: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        rows, width = self.rows.shape
        return rows, width

    def looking(self, *, probes: int, shortlist: int) -> FaissRows:
        if self.exact:
            return self
        return self._replace(shortlist=shortlist, probes=None if self.probes is None else probes)

    def topk(self, queries: Floats, k: int) -> Near:
        """As Nearest.topk; more rows than FAISS selects at once are asked of `beyond`."""
        queries = np.ascontiguousarray(queries, np.float32)
        check_topk(queries, self.rows, k)
        if not np.isfinite(queries).all():
            raise no_number()
        k = min(k, self.shape[0])
        found = self._best(queries, k)
        lowest = self._best(-queries, 1)
        if found is None or lowest is None:
            return self.beyond.looking(probes=self.probes or PROBES, shortlist=self.shortlist or 1).topk(queries, k)
        ids, scores = found
        high = scores[:, 0] if len(queries) else np.empty(0, np.float32)
        return Near(ids, scores, -lowest[1][:, 0], high, exact=self.exact)

    def _best(self, queries: Floats, k: int) -> tuple[Any, Floats] | None:
        """The k nearest; None where FAISS cannot select so many that no equal row is left out."""
        limit = min(self.shape[0], self.most)
        count = max(k + _SPARE, self.shortlist)
        ids, scores = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float32)
        left = np.arange(len(queries))
        while len(left):
            count = min(count, limit)
            near, candidates = self._candidates(queries[left], count)
            sure = np.ones(len(left), bool)
            for place, number in enumerate(left):
                listed = candidates[place][candidates[place] >= 0]
                if len(listed) < k:
                    return None
                ids[number], scores[number] = best_by_rows(self.rows, queries[number], listed, k)
                # A row that was left out may be equal to the last one that was kept, and have a lower number.
                sure[place] = not self.exact or near[place, -1] < scores[number, -1] - _ROUNDING
            left = left[~sure] if count < self.shape[0] else left[:0]
            if len(left) and count == limit:
                return None
            count *= 8
        return ids, scores

    def _candidates(self, queries: Floats, count: int) -> tuple[Floats, Any]:
        if self.probes is None:
            near, ids = self.index.search(queries, count)
        else:
            looking = _faiss(gpu=False).SearchParametersIVF(nprobe=min(self.probes, self.most))
            near, ids = self.index.search(_padded(queries, self.index.d), count, params=looking)
        return near, ids


def faiss_rows(rows: Vectors, beyond: Nearest, *, gpu: bool, temporary_bytes: int) -> FaissRows:
    """Every row in FAISS, in the type it is stored in: float32, float16, or int8 by a range for each axis.

    On GPUs (a share of the rows on each) int8 is held in float16, as FAISS has no flat int8 there.
    """
    faiss = _faiss(gpu)
    count, width = rows.shape
    kind = "int8" if isinstance(rows, ScaledRows) else str(rows.dtype)
    if gpu:
        gpus = all_gpus(faiss, temporary_bytes=temporary_bytes)
        half = kind != "float32"
        index = _shards(faiss, rows, [_made_on(gpus, width, place, half) for place in range(len(gpus.devices))])
        held = (2 if half else 4) * width * count
        return FaissRows(f"faiss-{kind}-gpu", index, rows, kind != "int8", held, MOST_ON_GPU, beyond)
    made = {
        "float32": lambda: faiss.IndexFlatIP(width),
        "float16": lambda: faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT),
        "int8": lambda: faiss.IndexScalarQuantizer(width, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT),
    }
    index = _filled(made[kind](), rows, slice(0, count))
    held = {"float32": 4, "float16": 2, "int8": 1}[kind] * width * count
    # QT_8bit rounds a second time, by the range of an axis: its list is longer, and may yet miss a row.
    return FaissRows(f"faiss-{kind}", index, rows, kind != "int8", held, count, beyond, SHORTLIST * (kind == "int8"))


def faiss_cells(cells: FactCells, rows: Vectors, beyond: Nearest, *, gpu: bool, temporary_bytes: int) -> FaissRows:
    """Our own cells in FAISS, which then finds what CellRows finds."""
    faiss = _faiss(gpu)
    index = ivfpq_of(faiss, cells)
    most = rows.shape[0]
    if gpu:
        index, most = spread(all_gpus(faiss, temporary_bytes=temporary_bytes), index), MOST_ON_GPU
    name = "faiss-ivfpq-gpu" if gpu else "faiss-ivfpq"
    return FaissRows(name, index, rows, False, cells.nbytes + 4 * len(cells.facts), most, beyond, SHORTLIST, PROBES)


def ivfpq_of(faiss: Any, cells: FactCells) -> Any:
    """An IndexIVFPQ of the cells, by inner product. FAISS copies what it is given."""
    pieces, _, size = cells.codebooks.shape
    width, lists = pieces * size, len(cells.centroids)
    centroids = np.zeros((lists, width), np.float32)
    centroids[:, : cells.centroids.shape[1]] = cells.centroids
    coarse = faiss.IndexFlatIP(width)
    coarse.add(centroids)
    index = faiss.IndexIVFPQ(coarse, width, lists, pieces, 8, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(np.ascontiguousarray(cells.codebooks, np.float32).ravel(), index.pq.centroids)
    index.is_trained = True
    for number in range(lists):
        here = slice(int(cells.indptr[number]), int(cells.indptr[number + 1]))
        facts = np.ascontiguousarray(cells.facts[here], np.int64)
        codes = np.ascontiguousarray(cells.codes[here])
        if len(facts):
            index.invlists.add_entries(number, len(facts), faiss.swig_ptr(facts), faiss.swig_ptr(codes))
    index.ntotal = len(cells.facts)
    return index


def _padded(queries: Floats, width: int) -> Floats:
    """The queries with zeros up to a width."""
    return np.pad(queries, ((0, 0), (0, width - queries.shape[1])))


def _faiss(gpu: bool) -> Any:
    extra = "cuda13" if gpu else "faiss"
    purpose = 'fact_store = "faiss" (set "own" to do without)'
    return require_extra("faiss", package="faiss-gpu" if gpu else "faiss-cpu", extra=extra, purpose=purpose)


def _made_on(gpus: Gpus, width: int, place: int, half: bool) -> Callable[[], Any]:
    return lambda: flat_on(gpus, width, place, half=half)


def _shards(faiss: Any, rows: Vectors, makers: list[Callable[[], Any]]) -> Any:
    """One index of several that have a stretch of the rows each, searched side by side."""
    count, width = rows.shape
    cuts = [count * number // len(makers) for number in range(len(makers) + 1)]
    parts = [
        _filled(make(), rows, slice(first, last)) for make, first, last in zip(makers, cuts[:-1], cuts[1:], strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    together = faiss.IndexShards(width, True, True)
    for part in parts:
        together.add_shard(part)
    return together


def _filled(index: Any, rows: Vectors, some: slice) -> Any:
    """The index with some of the rows, which reach it a block at a time."""
    at_once = max(1, _BLOCK_NUMBERS // rows.shape[1])
    if not index.is_trained:
        # The range of each axis is that of rows at even spaces.
        step = max(1, (some.stop - some.start) // at_once)
        index.train(np.ascontiguousarray(float_rows(rows, slice(some.start, some.stop, step))))
    for first in range(some.start, some.stop, at_once):
        index.add(np.ascontiguousarray(float_rows(rows, slice(first, min(first + at_once, some.stop)))))
    return index
