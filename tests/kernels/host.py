"""The kernels compiled for the host, launched under their own names on NumPy arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from hippogpu.backends._kernels import Kernels, sources_folder
from hippogpu.backends.cuda_layout import compress, cut
from hippogpu.backends.cuda_solve import CudaGraph, Walk, fill
from hippogpu.backends.reference import row_sums
from hippogpu.backends.steps import step_weights
from hippogpu.config import LinearSolver
from hippogpu.types import AnyFloats, Csr

HERE = Path(__file__).parent


class HostKernels(Kernels):
    """Launches run the kernels' functions on the host, one thread after another, before the call returns."""

    def __init__(self) -> None:
        super().__init__(None)
        self.library = host_library("host_kernels.cpp")

    def launch(self, entry: str, grid: tuple[int, ...], block: int, *arguments: Any) -> None:
        whole = (*grid, 1)[:2]
        getattr(self.library, entry)(*(as_c(value) for value in (*whole, *arguments)))


class DeviceKernels(Kernels):
    """Launches run the kernels themselves, every thread of a block between two barriers in order, or backwards."""

    def __init__(self, *, backwards: bool = False) -> None:
        super().__init__(None)
        self.library = host_library("device_kernels.cpp")
        self.backwards = backwards

    def launch(self, entry: str, grid: tuple[int, ...], block: int, *arguments: Any) -> None:
        values = [as_c(value) for value in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        sizes = [ctypes.c_longlong(size) for size in (*(*grid, 1)[:2], block)]
        assert self.library.launch(entry.encode(), *sizes, pointers, int(self.backwards)) == 0, f"no kernel {entry}"


class Address(int):
    """A pointer that need not be that of an array's first element."""


def as_c(value: Any) -> Any:
    if isinstance(value, Address):
        return ctypes.c_void_p(int(value))
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, np.float32):
        return ctypes.c_float(float(value))
    return ctypes.c_double(float(value)) if isinstance(value, np.float64) else ctypes.c_longlong(int(value))


def compiler() -> str | None:
    return next((found for name in ("g++", "clang++", "c++") if (found := shutil.which(name))), None)


@cache
def host_library(name: str) -> ctypes.CDLL:
    """A compiled harness; the test is skipped where there is no C++ compiler, and fails where it does not compile."""
    command = compiler()
    if command is None:
        pytest.skip("no C++ compiler: the kernels' arithmetic cannot run on the host")
    out = (Path(mkdtemp(prefix="hippogpu-kernels-")) / name).with_suffix(".so")
    options = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{sources_folder()}"]
    made = subprocess.run(
        [command, *options, str(HERE / name), "-o", str(out)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(out))


def host_graph(graph: Csr) -> CudaGraph:
    """The graph as the cuda backend puts it, in host memory."""
    return CudaGraph(*compress(graph), *cut(graph.indptr), row_sums(graph, graph.weights))


def diffused(
    graph: Csr,
    columns: AnyFloats,
    *,
    damping: float,
    steps: int,
    solver: LinearSolver,
    kernels: Kernels | None = None,
) -> AnyFloats:
    """G·columns by the fused steps of the kernels, in their order of launches."""
    walk, put = Walk(np, kernels or HostKernels()), host_graph(graph)
    loop = walk.loop(put, columns.shape[1], damping)
    fill(loop, columns.astype(np.float32), damping)
    return np.asarray(walk.steps(put, loop, step_weights(solver, damping, steps)), np.float64)
