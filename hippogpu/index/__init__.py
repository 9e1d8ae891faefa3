"""The writer: passages in, one immutable generation out."""

from __future__ import annotations

from hippogpu.index.build import CommitReport
from hippogpu.index.cleaning import CleanReport, clean_index
from hippogpu.index.diffusing import DiffuseReport, diffuse_index
from hippogpu.index.edges import EdgeReport
from hippogpu.index.holdings import AddReport, DeleteReport
from hippogpu.index.stages import Progress
from hippogpu.index.verifying import verify_index
from hippogpu.index.writer import Index

__all__ = [
    "AddReport",
    "CleanReport",
    "CommitReport",
    "DeleteReport",
    "DiffuseReport",
    "EdgeReport",
    "Index",
    "Progress",
    "clean_index",
    "diffuse_index",
    "verify_index",
]
