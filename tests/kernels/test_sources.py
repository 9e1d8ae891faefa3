"""The CUDA sources keep to the list of kernels, and the backend to the seam, with neither CuPy nor a GPU."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hippogpu.backends import Backend, cuda, cugraph, load_backend
from hippogpu.backends import _kernels as kernels
from hippogpu.backends.devices import find_device
from hippogpu.errors import HippoError, MissingExtraError

ROOT = Path(__file__).parents[2]
COPY = kernels.sources_folder()


def test_every_source_is_listed_and_the_reverse() -> None:
    assert sorted(path.stem for path in COPY.glob("*.cu")) == sorted(kernels.ENTRIES)


@pytest.mark.parametrize("name", kernels.ENTRIES)
def test_every_kernel_of_a_source_is_listed_once_and_the_reverse(name: str) -> None:
    text = kernels.source(name)
    assert kernels.defined_entries(text) == kernels.ENTRIES[name]
    assert len(re.findall(r"__global__", text)) == len(kernels.ENTRIES[name])


def test_no_name_is_used_by_two_sources() -> None:
    entries = [entry for names in kernels.ENTRIES.values() for entry in names]
    assert len(entries) == len(set(entries))


@pytest.mark.parametrize("path", sorted(COPY.glob("*.cu*")), ids=lambda path: path.name)
def test_a_source_includes_nothing_but_the_shared_one(path: Path) -> None:
    includes = re.findall(r"^\s*#\s*include\s+(\S+)", path.read_text("utf-8"), re.MULTILINE)
    assert includes == ([] if path.suffix == ".cuh" else ['"common.cuh"'])


def test_a_source_is_given_to_the_compiler_in_one_piece() -> None:
    assert "#include" not in kernels.source("step")
    assert "HIPPOGPU_COMMON_CUH" in kernels.source("step")


def test_every_kernel_that_is_launched_is_listed() -> None:
    """Names in launches are text: whole, or with the width of a lane in braces."""
    texts = [path.read_text("utf-8") for path in (ROOT / "hippogpu" / "backends").glob("cuda*.py")]
    names = {
        "".join(
            part.value if isinstance(part, ast.Constant) else "4"
            for part in getattr(node.args[0], "values", [node.args[0]])
        )
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "launch"
        and node.args
    }
    listed = {entry for entries in kernels.ENTRIES.values() for entry in entries if not entry.endswith("_1")}
    assert names == listed


@pytest.mark.parametrize("backend", [cuda.CudaBackend, cugraph.CugraphBackend])
def test_a_backend_has_the_methods_of_the_seam(backend: type) -> None:
    def signatures(of: type) -> dict[str, list[tuple[str, object, object]]]:
        members = inspect.getmembers(of, inspect.isfunction)
        return {
            name: [(p.name, p.kind, p.default) for p in inspect.signature(member).parameters.values()]
            for name, member in members
            if not name.startswith("_")
        }

    assert signatures(backend) == signatures(Backend)


def test_importing_the_backends_imports_no_cupy() -> None:
    script = "import sys, hippogpu.backends.cuda, hippogpu.backends.cugraph; print('cupy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.skipif(find_device().device is not None, reason="a CUDA device answers here")
@pytest.mark.parametrize("name", ["cuda", "cugraph"])
def test_asking_for_a_gpu_where_there_is_none_says_what_to_do(name: str) -> None:
    with pytest.raises(HippoError, match=r"hippogpu\[c\w+13\]|nvidia-smi") as caught:
        load_backend(name)  # type: ignore[arg-type]
    assert not isinstance(caught.value, MissingExtraError) or caught.value.extra in {"cuda13", "cugraph13"}


@pytest.mark.skipif(find_device().device is not None, reason="a CUDA device answers here")
def test_auto_is_the_cpu_without_a_device_and_logs_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "hippogpu.backends"):
        assert load_backend("auto").name == "cpu"
    assert find_device().reason in caplog.text
