"""Where the columns of an Arrow IPC file lie, found without trusting the file.

Only what our own writer makes is taken: one batch, or none, of the columns expected, not compressed, without missing
values, dictionaries, extension types or metadata. Nothing is allocated by what the file says, every number it holds is
compared with its size, and the work does not grow with it. Arrow's own reader, in C++, never sees a file.

Field numbers are those of Arrow's Message.fbs, Schema.fbs and File.fbs (format/ in apache/arrow, metadata version 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

_START, _END = b"ARROW1\0\0", b"ARROW1"
_CONTINUED = b"\xff\xff\xff\xff"
_VERSION, _RECORD_BATCH = 4, 3
_ALIGNMENT = 8


class Malformed(ValueError):
    """The bytes are no Arrow file of the columns expected; says why."""


class _Kind(NamedTuple):
    """A column type on disk: its code in Schema.fbs, its parameters as field, bytes and value, and its own buffers.

    child, times : of a list of one length, the type of what it holds, and how many
    """

    code: int
    parameters: tuple[tuple[int, int, int], ...]
    buffers: int
    child: pa.Field[Any] | None = None
    times: int = 0


_KINDS: Mapping[pa.DataType, _Kind] = {
    pa.large_string(): _Kind(20, (), 3),
    pa.large_binary(): _Kind(19, (), 3),
    pa.int32(): _Kind(2, ((0, 4, 32), (1, 1, 1)), 2),
    pa.float32(): _Kind(3, ((0, 2, 1),), 2),
    pa.float64(): _Kind(3, ((0, 2, 2),), 2),
}


def _kind(dtype: pa.DataType) -> _Kind:
    if pa.types.is_fixed_size_list(dtype):
        return _Kind(16, ((0, 4, dtype.list_size),), 1, dtype.value_field, dtype.list_size)
    return _KINDS[dtype]


class Layout(NamedTuple):
    """The rows of a file, and by column its buffers in Arrow's order, validity first, a child's behind its parent's."""

    rows: int
    buffers: Mapping[str, tuple[memoryview, ...]]


def layout_of(file: memoryview, schema: pa.Schema) -> Layout:
    """The layout of a file's bytes; Malformed unless it holds those columns as they are written here."""
    if len(file) < 24 or file[:8] != _START or file[-6:] != _END:
        raise Malformed("it does not begin and end as an Arrow file does")
    footer_bytes = _number(file, len(file) - 10, 4)
    footer_at = len(file) - 10 - footer_bytes
    if footer_bytes < 0 or footer_at < 8:
        raise Malformed(f"its footer would have {footer_bytes} bytes")
    footer = _root(file[footer_at : len(file) - 10])
    _require_schema(footer.table(1), schema)
    if footer.number(0, 2) != _VERSION or footer.vector(2, 24).length:
        raise Malformed("it is of another version, or has dictionaries")
    blocks = footer.vector(3, 24)
    if blocks.length > 1:
        raise Malformed(f"it has {blocks.length} batches, not one")
    if not blocks.length:
        nothing = memoryview(b"")
        return Layout(0, {field.name: (nothing,) * _count(field.type).buffers for field in schema})
    return _batch(file[:footer_at], blocks.at, footer.data, schema)


class _Vector(NamedTuple):
    """Where the items of a vector begin, and how many there are."""

    at: int
    length: int


class _Table(NamedTuple):
    """A table of a flatbuffer: fields by number, found over its list of places (the vtable)."""

    data: memoryview
    at: int

    def _field(self, number: int) -> int:
        """Where a field lies, 0 where it is absent."""
        places = self.at - _number(self.data, self.at, 4)
        if 4 + 2 * number + 2 > _unsigned(self.data, places, 2):
            return 0
        place = _unsigned(self.data, places + 4 + 2 * number, 2)
        return self.at + place if place else 0

    def has(self, field: int) -> bool:
        return self._field(field) != 0

    def number(self, field: int, size: int) -> int:
        """A whole number of that many bytes, 0 where it is absent."""
        at = self._field(field)
        return _number(self.data, at, size) if at else 0

    def _pointed(self, field: int) -> int:
        at = self._field(field)
        if not at:
            raise Malformed(f"its metadata lacks field {field}")
        return at + _unsigned(self.data, at, 4)

    def table(self, field: int) -> _Table:
        return _Table(self.data, self._pointed(field))

    def vector(self, field: int, item_bytes: int) -> _Vector:
        """A vector that lies inside the flatbuffer; an empty one where it is absent."""
        if not self.has(field):
            return _Vector(0, 0)
        at = self._pointed(field)
        length = _unsigned(self.data, at, 4)
        if at + 4 + length * item_bytes > len(self.data):
            raise Malformed(f"a list of {length} items does not fit into it")
        return _Vector(at + 4, length)

    def text(self, field: int) -> bytes:
        found = self.vector(field, 1)
        return bytes(self.data[found.at : found.at + found.length])


def _root(data: memoryview) -> _Table:
    return _Table(data, _unsigned(data, 0, 4))


def _require_schema(found: _Table, schema: pa.Schema) -> None:
    """Malformed unless the table is that schema, little-endian, without metadata."""
    if found.number(0, 2) or found.vector(2, 4).length:
        raise Malformed("its byte order is another, or it has metadata of its own")
    _require_fields(found, 1, list(schema))


