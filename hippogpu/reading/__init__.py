"""A language model at question time: it filters facts, names entities, thinks towards a next search, and answers."""

from __future__ import annotations

from hippogpu.reading.answering import Answered, answer_questions
from hippogpu.reading.asking import Cost
from hippogpu.reading.cross_encoder import CrossEncoderFilter
from hippogpu.reading.entities import EntityReport, LlmEntities
from hippogpu.reading.filter import FilterReport, LlmFilter
from hippogpu.reading.ircot import Retrieved, Step, retrieve
from hippogpu.reading.merging import merge
from hippogpu.reading.qa import Answer, read_answers
from hippogpu.reading.replies import Thought

__all__ = [
    "Answer",
    "Answered",
    "Cost",
    "CrossEncoderFilter",
    "EntityReport",
    "FilterReport",
    "LlmEntities",
    "LlmFilter",
    "Retrieved",
    "Step",
    "Thought",
    "answer_questions",
    "merge",
    "read_answers",
    "retrieve",
]
