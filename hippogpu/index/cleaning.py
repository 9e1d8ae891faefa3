"""What gc removes: earlier generations and, when asked, what unfinished runs left and records of what is gone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from hippogpu.errors import StoredIndexError
from hippogpu.index.forcing import end_forced
from hippogpu.index.tidying import forget_unfinished
from hippogpu.openie.log_lines import Line, read_lines
from hippogpu.store import Manifest, WriterLock, collect_garbage, current_manifest, load_snapshot, logs_folder
from hippogpu.store.files import write_atomically
from hippogpu.text import content_key

REPLIES = "replies.sqlite"


class CleanReport(NamedTuple):
    """What was removed: generations, files, bytes, lines of extraction logs; kept: earlier generations that stay."""

    generations: int
    files: int
    bytes: int
    records: int
    kept: int


def clean_index(path: str | Path, *, grace_s: float, unfinished: bool = False, forget: bool = False) -> CleanReport:
    """Removes from the folder of an index what nobody can need any longer.

    grace_s    : seconds for which a generation stays after the next one has replaced it
    unfinished : also vectors and columns that a run which was cut short would go on with
    forget     : also the lines of extraction logs about texts that the index no longer has, what was torn from the
                 logs, and a language model's replies
    IndexLockedError while another writer holds the folder, StoredIndexError when something cannot be removed.
    """
    root = Path(path)
    # A folder that holds no index is refused before a lock would make one.
    current_manifest(root)
    with WriterLock(root):
        manifest = current_manifest(root)
        try:
            garbage = collect_garbage(root, grace_s=grace_s)
            if unfinished:
                forget_unfinished(root)
                shutil.rmtree(root / "vectors", ignore_errors=True)
            records = _forget(root, manifest) if forget else 0
        except OSError as error:
            raise StoredIndexError(
                f"Something in '{root}' cannot be removed ({error}). Mend that, then run gc again; the index is whole."
            ) from error
    return CleanReport(garbage.generations, garbage.files, garbage.bytes, records, garbage.kept)


def _forget(root: Path, manifest: Manifest) -> int:
    held = {content_key(whole) for whole in load_snapshot(root, manifest, diffused=False).passages.wholes}
    # A forced reading counts the lines of its log, which change now.
    end_forced(root)
    logs = logs_folder(root)
    if logs.is_symlink() or not logs.is_dir():
        return 0
    for path in logs.iterdir():
        if path.name.endswith(".torn") or path.name.startswith(REPLIES):
            path.unlink()
    return sum(_keep_lines(path, held) for path in sorted(logs.glob("*.jsonl")))


def _keep_lines(path: Path, held: set[str]) -> int:
    """Leaves in a log the lines about these texts, and how many others there were; damaged lines go too."""
    with path.open("rb") as file:
        read = zip(file, read_lines(path), strict=True)
        lines = [(line, isinstance(found, Line) and found.key in held) for line, found in read]
    gone = sum(not stays for _, stays in lines)
    if gone:
        write_atomically(path, b"".join(line for line, stays in lines if stays))
    return gone
