"""Ways to rank passages for questions: one seam, several methods."""

from __future__ import annotations

from hippogpu.methods.asking import Tools, ask, encoded
from hippogpu.methods.diffused import solver_for
from hippogpu.methods.entities import EntityReader, QuestionEntities
from hippogpu.methods.filter import FactFilter, KeepAll, Verdict
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, load
from hippogpu.methods.registry import METHODS, method_of
from hippogpu.methods.seam import Asked, EntityVectors, Method, Needs, Scored

__all__ = [
    "METHODS",
    "Asked",
    "Clock",
    "EntityReader",
    "EntityVectors",
    "FactFilter",
    "KeepAll",
    "Loaded",
    "Method",
    "Needs",
    "Queries",
    "QuestionEntities",
    "Ranked",
    "Scored",
    "Tools",
    "Verdict",
    "ask",
    "encoded",
    "load",
    "method_of",
    "solver_for",
]
