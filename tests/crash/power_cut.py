"""What a disk may hold after a power cut: a file system that keeps only what was waited for, as a model.

Calls are played into it one by one. A name counts when its folder was synced since, contents when the file was; of the
rest any part may be there, the names of one folder in the order they were made.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from system_calls import Call


class File:
    """The contents of a file as programs see them, and as they are on disk; None where nothing was waited for."""

    def __init__(self, synced: bytes | None = None) -> None:
        self.seen = synced or b""
        self.synced = synced


class Folder:
    """Whether a name is a folder; its own names lie in Disk."""


Names = dict[str, File | Folder]
Contents = Callable[[File], bytes]
Tree = dict[Path, bytes | None]
"""Relative paths with the contents of files, None for folders."""


class Cut(NamedTuple):
    """How much of what was not waited for is there: pick takes one of a folder's states since its last sync."""

    name: str
    pick: Callable[[list[Names]], Names]
    contents: Contents


class Disk:
    """The folders below and above a root, each with its states since it was last synced, the oldest first."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._folders: dict[Path, list[Names]] = {self.root.parent: [{}]}
        if root.exists():
            self._folders[self.root.parent] = [{self.root.name: self._read(self.root)}]

    def _read(self, path: Path) -> File | Folder:
        if not path.is_dir():
            return File(path.read_bytes())
        self._folders[path] = [{one.name: self._read(one) for one in path.iterdir()}]
        return Folder()

    def play(self, call: Call) -> None:
        """Takes in a call that was made; one that failed, as an unlink of what is not there, changes nothing."""
        path, names = call.path, self._folders.get(call.path.parent, [{}])[-1]
        found = names.get(path.name)
        if call.name == "fsync":
            self._sync(path, found)
        elif path.parent not in self._folders:
            return
        elif call.name == "write" and isinstance(found, File):
            found.seen += call.other
        elif call.name == "ftruncate" and isinstance(found, File):
            found.seen = found.seen[: call.other]
        elif call.name == "open" and found is None and call.other & os.O_CREAT:
            self._change(path.parent, {**names, path.name: File()})
        elif call.name == "mkdir" and found is None:
            self._folders[path] = [{}]
            self._change(path.parent, {**names, path.name: Folder()})
        elif call.name in ("unlink", "rmdir") and found is not None:
            self._change(path.parent, {name: one for name, one in names.items() if name != path.name})
        elif call.name == "replace" and found is not None:
            assert call.other.parent == path.parent
            others = {name: one for name, one in names.items() if name != path.name}
            self._change(path.parent, {**others, call.other.name: found})

    def _change(self, folder: Path, names: Names) -> None:
        self._folders[folder].append(names)

    def _sync(self, path: Path, found: File | Folder | None) -> None:
        if path in self._folders:
            self._folders[path] = self._folders[path][-1:]
        elif isinstance(found, File):
            found.synced = found.seen

    def after(self, cut: Cut) -> Tree:
        """What lies below the root when the power is cut now; {} when not even the root is there."""
        if self.root.name not in cut.pick(self._folders[self.root.parent]):
            return {}
        return dict(self._below(self.root, cut))

    def _below(self, folder: Path, cut: Cut) -> Iterable[tuple[Path, bytes | None]]:
        yield folder.relative_to(self.root), None
        for name, one in cut.pick(self._folders[folder]).items():
            if isinstance(one, File):
                yield (folder / name).relative_to(self.root), cut.contents(one)
            else:
                yield from self._below(folder / name, cut)


def oldest(states: list[Names]) -> Names:
    return states[0]


def newest(states: list[Names]) -> Names:
    return states[-1]


def waited_for(file: File) -> bytes:
    return file.synced or b""


def shortest(file: File) -> bytes:
    """Nothing that was not waited for, and what was cut off is cut off."""
    return file.seen if waited_for(file).startswith(file.seen) else waited_for(file)


def zeros(file: File) -> bytes:
    """As long as it was, with zeros where nothing was waited for."""
    return shortest(file) + bytes(max(0, len(file.seen) - len(shortest(file))))


def seen(file: File) -> bytes:
    return file.seen


def by_chance(seed: int) -> Cut:
    """Some state of each folder, some of the contents of each file."""
    chance = random.Random(seed)
    return Cut(
        f"by chance {seed}", chance.choice, lambda file: chance.choice([waited_for, shortest, zeros, seen])(file)
    )


LEAST = Cut("only what was waited for", oldest, waited_for)
EMPTY = Cut("every name, and contents that were waited for", newest, shortest)
ZEROS = Cut("every name, and zeros for contents", newest, zeros)
ALL = Cut("everything", newest, seen)


def laid_out(tree: Tree, root: Path) -> None:
    """Makes the folder of a tree."""
    for path, contents in tree.items():
        if contents is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(contents)


def tree_of(root: Path) -> Tree:
    """What lies in a folder."""
    paths = [root, *sorted(root.rglob("*"))]
    return {path.relative_to(root): None if path.is_dir() else path.read_bytes() for path in paths}
