"""The same by FAISS: cells of its own k-means, and its graph of neighbours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hippogpu.synonyms.pairs import Pairs
from hippogpu.types import Floats, Ints, Longs

_NEIGHBOURS = 100


class Ranks(NamedTuple):
    """The nearest cells of each phrase, (E, looked at) int32, and what that took."""

    near: Ints
    spent: dict[str, float]


def faiss_ranks(rows: Floats, phrases_a_cell: int, looked_at: int) -> Ranks:
    """Cells by k-means in one level, 10 rounds over up to 64 rows a cell, each phrase compared with every centre."""
    import faiss

    faiss.omp_set_num_threads(2)
    wall, work = time.perf_counter(), time.process_time()
    cells = -(-len(rows) // phrases_a_cell)
    kmeans = faiss.Kmeans(rows.shape[1], cells, niter=10, spherical=True, max_points_per_centroid=64, seed=1)
    kmeans.train(rows)
    near = kmeans.index.search(rows, looked_at)[1].astype(np.int32)
    wall, work = time.perf_counter() - wall, time.process_time() - work
    return Ranks(near, {"wall_s": round(wall, 2), "core_s": round(work, 2), "phrases_a_cell": phrases_a_cell})


def faiss_graph(rows: Floats, sample: Longs, pairs: Pairs, threshold: float) -> Iterator[dict[str, Any]]:
    """A hierarchical graph of 32 links a phrase: recall of the sample's pairs, and seconds for all phrases."""
    import faiss

    faiss.omp_set_num_threads(2)
    work = time.process_time()
    graph = faiss.IndexHNSWFlat(rows.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 40
    graph.add(rows)
    built = time.process_time() - work
    wanted = pairs.source.astype(np.int64) << 32 | pairs.target
    for effort in (64, 128, 256):
        graph.hnsw.efSearch = effort
        work = time.process_time()
        scores, targets = graph.search(rows[sample], _NEIGHBOURS + 1)
        searched = (time.process_time() - work) * len(rows) / len(sample)
        found = (np.repeat(sample, _NEIGHBOURS + 1) << 32 | targets.ravel())[scores.ravel() >= threshold - 1e-6]
        yield {
            "what": "faiss hnsw",
            "effort": effort,
            "core_s": round(built + searched, 1),
            "build_core_s": round(built, 1),
            "recall_one_way": round(float(np.isin(wanted, found).mean()), 4),
        }
