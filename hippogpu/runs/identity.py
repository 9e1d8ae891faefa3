"""What a run is a run of: by this a later call knows whether it may go on with what an earlier one wrote."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from hippogpu.config import SearchConfig, as_mapping
from hippogpu.store import Manifest
from hippogpu.store.manifest import to_json
from hippogpu.store.mapped import sha256_of

Identity = Mapping[str, str | int | float]
_DIGITS = 16
# By its place: the code that reads it would load Numba.
_WEIGHTS = ("methods", "hippo", "weights.json")


def run_identity(manifest: Manifest, queries: Path, config: SearchConfig, *, k: int, backend: str) -> Identity:
    """Everything that decides the rankings: program, index generation, the bytes of the questions, and the settings.

    Of the method hippo the learned weights too, which may be learned anew under one version of the program.

    Neither paths nor the size of batches belong to it.
    """
    digest = sha256(to_json(manifest)).hexdigest()[:_DIGITS]
    return {
        "program": f"hippogpu {version('hippogpu')}",
        "index": f"generation {manifest.generation}, manifest {digest}",
        "queries": f"sha256 {sha256_of(queries)[:_DIGITS]}",
        "k": k,
        "backend": backend,
        **as_mapping(config),
        **({"weights": f"sha256 {_weights_digest()}"} if _is_weighed(config) else {}),
    }


def _is_weighed(config: SearchConfig) -> bool:
    return config.method == "hippo" or (config.method == "fusion" and "hippo" in config.fused)


def _weights_digest() -> str:
    return sha256(files("hippogpu").joinpath(*_WEIGHTS).read_bytes()).hexdigest()[:_DIGITS]


def differences(then: Identity, now: Identity) -> list[str]:
    """What two runs differ in, one line a name."""
    names = dict.fromkeys([*then, *now])
    return [
        f"{name}: {then.get(name, 'nothing')} then, {now.get(name, 'nothing')} now"
        for name in names
        if then.get(name) != now.get(name)
    ]
