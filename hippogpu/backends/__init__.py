"""Where the arithmetic runs: one seam, held to the float64 reference by one contract suite."""

from __future__ import annotations

import logging

from hippogpu.backends.seam import Backend
from hippogpu.backends.steps import chebyshev_steps, power_steps, steps_for
from hippogpu.backends.values import Certified, Graph, PassagePart, Residual, SparseSeeds, TopK
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
    """The backend of that name; auto takes CUDA when a device answers, else the CPU, and logs which and why.

    cuda and cugraph raise MissingExtraError without their package, and HippoError when no device answers.
    """
    if name == "auto":
        name = _best_here()
    if name == "reference":
        from hippogpu.backends.reference import ReferenceBackend

        return ReferenceBackend(budget_bytes)
    if name == "cuda":
        from hippogpu.backends.cuda import CudaBackend

        return CudaBackend(budget_bytes)
    if name == "cugraph":
        from hippogpu.backends.cugraph import CugraphBackend

        return CugraphBackend(budget_bytes)
    from hippogpu.backends.cpu import CpuBackend

    return CpuBackend(budget_bytes)


def _best_here() -> BackendName:
    """What auto stands for on this machine."""
    from hippogpu.backends.devices import find_device

    found = find_device()
    if found.device is None:
        logger.info("backend cpu: %s", found.reason)
        return "cpu"
    logger.info("backend cuda: %s", found.device)
    return "cuda"
