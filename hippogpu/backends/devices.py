"""What stands in this machine to compute on, found out without a subprocess."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from hippogpu.errors import HippoError, MissingExtraError


class Device(NamedTuple):
    """The CUDA device that the engine would use. Versions are CUDA's numbers, such as 13.0."""

    name: str
    capability: str
    memory_bytes: int
    driver: str
    runtime: str

    def __str__(self) -> str:
        return (
            f"{self.name} (compute capability {self.capability}, {self.memory_bytes / 2**30:.0f} GiB, "
            f"driver for CUDA {self.driver}, runtime {self.runtime})"
        )


class Found(NamedTuple):
    """A device, or why there is none."""

    device: Device | None
    reason: str


def find_device() -> Found:
    """The current CUDA device, or the reason that none is used. Never raises."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return Found(None, "CuPy is not installed (extra cuda13, or cuda12)")
    runtime = cupy.cuda.runtime
    try:
        number = runtime.getDevice() if runtime.getDeviceCount() else None
        if number is None:
            return Found(None, "CuPy finds no CUDA device")
        return Found(_describe(cupy, number), "a CUDA device answers")
    except runtime.CUDARuntimeError as error:
        return Found(None, f"no CUDA device answers: {error}")


def require_cupy() -> Any:
    """CuPy, when a device answers; else MissingExtraError or HippoError with what to do."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise MissingExtraError("cupy", "cuda13", "The backend 'cuda' (extra cuda13, or cuda12 for CUDA 12)") from error
    found = find_device()
    if found.device is None:
        raise HippoError(
            f"The backend 'cuda' needs an NVIDIA GPU: {found.reason}. Check the driver with nvidia-smi, "
            "or use the backend 'cpu'."
        )
    return cupy


def _describe(cupy: Any, number: int) -> Device:
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(number)
    name = properties["name"]
    return Device(
        name.decode() if isinstance(name, bytes) else str(name),
        f"{properties['major']}.{properties['minor']}",
        int(properties["totalGlobalMem"]),
        _version(runtime.driverGetVersion()),
        _version(runtime.runtimeGetVersion()),
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
