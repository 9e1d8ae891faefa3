"""Phrases and facts of several runs, made on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hippogpu.config import FactText, IndexConfig
from hippogpu.tables.facts import fact_blocks
from hippogpu.tables.merging import Column, merge_texts
from hippogpu.tables.reading import NO_TEXT, Run, fact_text
from hippogpu.tables.scratch import Growing, GrowingTexts, room
from hippogpu.text_columns import TextColumn, texts_array
from hippogpu.types import Facts, Ints, Longs

_FACTS = 1 << 17


def merged_tables(
    runs: Sequence[Run], named: Sequence[str], config: IndexConfig, scratch: Path, budget_bytes: int
) -> tuple[TextColumn, Facts, Ints]:
    """Phrases, those named by user edges among them, facts, and the fact of each statement: all mapped from scratch."""
    phrases, ranks = _merged(scratch, "phrases", [*(run.phrases for run in runs), named], budget_bytes)
    predicates, predicate_ranks = _merged(scratch, "predicates", [run.predicates for run in runs], budget_bytes)
    total = sum(len(run.subject) for run in runs)
    subject, predicate, object_, numbers = (
        room(scratch, name, total, np.int32) for name in ("subjects", "stated-predicates", "objects", "statements")
    )
    for run, (first, last), rank, predicate_rank in zip(runs, _places(runs), ranks, predicate_ranks, strict=False):
        subject[first:last], object_[first:last] = rank[run.subject], rank[run.object]
        predicate[first:last] = predicate_rank[run.predicate]
    with ExitStack() as files:
        columns = [files.enter_context(Growing(scratch, f"fact-{name}")) for name in ("s", "p", "o", "first")]
        for block in fact_blocks(subject, predicate, object_, numbers, phrases=len(phrases), budget_bytes=budget_bytes):
            for number, column in enumerate(columns):
                column.append(block[number])
        ends, said, others = (_ints(column) for column in columns[:3])
        firsts: Longs = np.frombuffer(columns[3].mapped(), np.int64)
    texts = _Texts(runs, phrases, predicates, config.fact_text)
    with GrowingTexts(scratch, "fact-predicates") as spoken, GrowingTexts(scratch, "fact-texts") as encoded:
        for begin in range(0, len(ends), _FACTS):
            part = slice(begin, begin + _FACTS)
            spoken.append(predicates.arrow().take(said[part]))
            encoded.append(texts.of(ends[part], said[part], others[part], firsts[part]))
        return phrases, Facts(ends, others, spoken.column(), encoded.column()), numbers


def _ints(column: Growing) -> Ints:
    return np.frombuffer(column.mapped(), np.int32)


def _merged(scratch: Path, name: str, columns: Sequence[Column], budget_bytes: int) -> tuple[TextColumn, list[Ints]]:
    """One column of all texts, and for each column the numbers of its own."""
    ranks = [room(scratch, f"{name}-{i}", len(column), np.int32) for i, column in enumerate(columns)]
    with GrowingTexts(scratch, name) as into:
        merge_texts(columns, ranks, into, budget_bytes=budget_bytes)
        return into.column(), ranks


def _places(runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Where the statements of each run lie among all."""
    first = 0
    for run in runs:
        yield first, first + len(run.subject)
        first += len(run.subject)


class _Texts:
    """What is encoded for facts: what the extractor gave for the first statement of each, else its own words."""

    def __init__(self, runs: Sequence[Run], phrases: TextColumn, predicates: TextColumn, rule: FactText) -> None:
        self._runs, self._rule = runs, rule
        self._phrases, self._predicates = phrases.arrow(), predicates.arrow()
        self._begins = np.array([first for first, _ in _places(runs)], np.int64)
        self._any_given = any(len(run.texts) for run in runs)

    def of(self, subject: Ints, predicate: Ints, object_: Ints, first: Longs) -> pa.Array[Any]:
        """The texts of some facts. first : the first statement of each"""
        words = [self._phrases.take(subject), self._predicates.take(predicate)]
        own = _worded([*words, self._phrases.take(object_)], self._rule)
        if not self._any_given:
            return own
        run_of = np.searchsorted(self._begins, first, side="right") - 1
        pieces, place, count = [own], np.arange(len(first)), len(own)
        for number in np.unique(run_of):
            run, here = self._runs[number], np.flatnonzero(run_of == number)
            text = run.text[first[here] - self._begins[number]]
            here, text = here[text != NO_TEXT], text[text != NO_TEXT]
            pieces.append(texts_array(run.texts).take(text))
            place[here] = count + np.arange(len(here))
            count += len(here)
        return pa.concat_arrays(pieces).take(place)


def _worded(fields: Sequence[pa.Array[Any]], rule: FactText) -> pa.Array[Any]:
    """The three fields of each fact as its text."""
    if rule == "plain":
        space: Any = pa.scalar(" ", pa.large_string())
        joined: pa.Array[Any] = pc.binary_join_element_wise(*fields, space)
        return joined
    rows = zip(*(field.to_pylist() for field in fields), strict=True)
    return pa.array([fact_text(row, rule) for row in rows], pa.large_string())
