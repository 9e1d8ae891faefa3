"""Passages to triples: one seam, several extractors, and the log that keeps what they said."""

from __future__ import annotations

from hippogpu.openie.extractor import Extractor
from hippogpu.openie.log import ExtractionLog, Logged, Torn, verify_log
from hippogpu.openie.missing import ExtractionProgress, ExtractionReport, extract_missing
from hippogpu.openie.parse import Entities, Triples, parse_entities, parse_triples
from hippogpu.openie.replay import ReplayExtractor

__all__ = [
    "Entities",
    "ExtractionLog",
    "ExtractionProgress",
    "ExtractionReport",
    "Extractor",
    "Logged",
    "ReplayExtractor",
    "Torn",
    "Triples",
    "extract_missing",
    "parse_entities",
    "parse_triples",
    "verify_log",
]
