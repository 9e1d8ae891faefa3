"""How long to wait before a server is asked again: what it says, else a doubling wait with jitter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

# Statuses of a server that may answer the same request later; from 520 on they are those of Cloudflare and Anthropic.
BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 531)})
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_A_DAY_S = 86400.0


def wait_s(attempt: int, asked: float | None, chance: float, *, longest_s: float = _LONGEST_WAIT_S) -> float:
    """Seconds before the next try: what the server asked, or half to all of a doubling wait; longest_s at most.

    attempt : tries that failed before this one (0, 1, …)
    chance  : a number in [0, 1) that says where in that range
    """
    if asked is not None:
        return min(asked, longest_s)
    doubled = min(_FIRST_WAIT_S * float(2 ** min(attempt, 32)), longest_s)
    return doubled * (0.5 + 0.5 * chance)


def retry_after_s(header: str | None, *, now: datetime) -> float | None:
    """The seconds a Retry-After header asks for, given as seconds or as a date; None when absent or unreadable."""
    if header is None:
        return None
    if _SECONDS.fullmatch(header.strip()):
        return float(header)
    try:
        return max((parsedate_to_datetime(header) - now).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def asked_wait_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """What a busy server's headers ask for: retry-after-ms, Retry-After, or the reset of a spent rate limit."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000.0
    asked = retry_after_s(headers.get("retry-after"), now=now)
    return asked if asked is not None else rate_limit_reset_s(headers)


def rate_limit_reset_s(headers: Mapping[str, str]) -> float | None:
    """Seconds until a rate limit with nothing left is reset; None while something is left of each.

    Reads x-ratelimit-remaining-requests and -tokens, and x-ratelimit-reset-requests and -tokens as durations.
    """
    resets = [
        duration_s(headers.get(f"x-ratelimit-reset-{kind}"))
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0"
    ]
    return max((reset for reset in resets if reset is not None), default=None)


def duration_s(text: str | None) -> float | None:
    """The seconds of a duration such as "120ms", "1s", "6m0s" or "1h2m3.5s", or of a plain number of seconds.

    None when it is neither, or longer than a day: some servers put the time of day there.
    """
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        found = _DURATION.fullmatch(text)
        if not text or found is None:
            return None
        hours, minutes, whole, thousandths = (float(part or 0) for part in found.groups())
        seconds = hours * 3600 + minutes * 60 + whole + thousandths / 1000
    return seconds if seconds <= _A_DAY_S else None
