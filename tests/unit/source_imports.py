"""What the source files of the package import, read without importing them."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hippogpu"
NAMED_AS_TEXT = {"import_module", "require_extra", "find_spec"}


class Import(NamedTuple):
    """One import: the file, the dotted module, whether it runs when the file is imported."""

    path: Path
    line: int
    module: str
    eager: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


def all_imports() -> list[Import]:
    return [found for path in sorted(PACKAGE.rglob("*.py")) for found in imports_of(path)]


def imports_of(path: Path) -> Iterator[Import]:
    """Every import of a file: statements, and modules named as text in a call such as require_extra("faiss")."""
    yield from imports_in(path.read_text("utf-8"), path)


def imports_in(text: str, path: Path) -> Iterator[Import]:
    """The imports of a text that stands, or would stand, at the path."""
    yield from _walk(ast.parse(text), path, eager=True)


def _walk(node: ast.AST, path: Path, *, eager: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.expr)):
            yield from (Import(path, child.lineno, module, eager) for module in _modules(child, path))
        deferred = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or _type_checking(child)
        yield from _walk(child, path, eager=eager and not deferred)


def _modules(node: ast.AST, path: Path) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        source = _absolute(node, path)
        return [f"{source}.{alias.name}" if source == "hippogpu" else source for alias in node.names]
    if isinstance(node, ast.Call) and node.args and _called(node.func) in NAMED_AS_TEXT:
        name = node.args[0]
        return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []
    return []


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    if node.level == 0:
        return node.module or ""
    package = ("hippogpu", *path.relative_to(PACKAGE).parts[:-1])
    base = package[: len(package) - node.level + 1]
    return ".".join((*base, *([node.module] if node.module else [])))


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def project_table() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def core_packages() -> set[str]:
    """The distributions that every installation has. Each is imported under its own name, - written as _."""
    from packaging.requirements import Requirement

    return {Requirement(line).name for line in project_table()["project"]["dependencies"]}


def optional_imports() -> list[Import]:
    """Imports of what is neither the standard library, nor hippogpu, nor a core dependency."""
    core = {name.replace("-", "_") for name in core_packages()}
    known = {*sys.stdlib_module_names, *core, "hippogpu"}
    return [found for found in all_imports() if found.top not in known]
