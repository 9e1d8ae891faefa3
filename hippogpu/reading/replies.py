"""A model's reply about a question: what it keeps, names, thinks or answers, in whatever form it came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hippogpu.openie.json_text import find_values
from hippogpu.openie.replies import read_reply
from hippogpu.openie.unread import UnclosedDict, UnclosedList
from hippogpu.reading.asking import Read
from hippogpu.text import normalise
from hippogpu.types import KeptFact

# What a reply means by no answer, normalised. "none" is not among them: it answers questions for a number.
NO_ANSWER = frozenset(
    [
        *("", "unknown", "null", "n a", "no answer", "not answerable", "unanswerable", "not stated", "not given"),
        *("not mentioned", "not specified", "not known", "not enough information", "insufficient information"),
        *("cannot be determined", "can not be determined", "i don t know", "i do not know", "the passages do not say"),
        *("the passages do not say it", "the passages do not say so", "no information"),
    ]
)
# Bounded runs, so that the time is linear in the reply's length.
_MARKER = re.compile(
    r"(?:^|\n)[\s*_#]{0,9}(?:the\s)?(?:final\s|short\s)?answer[*_]{0,3}(?:\sis)?[*_]{0,3}\s?[:=](?P<line>[^\n]*)"
    r"|\b(?:so|thus|therefore|hence),?\s(?:the\s)?(?:final\s)?answer\sis\b:?(?P<end>[^\n]*)",
    re.IGNORECASE,
)
_CITATION = re.compile(r"\[(\d{1,6}(?:\s?[,;]\s?\d{1,6}){0,20})\]")
_NUMBER = re.compile(r"\d{1,6}")
_ITEMS = ("number", "fact", "id", "passage", "index")
# Under these a reply keeps something; a list under another name, as "drop", may say the opposite.
_KEPT = (
    *("keep", "kept", "keeps", "to keep", "facts to keep", "keep facts", "kept facts", "keep numbers", "kept numbers"),
    *("numbers", "facts", "fact", "triples", "selected", "selected facts", "relevant", "relevant facts"),
)
_LISTED = re.compile(r"[\[(]?\s?\d{1,6}(?:\s?(?:[,;]|and|[,;] and)\s?\d{1,6}){1,200}\s?[\])]?\.?")


class KeptNumbers(NamedTuple):
    """The candidates that a reply keeps, from 0, ascending; and how much it named that is none of them."""

    kept: tuple[int, ...]
    unknown: int


class Thought(NamedTuple):
    """One thought; answer is "" while it does not answer the question."""

    text: str
    answer: str


class ReadAnswer(NamedTuple):
    """A thought, the numbers of the passages that the answer rests on, from 1, and the answer, "" for none.

    said_unknown : there is none because the reply says so in words, as "unknown": a name may be spelt like that
    """

    thought: str
    numbers: tuple[int, ...]
    answer: str
    said_unknown: bool = False


def kept_reader(candidates: Sequence[KeptFact]) -> Callable[[str], Read[KeptNumbers]]:
    """Reads replies that name candidates by their number from 1, or by their three fields.

    A number or fact that is none of the candidates is counted and dropped: it is never taken for its neighbour.
    A number below 1 shows that the model counts from elsewhere, so that nothing of the reply can be believed; and an
    object that keeps nothing by name ("keep", "kept facts", …) may tell what it drops, which is a fault.
    """
    texts = [fact_text(*fact[:3]) for fact in candidates]

    def read(text: str) -> Read[KeptNumbers]:
        found = find_values(text)
        if found.truncated:
            return Read(None, truncated=True)
        value = found.values[0].value if len(found.values) == 1 else None
        told = text
        if isinstance(value, dict) and not _is_fact(value):
            names = [key for name in _KEPT for key in value if normalise(key) == name]
            if not names:
                return Read(None, f"the reply names nothing to keep: its keys are {list(value)[:5]}")
            value = value[names[0]]
            told = json.dumps({"triples": value}, default=str) if isinstance(value, list | dict) else ""
        items = _items(value)
        if items is not None:
            if items and all(isinstance(item, bool) for item in items):
                return _of_flags(items, len(texts))
            numbers = [_whole(item) for item in items]
            whole = [number for number in numbers if number is not None]
            if len(whole) == len(items):
                return _of_numbers(whole, len(texts))
        return _of_facts(told, texts)

    return read


def read_entities(text: str) -> Read[tuple[str, ...]]:
    """The names of a reply, each once; an empty list is a reply too."""
    read = read_reply(text, wants="entities")
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in read.entities))
    if read.truncated:
        return Read(names or None, truncated=True)
    return Read(None, read.fault) if read.fault is not None else Read(names)


def read_thought(text: str) -> Read[Thought]:
    """The thought of a reply and the answer it comes to, from JSON or from free text with an answer marker."""
    fields, truncated = _fields(text)
    if fields is None:
        plain = _plain(text)
        answer = marked_answer(plain)
        thought = Thought(_line(plain), answer or "")
        return Read(thought) if thought.text else Read(None, "the reply holds no thought", truncated)
    told = _text(fields, "thought")
    answer = _text(fields, "answer")
    if not told and not answer:
        return Read(None, "the reply holds no thought", truncated)
    answer = "" if not answer or says_nothing(answer) else answer
    return Read(Thought(told or answer, answer or marked_answer(told or "") or ""), truncated=truncated)


def read_answer(text: str) -> Read[ReadAnswer]:
    """Thought, passage numbers and answer of a reply, from JSON or from free text with an answer marker.

    A reply without either marker of an answer has a fault; one whose answer says that there is none has answer "". The
    numbers are those of the field; brackets in the thought count only where it is absent or holds no numbers or list.
    """
    fields, truncated = _fields(text)
    if fields is None:
        plain = _plain(text)
        thought, answer, items = _line(plain), _marked(plain), None
    else:
        thought, answer = _text(fields, "thought") or "", _text(fields, "answer")
        items = _items(fields.get("passages"))
    if answer is None:
        return Read(None, "the reply holds no answer", truncated)
    named = (number for number in map(_whole, items or ()) if number is not None)
    numbers = cited_numbers(thought) if items is None else tuple(dict.fromkeys(named))
    nothing = says_nothing(answer)
    read = ReadAnswer(thought, numbers, "" if nothing else answer, nothing and bool(normalise(answer)))
    return Read(read, truncated=truncated)


def marked_answer(text: str) -> str | None:
    """What stands behind the last answer marker ("Answer: Perth", "So the answer is: Perth."); None without one.

    "" where what stands there says that there is no answer.
    """
    answer = _marked(text)
    return "" if answer is not None and says_nothing(answer) else answer


def cited_numbers(text: str) -> tuple[int, ...]:
    """The numbers that stand in square brackets, in order, each once: "[2]", "[1, 3]"."""
    found = (number for group in _CITATION.findall(text) for number in _NUMBER.findall(group))
    return tuple(dict.fromkeys(int(number) for number in found))


def says_nothing(answer: str) -> bool:
    """Whether an answer only says that there is none."""
    return normalise(answer) in NO_ANSWER


def fact_text(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    """What two spellings of a fact have in common."""
    return normalise(subject), normalise(predicate), normalise(object_)


def _marked(text: str) -> str | None:
    """What stands behind the last answer marker, whatever it says; None without one."""
    found = [match["line"] or match["end"] or "" for match in _MARKER.finditer(text)]
    if not found:
        return None
    answer = _CITATION.sub("", found[-1]).strip(" \t*_\"'`").removesuffix(".").strip(" \t*_\"'`")
    return " ".join(answer.split())


def _of_numbers(numbers: Sequence[int], most: int) -> Read[KeptNumbers]:
    if any(number < 1 for number in numbers):
        return Read(None, f"the reply counts from below 1: {list(numbers)[:10]}")
    named = dict.fromkeys(numbers)
    kept = sorted(number - 1 for number in named if number <= most)
    return Read(KeptNumbers(tuple(kept), len(named) - len(kept)))


def _of_flags(flags: Sequence[object], most: int) -> Read[KeptNumbers]:
    if len(flags) != most:
        return Read(None, f"the reply says yes or no of {len(flags)} facts, not of {most}")
    return Read(KeptNumbers(tuple(place for place, yes in enumerate(flags) if yes), 0))


def _of_facts(text: str, texts: Sequence[tuple[str, str, str]]) -> Read[KeptNumbers]:
    """A reply that writes facts out."""
    read = read_reply(text, wants="triples")
    if read.fault is not None:
        return Read(None, read.fault.replace("triples", "numbers"))
    named = dict.fromkeys(fact_text(*triple[:3]) for triple in read.triples)
    kept = [place for place, fact in enumerate(texts) if fact in named]
    return Read(KeptNumbers(tuple(kept), sum(fact not in texts for fact in named)))


def _items(value: object) -> list[object] | None:
    """The list that a reply's value is; a number alone is a list of itself, "1, 3" of two. None when there is none."""
    if isinstance(value, UnclosedList | UnclosedDict):
        return None
    if isinstance(value, list):
        return [_item(item) for item in value]
    if isinstance(value, str) and _LISTED.fullmatch(value.strip()):
        return list(_NUMBER.findall(value))
    value = _item(value)
    return [value] if _whole(value) is not None else None


