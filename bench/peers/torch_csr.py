"""The power iteration with torch's sparse CSR product (MKL's where torch has it), float32, on all threads."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from bench.peers import scipy_power
from hippogpu.types import AnyFloats, Csr


class Prepared(NamedTuple):
    """d·A·D⁻¹ as a torch tensor, and which nodes have no edges."""

    matrix: Any
    isolated: AnyFloats
    damping: float


def prepare(graph: Csr, *, damping: float) -> Prepared:
    """The matrix of a step, with 32-bit row pointers and columns."""
    import torch

    scaled, isolated, _ = scipy_power.prepare(graph, damping=damping)
    indptr, indices = torch.from_numpy(scaled.indptr), torch.from_numpy(scaled.indices)
    with warnings.catch_warnings():
        # torch calls its CSR tensors a beta on first use.
        warnings.simplefilter("ignore", UserWarning)
        matrix = torch.sparse_csr_tensor(indptr, indices, torch.from_numpy(scaled.data), size=scaled.shape)
    return Prepared(matrix, isolated, damping)


def step(prepared: Prepared, x: Any, restart: Any) -> Any:
    """d·P·x + restart for columns (n, B), both torch tensors."""
    import torch

    return torch.addmm(restart, prepared.matrix, x)


def run(prepared: Prepared, seeds: AnyFloats, *, steps: int) -> AnyFloats:
    """Masses (B, n) float32 after that many steps."""
    import torch

    first = np.ascontiguousarray(seeds.T, np.float32)
    loose = prepared.isolated @ first
    x = torch.from_numpy(first)
    restart = (1 - prepared.damping) * x
    with torch.inference_mode():
        for _ in range(steps):
            x = step(prepared, x, restart)
    masses: AnyFloats = x.numpy() / (1 - prepared.damping * loose)
    return np.ascontiguousarray(masses.T)
