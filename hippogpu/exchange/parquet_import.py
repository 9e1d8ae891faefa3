"""A folder of Parquet files to an index: every value is checked, and the arrays are those of the exported index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from hippogpu.errors import CorpusError, IndexDamagedError, UsageError
from hippogpu.exchange.parquet_head import Head, check_files, read_head
from hippogpu.exchange.parquet_tables import Table, read_rows, unfit
from hippogpu.exchange.parquet_values import Contents, contents
from hippogpu.exchange.records import read_records
from hippogpu.exchange.target import whole
from hippogpu.exchange.values import OnProgress, bytes_of, silent
from hippogpu.index.cells import fact_cell_files
from hippogpu.index.counting import counts_of
from hippogpu.index.tidying import forget_unfinished
from hippogpu.store import (
    FACT_CELLS,
    DiffusionMark,
    Manifest,
    WriterLock,
    diffusion_sources,
    publish,
    verify,
    write_diffused,
    write_graph,
    write_passages,
    write_tables,
    write_user_edges,
    write_vectors,
    write_words,
)
from hippogpu.store.files import Entry
from hippogpu.store.words import WORD_ROLES
from hippogpu.text import content_key
from hippogpu.types import Diffused
from hippogpu.words import count_words

# Since this format of an index, tables of texts are laid out as today.
_TABLES_SINCE = 2


class ImportReport(NamedTuple):
    """What was made of an export: the index folder, its counts, records of extractors, bytes on disk.

    same : how many files of the new index have the SHA-256 they had in the exported one
    """

    folder: Path
    counts: Mapping[str, int]
    records: int
    same: int
    bytes: int


def import_parquet(path: str | Path, source: str | Path, *, on_progress: OnProgress = silent) -> ImportReport:
    """Makes the index folder `path`, of one generation, from the Parquet export in the folder `source`.

    The folder appears when it is whole. UsageError when it is there already; CorpusError, naming the file, for an
    export that is damaged, altered, of other columns, or whose values do not fit together.
    """
    root, folder = Path(path), Path(source)
    if os.path.lexists(root):
        raise UsageError(f"'{root}' exists; an export is imported into a new folder only. Name another.")
    head = read_head(folder)
    check_files(folder, head)
    tables = {}
    for done, (name, declared) in enumerate(head.tables.items()):
        on_progress("read", done, len(head.tables))
        tables[name] = read_rows(folder, name, head.encoder.width, declared)
    on_progress("read", len(head.tables), len(head.tables))
    try:
        found, diffused = contents(folder, head, tables), _diffused(head, tables)
    except IndexDamagedError as error:
        raise CorpusError(f"'{folder}' cannot be imported: its values do not fit together. {error}") from error
    with whole(root, overwrite=False, replaceable=lambda _: False) as made:
        records, same = _make(made, folder, head, found, diffused, on_progress)
    return ImportReport(root, dict(head.counts), records, same, bytes_of(root))


def _make(
    root: Path, folder: Path, head: Head, found: Contents, diffused: Diffused | None, on_progress: OnProgress
) -> tuple[int, int]:
    """Writes and publishes the index; the records in its logs, and how many files are byte for byte as they were."""
    with WriterLock(root):
        on_progress("write", 0, 2)
        wanted = {content_key(whole) for whole in found.passages.wholes}
        records = read_records(root, folder, head.records, wanted)
        files = _files(root, found)
        files |= fact_cell_files(root, files, found.fact_vectors, head.config, None)
        mark = None
        if diffused is not None:
            files |= write_diffused(root, diffused)
            mark = DiffusionMark(diffused.damping, diffused.error, diffusion_sources(files))
        counts = counts_of(found.passages, found.tables, found.synonyms, found.graph, names=found.names)
        counts |= {"user_edges": len(found.user_edges)} if found.user_edges else {}
        same = _compare(folder, head, files, counts)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(1, now, version("hippogpu"), head.config, head.encoder, counts, files, diffusion=mark)
        publish(root, manifest)
        forget_unfinished(root)
        on_progress("write", 1, 2)
        problems = verify(root, full=True)
        on_progress("write", 2, 2)
    if problems:
        raise CorpusError(f"'{folder}' cannot be imported: {problems[0]}")
    return records, same


def _files(root: Path, found: Contents) -> dict[str, Entry]:
    return {
        **write_passages(root, found.passages),
        **write_tables(root, found.tables),
        **write_vectors(root, passage=found.passage_vectors, phrase=found.phrase_vectors, fact=found.fact_vectors),
        **write_graph(root, found.graph, found.synonyms),
        **write_user_edges(root, found.user_edges, found.tables.user_edges),
        **write_words(root, count_words(found.passages.wholes, found.passages.first_titles())),
    }


def _diffused(head: Head, tables: Mapping[str, Table]) -> Diffused | None:
    if head.diffusion is None:
        return None
    vectors = tables["diffused"].vectors
    assert vectors is not None
    return Diffused(vectors, tables["diffused"].numbers("one"), *head.diffusion).check()


def _compare(folder: Path, head: Head, files: Mapping[str, Entry], counts: Mapping[str, int]) -> int:
    """How many files are those of the exported index; CorpusError when one of the same format is another."""
    if dict(head.counts) != dict(counts):
        differing = {name: (head.counts.get(name), count) for name, count in counts.items()}
        told = [f"{name} {have}, but {real} found" for name, (have, real) in differing.items() if have != real]
        raise unfit(folder / "export.json", f"its counts are not those of its tables: {'; '.join(told) or 'others'}")
    same = [role for role, entry in files.items() if head.sha256.get(role) == entry.sha256]
    # An index of before they were stored has no words.
    # Tables of texts are laid out otherwise in other formats of an index; arrays are not.
    compared = [role for role in files if role not in WORD_ROLES or role in head.sha256]
    # Cells are made anew, and on another processor a fact between two may lie in the other one.
    compared = [role for role in compared if role not in FACT_CELLS]
    strict = [role for role in compared if head.index_format >= _TABLES_SINCE or files[role].dtype != "arrow"]
    other = [role for role in strict if role not in same]
    if other:
        raise unfit(folder, f"'{other[0]}' is not what the exported index held (its SHA-256 is another)")
    return len(same)
