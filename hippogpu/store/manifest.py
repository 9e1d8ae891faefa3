"""One JSON manifest a generation: what it holds, by what it was built, and the identity of every file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.config import IndexConfig, as_mapping, with_values
from hippogpu.errors import ConfigError, IndexDamagedError, IndexFormatError
from hippogpu.store.files import Entry

FORMAT = 2
"""1: CURRENT has no checksum, and an id no title of its own (store.passages). 2: it has."""
DIFFUSED = ("diffused_vectors", "diffused_ones")
DIFFUSION_SOURCES = ("graph_indptr", "graph_indices", "graph_weights", "passage_vectors")
INDEX_FILE = re.compile(r"[a-z0-9_]+-[0-9a-f]{16}\.(npy|arrow)")


class Encoder(NamedTuple):
    """The encoder an index was built with; spec makes it again from the command line, "" when nothing does."""

    name: str
    width: int
    spec: str


class DiffusionMark(NamedTuple):
    """Of what the diffused vectors were made: damping, their error bound, and the SHA-256 of each source by role."""

    damping: float
    error: float
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A generation: counts and entries by role.

    diffusion is the mark of the newest diffusion, also when its sources have changed since; None before the first.
    """

    generation: int
    created: str
    program: str
    config: IndexConfig
    encoder: Encoder
    counts: Mapping[str, int]
    files: Mapping[str, Entry]
    format: int = FORMAT
    diffusion: DiffusionMark | None = None

    @property
    def diffusion_state(self) -> str:
        """ "fresh" when the diffused vectors are those of this generation's graph and vectors, "stale", or "none"."""
        if self.diffusion is None:
            return "none"
        fits = dict(self.diffusion.sources) == diffusion_sources(self.files)
        return "fresh" if fits and all(role in self.files for role in DIFFUSED) else "stale"


def diffusion_sources(files: Mapping[str, Entry]) -> dict[str, str]:
    """The SHA-256 of each file that the diffused vectors depend on."""
    return {role: files[role].sha256 for role in DIFFUSION_SOURCES if role in files}


def to_json(manifest: Manifest) -> bytes:
    value = asdict(manifest) | {
        "config": as_mapping(manifest.config),
        "encoder": manifest.encoder._asdict(),
        "files": {role: entry._asdict() for role, entry in manifest.files.items()},
        "diffusion": manifest.diffusion._asdict() if manifest.diffusion else None,
    }
    return (json.dumps(value, indent=1) + "\n").encode("ascii")


def from_json(data: bytes, path: Path) -> Manifest:
    """The manifest of a file's bytes; IndexFormatError when it is newer, IndexDamagedError when it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is no JSON ({error})") from error
    if not isinstance(value, dict) or type(value.get("format")) is not int or value["format"] < 1:
        raise _damaged(path, "it names no format")
    if value["format"] > FORMAT:
        raise IndexFormatError(
            f"The index was written in format {value['format']}; this version of hippogpu reads up to {FORMAT} "
            f"('{path}'). Upgrade hippogpu, or index the corpus again into another folder."
        )
    try:
        return _manifest(value)
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _manifest(value: dict[str, Any]) -> Manifest:
    return Manifest(
        generation=_count(value["generation"]),
        created=str(value["created"]),
        program=str(value["program"]),
        config=with_values(IndexConfig(), value["config"]),
        encoder=Encoder(
            str(value["encoder"]["name"]), _count(value["encoder"]["width"]), str(value["encoder"]["spec"])
        ),
        counts={str(name): _count(count) for name, count in value["counts"].items()},
        files={str(role): _entry(entry) for role, entry in value["files"].items()},
        format=value["format"],
        diffusion=_diffusion(value.get("diffusion")),
    )


def _diffusion(value: dict[str, Any] | None) -> DiffusionMark | None:
    if value is None:
        return None
    sources = {str(role): str(digest) for role, digest in value["sources"].items()}
    return DiffusionMark(float(value["damping"]), float(value["error"]), sources)


def _entry(value: dict[str, Any]) -> Entry:
    if not isinstance(value["file"], str) or not INDEX_FILE.fullmatch(value["file"]):
        raise ValueError(f"'{value['file']}' is no name of an index file")
    shape = tuple(_count(size) for size in value["shape"])
    return Entry(value["file"], _count(value["bytes"]), str(value["sha256"]), str(value["dtype"]), shape)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The manifest '{path}' is damaged: {what}. Restore it from a copy, or remove the index folder's CURRENT file "
        "and index the corpus again (finished extractions are kept)."
    )
