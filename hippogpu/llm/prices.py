"""What tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from hippogpu.config import LlmConfig
from hippogpu.types import Usage


class Prices(NamedTuple):
    """Prices of a million tokens of prompts, of prompts from the server's prefix cache, and of replies."""

    prompt: float
    cached: float
    completion: float


# US dollars, standard tier. OpenAI's price list (developers.openai.com/api/docs/pricing) as it stands in the price
# file of the package litellm 1.110.2, read on 2026-11-30; gpt-4.1 and gpt-5-mini are the same in the table of
# GitHub's documentation (data/tables/copilot/models-and-pricing.yml).
SOURCE = "OpenAI's price list, by way of litellm 1.110.2, read on 2026-11-30, in US dollars"
KNOWN: Mapping[str, Prices] = MappingProxyType(
    {
        "gpt-4.1": Prices(2.0, 0.5, 8.0),
        "gpt-4.1-mini": Prices(0.4, 0.1, 1.6),
        "gpt-4.1-nano": Prices(0.1, 0.025, 0.4),
        "gpt-4o": Prices(2.5, 1.25, 10.0),
        "gpt-4o-mini": Prices(0.15, 0.075, 0.6),
        "gpt-5": Prices(1.25, 0.125, 10.0),
        "gpt-5-mini": Prices(0.25, 0.025, 2.0),
        "gpt-5-nano": Prices(0.05, 0.005, 0.4),
    }
)
_TABLE_ENDPOINT = "https://api.openai.com/"


def prices_of(config: LlmConfig) -> Prices | None:
    """The prices of a configuration: its own where set, else the table's; None when the prompt's or reply's is unknown.

    The table holds for OpenAI's own address alone: others ask other prices for a model of the same name. Without a
    price of its own a token from the prefix cache costs what the others cost.
    """
    known = KNOWN.get(config.model) if config.engine == "http" and config.url.startswith(_TABLE_ENDPOINT) else None
    prompt = _first(config.prompt_price, known.prompt if known else -1.0)
    completion = _first(config.completion_price, known.completion if known else -1.0)
    if prompt < 0 or completion < 0:
        return None
    listed = known.cached if known and config.prompt_price < 0 else prompt
    return Prices(prompt, _first(config.cached_price, listed), completion)


def cost(usage: Usage, prices: Prices) -> float:
    """What the tokens cost, in the unit of the prices. cached tokens are a part of the prompt's."""
    cached = min(usage.cached, usage.prompt)
    full = (usage.prompt - cached) * prices.prompt
    return (full + cached * prices.cached + usage.completion * prices.completion) / 1e6


def _first(own: float, other: float) -> float:
    return own if own >= 0 else other
