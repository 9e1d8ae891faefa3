"""What the stand-in for a language model says of a question: a fixed rule over words that two lines share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_FACT = re.compile(r"^(\d+)\. (\[.*)$", re.MULTILINE)
_PASSAGE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_WORD = re.compile(r"\w{4,}")


def question_of(text: str) -> str:
    """The question that a message asks; "" when it asks none."""
    found = _QUESTION.search(text)
    return found[1] if found else ""


def kept_facts(text: str) -> list[int]:
    """The numbers of the facts that share a word of four letters with the question."""
    return _sharing(_FACT, text)


def cited_passages(text: str) -> list[int]:
    """The numbers of the passages that share a word of four letters with the question."""
    return _sharing(_PASSAGE, text)


def short_answer(text: str) -> str:
    """The title of the last passage that shares a word with the question; "" when none does."""
    titles = {int(number): line.partition(":")[0] for number, line in _PASSAGE.findall(text)}
    found = cited_passages(text)
    return titles[found[-1]] if found else ""


def next_thought(text: str) -> str:
    """The first passage, as far as its first full stop."""
    found = _PASSAGE.search(text)
    return found[2].split(". ")[0] if found else question_of(text)


def filled(text: str, properties: Collection[str]) -> dict[str, Any]:
    """Values for those of a schema's properties that ask about a question; a first thought has no answer yet."""
    rules: Mapping[str, Callable[[str], Any]] = {
        "keep": kept_facts,
        "passages": cited_passages,
        "thought": next_thought,
        "answer": short_answer if "passages" in properties or "Thoughts so far:" in text else lambda text: "",
    }
    return {name: rules[name](text) for name in properties if name in rules}


def _sharing(lines: re.Pattern[str], text: str) -> list[int]:
    words = set(_WORD.findall(question_of(text).casefold()))
    return [int(number) for number, line in lines.findall(text) if words & set(_WORD.findall(line.casefold()))]
