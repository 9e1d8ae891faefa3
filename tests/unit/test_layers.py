"""Imports run one way, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from source_imports import PACKAGE, ROOT, Import, all_imports, imports_in, imports_of, optional_imports

# Lowest first. A room may import the rooms of the lines above its own, and itself; never a room of its own line.
LAYERS = (
    {"errors", "text"},
    {"types", "disk", "text_columns"},
    {"config"},
    {"precision"},
    {"llm"},
    {"corpus", "openie", "embed", "tables", "backends", "store", "words"},
    {"synonyms", "graph", "resolve", "nearest"},
    {"diffuse", "methods"},
    {"index", "searcher", "evaluate", "runs", "capacity"},
    {"reading"},
    {"serve", "integrations", "testing", "demo", "exchange"},
    {"cli"},
    {"__main__", "__init__"},
)
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
DEVICE_PACKAGES = {"cupy", "cupyx", "cugraph", "pylibcugraph", "cudf", "dask_cuda"}
TEST_PACKAGES = {"pytest", "hypothesis"}
HEAVY = ("torch", "faiss", "cupy", "vllm", "onnxruntime", "spacy", "bm25s")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def target_room(found: Import) -> str:
    """The room an import reaches; a name taken from the package itself counts as the package's own file."""
    parts = found.module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in HEIGHT else "__init__"


def climbs(found: Import) -> bool:
    here, there = room_of(found.path), target_room(found)
    return found.top == "hippogpu" and here != there and HEIGHT[there] >= HEIGHT.get(here, len(LAYERS))


def test_every_room_is_listed_in_a_layer() -> None:
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")}
    unknown = sorted(rooms - HEIGHT.keys())
    assert not unknown, f"Not in a layer: {unknown}. List each in LAYERS of tests/unit/test_layers.py, lowest first."


def test_imports_reach_only_lower_layers() -> None:
    assert [str(found) for found in all_imports() if climbs(found)] == []


def test_only_backends_import_device_packages() -> None:
    strays = [f for f in all_imports() if f.top in DEVICE_PACKAGES and room_of(f.path) != "backends"]
    assert [str(found) for found in strays] == []


def test_optional_packages_are_imported_only_when_used() -> None:
    eager = [f for f in optional_imports() if f.eager and not (room_of(f.path) == "testing" and f.top in TEST_PACKAGES)]
    assert [str(found) for found in eager] == []


@pytest.mark.parametrize("module", ["hippogpu", "hippogpu.cli"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    script = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr


@pytest.mark.parametrize(
    ("room", "line", "refused"),
    [
        ("graph", "import hippogpu.methods.seeds", True),
        ("graph", "from hippogpu import searcher", True),
        ("graph", "from hippogpu import __version__", True),
        ("methods/seeds", "from . import filter", False),
        ("methods/seeds", "from ..index import Index", True),
        ("openie/two_step", "from hippogpu.llm import Chat", False),
        ("embed/http", "from hippogpu.openie import Extractor", True),
    ],
)
def test_the_rule_tells_climbing_imports(room: str, line: str, refused: bool) -> None:
    found = next(imports_in(line, PACKAGE / f"{room}.py"))
    assert climbs(found) is refused


def test_a_deferred_import_is_not_eager(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text("import numpy\ndef late():\n    import torch\n    return require_extra('faiss')\n")
    assert [(f.module, f.eager) for f in imports_of(source)] == [("numpy", True), ("torch", False), ("faiss", False)]
