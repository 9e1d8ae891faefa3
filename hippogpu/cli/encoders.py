"""Which encoder a verb uses: the one of its line, else the one of the index."""

from __future__ import annotations

from pathlib import Path

from hippogpu.embed import Embedder, embedder_from_name
from hippogpu.embed.stored import stored_embedder
from hippogpu.store import current_manifest, has_index, lost_manifest

DEFAULT = "minilm"


def writers_encoder(folder: Path, asked: str | None) -> tuple[str, Embedder]:
    """Spelling and encoder for a writer; for a folder without index that none is asked for, the default.

    An index whose CURRENT is lost is made again by the encoder that it had.
    """
    manifest = current_manifest(folder) if has_index(folder) else lost_manifest(folder)
    if manifest is not None:
        have = manifest.encoder
        return asked or have.spec, stored_embedder(have.spec, have.name, folder, asked=asked)
    spec = asked or DEFAULT
    return spec, embedder_from_name(spec)


def readers_encoder(asked: str | None) -> Embedder | None:
    """The encoder that is asked for, None for the index's own."""
    return embedder_from_name(asked) if asked else None
