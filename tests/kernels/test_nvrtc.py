"""Every source compiles with NVRTC and the options of run time, for each architecture we name."""

from __future__ import annotations

import re

import pytest
from nvrtc import compile_source

from hippogpu.backends._kernels import CUPY_OPTIONS, ENTRIES, OPTIONS, source

ARCHITECTURES = (80, 90, 100)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", ENTRIES)
def test_a_source_compiles_as_at_run_time(name: str, architecture: int) -> None:
    code = compile_source(source(name), f"{name}.cu", (*OPTIONS, *CUPY_OPTIONS, f"-arch=sm_{architecture}"))
    assert code[:4] == b"\x7fELF"
    assert [entry for entry in ENTRIES[name] if f".text.{entry}".encode() not in code] == []


def test_an_error_in_a_source_is_told() -> None:
    with pytest.raises(AssertionError, match="undefined"):
        compile_source(source("topk") + "int broken() { return missing; }", "broken.cu", (*OPTIONS, "-arch=sm_90"))


def test_a_host_header_would_be_refused() -> None:
    with pytest.raises(AssertionError, match="cstdint"):
        compile_source("#include <cstdint>\n" + source("step"), "header.cu", (*OPTIONS, "-arch=sm_90"))


@pytest.mark.parametrize("name", ["step_rows", "step_parts"])
def test_neighbours_are_read_sixteen_bytes_at_a_time(name: str) -> None:
    ptx = compile_source(source("step"), "step.cu", (*OPTIONS, *CUPY_OPTIONS, "-arch=compute_90")).decode()
    body = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}", ptx, re.DOTALL))
    assert re.search(r"ld\.global[.\w]*\.v4", body[f"{name}_4"])
    assert not re.search(r"ld\.global[.\w]*\.v4", body[f"{name}_1"])
