"""Phrases that name one thing in another way: typed edges between them, found by their words and what the text says."""

from __future__ import annotations

from hippogpu.resolve.joining import (
    EVIDENCE,
    KINDS,
    NameEdges,
    find_names,
    kinds_between,
    linked,
    names_for,
    why_joined,
    with_names,
)

__all__ = [
    "EVIDENCE",
    "KINDS",
    "NameEdges",
    "find_names",
    "kinds_between",
    "linked",
    "names_for",
    "why_joined",
    "with_names",
]
