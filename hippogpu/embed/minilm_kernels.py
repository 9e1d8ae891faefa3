"""The parts of a MiniLM layer that are no matrix product, over the tokens of many texts end to end.

A batch of texts is one (T, 384) matrix without padding; text t owns rows starts[t]:starts[t+1].
Each kernel adds the bias of the product before it. All run without the GIL on one thread: a caller that wants
more threads runs several batches at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

from hippogpu.types import Floats, Ints, Longs

HEADS = 12
HEAD = 32
WIDTH = HEADS * HEAD

_F = TypeVar("_F", bound=Callable[..., object])
# "reassoc" lets sums run in vector registers, but would undo the two-part subtraction in _exponentials.
_EXACT_ORDER = {"contract", "nnan", "ninf", "nsz", "arcp"}
_ANY_ORDER = {*_EXACT_ORDER, "reassoc"}


def _in_order(function: _F) -> _F:
    return cast(_F, numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=_EXACT_ORDER)(function))


def _summing(function: _F) -> _F:
    return cast(_F, numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=_ANY_ORDER)(function))


_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)
_SCALE = np.float32(1 / math.sqrt(HEAD))
_EPSILON = np.float32(1e-12)

# erf(x) = x P(x²) / Q(x²) on |x| <= 3.9, fitted by reweighted least squares: 1.5e-8, and 4e-7 in float32.
_ROOT_HALF, _ERF_END = np.float32(math.sqrt(0.5)), np.float32(3.9)
_P0, _P1, _P2 = np.float32(1.12837903), np.float32(0.191939354), np.float32(0.0529666972)
_P3, _P4, _P5 = np.float32(0.00383680281), np.float32(0.000287455205), np.float32(2.05039575e-06)
_Q1, _Q2, _Q3 = np.float32(0.503433602), np.float32(0.114757514), np.float32(0.0151090602)
_Q4, _Q5 = np.float32(0.00118171577), np.float32(3.82307202e-05)


@_in_order
def gelu(x: Floats, bias: Floats) -> None:
    """x becomes GELU(x + bias), the exact form with erf."""
    for t in range(x.shape[0]):
        row = x[t]
        for j in range(x.shape[1]):
            value = row[j] + bias[j]
            z = min(max(value * _ROOT_HALF, -_ERF_END), _ERF_END)
            s = z * z
            p = ((((_P5 * s + _P4) * s + _P3) * s + _P2) * s + _P1) * s + _P0
            q = ((((_Q5 * s + _Q4) * s + _Q3) * s + _Q2) * s + _Q1) * s + _ONE
            row[j] = _HALF * value * (_ONE + z * p / q)


# exp(v) = 2^k exp(f) with k = round(v / log 2); log 2 in two parts so that f keeps all its bits.
_LOG2_E, _LOWEST = np.float32(1.4426950408889634), np.float32(-87)
_LOG_2_HIGH, _LOG_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_E2, _E3, _E4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
_E5, _E6, _E7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)


@_in_order
def _exponentials(row: Floats, powers: Ints, n: int, top: np.float32) -> None:
    for j in range(n):
        v = max(row[j] - top, _LOWEST)
        k = np.floor(v * _LOG2_E + _HALF)
        f = (v - k * _LOG_2_HIGH) - k * _LOG_2_LOW
        row[j] = ((((((_E7 * f + _E6) * f + _E5) * f + _E4) * f + _E3) * f + _E2) * f + _ONE) * f + _ONE
        powers[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
    scale = powers.view(np.float32)
    for j in range(n):
        row[j] *= scale[j]


@_summing
def _largest(row: Floats, n: int) -> np.float32:
    top: np.float32 = row[0]
    for j in range(n):
        top = max(top, row[j])
    return top


@_summing
def _total(row: Floats, n: int) -> np.float32:
    total = _ZERO
    for j in range(n):
        total += row[j]
    return total


@_in_order
def _compare(queries: Floats, keys: Floats, scores: Floats, n: int) -> None:
    """scores[:4, :n] = queries (4, 32) · keys (32, n): four rows at once, so that each key is loaded once for four."""
    scores[:, :n] = _ZERO
    s0, s1, s2, s3 = scores[0], scores[1], scores[2], scores[3]
    for d in range(0, HEAD, 4):
        k0, k1, k2, k3 = keys[d], keys[d + 1], keys[d + 2], keys[d + 3]
        a0, a1, a2, a3 = queries[0, d], queries[0, d + 1], queries[0, d + 2], queries[0, d + 3]
        b0, b1, b2, b3 = queries[1, d], queries[1, d + 1], queries[1, d + 2], queries[1, d + 3]
        c0, c1, c2, c3 = queries[2, d], queries[2, d + 1], queries[2, d + 2], queries[2, d + 3]
        e0, e1, e2, e3 = queries[3, d], queries[3, d + 1], queries[3, d + 2], queries[3, d + 3]
        for j in range(n):
            x0, x1, x2, x3 = k0[j], k1[j], k2[j], k3[j]
            s0[j] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
            s1[j] += (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
            s2[j] += (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
            s3[j] += (e0 * x0 + e1 * x1) + (e2 * x2 + e3 * x3)


@_in_order
def _mix(scores: Floats, values: Floats, mixed: Floats, n: int) -> None:
    """mixed (4, 32) = scores[:4, :n] · values (n, 32)."""
    mixed[:] = _ZERO
    whole = n - n % 4
    for j in range(0, whole, 4):
        v0, v1, v2, v3 = values[j], values[j + 1], values[j + 2], values[j + 3]
        for i in range(4):
            w0, w1, w2, w3 = scores[i, j], scores[i, j + 1], scores[i, j + 2], scores[i, j + 3]
            row = mixed[i]
            for d in range(HEAD):
                row[d] += (w0 * v0[d] + w1 * v1[d]) + (w2 * v2[d] + w3 * v3[d])
    for j in range(whole, n):
        for i in range(4):
            w = scores[i, j]
            for d in range(HEAD):
                mixed[i, d] += w * values[j, d]


@_in_order
def attention(qkv: Floats, bias: Floats, starts: Longs, out: Floats) -> None:
    """out (T, 384) = softmax(q kᵀ / √32) v, in each text and head apart; qkv is (T, 1152) without its bias."""
    longest = 0
    for t in range(len(starts) - 1):
        longest = max(longest, starts[t + 1] - starts[t])
    keys, values = np.empty((HEAD, longest), np.float32), np.empty((longest, HEAD), np.float32)
    scores, powers = np.empty((4, longest), np.float32), np.empty(longest, np.int32)
    queries, mixed = np.zeros((4, HEAD), np.float32), np.empty((4, HEAD), np.float32)
    for t in range(len(starts) - 1):
        first, n = starts[t], starts[t + 1] - starts[t]
        for at in range(0, WIDTH, HEAD):
            for j in range(n):
                for d in range(HEAD):
                    keys[d, j] = qkv[first + j, WIDTH + at + d] + bias[WIDTH + at + d]
                    values[j, d] = qkv[first + j, 2 * WIDTH + at + d] + bias[2 * WIDTH + at + d]
            for begin in range(0, n, 4):
                rows = min(4, n - begin)
                for i in range(rows):
                    for d in range(HEAD):
                        queries[i, d] = (qkv[first + begin + i, at + d] + bias[at + d]) * _SCALE
                _compare(queries, keys, scores, n)
                for i in range(rows):
                    _exponentials(scores[i], powers, n, _largest(scores[i], n))
                _mix(scores, values, mixed, n)
                for i in range(rows):
                    share = _ONE / _total(scores[i], n)
                    for d in range(HEAD):
                        out[first + begin + i, at + d] = mixed[i, d] * share


@_summing
def _normalise_row(row: Floats, gain: Floats, shift: Floats) -> None:
    n = np.float32(len(row))
    mean = _ZERO
    for j in range(len(row)):
        mean += row[j]
    mean /= n
    square = _ZERO
    for j in range(len(row)):
        square += (row[j] - mean) * (row[j] - mean)
    scale = _ONE / np.sqrt(square / n + _EPSILON)
    for j in range(len(row)):
        row[j] = (row[j] - mean) * scale * gain[j] + shift[j]


@_in_order
def add_and_normalise(x: Floats, y: Floats, bias: Floats, gain: Floats, shift: Floats) -> None:
    """x becomes LayerNorm(x + y + bias), row by row."""
    for t in range(x.shape[0]):
        row = x[t]
        for j in range(x.shape[1]):
            row[j] += y[t, j] + bias[j]
        _normalise_row(row, gain, shift)


@_in_order
def look_up(
    ids: Ints, starts: Longs, words: Floats, positions: Floats, gain: Floats, shift: Floats, out: Floats
) -> None:
    """out (T, 384) = LayerNorm(word vector + position vector) of each token."""
    for t in range(len(starts) - 1):
        for i in range(starts[t], starts[t + 1]):
            word, position, row = words[ids[i]], positions[i - starts[t]], out[i]
            for j in range(WIDTH):
                row[j] = word[j] + position[j]
            _normalise_row(row, gain, shift)


@_summing
def pool(x: Floats, starts: Longs, out: Floats) -> None:
    """out (texts, 384) = the mean of each text's rows, scaled to length 1."""
    for t in range(len(starts) - 1):
        row = out[t]
        row[:] = _ZERO
        for i in range(starts[t], starts[t + 1]):
            for j in range(WIDTH):
                row[j] += x[i, j]
        square = _ZERO
        for j in range(WIDTH):
            square += row[j] * row[j]
        scale = _ONE / max(np.sqrt(square), _EPSILON)
        for j in range(WIDTH):
            row[j] *= scale
