"""What tells the models of a library apart: the name, and a digest of the revision or of the weights."""

from __future__ import annotations

import hashlib
from pathlib import Path


def model_identity(name: str, commit: str | None) -> str:
    """The name and "@" and eight digits: of the commit on the hub, or of the sha256 of the weights of a folder.

    A folder goes by its last part. Without commit, or without weights, the name alone.
    """
    folder = Path(name)
    if not folder.is_dir():
        return f"{name}@{commit[:8]}" if commit else name
    weights = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("*.bin"))
    digests = [_sha256(path) for path in weights]
    revision = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    base = folder.resolve().name
    return f"{base}@{revision[:8]}" if weights else base


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
