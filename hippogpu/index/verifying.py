"""Does an index hold what it promises? What the store checks of its files, what they owe each other, and the logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from hippogpu.errors import HippoError
from hippogpu.graph import assemble
from hippogpu.index.counting import counts_of
from hippogpu.index.edges import EdgeHoldings
from hippogpu.index.holdings import Holdings
from hippogpu.index.logs import log_path
from hippogpu.openie import NoExtractor, verify_log
from hippogpu.openie.log_lines import read_lines
from hippogpu.resolve import names_for, with_names
from hippogpu.store import Snapshot, current_manifest, load_snapshot, logs_folder, verify
from hippogpu.store.opening import TRIES, read_pointer
from hippogpu.tables import user_pairs
from hippogpu.text import content_key
from hippogpu.text_columns import texts_array
from hippogpu.types import AnyInts, Longs, Tables
from hippogpu.words import count_words


def verify_index(path: str | Path, *, full: bool = False) -> list[str]:
    """One line a problem of the current generation, [] when there is none.

    Fast: manifest, presence, size, type and shape of each file, agreement of the counts; no array or text is read.
    full reads every byte: the SHA-256 of each file; where those are right, that every number points inside its table,
    that every text is UTF-8, that ids, phrases and facts are distinct and the latter two sorted, that every fact is
    stated and every phrase named, and that mentions, nodes of user edges, words, graph and counts are those that follow
    from the tables; every line of the extraction logs, and that they have the record of every passage that was read.
    IndexMissingError where there is no index, IndexFormatError where a newer version wrote it.
    """
    root, tries = Path(path), 0
    while True:
        tries, pointer = tries + 1, read_pointer(root)
        problems = _problems(root, full=full)
        # A writer beside may have removed the generation that was looked at.
        if not problems or tries >= TRIES or read_pointer(root) == pointer:
            return problems


def _problems(root: Path, *, full: bool) -> list[str]:
    problems = verify(root, full=full)
    if not full:
        return problems
    if not problems:
        snapshot = load_snapshot(root, current_manifest(root))
        problems = [line for check in _CHECKS for line in _told(check, snapshot)]
        problems += _told(lambda whole: _records(root, whole), snapshot)
    return problems + [line for log in sorted(logs_folder(root).glob("*.jsonl")) for line in _log_problems(log)]


Check = Callable[[Snapshot], Iterator[str]]


def _told(check: Check, snapshot: Snapshot) -> list[str]:
    """The lines of a check; what it cannot read is one."""
    try:
        return list(check(snapshot))
    except HippoError as error:
        return [str(error)]


def _log_problems(log: Path) -> list[str]:
    try:
        return verify_log(log)
    except HippoError as error:
        return [str(error)]


def _passages(snapshot: Snapshot) -> Iterator[str]:
    passages = snapshot.passages
    ids = list(passages.ids)
    if len(set(ids)) < len(ids) or not all(ids):
        yield "ids: one comes twice, or is empty."
    if len(set(passages.wholes)) < len(passages):
        yield "passages: a text comes twice."
    for number in range(len(ids)):
        passages.named(number)
    for _ in passages.extractors:
        pass


def _phrases(snapshot: Snapshot) -> Iterator[str]:
    tables = snapshot.tables
    if any(one >= other for one, other in pairwise(tables.phrases)):
        yield "phrases: they do not ascend, each once."
    ends = [tables.facts.subject, tables.facts.object]
    nodes = np.concatenate([tables.user_edges.source, tables.user_edges.target]) - len(tables.mentions)
    named = np.bincount(np.concatenate([*ends, nodes[nodes >= 0]]), minlength=len(tables.phrases))
    if not np.all(named):
        yield f"phrases: number {int(np.argmin(named))} is in no fact and no user edge."


def _facts(snapshot: Snapshot) -> Iterator[str]:
    facts, statements = snapshot.tables.facts, snapshot.tables.statements
    keys = zip(facts.subject.tolist(), facts.predicate, facts.object.tolist(), strict=True)
    if any(one >= other for one, other in pairwise(keys)):
        yield "facts: they do not ascend by subject, predicate and object, each once."
    for _ in facts.text:
        pass
    stated = np.bincount(statements.values, minlength=len(facts))
    if not np.all(stated):
        yield f"facts: number {int(np.argmin(stated))} is stated by no passage."


def _mentions(snapshot: Snapshot) -> Iterator[str]:
    tables = snapshot.tables
    width = max(len(tables.phrases), 1)
    held = _rows(tables.mentions.indptr) * width + tables.mentions.values
    if not np.array_equal(held, _owed_mentions(tables, width)):
        yield "mentions: they are not the phrases of each passage's statements and user edges, ascending."


def _owed_mentions(tables: Tables, width: int) -> Longs:
    """passage · width + phrase of every phrase that a passage's statements and user edges name, ascending."""
    facts, statements = tables.facts, tables.statements
    rows = _rows(statements.indptr) * width
    own = user_pairs(tables.user_edges, len(tables.mentions)).mentions
    stated = [rows + facts.subject[statements.values], rows + facts.object[statements.values]]
    keys = np.sort(np.concatenate([*stated, own.low * width + own.high]))
    return keys[np.diff(keys, prepend=-1) > 0]


