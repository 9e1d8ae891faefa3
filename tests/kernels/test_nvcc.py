"""Where nvcc is installed: no kernel spills registers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hippogpu.backends._kernels import ENTRIES, OPTIONS, sources_folder

NVCC = shutil.which("nvcc")
ARCHITECTURES = (80, 90, 100)


def report(name: str, architecture: int, out: Path) -> str:
    """ptxas's words on a source; the test is skipped where this nvcc does not know the architecture."""
    run = subprocess.run(
        [str(NVCC), *OPTIONS, "-ftz=true", f"-arch=sm_{architecture}", "-Xptxas", "-v", "-cubin", "-o", str(out),
         str(sources_folder() / f"{name}.cu")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Unsupported gpu architecture" in run.stderr or "not defined for option 'gpu-architecture'" in run.stderr:
        pytest.skip(f"this nvcc does not know sm_{architecture}")
    assert run.returncode == 0, run.stderr
    return run.stderr


@pytest.mark.skipif(NVCC is None, reason="no nvcc: register spills are not looked for")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", ENTRIES)
def test_no_kernel_spills(name: str, architecture: int, tmp_path: Path) -> None:
    words = report(name, architecture, tmp_path / "out.cubin")
    entries = re.findall(r"Compiling entry function '(\w+)'", words)
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", words)
    assert sorted(entries) == sorted(ENTRIES[name])
    assert spills == [("0", "0")] * len(entries)
