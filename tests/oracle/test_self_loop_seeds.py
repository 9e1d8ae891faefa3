"""A fact whose subject is its object, as a seed."""

from __future__ import annotations

import numpy as np

from hippogpu.methods.seeds import phrase_seeds
from hippogpu.types import Facts


def test_a_fact_from_a_phrase_to_itself_counts_twice_in_the_mean() -> None:
    facts = Facts(np.array([0, 0], np.int32), np.array([1, 0], np.int32), ("was", "was started by"), ("", ""))
    seeds = phrase_seeds([(0, 1.0), (1, 0.4)], facts, np.array([1, 1], np.int32), top_phrases=5)
    # The authors' library adds the score of "david jones was started by david jones" at both ends: (1 + 0.4 + 0.4) / 3.
    assert seeds == {1: 1.0, 0: (1.0 + 0.4 + 0.4) / 3}
