"""Records to tables: the distinct phrases and facts of a corpus, and which passage states what."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.tables.facts import FactBlock, fact_blocks
from hippogpu.tables.mentions import mention_blocks
from hippogpu.tables.reading import EMPTY_END, NO_TEXT, Gathering, Run, fact_text, rows_of
from hippogpu.tables.scratch import forget_runs, stored_run, write_run
from hippogpu.types import Edges, Facts, Ints, Ragged, Record, Tables, UserEdge

BUDGET_BYTES = 512 * 2**20

OnPassages = Callable[[int], None]


class Tabulated(NamedTuple):
    """The tables of a corpus, and how many triples were left out, by reason."""

    tables: Tables
    dropped: Mapping[str, int]


def tabulate(
    records: Iterable[Record | None],
    config: IndexConfig,
    *,
    edges: Sequence[UserEdge] = (),
    rows: Mapping[str, Sequence[int]] = MappingProxyType({}),
    scratch: Path | None = None,
    budget_bytes: int = BUDGET_BYTES,
    on_progress: OnPassages | None = None,
) -> Tabulated:
    """The tables of a corpus: one record a passage, in passage order; None where there is none yet.

    edges : user edges whose phrases are normalised and not empty · rows: the passages each of their ids stands for
    Phrases and facts are sorted by code point, so the result depends on the records alone and not on their history.
    scratch : a folder for what does not fit half the budget; texts and most numbers of the result are then mapped from
              there, equal to those made in memory. Runs of records that a killed process finished there are not read
              again: the caller names the folder after the records. None keeps all in memory
    on_progress : called with the number of passages read so far
    """
    runs = _read(records, config, scratch, budget_bytes // 2, on_progress)
    counts = np.concatenate([run.counts for run in runs])
    dropped = sum(run.dropped for run in runs)
    named = sorted({phrase for edge in edges for phrase in edge.phrases})
    phrases: Sequence[str]
    if scratch is None or len(runs) == 1:
        phrases, facts, numbers = _in_memory(runs[0], named, config)
    else:
        # It loads Arrow's functions, which take a tenth of a second: only where runs are to be merged.
        from hippogpu.tables.merged import merged_tables

        phrases, facts, numbers = merged_tables(runs, named, config, scratch, budget_bytes)
    statements = Ragged(rows_of(counts), numbers)
    user_edges = _placed(edges, rows, phrases, len(counts))
    mentions = _mentions(statements, facts, user_edges, len(phrases))
    made = Tables(phrases, facts, mentions, statements, user_edges)
    return Tabulated(made, {EMPTY_END: dropped} if dropped else {})


def _read(
    records: Iterable[Record | None],
    config: IndexConfig,
    scratch: Path | None,
    most_bytes: int,
    on_progress: OnPassages | None,
) -> list[Run]:
    """What the passages state, in runs of which none takes much more than so many bytes while it is made."""
    runs: list[Run] = []
    while scratch is not None and (kept := stored_run(scratch, len(runs))) is not None:
        runs.append(kept)
    if scratch is not None:
        forget_runs(scratch, len(runs))
    done, gathering = sum(len(run.counts) for run in runs), Gathering(config)
    for record in _after(records, done):
        gathering.add(record)
        if scratch is not None and gathering.bytes > most_bytes:
            runs.append(_kept(scratch, len(runs), gathering))
            done, gathering = done + gathering.passages, Gathering(config)
            if on_progress is not None:
                on_progress(done)
    if gathering.passages or not runs:
        runs.append(_kept(scratch, len(runs), gathering) if scratch is not None and runs else gathering.run())
    if on_progress is not None:
        on_progress(done + gathering.passages)
    return runs


def _after(records: Iterable[Record | None], done: int) -> Iterator[Record | None]:
    """The records behind the first so many, which are not read where they need not be."""
    if isinstance(records, Sequence):
        return (records[i] for i in range(done, len(records))) if done else iter(records)
    return islice(records, done, None)


def _kept(scratch: Path, number: int, gathering: Gathering) -> Run:
    """A finished run, mapped from the disk."""
    write_run(scratch, number, gathering.run())
    run = stored_run(scratch, number)
    assert run is not None
    return run


def _in_memory(run: Run, named: Sequence[str], config: IndexConfig) -> tuple[tuple[str, ...], Facts, Ints]:
    """Phrases, facts, and the fact of each statement."""
    phrases = sorted({*run.phrases, *named})
    subject, object_ = run.subject, run.object
    if len(phrases) > len(run.phrases):
        place = {phrase: number for number, phrase in enumerate(phrases)}
        ranks = np.fromiter((place[phrase] for phrase in run.phrases), np.int32, len(run.phrases))
        subject, object_ = ranks[subject], ranks[object_]
    numbers = np.empty(len(subject), np.int32)
    found = _joined(fact_blocks(subject, run.predicate, object_, numbers, phrases=len(phrases), budget_bytes=1 << 62))
    predicates = tuple(run.predicates[i] for i in found.predicate.tolist())
    ends = zip(found.subject.tolist(), predicates, found.object.tolist(), run.text[found.first].tolist(), strict=True)
    texts = tuple(
        fact_text((phrases[one], predicate, phrases[other]), config.fact_text) if text == NO_TEXT else run.texts[text]
        for one, predicate, other, text in ends
    )
    return tuple(phrases), Facts(found.subject, found.object, predicates, texts), numbers


def _joined(blocks: Iterable[FactBlock]) -> FactBlock:
    subject, predicate, object_, first = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return FactBlock(subject, predicate, object_, first)


def _placed(
    edges: Sequence[UserEdge], rows: Mapping[str, Sequence[int]], phrases: Sequence[str], passages: int
) -> Edges:
    """User edges as pairs of nodes, sorted: every passage that one end stands for with every one of the other.

    A passage that would be joined with itself (under two of its ids, or as a chunk with its own whole) is not.
    """
    nodes = {
        phrase: passages + bisect_left(phrases, phrase) for phrase in {one for edge in edges for one in edge.phrases}
    }
    found: list[tuple[int, int, float]] = []
    for edge in edges:
        ends: list[Sequence[int]] = [rows[id_] for id_ in edge.passages]
        ends.extend([nodes[phrase]] for phrase in edge.phrases)
        first, second = ends
        pairs = {(min(one, other), max(one, other)) for one in first for other in second if one != other}
        found.extend((low, high, edge.weight) for low, high in pairs)
    low, high, weight = np.array(sorted(found), np.float64).reshape(-1, 3).T
    return Edges(low.astype(np.int32), high.astype(np.int32), weight.astype(np.float32))


def _mentions(statements: Ragged, facts: Facts, user_edges: Edges, phrases: int) -> Ragged:
    """The distinct phrases of each passage's statements and user edges, ascending."""
    blocks = list(mention_blocks(statements, facts, user_edges, phrases))
    counts, values = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return Ragged(rows_of(counts), values)
