"""Other programs' words, fit to be shown: without secrets, in one line, short."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote

_SHORT = 200


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret as "***", also where JSON or an address has escaped it."""
    forms = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(forms - {""}, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def shortened(text: str) -> str:
    """The text in one line of 200 characters at most. What is cut may show a part of a secret: mask first."""
    text = " ".join(text[: 8 * _SHORT].split())
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def without_stop(text: str) -> str:
    """The text without the full stop at its end, so that a sentence may go on behind it."""
    text = text.rstrip()
    return text[:-1] if text.endswith(".") and not text.endswith("..") else text


def _forms(secret: str) -> Iterable[str]:
    quoted = json.dumps(secret)[1:-1]
    return (secret, quoted, quoted.replace("/", "\\/"), quote(secret), quote(secret, safe=""))
