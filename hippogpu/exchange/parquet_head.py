"""The head of a Parquet export: what it says of the index and of its files, none of it trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippogpu.config import IndexConfig, with_values
from hippogpu.errors import ConfigError, CorpusError
from hippogpu.exchange.parquet_tables import FORMAT, HEAD, HEAD_KIND, OPTIONAL, TABLES, Declared, unfit
from hippogpu.exchange.records import RecordFile, record_file
from hippogpu.store import Encoder
from hippogpu.store.mapped import sha256_of

_MOST_BYTES = 16 << 20
_MOST_ROWS = (1 << 31) - 1
_WIDEST = 1 << 16
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Head:
    """What export.json says.

    index_format : format of the index it was made of · diffusion: damping and error of the diffused vectors, or None
    sha256       : of the files of that index, by role
    """

    index_format: int
    config: IndexConfig
    encoder: Encoder
    counts: Mapping[str, int]
    diffusion: tuple[float, float] | None
    tables: Mapping[str, Declared]
    records: list[RecordFile]
    sha256: Mapping[str, str]


def is_export(folder: Path) -> bool:
    """Whether a folder holds a Parquet export of ours and nothing else."""
    names = {HEAD, *(f"{name}.parquet" for name in TABLES)}
    if not (folder / HEAD).is_file():
        return False
    return all(path.name in names or re.fullmatch(r"records-[0-9]{4}\.jsonl", path.name) for path in folder.iterdir())


def read_head(folder: Path) -> Head:
    """The head of the export in a folder; CorpusError when there is none that can be read here."""
    path = folder / HEAD
    if not folder.is_dir():
        what = "is a file, and an export is a folder" if folder.exists() else "does not exist"
        raise CorpusError(
            f"'{folder}' {what}. Name the folder of an export (--from parquet), or another form by --from."
        )
    if not path.is_file() or path.is_symlink():
        raise CorpusError(f"'{folder}' holds no export: there is no file '{HEAD}' in it. Name the folder of one.")
    if path.stat().st_size > _MOST_BYTES:
        raise unfit(path, f"it has {path.stat().st_size} bytes, more than any head")
    try:
        value = json.loads(path.read_bytes())
        if value["what"] != HEAD_KIND:
            raise ValueError(f"it calls itself {value['what']!r:.60}")
        newer = _count(value["format"]) > FORMAT
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unfit(path, f"it is no head of an export ({type(error).__name__}: {error})") from error
    if newer:
        raise CorpusError(
            f"'{path}' was written in format {value['format']}; this version of hippogpu reads up to {FORMAT}. "
            "Upgrade hippogpu, or export the index again."
        )
    try:
        return _head(value)
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise unfit(path, f"it is no head of an export ({type(error).__name__}: {error})") from error


def check_files(folder: Path, head: Head) -> None:
    """Nothing when each file that the head names is there with its size and SHA-256; else CorpusError naming it."""
    declared = {f"{name}.parquet": table for name, table in head.tables.items()}
    declared |= {one.file: one.declared for one in head.records}
    for name, file in declared.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise unfit(path, "it is missing, or no plain file")
        if path.stat().st_size != file.bytes:
            raise unfit(path, f"it has {path.stat().st_size} bytes, not {file.bytes}")
        if sha256_of(path) != file.sha256:
            raise unfit(path, "it was altered: its SHA-256 is not the one in the head")


def _head(value: dict[str, Any]) -> Head:
    tables = {name: _declared(entry) for name, entry in value["tables"].items()}
    missing = [name for name in TABLES if name not in tables and name not in OPTIONAL]
    foreign = [name for name in tables if name not in TABLES]
    if missing or foreign or ("user_edges" in tables) != ("user_edge_nodes" in tables):
        raise ValueError(f"its tables are {', '.join(tables)}")
    if ("diffused" in tables) != (value["diffusion"] is not None):
        raise ValueError("the diffused vectors and what they were made with are not there together")
    encoder = value["encoder"]
    return Head(
        index_format=_count(value["index"]["format"]),
        config=with_values(IndexConfig(), value["config"]),
        encoder=Encoder(_text(encoder["name"]), _count(encoder["width"], most=_WIDEST), _text(encoder["spec"])),
        counts={_text(name): _count(count) for name, count in value["counts"].items()},
        diffusion=None if value["diffusion"] is None else _diffusion(value["diffusion"]),
        tables=tables,
        records=_records(value["records"]),
        sha256={_text(role): _digest(digest) for role, digest in value["sha256"].items()},
    )


def _records(value: list[dict[str, Any]]) -> list[RecordFile]:
    found = [record_file(entry) for entry in value]
    for one in found:
        _declared(one.declared._asdict())
    if len({one.file for one in found}) < len(found) or len({one.extractor for one in found}) < len(found):
        raise ValueError("two files of records have one name or one extractor")
    return found


def _diffusion(value: dict[str, Any]) -> tuple[float, float]:
    damping, error = value["damping"], value["error"]
    if not all(type(number) in (int, float) for number in (damping, error)):
        raise ValueError("damping and error must be numbers")
    if not (0.0 <= damping < 1.0 and 0.0 <= error < 1.0):
        raise ValueError(f"a damping of {damping} with an error of {error} is none")
    return float(damping), float(error)


def _declared(value: dict[str, Any]) -> Declared:
    return Declared(_count(value["bytes"]), _digest(value["sha256"]), _count(value["rows"], most=_MOST_ROWS))


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"{value!r:.80} is no SHA-256")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.60} is no text")
    return value


def _count(value: object, *, most: int = 1 << 62) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.60} is no count up to {most}")
    return value
