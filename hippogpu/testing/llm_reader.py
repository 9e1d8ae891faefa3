"""A stand-in for a language model: a fixed rule that reads the last user message. It understands nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from hippogpu.testing.llm_questions import filled

_WORD = re.compile(r"\w(?:[\w'’-]*\w)?")
_SENTENCE_ENDS = re.compile(r"[.!?;:]+\s+|\n+")
_NUMBERED = re.compile(r"^\s*(\d+)\.", re.MULTILINE)

Schema = Mapping[str, Any]


def read_passage(body: Mapping[str, Any]) -> str:
    """What the stand-in replies to the body of a chat request.

    With a JSON schema it fills these of the schema's properties, and leaves every other property out:
    entities : the capitalised runs of words of the last user message, each once
    triples  : [run, "is near", next run] within each sentence; objects where the schema wants objects
    stated   : the numbers that begin the message's lines ("1." gives 1)
    keep, passages, thought, answer : what llm_questions says of the message's question
    Without one it repeats the message.
    """
    text = last_user_message(body)
    schema = schema_of(body)
    if schema is None:
        return text
    properties = schema.get("properties", {})
    answers: dict[str, Callable[[str], list[Any]]] = {
        "entities": capitalised_runs,
        "triples": near_triples,
        "stated": numbered_lines,
    }
    found = {name: _fitted(answers[name](text), properties[name]) for name in properties if name in answers}
    found |= filled(text, properties)
    return json.dumps({name: found[name] for name in properties if name in found}, ensure_ascii=False)


def last_user_message(body: Mapping[str, Any]) -> str:
    """The text of the last message whose role is user; empty when there is none."""
    users = [message for message in body.get("messages", ()) if message.get("role") == "user"]
    return str(users[-1].get("content", "")) if users else ""


def schema_of(body: Mapping[str, Any]) -> Schema | None:
    """The JSON schema that a request asks for, if any."""
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    schema: Schema | None = wanted.get("schema")
    return schema


def capitalised_runs(text: str) -> list[str]:
    """Runs of neighbouring words that begin with a capital letter, within a sentence, in order, each once."""
    return list(dict.fromkeys(run for sentence in _SENTENCE_ENDS.split(text) for run in _runs(sentence)))


def near_triples(text: str) -> list[list[str]]:
    """One triple for each two neighbouring, different runs of a sentence, each once."""
    pairs = [pair for sentence in _SENTENCE_ENDS.split(text) for pair in pairwise(_runs(sentence))]
    return [[first, "is near", second] for first, second in dict.fromkeys(pairs) if first != second]


def numbered_lines(text: str) -> list[int]:
    """The number of each line that begins with one and a full stop."""
    return [int(number) for number in _NUMBERED.findall(text)]


def _runs(sentence: str) -> list[str]:
    runs: list[str] = []
    end = -1
    for word in _WORD.finditer(sentence):
        if not word.group()[0].isupper():
            continue
        if runs and sentence[end : word.start()] == " ":
            runs[-1] += f" {word.group()}"
        else:
            runs.append(word.group())
        end = word.end()
    return runs


def _fitted(values: list[Any], schema: Schema) -> list[Any]:
    """The values in the form that the items of the schema have: objects by their first keys, or text."""
    items = schema.get("items", {})
    if items.get("type") == "object":
        return [dict(zip(items.get("properties", {}), value, strict=False)) for value in values]
    if items.get("type") == "string":
        return [str(value) for value in values]
    return values
