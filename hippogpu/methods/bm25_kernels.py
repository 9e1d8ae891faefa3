"""BM25 of the words that are asked for, added up passage by passage; compiled at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

if TYPE_CHECKING:
    from hippogpu.types import AnyFloats, AnyInts, Floats, Ints, Longs

    def add_words(
        words: AnyInts,
        rarity: Floats,
        indptr: Longs,
        passages: Ints,
        counts: AnyInts,
        lengths: AnyFloats,
        scores: Floats,
    ) -> bool: ...

else:

    @numba.njit(nogil=True, cache=True)
    def add_words(words, rarity, indptr, passages, counts, lengths, scores):
        """Adds to scores (P,) float32 what each word of a question is worth; False at a wrong entry.

        An entry is wrong that names no passage, or counts nothing.
        words   numbers of the words, in the order in which they are added · rarity of each, float32
        lengths (P,) float64, k1 · (1 - b + b · length ÷ mean length)
        Every worth is worked out in float64 and rounded to float32, as bm25s does, before it is added.
        """
        for i in range(len(words)):
            for entry in range(indptr[words[i]], indptr[words[i] + 1]):
                passage = passages[entry]
                count = np.float64(counts[entry])
                if passage < 0 or passage >= len(scores) or count < 1:
                    return False
                scores[passage] += np.float32(np.float64(rarity[i]) * (count / (lengths[passage] + count)))
        return True
