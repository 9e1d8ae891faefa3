"""The cells by which an index finds facts: made when the facts have changed, else taken over."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from hippogpu.config import IndexConfig
from hippogpu.errors import IndexDamagedError
from hippogpu.index.tidying import building
from hippogpu.precision import Vectors
from hippogpu.store import FACT_CELLS, Manifest, require_whole, write_fact_cells
from hippogpu.store.files import Entry

logger = logging.getLogger("hippogpu.index")

# The cells are a pure function of these.
SOURCES = ("fact_vectors", "fact_scales")


def fact_cell_files(
    root: Path,
    files: Mapping[str, Entry],
    facts: Vectors,
    config: IndexConfig,
    earlier: Manifest | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Entry]:
    """The files of the cells of a generation with these files; none where the settings ask for none, or without facts.

    facts   : the vectors (F, w) that those files hold
    earlier : a generation whose cells are taken over when its facts are the same and its files whole; None: made anew
    Blocks of facts that are finished stay in the folder after a kill, and are taken over by the next commit.
    """
    if config.fact_search != "ivfpq" or not facts.shape[0]:
        return {}
    if earlier is not None and _same_facts(files, earlier.files) and _has_whole_cells(root, earlier):
        return {role: earlier.files[role] for role in FACT_CELLS}
    # Loops are compiled where cells are made, not before.
    from hippogpu.nearest.filling import fact_cells

    named = "\n".join(files[role].sha256 for role in SOURCES if role in files)
    scratch = building(root, "cells", hashlib.sha256(named.encode()).hexdigest())
    return write_fact_cells(root, fact_cells(facts, scratch=scratch, on_progress=on_progress))


def _has_whole_cells(root: Path, manifest: Manifest) -> bool:
    if not all(role in manifest.files for role in FACT_CELLS):
        return False
    try:
        require_whole(root, manifest, roles=FACT_CELLS)
    except IndexDamagedError as error:
        logger.warning("the cells of the facts are damaged and made anew: %s", error)
        return False
    return True


def _same_facts(files: Mapping[str, Entry], others: Mapping[str, Entry]) -> bool:
    return all(files.get(role) == others.get(role) for role in SOURCES)