def _rows(indptr: Longs) -> Longs:
    """The row of each value."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def _user_edges(snapshot: Snapshot) -> Iterator[str]:
    config, tables = snapshot.manifest.config, snapshot.tables
    if not snapshot.user_edges:
        return
    holdings = Holdings(snapshot.passages, chunked=config.chunk_tokens > 0)
    placed = EdgeHoldings(snapshot.user_edges, holdings, rule=config.text_rule).placed(holdings, snapshot.passages)
    node_of = {phrase: len(tables.mentions) + number for number, phrase in enumerate(tables.phrases)}
    owed = []
    for edge in placed.edges:
        ends = [*(placed.rows[id_] for id_ in edge.passages), *([node_of.get(phrase, -1)] for phrase in edge.phrases)]
        pairs = {(min(one, other), max(one, other)) for one in ends[0] for other in ends[1] if one != other}
        owed += [(low, high, np.float32(edge.weight)) for low, high in pairs]
    held = zip(*(column.tolist() for column in tables.user_edges), strict=True)
    if sorted(owed) != list(held):
        yield "user edges: the nodes they join are not those of their ends."


def _words(snapshot: Snapshot) -> Iterator[str]:
    held = snapshot.words
    if held is None:
        return
    owed = count_words(snapshot.passages.wholes, snapshot.passages.first_titles())
    if not texts_array(held.words).equals(texts_array(owed.words)):
        yield "words: they are not those of the passages, ascending, each once."
        return
    pairs: dict[str, tuple[AnyInts, AnyInts]] = {
        "word_indptr": (held.passages.indptr, owed.passages.indptr),
        "word_passages": (held.passages.values, owed.passages.values),
        "word_counts": (held.counts, owed.counts),
        "word_lengths": (held.lengths, owed.lengths),
        "title_words_indptr": (held.titles.indptr, owed.titles.indptr),
        "title_words": (held.titles.values, owed.titles.values),
    }
    for name, (have, want) in pairs.items():
        if have.dtype != want.dtype or not np.array_equal(have, want):
            yield f"{name}: it is not what the texts of the passages and their titles make."


def _graph(snapshot: Snapshot) -> Iterator[str]:
    config = snapshot.manifest.config
    names = names_for(snapshot.tables, snapshot.passages.wholes, config)
    made = assemble(snapshot.tables, with_names(snapshot.synonyms, names), config.edge_rule)
    for name in ("indptr", "indices", "weights"):
        if not np.array_equal(getattr(made, name), getattr(snapshot.graph, name)):
            yield f"graph_{name}: it is not what facts, mentions, synonyms, names and user edges make."


def _counts(snapshot: Snapshot) -> Iterator[str]:
    own = {"user_edges": sum(1 for _ in snapshot.user_edges)} if snapshot.user_edges else {}
    names = names_for(snapshot.tables, snapshot.passages.wholes, snapshot.manifest.config)
    owed = counts_of(snapshot.passages, snapshot.tables, snapshot.synonyms, snapshot.graph, names=names) | own
    for name in sorted(owed.keys() | snapshot.manifest.counts.keys()):
        have = snapshot.manifest.counts.get(name)
        if have != owed.get(name):
            yield f"The manifest counts {have} under '{name}', but there are {owed.get(name)}."


def _records(root: Path, snapshot: Snapshot) -> Iterator[str]:
    """Extractors whose logs lack records that the passages were built of."""
    passages = snapshot.passages
    owned: dict[str, dict[str, int]] = {}
    for row, (name, whole) in enumerate(zip(passages.extractors, passages.wholes, strict=True)):
        if name not in ("", NoExtractor.name):
            owned.setdefault(name, {})[content_key(whole)] = row
    for name, rows in sorted(owned.items()):
        path, count = log_path(root, name), len(rows)
        if not path.is_file():
            yield f"{path}: missing, the log of {count} passages. The index holds what they state."
            continue
        for line in read_lines(path):
            if not isinstance(line, str) and line.record["error"] is None:
                rows.pop(line.key, None)
        if rows:
            first = passages.passage(min(rows.values())).id
            yield (
                f"{path}: no record of {len(rows)} of its {count} passages, such as '{first}'. The index holds what "
                "they state."
            )


_CHECKS: tuple[Check, ...] = (_passages, _phrases, _facts, _mentions, _user_edges, _words, _graph, _counts)
