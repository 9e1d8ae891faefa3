"""How long to wait before a server is asked again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hippogpu.llm.retry import asked_wait_s, duration_s, rate_limit_reset_s, retry_after_s, wait_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_wait_doubles_with_jitter_up_to_the_longest() -> None:
    assert [wait_s(attempt, None, 1.0) for attempt in (0, 1, 2, 20, 5000)] == [0.5, 1.0, 2.0, 60.0, 60.0]
    assert wait_s(1, None, 0.0) == 0.5


def test_what_the_server_asks_goes_before_the_doubling_wait() -> None:
    assert wait_s(0, 7.0, 0.3) == 7.0
    assert wait_s(0, 3600.0, 0.0) == 60.0
    assert wait_s(0, 3600.0, 0.0, longest_s=600.0) == 600.0


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    assert retry_after_s("12", now=NOW) == 12.0
    assert retry_after_s("Thu, 01 Jan 2026 00:00:30 GMT", now=NOW) == 30.0
    assert retry_after_s("Wed, 31 Dec 2025 00:00:00 GMT", now=NOW) == 0.0
    assert retry_after_s("soon", now=NOW) is None
    assert retry_after_s("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", now=NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("1s", 1.0), ("6m0s", 360.0), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("7.66s", 7.66), ("2m59.56s", 179.56)],
        *[("12", 12.0), ("0", 0.0), ("1.5", 1.5), ("59m", 3540.0)],
        *[("", None), ("soon", None), (None, None), ("1767225600", None), ("-1", None), ("1x", None)],
    ],
)
def test_durations_of_rate_limits_are_read(text: str | None, seconds: float | None) -> None:
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


def test_only_a_spent_rate_limit_holds_requests_back() -> None:
    resets = {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}
    left = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-remaining-tokens": "-1"}
    assert rate_limit_reset_s(resets | left) is None
    assert rate_limit_reset_s(resets | left | {"x-ratelimit-remaining-requests": "0"}) == 1.0
    assert rate_limit_reset_s(resets | dict.fromkeys(left, "0")) == 360.0
    assert rate_limit_reset_s(dict.fromkeys(left, "0")) is None


def test_a_busy_server_is_believed_in_this_order() -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "3s"}
    assert asked_wait_s(headers, now=NOW) == 3.0
    assert asked_wait_s(headers | {"retry-after": "2"}, now=NOW) == 2.0
    assert asked_wait_s(headers | {"retry-after": "2", "retry-after-ms": "1500"}, now=NOW) == 1.5
    assert asked_wait_s({}, now=NOW) is None