def _is_fact(value: dict[str, object]) -> bool:
    """Whether an object is one fact that is written out."""
    return "subject" in {normalise(key) for key in value}


def _item(item: object) -> object:
    """An item that is an object with its number stands for that."""
    keys = [key for key in _ITEMS if isinstance(item, dict) and _whole(item.get(key)) is not None]
    return item[keys[0]] if isinstance(item, dict) and keys else item


def _whole(item: object) -> int | None:
    """A whole number, also written as 3.0, "3" or "[3]"."""
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, str):
        digits = item.strip(" []#.")
        return int(digits) if digits.isdecimal() and len(digits) < 7 else None
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def _fields(text: str) -> tuple[dict[str, object] | None, bool]:
    """The one JSON object of a reply, its keys in small letters; None without one. And whether the reply was cut."""
    found = find_values(text)
    objects = [one.value for one in found.values if isinstance(one.value, dict)]
    known = [value for value in objects if {"answer", "thought"} & {key.casefold() for key in value}]
    if len(known) != 1:
        return None, found.truncated
    return {key.casefold(): item for key, item in known[0].items()}, found.truncated


def _text(fields: dict[str, object], key: str) -> str | None:
    """A field as text: numbers as they are, true and false as yes and no, null as "", a list with commas."""
    if key not in fields:
        return None
    value = fields[key]
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(filter(None, (_scalar(item) for item in value)))
    return None if isinstance(value, list | dict) else _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else " ".join(str(value).split())


def _plain(text: str) -> str:
    """The reply behind its thinking block, where it has one that ended."""
    end = re.search(r"</(?:think|thinking|reasoning)>", text, re.IGNORECASE)
    return text[end.end() :].strip() if end else text.strip()


def _line(text: str) -> str:
    return " ".join(text.split())
