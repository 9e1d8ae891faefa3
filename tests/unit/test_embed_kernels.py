"""The compiled parts of a layer against NumPy in float64."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from hippogpu.embed import minilm_kernels as kernels
from hippogpu.types import AnyFloats, Floats

# The fit of erf is within 4e-7 in float32; a softmax of 256 terms and a sum of 384 squares stay within as much.
KERNEL_TOLERANCE = 2e-6


def random(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(got: Floats, expected: AnyFloats) -> bool:
    return bool(np.all(np.abs(got - expected) <= KERNEL_TOLERANCE * (1 + np.abs(expected))))


def test_gelu_is_the_exact_one_over_the_whole_range() -> None:
    x = np.linspace(-12, 12, 24001, dtype=np.float32)[None]
    expected = [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x[0].astype(np.float64)]
    kernels.gelu(x, np.zeros(x.shape[1], np.float32))
    assert close(x[0], np.array(expected))


def test_gelu_adds_the_bias_first() -> None:
    x, bias = np.zeros((3, 8), np.float32), np.full(8, 100, np.float32)
    kernels.gelu(x, bias)
    assert np.allclose(x, 100)


@pytest.mark.parametrize("lengths", [[1], [2, 3], [5, 1, 33], [256], [31, 32, 33]])
def test_attention_is_softmax_in_each_text_and_head_apart(lengths: list[int]) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    qkv, bias = random(int(starts[-1]), 3 * kernels.WIDTH), random(3 * kernels.WIDTH, seed=1)
    out = np.full((int(starts[-1]), kernels.WIDTH), np.nan, np.float32)
    kernels.attention(qkv, bias, starts, out)
    whole = qkv.astype(np.float64) + bias
    for begin, end in pairwise(starts):
        for at in range(0, kernels.WIDTH, kernels.HEAD):
            q, k, v = (whole[begin:end, at + part : at + part + kernels.HEAD] for part in (0, 384, 768))
            weights = np.exp(q @ k.T / math.sqrt(kernels.HEAD))
            assert close(out[begin:end, at : at + kernels.HEAD], weights / weights.sum(1, keepdims=True) @ v)


def test_attention_does_not_overflow_on_large_scores() -> None:
    qkv = np.zeros((2, 3 * kernels.WIDTH), np.float32)
    qkv[:, : 2 * kernels.WIDTH] = [[1000.0], [-1000.0]]
    qkv[:, 2 * kernels.WIDTH :] = [[1.0], [2.0]]
    out = np.empty((2, kernels.WIDTH), np.float32)
    kernels.attention(qkv, np.zeros(3 * kernels.WIDTH, np.float32), np.array([0, 2]), out)
    assert np.allclose(out, [[1.0], [2.0]])


def test_add_and_normalise_is_layer_norm_of_the_sum() -> None:
    x, y, bias, gain, shift = random(7, 384), random(7, 384, seed=1), *random(3, 384, seed=2)
    total = x.astype(np.float64) + y + bias
    expected = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(1, keepdims=True) + 1e-12) * gain + shift
    kernels.add_and_normalise(x, y, bias, gain, shift)
    assert close(x, expected)


def test_pool_is_the_mean_of_each_text_at_length_one() -> None:
    x, starts, out = random(9, 384), np.array([0, 1, 9]), np.empty((2, 384), np.float32)
    kernels.pool(x, starts, out)
    means = np.stack([x[:1].mean(0, dtype=np.float64), x[1:].mean(0, dtype=np.float64)])
    assert close(out, means / np.linalg.norm(means, axis=1, keepdims=True))
