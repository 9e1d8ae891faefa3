"""Hostile index folders by number, and a process that opens them: python tests/unit/hostile.py FOLDER FIRST COUNT

Each case alters a part of a small sound index (its own part, the same for the same number), sets sizes and CURRENT
right again so that the altered part is reached, and uses everything: every column, every check, rankings, verification,
the log. Only errors of our own tree may come out. The process prints each number before its case, and has little memory
and time: whoever started it sees by its last line which case ended it.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import random
import resource
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from hippogpu import RunConfig, SearchConfig, Searcher
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import HippoError
from hippogpu.index import verify_index
from hippogpu.openie import ExtractionLog, verify_log
from hippogpu.store import current_manifest, load_snapshot, logs_folder

CASE_S, SPARE_BYTES = 30.0, 1 << 30
WIDTH = 32
SIZES = (0, 1, 2, 7, 8, 16, 64, 127, 128, 255, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)
REALS = (0.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2**31, 2**53, 10**30, 1.5, -0.0, 1e308, "", "x", "\0", "../..", "é" * 99, "9" * 99),
    *([], {}, [[]], [0], [-1], [10**30], {"x": {}}, ["x"] * 99, float("nan"), float("inf")),
)
Draw = random.Random


def files_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def altered_bytes(data: bytes, draw: Draw) -> bytes:
    """The data with bits flipped, cut, spliced, lengthened or overwritten."""
    at, other = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
    low, high = min(at, other), max(at, other)
    return draw.choice(
        (
            lambda: data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :] if at < len(data) else b"",
            lambda: data[:at],
            lambda: data[:low] + data[high:],
            lambda: data[:at] + data[low:high] + data[at:],
            lambda: data[:low] + bytes(high - low) + data[high:],
            lambda: data[:low] + draw.randbytes(high - low) + data[high:],
            lambda: data + draw.randbytes(draw.randrange(64)),
        )
    )()


def altered_numbers(data: bytes, draw: Draw, *, first: int, last: int) -> bytes:
    """The data with one to three numbers between two places set to what a reader may trip over."""
    out = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        code = draw.choice("bhiqf")
        size = struct.calcsize(f"<{code}")
        if last - first < size:
            continue
        at = first + draw.randrange((last - first) // size) * size
        old = struct.unpack_from(f"<{code}", out, at)[0]
        limit = 1 << 8 * size - 1
        whole = draw.choice((*SIZES, len(data), -1, -8, int(old) + 1 if old == old and abs(old) < limit else 0))
        new = draw.choice(REALS) if code == "f" else (whole + limit) % (2 * limit) - limit
        struct.pack_into(f"<{code}", out, at, new)
    return bytes(out)


def altered_table(data: bytes, draw: Draw) -> bytes:
    """An Arrow file with numbers changed in its footer, in its batch's metadata, in its body, or any bytes at all."""
    footer = len(data) - 10 - struct.unpack_from("<i", data, len(data) - 10)[0]
    schema = 16 + struct.unpack_from("<i", data, 12)[0]
    batch = schema + 8 + struct.unpack_from("<i", data, schema + 4)[0] if schema + 8 < footer else schema
    first, last = draw.choice(((footer, len(data)), (schema, batch), (batch, footer), (8, schema), (0, 0)))
    return altered_numbers(data, draw, first=first, last=last) if last > first else altered_bytes(data, draw)


def altered_array(data: bytes, draw: Draw) -> bytes:
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    kind = draw.randrange(3)
    if kind == 0:
        return altered_bytes(data[:start], draw) + data[start:]
    return altered_numbers(data, draw, first=start, last=len(data)) if kind == 1 else altered_bytes(data, draw)


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON value, as its container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from places(inner)


def altered_value(value: Any, draw: Draw) -> Any:
    """A JSON value with one to three of its parts replaced, removed or exchanged."""
    for _ in range(draw.randrange(1, 4)):
        every = list(places(value))
        if not every:
            break
        (inside, key), (elsewhere, other) = draw.choice(every), draw.choice(every)
        kind = draw.randrange(4)
        if kind == 0:
            del inside[key]
        elif kind == 1:
            inside[key], elsewhere[other] = json.loads(json.dumps([elsewhere[other], inside[key]]))
        else:
            inside[key] = deepcopy(draw.choice(VALUES))
    return value


