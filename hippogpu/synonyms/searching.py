"""Phrases that mean nearly the same: for each phrase, its nearest ones above a cosine threshold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import IndexConfig
from hippogpu.config.retrieval import BackendName
from hippogpu.disk import forget_others
from hippogpu.precision import ScaledRows, Vectors
from hippogpu.synonyms.cells import REACH, cell_steps, search_cells, sort_into_cells
from hippogpu.synonyms.exact import exact_plan, search_step
from hippogpu.synonyms.found import Found
from hippogpu.synonyms.kept import room
from hippogpu.synonyms.known import Held, KnownSynonyms, held
from hippogpu.synonyms.pairs import Pairs, Wanted, joined, nearest, stored_cosines
from hippogpu.synonyms.tiles import Products, products_on
from hippogpu.text import alphanumerics
from hippogpu.types import AnyInts, Bools, Edges

MIN_ALPHANUMERICS = 3
_HASHED_ROWS = 1 << 16
# Of what is worked with, the share that gathered pairs may take before they are put down.
_PAIRS_SHARE = 8

Progress = Callable[[int, int], None]


def find_synonyms(
    phrases: Sequence[str],
    vectors: Vectors,
    config: IndexConfig,
    *,
    known: KnownSynonyms | None = None,
    budget_bytes: int = 512 * 2**20,
    scratch: Path | None = None,
    backend: BackendName = "cpu",
    on_progress: Progress | None = None,
) -> Edges:
    """Directed edges phrase → its synonyms, sorted by (source, descending cosine, target).

    phrases : sorted and distinct · vectors : (E, w) unit rows as they are stored
    known   : spares the search of phrases that were there before with the same vector: they are compared with the new
              ones only, unless one of a full list of synonyms is gone. The result is the same, array for array. The
              search by cells makes no use of it
    scratch : a folder for unfinished work. Finished steps are kept there, and those of the same vectors and settings
              are not worked out again; edges that are many are mapped from it. None keeps all in memory
    backend : cuda multiplies on the GPU, and so does auto where one answers; the result is the same. Cells stay on the
              CPU
    A phrase of more than two alphanumeric characters looks for others with cosine ≥ synonym_threshold, itself and the
    empty phrase left out, at most synonym_cap of them; ties go to the lower number. Cosines are decided and returned
    from float64 products, so that the blocking changes nothing. HippoRAG 2, section 3.2.
    synonym_search "exact" compares each two phrases; "cells" each phrase with those of the cells nearest to it
    (synonyms.cells), so that some pairs are missed and none is wrong. Progress counts phrases.
    """
    by_cells = config.synonym_search == "cells"
    before = held(None if by_cells else known, phrases, vectors, config.synonym_cap)
    wanted = _wanted(phrases, before, config)
    if by_cells:
        found = _by_cells(vectors, wanted, config, budget_bytes, scratch, on_progress)
    else:
        products = products_on(backend, budget_bytes)
        found = _exactly(vectors, wanted, config, products, budget_bytes, scratch, on_progress)
    return _edges(found, before.edges, vectors, config.synonym_cap, budget_bytes, scratch)


def _wanted(phrases: Sequence[str], before: Held, config: IndexConfig) -> Wanted:
    """Who looks for whom; the phrases are passed over once and not held."""
    sizes = (alphanumerics(p, config.text_rule) if p else -1 for p in phrases)
    size = np.fromiter((min(s, MIN_ALPHANUMERICS) for s in sizes), np.int8, len(phrases))
    return Wanted(size >= MIN_ALPHANUMERICS, size >= 0, before.open, before.fresh)


def _exactly(
    vectors: Vectors,
    wanted: Wanted,
    config: IndexConfig,
    products: Products,
    budget_bytes: int,
    scratch: Path | None,
    on_progress: Progress | None,
) -> Found:
    cap, threshold = config.synonym_cap, config.synonym_threshold
    plan = exact_plan(wanted, width=vectors.shape[1], cap=cap, budget_bytes=budget_bytes)
    steps = plan.steps
    # One step alone has nothing to go on from.
    folder = _folder(scratch, vectors, wanted, config, plan.rows) if scratch and len(steps) > 1 else None
    found = Found(folder, cap)
    done, told, whole = 0, 0, sum(map(plan.share, steps))
    for number, step in enumerate(steps):
        if not found.has(number):
            gathering = found.gather(number, budget_bytes // _PAIRS_SHARE)
            search_step(step, plan, vectors, gathering, wanted, threshold=threshold, cap=cap, products=products)
            gathering.finish()
        done += plan.share(step)
        phrases = plan.leading * done // whole if whole else plan.leading
        if on_progress and phrases > told:
            on_progress(phrases, plan.leading)
            told = phrases
    return found


def _by_cells(
    vectors: Vectors,
    wanted: Wanted,
    config: IndexConfig,
    budget_bytes: int,
    scratch: Path | None,
    on_progress: Progress | None,
) -> Found:
    count = vectors.shape[0]
    folder = _folder(scratch, vectors, wanted, config, budget_bytes, *REACH) if scratch else None
    found = Found(folder, config.synonym_cap)
    if not count:
        return found

    def sorted_so_far(rows: int) -> None:
        if on_progress:
            on_progress(rows // 2, count)

    cells = sort_into_cells(vectors, reach=REACH, folder=folder, on_progress=sorted_so_far)
    compared = 0
    for number, step in enumerate(cell_steps(cells, budget_bytes)):
        if not found.has(number):
            gathering = found.gather(number, budget_bytes // _PAIRS_SHARE)
            search_cells(step, cells, vectors, gathering, wanted, config.synonym_threshold, config.synonym_cap)
            gathering.finish()
        compared += step.members
        if on_progress:
            on_progress((count + compared) // 2, count)
    return found


def _folder(scratch: Path, vectors: Vectors, wanted: Wanted, config: IndexConfig, *plan: int) -> Path:
    """The folder of a search: named after all that decides its pairs and steps, and the version of the program.

    What other searches have left there goes.
    """
    digest = hashlib.sha256()
    chosen = config.synonym_search, config.synonym_threshold, config.synonym_cap
    settings = [version("hippogpu"), *chosen, *vectors.shape, *plan]
    digest.update(json.dumps(settings).encode())
    for column in wanted:
        digest.update(np.packbits(column).data)
    arrays: list[NDArray[Any]] = [vectors.values, vectors.scales] if isinstance(vectors, ScaledRows) else [vectors]
    for array in arrays:
        digest.update(array.dtype.str.encode())
        for start in range(0, len(array), _HASHED_ROWS):
            digest.update(np.ascontiguousarray(array[start : start + _HASHED_ROWS]).data)
    folder = scratch / digest.hexdigest()[:16]
    forget_others(folder, "[0-9a-f]" * 16)
    return folder


def _edges(found: Found, kept: Edges, vectors: Vectors, cap: int, budget_bytes: int, scratch: Path | None) -> Edges:
    """All edges: of each phrase, the nearest of what was found and kept."""
    most = found.count + len(kept.source)
    made = Edges(
        room((most,), np.int32, found.folder, "edges-source"),
        room((most,), np.int32, found.folder, "edges-target"),
        room((most,), np.float32, found.folder, "edges-weight"),
    )
    filled = 0
    # Beside the pairs of a range there are their order, and sorted copies.
    for low, high, pairs in found.ranges(vectors.shape[0], budget_bytes // (2 * _PAIRS_SHARE)):
        first, last = np.searchsorted(kept.source, [low, high])
        part = _merged(_part(kept, slice(first, last)), pairs, vectors, cap)
        for column, values in zip(made, part, strict=True):
            column[filled : filled + len(values)] = values
        filled += len(part.source)
    return _part(made, slice(filled))


def _merged(kept: Edges, pairs: Pairs, vectors: Vectors, cap: int) -> Edges:
    """The edges of a range of phrases; the cosines of those that gained some are worked out anew to be compared."""
    grown = np.isin(kept.source, pairs.source)
    source, target = kept.source[grown], kept.target[grown]
    again = Pairs(source, target, stored_cosines(vectors, source, target))
    anew = nearest(joined([again, pairs]), cap)
    edges = Edges(anew.source, anew.target, anew.cosine.astype(np.float32))
    if np.all(grown):
        return edges
    rest = _part(kept, ~grown)
    edges = Edges(
        np.concatenate([rest.source, edges.source]),
        np.concatenate([rest.target, edges.target]),
        np.concatenate([rest.weight, edges.weight]),
    )
    return _part(edges, np.argsort(edges.source, kind="stable"))


def _part(edges: Edges, which: slice | AnyInts | Bools) -> Edges:
    return Edges(edges.source[which], edges.target[which], edges.weight[which])
