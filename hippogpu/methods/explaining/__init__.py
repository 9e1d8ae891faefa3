"""Why a passage has its score: `carried` splits it by seeds, `paths` finds the ways, `naming` says them in words."""

from __future__ import annotations

from hippogpu.methods.explaining.carried import Carried, Source, Target, carried
from hippogpu.methods.explaining.explain import Wanted, explain_rankings, needs_of, wanted_of
from hippogpu.methods.explaining.paths import WalkPath, strongest_paths

__all__ = [
    "Carried",
    "Source",
    "Target",
    "WalkPath",
    "Wanted",
    "carried",
    "explain_rankings",
    "needs_of",
    "strongest_paths",
    "wanted_of",
]
