"""Records to tables: the distinct phrases and facts of a corpus, and which passage states what."""

from __future__ import annotations

from hippogpu.tables.pairs import (
    Pairs,
    UserPairs,
    count_fact_pairs,
    fact_pairs,
    mention_counts,
    stated_mentions,
    user_pairs,
)
from hippogpu.tables.reading import fact_text
from hippogpu.tables.tabulating import Tabulated, tabulate

__all__ = [
    "Pairs",
    "Tabulated",
    "UserPairs",
    "count_fact_pairs",
    "fact_pairs",
    "fact_text",
    "mention_counts",
    "stated_mentions",
    "tabulate",
    "user_pairs",
]
