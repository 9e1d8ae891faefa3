"""The JSON in a model's reply: strict where it is JSON, read around the damage where it is not."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from hippogpu.openie.json_damaged import DamagedJson, merged, number
from hippogpu.types import Drop

AROUND, THOUGHT = "text around the JSON", "a thought before the JSON"

_OPENER = re.compile(r"""[\[{]|\((?=\s{0,20}["'(\[])""")
_THOUGHT_END = re.compile(r"</(?:think|thinking|reasoning)>(?![\"'\\])", re.IGNORECASE)
_THOUGHT_END_OF_LINE = re.compile(r"</(?:think|thinking|reasoning)>[ \t]*+\n", re.IGNORECASE)
_THOUGHT_START = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"(?:`{3,}|~{3,})\w*")
_AROUND = " \t\r\n\0\ufeff"
_LABEL_CHARACTERS = 80
_EXCERPT = 200


class Labelled(NamedTuple):
    """One value, and the words before it when a colon or equals sign stood between ("" otherwise)."""

    label: str
    value: object


class FoundValues(NamedTuple):
    """Every value of a reply in order, whether the reply ended inside the last, and what was left out."""

    values: tuple[Labelled, ...]
    truncated: bool
    drops: tuple[Drop, ...]


def find_values(text: str) -> FoundValues:
    """The lists and objects of a reply, whatever stands around them (fences, thoughts, talk); else its one scalar.

    Each is read as strict JSON if it is that (control characters in strings allowed), else by DamagedJson. Nothing
    is evaluated. Time is linear in the length of the text.
    """
    text = text.strip(_AROUND)
    scalar = _scalar(text)
    if scalar is not None:
        inside = scalar.value if isinstance(scalar.value, str) else ""
        return find_values(inside) if inside.lstrip().startswith(("{", "[")) else FoundValues((scalar,), False, ())
    rest, drops, unended = _without_thought(text)
    if unended:
        return FoundValues((), True, drops)
    found = _found(rest)
    return found._replace(drops=drops + found.drops)


def _scalar(text: str) -> Labelled | None:
    """The reply as one text, number, boolean or null, when it is that and nothing else."""
    if text[:1] in ("", "{", "[", "("):
        return None
    try:
        return Labelled("", json.loads(text, strict=False, parse_int=number))
    except ValueError:
        return None


def _without_thought(text: str) -> tuple[str, tuple[Drop, ...], bool]:
    """The reply behind its thinking block, what was cut, and whether the thought never ended.

    Where only the end of the block is in the reply it must end a line, which a tag inside JSON cannot.
    """
    starts = _THOUGHT_START.match(text)
    end = (_THOUGHT_END if starts else _THOUGHT_END_OF_LINE).search(text)
    if end:
        return text[end.end() :], (Drop(THOUGHT, text[: min(end.end(), _EXCERPT)]),), False
    if starts:
        return "", (Drop(THOUGHT, text[:_EXCERPT]),), True
    return text, (), False


def _found(text: str) -> FoundValues:
    values: list[Labelled] = []
    gaps: list[str] = []
    drops: list[Drop] = []
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=lambda pairs: merged(pairs, drops), parse_int=number)
    damaged = DamagedJson(text)
    at, truncated = 0, False
    while opener := _OPENER.search(text, at):
        gap = text[at : opener.start()]
        value, at, truncated = _read(damaged, opener.start(), decoder, drops)
        values.append(Labelled(_label(gap), value))
        gaps.append(gap)
    gaps.append(text[at:])
    around = _gist(gaps)
    return FoundValues(tuple(values), truncated, (*((Drop(AROUND, around),) if around else ()), *drops))


def _read(text: DamagedJson, start: int, decoder: json.JSONDecoder, drops: list[Drop]) -> tuple[object, int, bool]:
    """The value that opens here, where it ends, and whether the text ended first; what it lost goes into drops."""
    before = len(drops)
    try:
        value, end = decoder.raw_decode(text.text, start)
    except (ValueError, RecursionError):
        read = text.read(start)
        drops[before:] = read.drops
        return read.value, read.end, read.truncated
    return value, end, False


def _label(gap: str) -> str:
    """The words of the last line before a value, when a colon or an equals sign ends them."""
    line = _FENCE.sub("", gap[-_LABEL_CHARACTERS:]).rstrip(" \t\r\n*\"'")
    return line.rstrip(":= ").rsplit("\n", 1)[-1].strip(" \t,*#-\"'") if line.endswith((":", "=")) else ""


def _gist(gaps: list[str]) -> str:
    """The start of the text between and around the values, without fences, commas and spaces."""
    gist = ""
    for gap in gaps:
        words = " ".join(_FENCE.sub(" ", gap[: 4 * _EXCERPT]).strip(_AROUND + ",").split())
        gist += f" {words}" if words else ""
        if len(gist) > _EXCERPT:
            break
    return gist[1 : _EXCERPT + 1]
