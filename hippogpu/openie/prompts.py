"""What a language model is asked: entities of a passage, its triples, both at once, or which triples it states.

The two steps are the papers' (HippoRAG, section 2.3 and appendix I); the words and the example are our own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from hippogpu.llm import Message
from hippogpu.text import content_key, readable
from hippogpu.types import Passage, Triple

FIELD_CHARACTERS = 200
MOST_ITEMS = 100
MOST_VERIFIED = 400


class Prompt(NamedTuple):
    """An instruction with one worked example, and the JSON schema of the reply.

    stem is the same for every passage, so an engine with a prefix cache reads it once.
    """

    instruction: str
    example: str
    answer: str
    schema: dict[str, Any]

    def messages(self, question: str) -> tuple[Message, ...]:
        """The chat that asks the question; the last message is the question alone."""
        stem = (Message("system", self.instruction), Message("user", self.example), Message("assistant", self.answer))
        return (*stem, Message("user", readable(question)))


_TEXT = {"type": "string", "minLength": 1, "maxLength": FIELD_CHARACTERS}
_ENTITIES = {"type": "array", "items": _TEXT, "maxItems": MOST_ITEMS}
_TRIPLE = {"type": "array", "items": _TEXT, "minItems": 3, "maxItems": 3}
_TRIPLES = {"type": "array", "items": _TRIPLE, "maxItems": MOST_ITEMS}
_NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": MOST_VERIFIED}


def _schema(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def compact(value: object) -> str:
    """JSON as the examples write it, so that a model learns to spend no token on space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_TITLE = "Fenwick Quartet"
_PASSAGE = (
    "The Fenwick Quartet is a string quartet based in Leith. Orla Fenwick, a cellist born in Perth on 3 May 1951, "
    "founded it in 1978 after she had studied at the Royal Conservatoire of Scotland. Its recording of Tide Tables, a "
    "work by Hamish Rae, won the Harrow Prize."
)
_NAMES = [
    *("Fenwick Quartet", "Leith", "Orla Fenwick", "Perth", "3 May 1951", "1978"),
    *("Royal Conservatoire of Scotland", "Tide Tables", "Hamish Rae", "Harrow Prize"),
]
_FACTS = [
    ["Fenwick Quartet", "is a", "string quartet"],
    ["Fenwick Quartet", "is based in", "Leith"],
    ["Orla Fenwick", "is a", "cellist"],
    ["Orla Fenwick", "was born in", "Perth"],
    ["Orla Fenwick", "was born on", "3 May 1951"],
    ["Orla Fenwick", "founded", "Fenwick Quartet"],
    ["Fenwick Quartet", "was founded in", "1978"],
    ["Orla Fenwick", "studied at", "Royal Conservatoire of Scotland"],
    ["Fenwick Quartet", "recorded", "Tide Tables"],
    ["Hamish Rae", "composed", "Tide Tables"],
    ["Fenwick Quartet", "won", "Harrow Prize"],
]

_NAME_RULE = (
    "An entity is a person, an organisation, a place, a work, an event, a date, or another thing that has a name of "
    "its own. Write each once, in full, in the spelling and language of the passage."
)
_TRIPLE_RULES = (
    "A triple is [subject, relation, object]: three short texts that together state one fact of the passage. "
    "At least one of subject and object must be an entity, better both. Write the name instead of a pronoun or of "
    "words such as 'the company'. State a list of things one triple each. Keep the language of the passage. "
    "State only what the passage says."
)

ENTITIES = Prompt(
    f'You list the named entities of a passage. {_NAME_RULE} Reply with JSON only: {{"entities": [...]}}.',
    f"Title: {_TITLE}\n\n{_PASSAGE}",
    compact({"entities": _NAMES}),
    _schema(entities=_ENTITIES),
)
TRIPLES = Prompt(
    f"You turn a passage into triples for a knowledge graph. You are given its entities. {_TRIPLE_RULES} "
    'Reply with JSON only: {"triples": [[subject, relation, object], ...]}.',
    f"Title: {_TITLE}\n\n{_PASSAGE}\n\nEntities: {compact(_NAMES)}",
    compact({"triples": _FACTS}),
    _schema(triples=_TRIPLES),
)
JOINT = Prompt(
    f"You turn a passage into a knowledge graph: first its entities, then its triples. {_NAME_RULE} {_TRIPLE_RULES} "
    'Reply with JSON only: {"entities": [...], "triples": [[subject, relation, object], ...]}.',
    f"Title: {_TITLE}\n\n{_PASSAGE}",
    compact({"entities": _NAMES, "triples": _FACTS}),
    _schema(entities=_ENTITIES, triples=_TRIPLES),
)
VERIFY = Prompt(
    "You check triples against the passage they were taken from. A triple is stated when the passage says it, in "
    "whatever words; it is not when the passage says something else or nothing of it. Reply with JSON only, the "
    'numbers of the stated triples: {"stated": [...]}.',
    f"Title: {_TITLE}\n\n{_PASSAGE}\n\n"
    + "\n".join(
        [
            '1. ["Fenwick Quartet","is based in","Leith"]',
            '2. ["Orla Fenwick","was born in","Leith"]',
            '3. ["Hamish Rae","composed","Tide Tables"]',
            '4. ["Hamish Rae","won","Harrow Prize"]',
        ]
    ),
    compact({"stated": [1, 3]}),
    _schema(stated=_NUMBERS),
)

VERSION = content_key(compact([ENTITIES, TRIPLES, JOINT, VERIFY]))[:8]


def passage_text(passage: Passage) -> str:
    """A passage as the prompts show it."""
    return f"Title: {passage.title}\n\n{passage.text}" if passage.title else passage.text


def with_entities(passage: Passage, entities: Sequence[str]) -> str:
    """A passage with its entities, as TRIPLES asks for it."""
    return f"{passage_text(passage)}\n\nEntities: {compact(list(entities))}"


def with_numbered(passage: Passage, triples: Sequence[Triple]) -> str:
    """A passage with its triples numbered from 1, as VERIFY asks for it."""
    lines = (f"{number}. {compact(list(triple[:3]))}" for number, triple in enumerate(triples, start=1))
    return f"{passage_text(passage)}\n\n" + "\n".join(lines)
