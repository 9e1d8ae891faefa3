"""What is removed once a generation is published."""

from __future__ import annotations

import hashlib
import logging
import shutil
from importlib.metadata import version
from pathlib import Path

from hippogpu.config import RunConfig
from hippogpu.disk import forget_others
from hippogpu.store import StoredVectors, collect_garbage

DIFFUSING, BUILDING = "diffusing", "building"
logger = logging.getLogger("hippogpu.index")


def tidy(root: Path, run: RunConfig, known: StoredVectors | None = None) -> None:
    """Removes what a published generation has made needless; what cannot be removed stays for gc to try again."""
    try:
        if known is not None:
            known.clear()
        forget_unfinished(root)
        collect_garbage(root, grace_s=run.grace_s)
    except OSError as error:
        logger.warning("files that are no longer needed could not be removed (%s): hippogpu gc %s", error, root)


def building(root: Path, stage: str, digest: str) -> Path:
    """The folder of a commit's unfinished work in one stage, by the digest of what it works on; not made here.

    Another version of the program does not go on with it. What the stage left of other work goes: a corpus that was
    killed and then changed must not fill the disk.
    StoredIndexError where the folder of unfinished work is a link.
    """
    named = hashlib.sha256(f"{version('hippogpu')} {digest}".encode()).hexdigest()
    folder = root / BUILDING / f"{stage}-{named[:16]}"
    forget_others(folder, f"{stage}-*")
    return folder


def forget_unfinished(root: Path) -> None:
    """Removes unfinished work of commits and diffusions, of this and of earlier ones; for after it is published."""
    for folder in (DIFFUSING, BUILDING):
        # rmtree takes no link for a folder.
        shutil.rmtree(root / folder, ignore_errors=True)
