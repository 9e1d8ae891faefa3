"""The metadata keep the promises that a resolver cannot check."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from source_imports import ROOT, core_packages, optional_imports, project_table

PROJECT = project_table()["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
CONFLICTS = {
    frozenset(pair)
    for group in project_table()["tool"]["uv"]["conflicts"]
    for pair in combinations([member["extra"] for member in group], 2)
}
CUDA12, CUDA13 = {"cuda12", "cugraph12", "cugraph-mg12"}, {"cuda13", "cugraph13", "cugraph-mg13", "cuvs13", "vllm"}
PIN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][A-Za-z0-9.]*( ; python_full_version (<|>=) '3\.\d+')?")

# Where the name to import is not the name to install.
DISTRIBUTIONS = {
    "cugraph": "cugraph-cu12",
    "cupy": "cupy-cuda12x",
    "cupyx": "cupy-cuda12x",
    "cuvs": "cuvs-cu13",
    "faiss": "faiss-cpu",
    "pylibcugraph": "pylibcugraph-cu12",
    "sknetwork": "scikit-network",
    "starlette": "fastapi",
    "torch": "sentence-transformers",
    "transformers": "sentence-transformers",
}


def requirements(extra: str) -> list[Requirement]:
    return [Requirement(line) for line in EXTRAS[extra]]


def pins() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pinned_names() -> set[str]:
    return {line.partition("==")[0] for line in pins()}


@pytest.mark.parametrize("line", [*PROJECT["dependencies"], *sorted({r for lines in EXTRAS.values() for r in lines})])
def test_every_requirement_has_a_lower_bound(line: str) -> None:
    assert {">=", "==", "~="} & {bound.operator for bound in Requirement(line).specifier}, line


def test_the_core_needs_neither_torch_nor_a_faiss() -> None:
    assert not core_packages() & {"torch", "faiss-cpu", "faiss-gpu", "sentence-transformers"}


def test_both_faiss_builds_are_in_conflict() -> None:
    cpu = [extra for extra in EXTRAS if any(r.name == "faiss-cpu" for r in requirements(extra))]
    gpu = [extra for extra in EXTRAS if any(r.name == "faiss-gpu" for r in requirements(extra))]
    assert (cpu, gpu) == (["faiss"], ["cuda12", "cuda13"])
    assert {frozenset((c, g)) for c in cpu for g in gpu} <= CONFLICTS


def test_every_cuda_12_extra_conflicts_with_every_cuda_13_extra() -> None:
    assert {frozenset((old, new)) for old in CUDA12 for new in CUDA13} <= CONFLICTS


def test_conflicts_name_known_extras() -> None:
    assert {extra for pair in CONFLICTS for extra in pair} <= EXTRAS.keys()


def test_constraints_hold_only_names_and_versions() -> None:
    assert [line for line in pins() if not PIN.fullmatch(line)] == []


def test_a_package_is_pinned_twice_only_for_different_pythons() -> None:
    unmarked = [line.partition("==")[0] for line in pins() if ";" not in line]
    marked = {line.partition("==")[0] for line in pins() if ";" in line}
    assert len(unmarked) == len(set(unmarked))
    assert not marked & set(unmarked)


@pytest.mark.parametrize(
    "extra", ["core", "minilm", "faiss", "eval", "http", "nlp", "bench", "dev", "qdrant", "chroma", "milvus"]
)
def test_what_the_cpu_sets_need_is_pinned(extra: str) -> None:
    named = core_packages() if extra == "core" else {r.name for r in requirements(extra)}
    assert {canonicalize_name(name) for name in named} <= pinned_names()


def test_constraints_pull_neither_torch_nor_cuda() -> None:
    """The run-time compiler alone is there for the tests: it needs neither the rest of CUDA nor a GPU."""
    heavy = {name for name in pinned_names() if name == "torch" or name.startswith(("cupy", "nvidia-"))}
    assert heavy == {"nvidia-cuda-nvrtc"}


def test_every_optional_import_is_in_an_extra() -> None:
    offered = {canonicalize_name(r.name) for extra in EXTRAS for r in requirements(extra)}
    missing = [str(f) for f in optional_imports() if canonicalize_name(DISTRIBUTIONS.get(f.top, f.top)) not in offered]
    assert missing == [], "Add the package to an extra in pyproject.toml, or its name to DISTRIBUTIONS above."
