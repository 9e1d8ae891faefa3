"""The encoder that an index names. The name comes with the folder, so it is not always to be trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hippogpu.errors import UsageError

if TYPE_CHECKING:
    from hippogpu.embed import Embedder

TRUSTED_VARIABLE = "HIPPOGPU_ENCODER"


def stored_embedder(spec: str, name: str, root: Path, *, asked: str | None = None) -> Embedder:
    """The encoder of an index: the one that the user asks for, else the one of the spec that its manifest holds.

    A spec that sends texts to an address, with the key of the environment, or loads a model by name (http:, st:,
    vllm:) is followed only when the user names the same: by `asked` or in the environment variable HIPPOGPU_ENCODER.
    UsageError else, and for an encoder that was made in Python, which no spec makes again.
    """
    from hippogpu.embed import embedder_from_name

    if asked:
        return embedder_from_name(asked)
    if not spec:
        raise UsageError(
            f"The index '{root}' was built with the encoder '{name}', which was made in Python. Pass it: "
            "Searcher.open(path, embedder=...), Index.open(path, embedder=...)."
        )
    if is_plain(spec) or spec in os.environ.get(TRUSTED_VARIABLE, "").split():
        return embedder_from_name(spec)
    does = "load that model" if spec.startswith(("st:", "vllm:")) else "send your texts, and your key, to that address"
    raise UsageError(
        f"The index '{root}' names the encoder '{spec}'. An index from someone else could name any, and this would "
        f"{does}. When you trust it, say so: --encoder '{spec}', or {TRUSTED_VARIABLE}='{spec}' in the environment; in "
        f"Python embedder=embedder_from_name('{spec}')."
    )


def is_plain(spec: str) -> bool:
    """Whether the encoder contacts nobody and loads nothing but the weights whose checksum is known."""
    return spec == "minilm" or spec.partition(":")[0] == "hashing"
