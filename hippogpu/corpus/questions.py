"""Questions and their gold passages, for evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from hippogpu.corpus.files import Rows, format_of, lines
from hippogpu.corpus.known import KnownIds
from hippogpu.corpus.reader import rows_of
from hippogpu.corpus.rows import RowError, as_id, as_object, id_field, kind_of, storable, text_field
from hippogpu.errors import CorpusError
from hippogpu.types import Refusal

_T = TypeVar("_T")

QUESTION_FIELDS = ("question", "text")
QUERY_FILES = ("queries.jsonl", "queries.jsonl.gz", "queries.jsonl.xz")
QRELS_FILES = ("qrels/test.tsv", "qrels.tsv")


class Query(NamedTuple):
    """A question. answers holds the answer first, then its aliases; empty when none is known.

    supporting : ids of the gold passages, empty when the file does not say (qrels may)
    group      : search only the passages whose meta has this group, None for all
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    group: str | None = None


class Queries(NamedTuple):
    """The questions of a file in order, and the rows that are none."""

    queries: tuple[Query, ...]
    refusals: tuple[Refusal, ...]


class Qrels(NamedTuple):
    """Gold judgements: query id → passage id → score; and the lines that are none."""

    scores: Mapping[str, Mapping[str, int]]
    refusals: tuple[Refusal, ...]


def read_queries(path: Path) -> Queries:
    """The questions of a file (or of a BEIR folder's queries.jsonl), each id once.

    Reads the corpus formats but .txt and .md. CorpusError when it cannot be read or holds no question.
    """
    queries: list[Query] = []
    refusals: list[Refusal] = []
    for item in stream_queries(path):
        if isinstance(item, Query):
            queries.append(item)
        else:
            refusals.append(item)
    return Queries(_some(tuple(queries), query_file(path), refusals, "question"), tuple(refusals))


def stream_queries(path: Path) -> Iterator[Query | Refusal]:
    """The questions of a file and the rows that are none, in order, as they are read.

    One row and about 20 bytes for each id are held. CorpusError as for read_queries, but none for an empty file.
    """
    return _queries_of(rows_of(query_file(path)))


def query_file(path: Path) -> Path:
    """The file that holds the questions: the path itself, or the queries.jsonl of a BEIR folder."""
    return _inside(Path(path), QUERY_FILES)


def count_rows(path: Path) -> int:
    """How many rows a file of questions has, refused ones with them; lines are counted without being decoded."""
    file = query_file(path)
    rows = rows_of(file)
    return sum(1 for _ in (lines(file) if format_of(file) in (".jsonl", ".ndjson") else rows))


def _queries_of(rows: Rows) -> Iterator[Query | Refusal]:
    known = KnownIds()
    for row in rows:
        if isinstance(row, Refusal):
            yield row
            continue
        try:
            query = _query_of(row.value)
            if not known.add(query.id):
                raise RowError(f"id '{query.id}' came before; the first was kept")
        except RowError as error:
            yield Refusal(row.where, str(error))
        else:
            yield query


def _query_of(row: object) -> Query:
    fields = as_object(row)
    id_ = id_field(fields)
    if id_ is None:
        raise RowError("no '_id' field")
    text = text_field(fields, QUESTION_FIELDS)
    if text is None or not text.strip():
        raise RowError("no 'question' (or 'text'), or an empty one")
    answers = dict.fromkeys([*_texts(fields, "answer"), *_texts(fields, "answer_aliases")])
    supporting = dict.fromkeys(as_id(value, "supporting_ids") for value in _values(fields, "supporting_ids"))
    return Query(id_, text, tuple(answers), tuple(supporting), text_field(fields, ("group",)))


def _texts(fields: Mapping[str, object], name: str) -> list[str]:
    return [storable(value, name) for value in _values(fields, name)]


def _values(fields: Mapping[str, object], name: str) -> list[object]:
    """One value or a list of them; none for null."""
    value = fields.get(name)
    if isinstance(value, dict):
        raise RowError(f"'{name}' is not a list but {kind_of(value)}")
    return value if isinstance(value, list) else [] if value is None else [value]


def read_qrels(path: Path) -> Qrels:
    """The judgements of a TSV (query-id, corpus-id, score), a TREC file (query, 0, passage, score) or a BEIR folder.

    The folder's qrels/test.tsv is read, else its qrels.tsv. A header line is known by its last word, which is no
    number. A pair again with another score is refused. CorpusError when unreadable or without any judgement.
    """
    scores: dict[str, dict[str, int]] = {}
    refusals: list[Refusal] = []
    file = _inside(Path(path), QRELS_FILES)
    if not file.exists():
        raise CorpusError(f"'{file}' does not exist. Pass a qrels file, or a folder with qrels/test.tsv or qrels.tsv.")
    for position, (number, line) in enumerate(lines(file)):
        try:
            judged = _judgement(line, header_allowed=position == 0)
            if judged is None:
                continue
            query, passage, score = judged
            if scores.setdefault(query, {}).setdefault(passage, score) != score:
                raise RowError(f"('{query}', '{passage}') came before with another score; the first was kept")
        except RowError as error:
            refusals.append(Refusal(f"{file}:{number}", str(error)))
    _some(tuple(scores), file, refusals, "judgement")
    return Qrels(scores, tuple(refusals))


def _judgement(line: bytes, *, header_allowed: bool) -> tuple[str, str, int] | None:
    """Query, passage and score of a line; None for a header."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(f"not UTF-8 (byte {error.start + 1} of the line)") from error
    cells = text.split("\t") if text.count("\t") in (2, 3) else text.split()
    if len(cells) not in (3, 4):
        raise RowError(f"{len(cells)} columns, not 3 (TSV) or 4 (TREC)")
    try:
        return cells[0], cells[-2], int(cells[-1])
    except ValueError as error:
        if header_allowed:
            return None
        raise RowError(f"the score '{cells[-1]}' is no whole number") from error


def _inside(path: Path, names: tuple[str, ...]) -> Path:
    """The path, or the first of the named files that a folder has (the first name when it has none)."""
    if not path.is_dir():
        return path
    return next((path / name for name in names if (path / name).is_file()), path / names[0])


def _some(found: tuple[_T, ...], file: Path, refusals: list[Refusal], what: str) -> tuple[_T, ...]:
    if not found:
        why = f"{len(refusals)} refused, the first: {refusals[0]}" if refusals else "empty"
        raise CorpusError(f"No {what} in '{file}' ({why}). See the formats in docs/corpus.md.")
    return found
