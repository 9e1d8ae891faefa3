"""A language model at question time: it filters facts, names entities, thinks towards a next search, and answers."""

from __future__ import annotations

from hippogpu.reading.cross_encoder import CrossEncoderFilter
from hippogpu.reading.entities import EntityReport, LlmEntities
from hippogpu.reading.filter import FilterReport, LlmFilter

__all__ = ["CrossEncoderFilter", "EntityReport", "FilterReport", "LlmEntities", "LlmFilter"]
