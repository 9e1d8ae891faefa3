"""NVIDIA's run-time compiler from its wheel, through ctypes: no CuPy and no GPU."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache
from pathlib import Path

import pytest

WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


@cache
def compiler() -> ctypes.CDLL:
    """libnvrtc of the installed wheel; the test is skipped, with what to install, where there is none."""
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = sorted(Path(str(file.locate())) for file in files if file.name.startswith("libnvrtc"))
        # The compiler looks for its built-in functions by name, and finds them once they are loaded.
        libraries = [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in paths if ".alt." not in path.name]
        return libraries[-1]
    pytest.skip("no NVRTC: the CUDA sources are not compiled. Install hippogpu[dev]")


def compile_source(text: str, name: str, options: tuple[str, ...]) -> bytes:
    """The device code, or PTX for a virtual architecture; AssertionError with the compiler's words."""
    library, program = compiler(), ctypes.c_void_p()
    encoded = [option.encode() for option in options]
    array = (ctypes.c_char_p * len(encoded))(*encoded)
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None) == 0
    try:
        status = library.nvrtcCompileProgram(program, len(encoded), array)
        assert status == 0, (
            f"{name} {options}:\n{_text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)}"
        )
        kind = "PTX" if any("compute_" in option for option in options) else "CUBIN"
        return _bytes(getattr(library, f"nvrtcGet{kind}Size"), getattr(library, f"nvrtcGet{kind}"), program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(size_of: ctypes._NamedFuncPointer, get: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    assert size_of(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert get(program, buffer) == 0
    return buffer.raw


def _text(size_of: ctypes._NamedFuncPointer, get: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> str:
    return _bytes(size_of, get, program).decode(errors="replace").rstrip("\0")
