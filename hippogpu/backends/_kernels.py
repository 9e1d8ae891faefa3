"""The CUDA sources: where they are, what they define, how they are compiled and launched."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from hippogpu.errors import HippoError

logger = logging.getLogger("hippogpu.backends")

# Every __global__ of every source; a test holds the sources to this list.
ENTRIES: dict[str, tuple[str, ...]] = {
    "step": (
        "step_rows_1",
        "step_rows_4",
        "step_parts_1",
        "step_parts_4",
        "step_long_1",
        "step_long_4",
        "residual_rows",
    ),
    "topk": ("topk_rows",),
    "push": ("push_scan", "push_rounds", "push_reached"),
}
# Given to RawModule. No fast math: a NaN must stay one, and −0 must become 0.
OPTIONS = ("-std=c++17",)
# What CuPy adds by itself when it compiles with NVRTC.
CUPY_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
SHARED = '#include "common.cuh"'


def sources_folder() -> Path:
    """The folder of the CUDA sources: inside the package in a wheel, `kernels` in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "_kernel_sources", package.parent / "kernels"):
        if (folder / "common.cuh").is_file():
            return folder
    raise HippoError(
        f"The CUDA sources are in neither {package / '_kernel_sources'} nor 'kernels'. Reinstall hippogpu."
    )


def source(name: str) -> str:
    """The text of one source with the shared one in the place of its #include.

    In one piece, as CuPy's cache of compiled kernels is keyed by the text it is given and sees no included file.
    """
    folder = sources_folder()
    text = (folder / f"{name}.cu").read_text("utf-8")
    if SHARED not in text:
        raise HippoError(f"The CUDA source {name}.cu does not include common.cuh. Reinstall hippogpu.")
    return text.replace(SHARED, (folder / "common.cuh").read_text("utf-8"))


def defined_entries(text: str) -> tuple[str, ...]:
    """Names of the __global__ functions that a source defines, in order."""
    return tuple(re.findall(r'extern "C" __global__ void(?:\s+__launch_bounds__\([\w, ]+\))?\s+(\w+)\(', text))


class Kernels:
    """Compiled kernels of the current device, each source compiled when one of its kernels is first launched.

    HippoError when a source does not compile there: nothing else is computed with in its place.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._functions: dict[str, Any] = {}

    def launch(self, entry: str, grid: tuple[int, ...], block: int, *arguments: Any) -> None:
        """Starts a kernel on the current stream; an empty grid starts nothing.

        Integers may be plain. Floats must be np.float32 or np.float64, as the kernel takes them: a plain one is passed
        as eight bytes. Truth values must be integers, and None must not be passed at all.
        """
        if all(grid):
            self._function(entry)(grid, (block,), arguments)

    def load(self, name: str) -> None:
        """Compiles a source, or takes it from the cache, and holds its kernels."""
        try:
            module = self._cupy.RawModule(code=source(name), options=OPTIONS)
            found = {entry: module.get_function(entry) for entry in ENTRIES[name]}
        except (self._cupy.cuda.compiler.CompileException, self._cupy.cuda.driver.CUDADriverError) as error:
            capability = self._cupy.cuda.Device().compute_capability
            raise HippoError(
                f"The CUDA source {name}.cu does not compile for compute capability {capability}: {error}. "
                "Use the backend 'cpu', and report this with the output of 'hippogpu doctor'."
            ) from error
        self._functions.update(found)
        logger.info("CUDA source %s.cu is ready: %s", name, ", ".join(found))

    def _function(self, entry: str) -> Any:
        if entry not in self._functions:
            self.load(next(name for name, entries in ENTRIES.items() if entry in entries))
        return self._functions[entry]
