"""What is removed once a generation is published."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from hippogpu.config import RunConfig
from hippogpu.store import StoredVectors, collect_garbage

DIFFUSING = "diffusing"
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


def forget_unfinished(root: Path) -> None:
    """Removes columns of diffusions, of this and of earlier graphs; for after what they went into is published."""
    shutil.rmtree(root / DIFFUSING, ignore_errors=True)
