"""What an index is built by: its own settings and encoder, which whoever opens it must agree with."""

from __future__ import annotations

from pathlib import Path

from hippogpu.config import IndexConfig, as_mapping
from hippogpu.embed import Embedder
from hippogpu.errors import ConfigError, EncoderMismatchError
from hippogpu.store import Encoder, Snapshot, lost_manifest


def settled_config(root: Path, stored: Snapshot | None, config: IndexConfig | None) -> IndexConfig:
    """The index's own settings, those given for a new one; ConfigError when they differ.

    One whose CURRENT is lost is made again by the settings that it had, unless others are given.
    """
    if stored is None:
        lost = lost_manifest(root)
        return config or (lost.config if lost else IndexConfig())
    have = stored.manifest.config
    if config is not None and config != have:
        asked = as_mapping(config)
        differing = ", ".join(
            f"{name} {value!r}, not {asked[name]!r}" for name, value in as_mapping(have).items() if asked[name] != value
        )
        raise ConfigError(
            f"The index '{root}' was built with {differing}. Use the same settings, or index into another folder."
        )
    return have


def settled_encoder(root: Path, stored: Snapshot | None, embedder: Embedder, spec: str) -> Encoder:
    """The index's own encoder, the one given for a new one; EncoderMismatchError when they differ."""
    here = Encoder(embedder.name, embedder.width, spec)
    if stored is None:
        return here
    have = stored.manifest.encoder
    if (have.name, have.width) != (here.name, here.width):
        raise EncoderMismatchError(
            f"The index '{root}' was built with the encoder '{have.name}' (width {have.width}), not with "
            f"'{here.name}' (width {here.width}). Open it with that one, or index into another folder."
        )
    return have
