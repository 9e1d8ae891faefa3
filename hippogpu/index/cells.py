"""The cells by which an index finds facts: made when the facts have changed, else taken over."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from hippogpu.config import IndexConfig
from hippogpu.index.tidying import building
from hippogpu.precision import Vectors
from hippogpu.store import FACT_CELLS, Manifest, write_fact_cells
from hippogpu.store.files import Entry

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
    earlier : a generation whose cells are taken over when its facts are the same; None: made anew
    Blocks of facts that are finished stay in the folder after a kill, and are taken over by the next commit.
    """
    if config.fact_search != "ivfpq" or not facts.shape[0]:
        return {}
    if earlier is not None and all(role in earlier.files for role in FACT_CELLS) and _same_facts(files, earlier.files):
        return {role: earlier.files[role] for role in FACT_CELLS}
    # Loops are compiled where cells are made, not before.
    from hippogpu.nearest.filling import fact_cells

    named = "\n".join(files[role].sha256 for role in SOURCES if role in files)
    scratch = building(root, "cells", hashlib.sha256(named.encode()).hexdigest())
    return write_fact_cells(root, fact_cells(facts, scratch=scratch, on_progress=on_progress))


def _same_facts(files: Mapping[str, Entry], others: Mapping[str, Entry]) -> bool:
    return all(files.get(role) == others.get(role) for role in SOURCES)
