"""What the loops that are written in LLVM's terms share: vectors, their loads and stores, and prefetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

LONG, INT32, BYTES = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
# As typed as the rest: numba's own is not.
_declare: Callable[..., Any] = cgutils.get_or_insert_function


class Vectors:
    """Writes operations on vectors of so many lanes of one element type, float32 unless double."""

    def __init__(self, builder: Any, lanes: int, *, double: bool = False) -> None:
        self._builder, self.lanes = builder, lanes
        self.element, self._bytes = (ir.DoubleType(), 8) if double else (ir.FloatType(), 4)
        self.type = ir.VectorType(self.element, lanes)
        signature = ir.FunctionType(self.type, [self.type] * 3)
        self._fma = _declare(builder.module, signature, f"llvm.fma.v{lanes}f{8 * self._bytes}")
        self.zero = ir.Constant(self.type, [0.0] * lanes)

    def load(self, base: Any, offset: Any) -> Any:
        """The vector that begins `offset` elements after the base."""
        loaded = self._builder.load(self._place(base, offset))
        loaded.align = self._bytes
        return loaded

    def store(self, value: Any, base: Any, offset: Any) -> None:
        self._builder.store(value, self._place(base, offset)).align = self._bytes

    def fma(self, left: Any, right: Any, plus: Any) -> Any:
        return self._builder.call(self._fma, [left, right, plus])

    def spread(self, value: Any) -> Any:
        """The value in every lane."""
        nothing = ir.Constant(self.type, ir.Undefined)
        alone = self._builder.insert_element(nothing, value, INT32(0))
        first = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self._builder.shuffle_vector(alone, nothing, first)

    def _place(self, base: Any, offset: Any) -> Any:
        return self._builder.bitcast(self._builder.gep(base, [offset]), self.type.as_pointer())


def write_prefetch(builder: Any, address: Any, *, level: int) -> None:
    """Asks for the cache line of an address without waiting for it; level 3 is the nearest cache, 2 the next."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    ask = _declare(builder.module, kind, "llvm.prefetch.p0")
    builder.call(ask, [builder.bitcast(address, BYTES), INT32(0), INT32(level), INT32(1)])


def array_data(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Where the numbers of each array argument begin."""
    pairs = zip(kinds, values, strict=True)
    return [context.make_array(kind)(context, builder, value).data for kind, value in pairs]


def loop_blocks(builder: Any) -> tuple[Any, Any, Any]:
    """The head, body and end of a loop, to be filled; the present block goes on in the head."""
    head, body, done = (builder.function.append_basic_block(name) for name in ("head", "body", "done"))
    builder.branch(head)
    return head, body, done
