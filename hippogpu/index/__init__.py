"""The writer: passages in, one immutable generation out."""

from __future__ import annotations

from hippogpu.index.build import CommitReport, Progress
from hippogpu.index.diffusing import DiffuseReport, diffuse_index
from hippogpu.index.holdings import AddReport
from hippogpu.index.writer import Index

__all__ = ["AddReport", "CommitReport", "DiffuseReport", "Index", "Progress", "diffuse_index"]
