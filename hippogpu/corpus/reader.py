"""Files and folders of any supported format to a stream of passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from hippogpu.corpus.columns import delimited_rows, parquet_rows
from hippogpu.corpus.files import Found, Rows, format_of, json_line_rows, json_rows
from hippogpu.corpus.folders import TEXT_SUFFIXES, folder_rows, text_row
from hippogpu.corpus.rows import RowError, passage_of
from hippogpu.errors import CorpusError, UsageError
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Refusal

CORPUS_FILES = ("corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.xz")

_ROWS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": json_line_rows,
    ".ndjson": json_line_rows,
    ".json": json_rows,
    ".parquet": parquet_rows,
    ".csv": delimited_rows,
    ".tsv": delimited_rows,
}
_TWICE = "id '{}' came before with other content; the first was kept"


class Reading(NamedTuple):
    """A corpus that is being read. refusals and counts fill up as passages are taken.

    passages  ends with CorpusError when not one passage came out of all inputs
    refusals  every item that was not taken, in input order
    counts    "passages", "refusals", and "duplicates" (an id again with the same title and text: left out)
    """

    passages: Iterator[Passage]
    refusals: list[Refusal]
    counts: Counter[str]


class Distinct(NamedTuple):
    """Passages with each id once, the refused ones, and how many were exact repeats."""

    passages: tuple[Passage, ...]
    refusals: tuple[Refusal, ...]
    duplicates: int


def read_corpus(paths: Sequence[Path], *, on_refusal: Callable[[Refusal], None] | None = None) -> Reading:
    """The passages of files and folders, in order, each id once; one row and one key an id are held at a time.

    Formats go by name: .jsonl, .ndjson, .json (lines or one array), .parquet, .csv, .tsv, .txt, .md, all but
    Parquet and text also as .gz or .xz; a folder is its corpus.jsonl when it has one (BEIR), else its .txt and
    .md files. CorpusError when a path is missing or of no known format (at once), or when a file is damaged or
    no passage was found (while reading). on_refusal is called with each refusal as it happens.
    """
    sources = [_source(Path(path)) for path in paths]
    if not sources:
        raise UsageError("No corpus was named. Pass at least one file or folder.")
    refusals: list[Refusal] = []
    counts: Counter[str] = Counter()

    def refuse(refusal: Refusal) -> None:
        refusals.append(refusal)
        counts["refusals"] += 1
        if on_refusal is not None:
            on_refusal(refusal)

    return Reading(_passages(sources, refuse, counts), refusals, counts)


def _passages(
    sources: Sequence[tuple[Path, Rows]], refuse: Callable[[Refusal], None], counts: Counter[str]
) -> Iterator[Passage]:
    seen: dict[str, str] = {}
    first: Refusal | None = None
    for row in chain.from_iterable(rows for _, rows in sources):
        outcome = _taken(row, seen)
        if isinstance(outcome, Passage):
            counts["passages"] += 1
            yield outcome
        elif outcome is None:
            counts["duplicates"] += 1
        else:
            first = first or outcome
            refuse(outcome)
    if not counts["passages"]:
        names = ", ".join(f"'{path}'" for path, _ in sources)
        why = f"{counts['refusals']} items refused, the first: {first.where}: {first.reason}" if first else "no items"
        raise CorpusError(f"No passage in {names} ({why}). Give at least one row with a 'text', or a .txt or .md file.")


def _taken(row: Found | Refusal, seen: dict[str, str]) -> Passage | Refusal | None:
    """The passage of a row, why there is none, or None for an exact repeat."""
    if isinstance(row, Refusal):
        return row
    try:
        passage = passage_of(row.value)
    except RowError as error:
        return Refusal(row.where, str(error))
    standing = _standing(passage, seen)
    if standing == "new":
        return passage
    return None if standing == "same" else Refusal(row.where, _TWICE.format(passage.id))


def distinct(passages: Iterable[Passage]) -> Distinct:
    """Each id once, first kept. An id again is a duplicate when its title and text are the same, else refused.

    Different ids with one content are all kept: merging those is the index's work.
    """
    seen: dict[str, str] = {}
    kept: list[Passage] = []
    refusals: list[Refusal] = []
    duplicates = 0
    for number, passage in enumerate(passages, start=1):
        standing = _standing(passage, seen)
        if standing == "new":
            kept.append(passage)
        elif standing == "same":
            duplicates += 1
        else:
            refusals.append(Refusal(f"passage {number}", _TWICE.format(passage.id)))
    return Distinct(tuple(kept), tuple(refusals), duplicates)


def _standing(passage: Passage, seen: dict[str, str]) -> Literal["new", "same", "other"]:
    """Whether the id is new (it is noted then), or known with the same content or with other content."""
    key = content_key(identity(passage.title, passage.text))
    if passage.id not in seen:
        seen[passage.id] = key
        return "new"
    return "same" if seen[passage.id] == key else "other"


def _source(path: Path) -> tuple[Path, Rows]:
    """The path and its rows, not yet read."""
    if path.is_dir():
        inside = next((path / name for name in CORPUS_FILES if (path / name).is_file()), None)
        return (inside, json_line_rows(inside)) if inside else (path, folder_rows(path))
    return path, rows_of(path)


def rows_of(path: Path) -> Rows:
    """The rows of one file by the format its name says; CorpusError at once when there is none or no such file."""
    if not path.exists():
        raise CorpusError(f"'{path}' does not exist. Check the path (it is relative to '{Path.cwd()}').")
    suffix = format_of(path)
    if path.suffix.lower() in TEXT_SUFFIXES:
        return iter((text_row(path, path.name),))
    rows = _ROWS.get(suffix)
    if rows is None or (suffix == ".parquet" and path.suffix.lower() != suffix):
        known = ", ".join((*_ROWS, *TEXT_SUFFIXES))
        raise CorpusError(f"'{path}' is of no known format. Name it with one of {known} (.gz or .xz may follow).")
    return rows(path)
