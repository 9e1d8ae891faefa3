"""hippo: the walk of HippoRAG 2, what a question names, words, and pairs of passages, weighed together."""

from __future__ import annotations

from hippogpu.methods.hippo.method import HIPPO

__all__ = ["HIPPO"]