def alter_manifest(root: Path, draw: Draw) -> None:
    (path,) = (root / "manifests").iterdir()
    data = path.read_bytes()
    if draw.random() < 0.3:
        path.write_bytes(altered_bytes(data, draw))
    else:
        path.write_text(json.dumps(altered_value(json.loads(data), draw)))
    point(root)


def alter_file(root: Path, draw: Draw, ending: str, change: Callable[[bytes, Draw], bytes]) -> None:
    (manifest,) = (root / "manifests").iterdir()
    value = json.loads(manifest.read_bytes())
    roles = [role for role, entry in value["files"].items() if entry["file"].endswith(ending)]
    for role in draw.sample(roles, draw.randrange(1, 3)):
        path = root / "files" / value["files"][role]["file"]
        path.write_bytes(change(path.read_bytes(), draw))
        value["files"][role]["bytes"] = path.stat().st_size
    manifest.write_text(json.dumps(value))
    point(root)


def alter_log(root: Path, draw: Draw) -> None:
    (path,) = logs_folder(root).glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    number = draw.randrange(len(lines))
    if draw.random() < 0.2:
        lines[number] = altered_bytes(lines[number], draw)
    else:
        value = altered_value(json.loads(b"{" + lines[number][18:]), draw)
        body = json.dumps(value)[1:].encode() if draw.random() < 0.9 else altered_bytes(lines[number][18:-1], draw)
        lines[number] = b'{"crc":"%08x",%b\n' % (zlib.crc32(body), body)
    path.write_bytes(b"".join(lines))


def point(root: Path) -> None:
    """Makes CURRENT name the one manifest as it is now."""
    (path,) = (root / "manifests").iterdir()
    (root / "CURRENT").write_text(f"{path.stem} {hashlib.sha256(path.read_bytes()).hexdigest()}\n")


def alter(root: Path, number: int) -> None:
    """What the case of that number does to a sound index; every eighth is about the log."""
    draw = random.Random(number)
    kind = number % 8
    if kind < 2:
        alter_manifest(root, draw)
    elif kind < 5:
        alter_file(root, draw, ".arrow", altered_table)
    elif kind < 7:
        alter_file(root, draw, ".npy", altered_array)
    else:
        alter_log(root, draw)


def use(root: Path, number: int) -> list[str]:
    """What reads the part that a case alters; the errors of our tree that it met."""
    met: list[str] = []
    for step in (logs,) if number % 8 == 7 else (columns, checks, rankings, verifications):
        try:
            step(root)
        except HippoError as error:
            met.append(f"{type(error).__name__}: {error}")
    return met


def columns(root: Path) -> None:
    snapshot = load_snapshot(root, current_manifest(root))
    passages, facts = snapshot.passages, snapshot.tables.facts
    every = (passages.ids, passages.titles, passages.metas, passages.wholes, passages.extractors)
    for column in (*every, snapshot.tables.phrases, facts.predicate, facts.text, snapshot.user_edges):
        list(column)
    for number in range(len(passages.ids)):
        passages.named(number)


def checks(root: Path) -> None:
    snapshot = load_snapshot(root, current_manifest(root))
    snapshot.tables.check()
    snapshot.graph.check()


def rankings(root: Path) -> None:
    searcher = Searcher.open(root, embedder=HashingEmbedder(WIDTH), run=RunConfig(backend="cpu"))
    for config in (SearchConfig(), SearchConfig(solver="power"), SearchConfig(method="dense")):
        searcher.rank(["Who built the engine?"], k=3, config=config)
    searcher.aliases()


def verifications(root: Path) -> None:
    problems = verify_index(root), verify_index(root, full=True)
    assert all(isinstance(line, str) and "\n" not in line[:40] for lines in problems for line in lines)


def logs(root: Path) -> None:
    for path in logs_folder(root).glob("*.jsonl"):
        verify_log(path)
        with ExtractionLog(path) as log:
            log.outcomes()
            log.load()


def run(root: Path, numbers: range) -> None:
    """Runs cases one after the other, each on the sound index."""
    good = files_of(root)
    for number in numbers:
        print(number, flush=True)
        faulthandler.dump_traceback_later(CASE_S, exit=True)
        alter(root, number)
        use(root, number)
        for path in files_of(root):
            if path not in good:
                path.unlink()
            elif path.read_bytes() != good[path]:
                path.write_bytes(good[path])
    faulthandler.cancel_dump_traceback_later()


def limit_memory() -> None:
    """What is in use now and a little more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder, begin, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    use(folder, 0)
    limit_memory()
    run(folder, range(begin, begin + count))
