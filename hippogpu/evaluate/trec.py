"""TREC runs and qrels, written and read: query, Q0, passage, rank, score, tag; and query, 0, passage, relevance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hippogpu.corpus.files import lines
from hippogpu.errors import CorpusError, UsageError
from hippogpu.evaluate.measures import Gold
from hippogpu.evaluate.places import write_text
from hippogpu.types import Refusal


class Run(NamedTuple):
    """Rankings of a file, best first, without repeats; its tag; and the lines that could not be taken."""

    ranked: dict[str, list[str]]
    tag: str
    refusals: tuple[Refusal, ...]


class _Line(NamedTuple):
    query: str
    passage: str
    score: float
    tag: str


def write_trec(path: Path, ranked: Mapping[str, Sequence[str]], *, tag: str) -> None:
    """Rankings as a TREC run file: query, Q0, passage, rank, score, tag.

    The scores only count down, so that a tool that sorts by them keeps this order. UsageError for an id or tag that
    is empty or holds white space, which the format cannot tell, and for a path that is a link or cannot be written.
    """
    rows = [(query, id_, place, len(ids)) for query, ids in ranked.items() for place, id_ in enumerate(ids)]
    _require_names({tag, *ranked, *(row[1] for row in rows)}, "run")
    lines_ = (f"{query} Q0 {id_} {place + 1} {count - place} {tag}\n" for query, id_, place, count in rows)
    write_text(path, "".join(lines_))


def write_qrels(path: Path, gold: Gold) -> None:
    """Judgements as TREC qrels: query, 0, passage, relevance. UsageError as for write_trec."""
    rows = [(query, id_, grade) for query, row in gold.items() for id_, grade in row.items()]
    _require_names({name for row in rows for name in row[:2]}, "qrels file")
    write_text(path, "".join(f"{query} 0 {id_} {grade}\n" for query, id_, grade in rows))


def read_run(path: Path) -> Run:
    """The rankings of a TREC run file (.gz and .xz too), each question's passages by descending score.

    Scores decide and the rank column is ignored, as trec_eval and ir_measures do; equal scores stand in the file's
    order (trec_eval: by id). The tag is the first one. Refused, each with its line: other than six columns, a score
    that is no finite number, bytes that are not UTF-8, a passage again for one question (the better is not looked
    for: the first is kept). CorpusError when the file cannot be read or no line of it could be taken.
    """
    found: dict[str, dict[str, float]] = {}
    refusals: list[Refusal] = []
    tag = ""
    for number, line in lines(path):
        try:
            row = _parsed(line)
            if row.passage in found.setdefault(row.query, {}):
                raise ValueError(f"passage '{row.passage}' came before for question '{row.query}'; the first was kept")
        except ValueError as error:
            refusals.append(Refusal(f"{path}:{number}", str(error)))
            continue
        found[row.query][row.passage] = row.score
        tag = tag or row.tag
    if not tag:
        first = f" ({len(refusals)} refused, the first: {refusals[0]})" if refusals else " (it is empty)"
        raise CorpusError(
            f"No line of the run '{path}' could be taken{first}. Each is: query Q0 passage rank score tag."
        )
    # sorted is stable, so that equal scores stay in the file's order.
    ranked = {query: sorted(scores, key=lambda id_: -scores[id_]) for query, scores in found.items()}
    return Run(ranked, tag, tuple(refusals))


def _parsed(line: bytes) -> _Line:
    try:
        cells = line.decode("utf-8").split()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start + 1} of the line)") from error
    if len(cells) != 6:
        raise ValueError(f"{len(cells)} columns, not 6 (query Q0 passage rank score tag)")
    try:
        score = float(cells[4])
    except ValueError as error:
        raise ValueError(f"the score '{cells[4]}' is no number") from error
    if not math.isfinite(score):
        raise ValueError(f"the score '{cells[4]}' is not finite")
    return _Line(cells[0], cells[2], score, cells[5])


def _require_names(names: Iterable[str], what: str) -> None:
    for name in names:
        if len(name.split()) != 1 or name != name.strip():
            raise UsageError(f"A TREC {what} cannot hold the name {name!r}. Use ids and a tag without white space.")
