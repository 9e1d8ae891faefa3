"""What gc removes: earlier generations and, when asked, what unfinished runs left and records of what is gone."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import replace_atomically
from hippogpu.errors import StoredIndexError
from hippogpu.index.forcing import end_forced, forced_reading
from hippogpu.index.tidying import BUILDING, DIFFUSING
from hippogpu.openie import ExtractionLog
from hippogpu.openie.log_lines import Line, raw_lines, read_lines
from hippogpu.store import Manifest, WriterLock, collect_garbage, current_manifest, load_snapshot, logs_folder
from hippogpu.text import content_key

REPLIES = "replies.sqlite"


class CleanReport(NamedTuple):
    """What was removed: generations, and files and bytes of them and of killed runs; kept: generations that stay.

    records, damaged : lines of extraction logs about texts that the index no longer has, and damaged lines
    Unfinished work and replies are not counted.
    """

    generations: int
    files: int
    bytes: int
    kept: int
    records: int = 0
    damaged: int = 0


def clean_index(path: str | Path, *, grace_s: float, unfinished: bool = False, forget: bool = False) -> CleanReport:
    """Removes from the folder of an index what nobody can need any longer.

    grace_s    : seconds for which a generation stays after the next one has replaced it
    unfinished : also what a run that was cut short would go on with: vectors, tables, synonyms, columns, a forced
                 reading
    forget     : also the lines of extraction logs about texts that the index no longer has, damaged lines, a language
                 model's replies, and unfinished vectors and columns
    IndexLockedError while another writer holds the folder, StoredIndexError when something cannot be removed, or when
    records are to go while a forced reading is under way.
    """
    root = Path(path)
    # A folder that holds no index is refused before a lock would make one.
    current_manifest(root)
    with WriterLock(root):
        manifest = current_manifest(root)
        if forget and not unfinished and forced_reading(root) is not None:
            raise StoredIndexError(
                f"A forced reading of '{root}' is under way, and forgetting records would undo it. Finish it (index "
                "--force extract), or give it up with gc --unfinished."
            )
        try:
            garbage = collect_garbage(root, grace_s=grace_s)
            if unfinished:
                end_forced(root)
            if unfinished or forget:
                _remove_folder(root / "vectors")
                _remove_folder(root / DIFFUSING)
                _remove_folder(root / BUILDING)
            gone = _forget(root, manifest) if forget else Counter[str]()
        except OSError as error:
            raise StoredIndexError(
                f"Something in '{root}' cannot be removed ({error}). Mend that, then run gc again; the index is whole."
            ) from error
    return CleanReport(*garbage, records=gone["records"], damaged=gone["damaged"])


def _remove_folder(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def _forget(root: Path, manifest: Manifest) -> Counter[str]:
    held = {content_key(whole) for whole in load_snapshot(root, manifest, diffused=False).passages.wholes}
    logs, gone = logs_folder(root), Counter[str]()
    if logs.is_dir():
        for path in sorted(logs.glob("*.jsonl")):
            # Opening mends a last line that lacks nothing but its end.
            with ExtractionLog(path):
                gone += _keep_lines(path, held)
        for path in logs.iterdir():
            if path.name.endswith(".torn") or path.name.startswith(REPLIES):
                path.unlink()
    return gone


def _keep_lines(path: Path, held: set[str]) -> Counter[str]:
    """Leaves in a log the lines about these texts; what others there were, by kind."""
    gone = Counter(_kind(line, held) for line in read_lines(path))
    del gone["kept"]
    if gone:
        pairs = zip(raw_lines(path), read_lines(path), strict=True)
        replace_atomically(path, (line for line, read in pairs if _kind(read, held) == "kept"))
    return gone


def _kind(line: Line | str, held: set[str]) -> str:
    if isinstance(line, str):
        return "damaged"
    return "kept" if line.key in held else "records"
