"""Where reports and runs are written: checked before anything is measured, and whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from hippogpu.disk import write_atomically
from hippogpu.errors import UsageError


def check_file(path: Path) -> None:
    """UsageError where no file can be written: a link (what it points to is another's), a folder, none above it."""
    if path.is_symlink():
        raise UsageError(f"'{path}' is a symbolic link, and nothing is written through one. Name the file itself.")
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder. Name a file.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder '{path.parent}' for '{path.name}'. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"The folder '{path.parent}' takes no file '{path.name}'. Set its permissions.")


def check_folder(path: Path) -> None:
    """UsageError where files cannot be written into a folder of that name, which may have to be made."""
    above = next(one for one in (path, *path.absolute().parents) if one.exists() or one.is_symlink())
    if not above.is_dir():
        raise UsageError(f"'{above}' is no folder. Name another for '{path}'.")
    if not os.access(above, os.W_OK):
        raise UsageError(f"The folder '{above}' takes no files. Set its permissions.")


def write_text(path: Path, text: str) -> None:
    """The text at the path, in UTF-8: the old content or the new one, whole. UsageError as for check_file."""
    check_file(path)
    write_atomically(path, text.encode())
