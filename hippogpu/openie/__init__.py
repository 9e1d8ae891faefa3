"""Passages to triples: one seam, several extractors, and the log that keeps what they said."""

from __future__ import annotations

from hippogpu.openie.asking import LlmExtractor, open_extractor
from hippogpu.openie.extractor import Extractor
from hippogpu.openie.log import ExtractionLog, Logged, Outcomes, Torn, verify_log
from hippogpu.openie.missing import ExtractionProgress, ExtractionReport, extract_missing
from hippogpu.openie.nothing import NoExtractor
from hippogpu.openie.parse import Entities, Triples, parse_entities, parse_triples
from hippogpu.openie.plan import ExtractionPlan, plan_extraction
from hippogpu.openie.replay import ReplayExtractor
from hippogpu.openie.replies import ReadReply, read_reply
from hippogpu.openie.spacy import SpacyExtractor
from hippogpu.openie.statistics import LengthRow, by_length

__all__ = [
    "Entities",
    "ExtractionLog",
    "ExtractionPlan",
    "ExtractionProgress",
    "ExtractionReport",
    "Extractor",
    "LengthRow",
    "LlmExtractor",
    "Logged",
    "NoExtractor",
    "Outcomes",
    "ReadReply",
    "ReplayExtractor",
    "SpacyExtractor",
    "Torn",
    "Triples",
    "by_length",
    "extract_missing",
    "open_extractor",
    "parse_entities",
    "parse_triples",
    "plan_extraction",
    "read_reply",
    "verify_log",
]
