"""The graph of an index: which nodes are joined, and how strongly."""

from __future__ import annotations

from hippogpu.graph.assembling import assemble, phrase_graph

__all__ = ["assemble", "phrase_graph"]
