"""Normalisation of phrases, and the identity of passages."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Literal

TextRule = Literal["unicode", "ascii"]

_NOT_ASCII_WORD = re.compile("[^a-z0-9 ]")


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
    return " ".join("".join(map(_word_or_space, folded)).split())


def _word_or_space(character: str) -> str:
    return character if unicodedata.category(character)[0] in "LMN" else " "


def alphanumerics(text: str, rule: TextRule = "unicode") -> int:
    """How many letters, marks and numbers the text has (ASCII ones only under the ascii rule)."""
    if rule == "ascii":
        return sum(character.isascii() and character.isalnum() for character in text)
    return sum(unicodedata.category(character)[0] in "LMN" for character in text)


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
