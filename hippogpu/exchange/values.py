"""What exports and imports are called, and what they report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from hippogpu.errors import UsageError
from hippogpu.types import Refusal

Form = Literal["parquet", "graphml", "edges", "qdrant", "milvus", "chroma"]
"""Forms that an index can be written in; those in VECTOR_STORES and Parquet can be read too."""

FORMS: tuple[Form, ...] = get_args(Form)
ImportForm = Literal["parquet", "qdrant", "milvus", "chroma"]
VECTOR_STORES: tuple[Form, ...] = ("qdrant", "milvus", "chroma")
What = Literal["passages", "phrases", "facts"]
WHATS: tuple[What, ...] = get_args(What)

OnProgress = Callable[[str, int, int], None]
"""Is told a stage, what is done of it, and the whole of it."""

_ENDINGS: Mapping[str, Form] = {
    ".parquet": "parquet",
    ".graphml": "graphml",
    ".tsv": "edges",
    ".csv": "edges",
    ".qdrant": "qdrant",
    ".db": "milvus",
    ".chroma": "chroma",
}


class ExportReport(NamedTuple):
    """What was written: rows by table or collection, bytes on disk.

    refused : items that the form cannot hold, and why · replaced: texts in which characters had to be replaced
    notes   : what else is worth knowing, a sentence each
    """

    form: Form
    target: Path
    rows: Mapping[str, int]
    bytes: int
    refused: tuple[Refusal, ...] = ()
    replaced: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()


class Written(NamedTuple):
    """What a form's writer says; see ExportReport."""

    rows: Mapping[str, int]
    refused: tuple[Refusal, ...] = ()
    replaced: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()


def form_of(path: Path) -> Form:
    """The form that a name asks for by its ending; UsageError where it asks for none."""
    name = path.name.lower()
    packed = name.endswith(".gz")
    found = _ENDINGS.get(Path(name.removesuffix(".gz")).suffix)
    if found is None or (packed and found not in ("graphml", "edges")):
        raise UsageError(
            f"'{path}' does not say by its ending ({', '.join(_ENDINGS)}) what form it has. Name the form: --to of "
            f"export ({', '.join(FORMS)}), --from of import (parquet, {', '.join(VECTOR_STORES)}), form= in Python."
        )
    return found


def silent(stage: str, done: int, whole: int) -> None:
    """Progress that nobody is told."""


def bytes_of(path: Path) -> int:
    """The size of a file, or of all files of a folder."""
    if path.is_dir():
        return sum(bytes_of(one) for one in path.iterdir())
    return path.stat().st_size
