"""Where the arithmetic runs: one seam, held to the float64 reference by one contract suite."""

from __future__ import annotations

import logging

from hippogpu.backends.seam import (
    Backend,
    Certified,
    Graph,
    PassagePart,
    Residual,
    SparseSeeds,
    TopK,
    chebyshev_steps,
    power_steps,
    steps_for,
)
from hippogpu.config import BackendName

__all__ = [
    "Backend",
    "Certified",
    "Graph",
    "PassagePart",
    "Residual",
    "SparseSeeds",
    "TopK",
    "chebyshev_steps",
    "load_backend",
    "power_steps",
    "steps_for",
]

logger = logging.getLogger("hippogpu.backends")


def load_backend(name: BackendName = "auto", *, budget_bytes: int = 512 * 2**20) -> Backend:
    """The backend of that name; auto takes the CPU and logs so, as no CUDA backend is built in yet."""
    if name == "reference":
        from hippogpu.backends.reference import ReferenceBackend

        return ReferenceBackend(budget_bytes)
    from hippogpu.backends.cpu import CpuBackend

    if name == "auto":
        logger.info("backend cpu: this version has no CUDA backend")
    return CpuBackend(budget_bytes)
