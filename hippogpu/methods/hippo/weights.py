"""The learned weights of the evidence, for each set of settings that leaves some of it out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.methods.hippo.evidence import EVIDENCE
from hippogpu.types import AnyFloats

WEIGHTS_FILE = "weights.json"


def kinds_of(config: SearchConfig) -> tuple[str, ...]:
    """The kinds of evidence that the settings leave in, in the order of EVIDENCE."""
    absent = (set() if config.names else {"names"}) | (set() if config.pairs else {"pair", "rest"})
    return tuple(kind for kind in EVIDENCE if kind not in absent)


def weights_for(config: SearchConfig) -> AnyFloats:
    """The weight of each kind of evidence, (8,) float64; 0 for what the settings leave out.

    They were learned by `python -m bench learn` from questions with known passages, once for each set of kinds.
    """
    learned = _learned()["+".join(kinds_of(config))]
    return np.array([learned.get(kind, 0.0) for kind in EVIDENCE])


@cache
def _learned() -> Mapping[str, Mapping[str, float]]:
    text = files("hippogpu.methods.hippo").joinpath(WEIGHTS_FILE).read_text(encoding="utf-8")
    weights: Mapping[str, Mapping[str, float]] = json.loads(text)["weights"]
    return weights
