"""Text and Markdown files as rows: one file, one passage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hippogpu.corpus.files import Found, Rows
from hippogpu.corpus.headings import first_heading
from hippogpu.types import Refusal

TEXT_SUFFIXES = (".txt", ".md")


def folder_rows(folder: Path) -> Rows:
    """The .txt and .md files below a folder, sorted by path; the id is the path inside the folder, with slashes."""
    for path in sorted(_text_files(folder), key=lambda file: file.relative_to(folder).as_posix()):
        yield text_row(path, path.relative_to(folder).as_posix())


def _text_files(folder: Path) -> Iterator[Path]:
    """Every text file that is not hidden and not in a hidden folder. Linked folders are not entered."""
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in TEXT_SUFFIXES:
                yield Path(parent, name)


def text_row(path: Path, id_: str) -> Found | Refusal:
    """One file as a row. The text is the whole file; the title its first Markdown heading, else its name."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Refusal(str(path), f"not UTF-8 (byte {error.start + 1})")
    except OSError as error:
        return Refusal(str(path), f"cannot be read ({error.strerror})")
    if not text.strip():
        return Refusal(str(path), "empty file")
    title = first_heading(text) if path.suffix.lower() == ".md" else None
    return Found(str(path), {"_id": id_, "title": title or path.stem, "text": text})
