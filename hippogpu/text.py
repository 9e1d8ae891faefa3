"""Normalisation of phrases, and the identity of passages."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Literal

TextRule = Literal["unicode", "ascii"]

_NOT_ASCII_WORD = re.compile("[^a-z0-9 ]")
_NOT_ASCII_ALPHANUMERIC = re.compile("[^A-Za-z0-9]")


class _WordCharacters(dict[int, str]):
    """For str.translate: letters, marks and numbers as they are, `other` for every other character."""

    def __init__(self, other: str) -> None:
        super().__init__()
        self._other = other

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = kept = character if unicodedata.category(character)[0] in "LMN" else self._other
        return kept


_SPACED, _BARE = _WordCharacters(" "), _WordCharacters("")


def normalise(text: str, rule: TextRule = "unicode") -> str:
    """The form under which two spellings are one phrase.

    unicode : NFC, casefold, NFC again; every character that is no letter, mark, number or space becomes a
              space; runs of spaces collapse and ends are stripped.
    ascii   : lower-case; every character outside a-z, 0-9 and space becomes a space; ends stripped, runs kept
              (the rule of the papers' library).
    """
    if rule == "ascii":
        return _NOT_ASCII_WORD.sub(" ", text.lower()).strip()
    if text.isascii():
        folded = text.casefold()
    else:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.translate(_SPACED).split())


def alphanumerics(text: str, rule: TextRule = "unicode") -> int:
    """How many letters, marks and numbers the text has (ASCII ones only under the ascii rule)."""
    return len(_NOT_ASCII_ALPHANUMERIC.sub("", text) if rule == "ascii" else text.translate(_BARE))


def identity(title: str, text: str) -> str:
    """What a passage is, and what is encoded for it: title, newline, text (the text alone without a title)."""
    return f"{title}\n{text}" if title else text


def readable(text: str) -> str:
    """The text with each half of a character (a lone surrogate), which no file or model can take, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def content_key(text: str) -> str:
    """32 hex digits that stand for a text in logs and caches (BLAKE2b; lone surrogates are kept apart)."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
