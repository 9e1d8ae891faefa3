"""Rows of Parquet, CSV and TSV files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from hippogpu.corpus.files import Found, Rows, format_of, opened
from hippogpu.errors import CorpusError
from hippogpu.types import Refusal

_ROWS_AT_ONCE = 1024
_CSV_BLOCK_BYTES = 16 << 20  # also the longest row that can be read


def parquet_rows(path: Path) -> Rows:
    """One row a table row, about a thousand held at a time; a row whose text is not UTF-8 is refused."""
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(_ROWS_AT_ONCE):
                for row in _batch_rows(batch):
                    number += 1
                    where = f"{path}: row {number}"
                    yield Refusal(where, "not UTF-8") if row is None else Found(where, row)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"'{path}' is no readable Parquet file ({error}). Write it again.") from error


def _batch_rows(batch: Any) -> Iterator[dict[str, object] | None]:
    """The rows of a record batch; None for one that cannot be decoded."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for number in range(batch.num_rows):
            try:
                yield batch.slice(number, 1).to_pylist()[0]
            except UnicodeDecodeError:
                yield None


def delimited_rows(path: Path) -> Rows:
    """One row a record under a header line, every cell as text; a row of another width is refused.

    CSV cells may be quoted and then hold line breaks; in TSV a quote is a character like any other.
    """
    tabs = format_of(path) == ".tsv"
    skipped: dict[int, Refusal] = {}

    def skip(row: pyarrow.csv.InvalidRow) -> Literal["skip", "error"]:
        assert row.number is not None  # rows are numbered when one thread reads them
        reason = f"{row.actual_columns} cells under a header of {row.expected_columns}"
        skipped[row.number] = Refusal(f"{path}: row {row.number}", reason)
        return "skip"

    parse = pyarrow.csv.ParseOptions(
        delimiter="\t" if tabs else ",",
        quote_char=False if tabs else '"',
        newlines_in_values=not tabs,
        invalid_row_handler=skip,
    )
    try:
        yield from _numbered(path, _delimited_cells(path, parse), skipped)
    except pa.ArrowException as error:
        raise CorpusError(
            f"'{path}' cannot be read as {'TSV' if tabs else 'CSV'} ({error}). "
            "Check that it has a header line and that every quote is closed."
        ) from error


def _delimited_cells(path: Path, parse: Any) -> Iterator[dict[str, bytes]]:
    # One thread, so that refused rows come with their numbers.
    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK_BYTES)
    with opened(path) as handle, pyarrow.csv.open_csv(handle, read_options=read, parse_options=parse) as table:
        names = table.schema.names
    as_written = pyarrow.csv.ConvertOptions(column_types={name: pa.binary() for name in names}, null_values=[])
    with (
        opened(path) as handle,
        pyarrow.csv.open_csv(handle, read_options=read, parse_options=parse, convert_options=as_written) as table,
    ):
        for batch in table:
            yield from batch.to_pylist()


def _numbered(path: Path, cells: Iterator[dict[str, bytes]], skipped: dict[int, Refusal]) -> Rows:
    """Rows and refusals in file order: a row's number counts the header as 1 and the skipped rows too."""
    number = 1
    for row in cells:
        number += 1
        while number in skipped:
            yield skipped.pop(number)
            number += 1
        yield _decoded(f"{path}: row {number}", row)
    yield from skipped.values()


def _decoded(where: str, row: dict[str, bytes]) -> Found | Refusal:
    try:
        return Found(where, {name: cell.decode("utf-8") for name, cell in row.items()})
    except UnicodeDecodeError as error:
        return Refusal(where, f"not UTF-8 ({error.reason})")