def _require_fields(found: _Table, number: int, fields: Sequence[pa.Field[Any]]) -> None:
    vector = found.vector(number, 4)
    names = ", ".join(field.name for field in fields)
    if vector.length != len(fields):
        raise Malformed(f"its columns are not {names or 'without children'}")
    for place, field in enumerate(fields):
        at = vector.at + 4 * place
        one = _Table(found.data, at + _unsigned(found.data, at, 4))
        if one.text(0) != field.name.encode():
            raise Malformed(f"its columns are not {names}")
        _require_type(one, field)


def _require_type(found: _Table, field: pa.Field[Any]) -> None:
    kind = _kind(field.type)
    if found.has(4) or found.vector(6, 4).length:
        raise Malformed(f"its column '{field.name}' has a dictionary, or metadata of its own")
    if found.number(2, 1) != kind.code:
        raise Malformed(f"its column '{field.name}' is not of the type {field.type}")
    parameters = found.table(3)
    if any(parameters.number(number, size) != value for number, size, value in kind.parameters):
        raise Malformed(f"its column '{field.name}' is not of the type {field.type}")
    _require_fields(found, 5, [] if kind.child is None else [kind.child])


class _Count(NamedTuple):
    """How many nodes and buffers a column has in a batch, its child's included."""

    nodes: int
    buffers: int


def _count(dtype: pa.DataType) -> _Count:
    kind = _kind(dtype)
    child = _Count(0, 0) if kind.child is None else _count(kind.child.type)
    return _Count(1 + child.nodes, kind.buffers + child.buffers)


def _batch(file: memoryview, block_at: int, footer: memoryview, schema: pa.Schema) -> Layout:
    """The layout of the one batch that a block of the footer names."""
    at, meta_bytes, body_bytes = (_number(footer, block_at + skip, size) for skip, size in ((0, 8), (8, 4), (16, 8)))
    body_at = at + meta_bytes
    if at < 8 or meta_bytes < 8 or body_bytes < 0 or body_at + body_bytes > len(file) or body_at % _ALIGNMENT:
        raise Malformed("its batch lies outside the file")
    size = _number(file, at + 4, 4)
    if file[at : at + 4] != _CONTINUED or not 0 <= size <= meta_bytes - 8:
        raise Malformed("its batch does not begin as one does")
    message = _root(file[at + 8 : at + 8 + size])
    if message.number(0, 2) != _VERSION or message.number(1, 1) != _RECORD_BATCH:
        raise Malformed("its batch is no batch of rows")
    batch = message.table(2)
    if batch.has(3):
        raise Malformed("it is compressed, which no index file is")
    rows = batch.number(0, 8)
    _require_nodes(batch, rows, schema)
    return Layout(rows, dict(_columns(batch, file[body_at : body_at + body_bytes], schema)))


def _require_nodes(batch: _Table, rows: int, schema: pa.Schema) -> None:
    """Malformed unless each column has that many rows, a child its multiple, and none is missing."""
    lengths = [length for field in schema for length in _lengths(field.type, rows)]
    nodes = batch.vector(1, 16)
    if rows < 0 or nodes.length != len(lengths):
        raise Malformed(f"its batch of {rows} rows has {nodes.length} columns, not {len(lengths)}")
    for place, length in enumerate(lengths):
        at = nodes.at + 16 * place
        if _number(batch.data, at, 8) != length:
            raise Malformed(f"a column has {_number(batch.data, at, 8)} rows, not {length}")
        if _number(batch.data, at + 8, 8):
            raise Malformed("it holds missing values")


def _lengths(dtype: pa.DataType, rows: int) -> Iterator[int]:
    yield rows
    kind = _kind(dtype)
    if kind.child is not None:
        yield from _lengths(kind.child.type, rows * kind.times)


def _columns(batch: _Table, body: memoryview, schema: pa.Schema) -> Iterator[tuple[str, tuple[memoryview, ...]]]:
    """Each column with its buffers, which lie inside the body."""
    buffers = batch.vector(2, 16)
    expected = sum(_count(field.type).buffers for field in schema)
    if buffers.length != expected:
        raise Malformed(f"its batch has {buffers.length} buffers, not {expected}")
    at = buffers.at
    for field in schema:
        views = []
        for _ in range(_count(field.type).buffers):
            start, size = _number(batch.data, at, 8), _number(batch.data, at + 8, 8)
            if start < 0 or size < 0 or start + size > len(body) or start % _ALIGNMENT:
                raise Malformed(f"a buffer of column '{field.name}' lies outside its batch")
            views.append(body[start : start + size])
            at += 16
        yield field.name, tuple(views)


def _number(data: memoryview, at: int, size: int) -> int:
    """A little-endian whole number of that many bytes; Malformed where it would lie outside."""
    if at < 0 or at + size > len(data):
        raise Malformed("it points outside itself")
    return int.from_bytes(data[at : at + size], "little", signed=True)


def _unsigned(data: memoryview, at: int, size: int) -> int:
    return _number(data, at, size) & ((1 << 8 * size) - 1)
