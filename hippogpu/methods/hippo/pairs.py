"""How the words of a question fall upon a passage and a partner of it: passages that share a telling phrase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

if TYPE_CHECKING:
    from hippogpu.methods.hippo.words import Mentions, Words
    from hippogpu.types import AnyFloats, AnyInts, Ints

    def pair_row(
        pool: Ints,
        partners: Ints,
        asked: AnyInts,
        shares: AnyFloats,
        words: Words,
        mentions: Mentions,
        covered: AnyFloats,
        pair: AnyFloats,
        rest: AnyFloats,
        partner: Ints,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def pair_row(pool, partners, asked, shares, words, mentions, covered, pair, rest, partner):
        """What one question's words say of each passage of its pool; writes the last four, one entry a passage.

        pool     passages, ascending · partners places in it, the leader first
        asked    numbers of the question's words · shares their weights, summing to 1
        covered  weight of the words that the passage has
        pair     the greatest weight of the words that it and a partner with a telling phrase in common have together;
                 covered, where there is no such partner · partner its place, -1 without one
        rest     weight of the words that it has and the leader has not
        """
        has = np.zeros((len(pool), len(asked)), np.bool_)
        for word in range(len(asked)):
            _mark(has, pool, word, words.passages[words.indptr[asked[word]] : words.indptr[asked[word] + 1]])
        for place in range(len(pool)):
            own, left = 0.0, 0.0
            for word in range(len(asked)):
                if has[place, word]:
                    own += shares[word]
                    if len(partners) and not has[partners[0], word]:
                        left += shares[word]
            covered[place], pair[place], rest[place], partner[place] = own, own, left, -1
            for other in partners:
                if other == place or not _linked(mentions, pool[place], pool[other]):
                    continue
                both = 0.0
                for word in range(len(asked)):
                    if has[place, word] or has[other, word]:
                        both += shares[word]
                if both > pair[place] or partner[place] < 0:
                    pair[place], partner[place] = both, other

    @numba.njit(nogil=True, cache=True)
    def _mark(has, pool, word, passages):
        """Both ascend; whichever is longer is searched."""
        if len(passages) < len(pool):
            for passage in passages:
                place = np.searchsorted(pool, passage)
                if place < len(pool) and pool[place] == passage:
                    has[place, word] = True
            return
        for place in range(len(pool)):
            at = np.searchsorted(passages, pool[place])
            has[place, word] = at < len(passages) and passages[at] == pool[place]

    @numba.njit(nogil=True, cache=True)
    def _linked(mentions, one, two):
        """Whether the two share a telling phrase."""
        a, a_end = mentions.indptr[one], mentions.indptr[one + 1]
        b, b_end = mentions.indptr[two], mentions.indptr[two + 1]
        while a < a_end and b < b_end:
            if mentions.phrases[a] == mentions.phrases[b]:
                if mentions.telling[mentions.phrases[a]]:
                    return True
                a += 1
                b += 1
            elif mentions.phrases[a] < mentions.phrases[b]:
                a += 1
            else:
                b += 1
        return False
