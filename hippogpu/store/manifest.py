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

FORMAT = 3
"""1: CURRENT has no checksum, and an id no title of its own (store.passages). 2: it has. 3: vectors have types."""
DIFFUSED = ("diffused_vectors", "diffused_ones")
DIFFUSION_SOURCES = ("graph_indptr", "graph_indices", "graph_weights", "passage_vectors", "passage_scales")
INDEX_FILE = re.compile(r"[a-z0-9_]+-[0-9a-f]{16}\.(npy|arrow)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9_]{1,64}")
_MOST_FORMAT, _MOST_GENERATION, _MOST_WIDTH, _MOST_COUNT = 10**6, 10**10 - 2, 1 << 20, 1 << 53
_MOST_LETTERS, _MOST_ENTRIES, _MOST_AXES, _SHOWN = 4096, 256, 4, 200
"""What no manifest of ours exceeds: a larger one is refused before anything is made of it."""


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
        value = json.loads(data, object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is no JSON ({error})") from error
    if not isinstance(value, dict) or type(value.get("format")) is not int or not 1 <= value["format"] <= _MOST_FORMAT:
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
    encoder = value["encoder"]
    return Manifest(
        generation=_count(value["generation"], most=_MOST_GENERATION),
        created=_text(value["created"]),
        program=_text(value["program"]),
        config=with_values(IndexConfig(), value["config"]),
        encoder=Encoder(_text(encoder["name"]), _count(encoder["width"], most=_MOST_WIDTH), _text(encoder["spec"])),
        counts={name: _count(count) for name, count in _items(value["counts"])},
        files={role: _entry(role, entry) for role, entry in _items(value["files"])},
        format=value["format"],
        diffusion=_diffusion(value.get("diffusion")),
    )


def _diffusion(value: dict[str, Any] | None) -> DiffusionMark | None:
    if value is None:
        return None
    damping, error = _fraction(value["damping"]), _fraction(value["error"])
    if damping >= 1:
        raise ValueError(f"{damping} is no damping")
    return DiffusionMark(damping, error, {role: _sha256(digest) for role, digest in _items(value["sources"])})


def _entry(role: str, value: dict[str, Any]) -> Entry:
    file, shape = value["file"], value["shape"]
    if not isinstance(file, str) or not INDEX_FILE.fullmatch(file):
        raise ValueError(f"{file!r:.{_SHOWN}} is no name of an index file")
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise ValueError(f"{shape!r:.{_SHOWN}} is no shape, that of '{role}'")
    sizes = tuple(_count(size) for size in shape)
    return Entry(file, _count(value["bytes"]), _sha256(value["sha256"]), _text(value["dtype"]), sizes)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError when a key comes twice, since readers differ in which one they take."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key comes twice")
    return value


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _items(value: object) -> list[tuple[str, Any]]:
    """The items of an object whose keys are plain names, and not too many."""
    if not isinstance(value, dict) or len(value) > _MOST_ENTRIES or not all(map(_NAME.fullmatch, value)):
        raise ValueError(f"{value!r:.{_SHOWN}} is no object of named values")
    return list(value.items())


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MOST_LETTERS:
        raise ValueError(f"{value!r:.{_SHOWN}} is no text of at most {_MOST_LETTERS} letters")
    return value


def _sha256(value: object) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(f"{value!r:.{_SHOWN}} is no SHA-256")
    return value


def _fraction(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_COUNT:
        raise ValueError(f"{value!r:.{_SHOWN}} is no number of 0 or more")
    return float(value)


def _count(value: object, *, most: int = _MOST_COUNT) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.{_SHOWN}} is no count up to {most}")
    return value


def _damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The manifest '{path}' is damaged: {what:.{2 * _SHOWN}}. Restore it from a copy, or remove the index folder's "
        "CURRENT file and index the corpus again (finished extractions are kept)."
    )
