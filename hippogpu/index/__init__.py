"""The writer: passages in, one immutable generation out."""

from __future__ import annotations

from hippogpu.index.build import CommitReport, Progress
from hippogpu.index.holdings import AddReport
from hippogpu.index.writer import Index

__all__ = ["AddReport", "CommitReport", "Index", "Progress"]
