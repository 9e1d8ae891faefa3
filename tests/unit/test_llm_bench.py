"""The bench of the client compares what is comparable."""

from __future__ import annotations

import pytest

from bench.extract import CLIENTS, _request
from hippogpu.testing.llm_server import LlmServer


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_every_client_of_the_bench_asks_each_request_once(name: str) -> None:
    asked = [_request(number) for number in range(12)]
    with LlmServer() as server:
        passed = CLIENTS[name](server.url, asked, 4)
        assert server.counts.requests == len(server.counts.asked) == 12
    assert [text for text in passed.texts if '["Passage' not in text] == []
