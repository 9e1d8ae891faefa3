"""Where the walk restarts: phrase seeds from the kept facts, passage seeds from dense scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hippogpu.types import AnyFloats, Facts, Ints


def phrase_seeds(
    kept: Sequence[tuple[int, float]], facts: Facts, mention_counts: Ints, *, top_phrases: int
) -> dict[int, float]:
    """Weights of the heaviest phrases of the kept facts, by phrase number, heaviest first.

    kept : (fact number, min-max score) of each kept fact
    Each fact gives each of its two phrases score ÷ (passages that mention the phrase); a phrase weighs the mean of what
    it is given, so a fact whose subject is its object counts twice (as in the papers' library). The top_phrases
    heaviest stay, ties by lower number. HippoRAG 2, section 3.5.
    """
    given: dict[int, list[float]] = {}
    for fact, score in kept:
        for phrase in (int(facts.subject[fact]), int(facts.object[fact])):
            given.setdefault(phrase, []).append(score / int(mention_counts[phrase]))
    weights = {phrase: sum(shares) / len(shares) for phrase, shares in given.items()}
    heaviest = sorted(weights, key=lambda phrase: (-weights[phrase], phrase))[:top_phrases]
    return {phrase: weights[phrase] for phrase in heaviest}


def linked_seeds(linked: Sequence[tuple[int, float]], mention_counts: Ints) -> dict[int, float]:
    """Weights of the phrases that are linked to a question: each link's own ÷ (passages that mention the phrase).

    linked : (phrase, weight) of each link; of several links to one phrase the heaviest counts, and none adds to it
    Heaviest first, ties by lower number. With weights of 1 HippoRAG 1's node specificity, section 2.3.
    """
    weights: dict[int, float] = {}
    for phrase, weight in linked:
        weights[phrase] = max(weights.get(phrase, 0.0), weight / int(mention_counts[phrase]))
    return dict(sorted(weights.items(), key=lambda seed: (-seed[1], seed[0])))


def reset_vectors(
    phrases: Sequence[Mapping[int, float]], passage_scores: AnyFloats, *, passage_weight: float, nodes: int
) -> AnyFloats:
    """Rows of restart mass over all nodes, (B, n) float64, each summing to 1. HippoRAG 2, section 3.5.

    phrases        : phrase seeds of each query
    passage_scores : (B, P) min-max scores, weighed by passage_weight
    A row without any mass (passage_weight 0 and seeds that all weigh 0) stays zero.
    """
    count = passage_scores.shape[1]
    resets: AnyFloats = np.zeros((len(phrases), nodes))
    resets[:, :count] = passage_weight * passage_scores
    for row, seeds in zip(resets, phrases, strict=True):
        for phrase, weight in seeds.items():
            row[count + phrase] = weight
    sums = resets.sum(axis=1, keepdims=True)
    np.divide(resets, sums, out=resets, where=sums > 0)
    return resets
