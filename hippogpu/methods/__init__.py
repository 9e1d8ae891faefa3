"""Ways to rank passages for questions: one seam, several methods."""

from __future__ import annotations

from hippogpu.methods.dense import rank_dense
from hippogpu.methods.diffused import solver_for
from hippogpu.methods.hippo2 import rank_hippo2
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, load

__all__ = ["Clock", "Loaded", "Queries", "Ranked", "load", "rank_dense", "rank_hippo2", "solver_for"]
