"""Bytes that a solver has to move, by the model of docs/ppr.md, and what share of a roof that is."""

from __future__ import annotations

from typing import NamedTuple


class Bytes(NamedTuple):
    """Bytes of one step: each row of x read once, each neighbour's row read anew, and those rows alone."""

    lower: int
    upper: int
    gathered: int


def step_bytes(nonzeros: int, nodes: int, batch: int, *, weight_bytes: int = 4, value_bytes: int = 4) -> Bytes:
    """One batched step x ← d·P·x + r: the matrix, rows of x for the product, r read and x written for the update.

    Column numbers take 4 bytes. Row pointers are left out: less than one in a hundred of the rest.
    """
    matrix = nonzeros * (4 + weight_bytes)
    update = 2 * nodes * batch * value_bytes
    gathered = nonzeros * batch * value_bytes
    return Bytes(matrix + nodes * batch * value_bytes + update, matrix + gathered + update, gathered)


class Shares(NamedTuple):
    """GB/s by the lower and the upper count, and shares of the two roofs in percent.

    copy   : lower count ÷ time, of the copy bandwidth; 100 is a perfect cache
    gather : gathered bytes ÷ time, of the gather roof; above 100 where caches hold more than at random
    """

    lower_gbs: float
    upper_gbs: float
    copy_percent: float
    gather_percent: float | None


def shares(moved: Bytes, steps: int, seconds: float, *, copy_gbs: float, gather_gbs: float | None) -> Shares:
    """Rates of that many steps in that time."""
    lower, upper, gathered = (steps * count / seconds / 1e9 for count in moved)
    gather = None if gather_gbs is None else 100 * gathered / gather_gbs
    return Shares(lower, upper, 100 * lower / copy_gbs, gather)
