"""Runs an index in a process for each of several points, and kills it there. Usage: kill_points.py FOLDER

The index of a point lies in FOLDER under the point's name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from small_index import PASSAGES, Saying, index_of

from hippogpu import Passage, Record
from hippogpu.index import build, encoding
from hippogpu.store import StoredVectors, generations

read, write_atomically = Saying.extract, generations.write_atomically
encoded_blocks, keep_keys = encoding.encoded_blocks, StoredVectors.keep_keys


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_extraction(root: Path) -> None:
    def extract(self: Saying, passages: Iterable[Passage]) -> Iterator[Record]:
        for number, passage in enumerate(passages):
            if number == 3:
                die()
            yield from read(self, [passage])

    Saying.extract = extract
    index_of(root)


def before_encoding(root: Path) -> None:
    build.encode = die
    index_of(root)


def in_encoding(root: Path) -> None:
    """In blocks of three texts, after the second block is kept; what was encoded until then is noted beside."""
    noted: list[list[str]] = []

    def noting(texts: Sequence[str], embedder, *, batch_texts):
        for block, rows, work in encoded_blocks(texts, embedder, batch_texts=3):
            noted.append([texts[number] for number in block])
            yield block, rows, work

    def keeping(self: StoredVectors, keys, vectors):
        places = keep_keys(self, keys, vectors)
        if len(noted) == 2:
            root.with_suffix(".json").write_text(json.dumps(noted[0] + noted[1]))
            die()
        return places

    encoding.encoded_blocks, encoding.KEPT_SECONDS, StoredVectors.keep_keys = noting, 0.0, keeping
    index_of(root)


def in_the_files(root: Path) -> None:
    build.write_graph = die
    index_of(root)


def before_publishing(root: Path) -> None:
    build.publish = die
    index_of(root)


def between_manifest_and_current(root: Path) -> None:
    generations.write_atomically = lambda path, data: die() if path.name == "CURRENT" else write_atomically(path, data)
    index_of(root)


def before_clearing(root: Path) -> None:
    StoredVectors.clear = die
    index_of(root)


def while_extending(root: Path) -> None:
    index_of(root, PASSAGES[:-1])
    between_manifest_and_current(root)


POINTS: tuple[Callable[[Path], None], ...] = (
    *(in_extraction, before_encoding, in_encoding, in_the_files, before_publishing),
    *(between_manifest_and_current, before_clearing, while_extending),
)


def main(folder: Path) -> None:
    index_of(folder / "warm")  # imports and compiled code, once for all
    for point in POINTS:
        child = os.fork()
        if not child:
            point(folder / point.__name__)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, point.__name__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
