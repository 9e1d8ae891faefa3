"""Fact candidates, phrase seeds and rankings per question, given the oracle's vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.checks import Check, at_most, equal
from bench.oracle.data import Oracle, Source
from bench.oracle.graph import places_apart
from bench.oracle.rawtext import DEPTHS, recall
from hippogpu.config import SearchConfig
from hippogpu.searcher import Searcher
from hippogpu.types import Ranking

# A float32 inner product of 384 terms, after min–max scaling, is good to some units of 1e-7;
# the library multiplies on its own BLAS.
SCORE_TOLERANCE = 2e-6
# The whole path in float32: facts, seeds and 21 steps.
PATH_TIE = 1e-7
MAX_RULE_RECALL = (67.08, 79.31)


def compare_questions(oracle: Oracle, source: Source, searcher: Searcher) -> tuple[list[Check], dict[str, Any]]:
    """Every question through an index of the oracle's vectors: facts, seeds, and both methods' top 20."""
    texts = [query.text for query in source.queries]
    walked = searcher.rank(texts, k=20, config=SearchConfig(method="hippo2", solver="power"))
    dense = searcher.rank(texts, k=20, config=SearchConfig(method="dense"))
    facts = sum(_same_facts(*pair) for pair in zip(walked, oracle.questions, strict=True))
    apart = max(_facts_apart(*pair) for pair in zip(walked, oracle.questions, strict=True))
    seeds = [seeds_agree(*pair) for pair in zip(walked, oracle.questions, strict=True)]
    tops = {"hippo2": _top_apart(walked, source, oracle, "ppr"), "dense": _top_apart(dense, source, oracle, None)}
    figures = {
        "facts_same": facts,
        "fact_score_difference": apart,
        "seeds_same": seeds.count("same"),
        "seeds_tied_at_the_cut": seeds.count("tie"),
        **{f"{name}_top20_apart": value for name, value in tops.items()},
    }
    return [
        equal("questions with the oracle's five facts, in order", facts, len(texts)),
        at_most("largest difference of a fact's score", apart, SCORE_TOLERANCE),
        equal("questions with the oracle's phrase seeds, ties at the cut apart", seeds.count("other"), 0),
        at_most("hippo2 top 20, difference in any place", tops["hippo2"], PATH_TIE),
        at_most("dense top 20, difference in any place", tops["dense"], SCORE_TOLERANCE),
    ], figures


def compare_max_rule(source: Source, searcher: Searcher) -> tuple[list[Check], dict[str, Any]]:
    """Recall of the rule 'max' with everything else as the oracle has it, against the figures in the method's text."""
    found = recall(
        searcher.rank([query.text for query in source.queries], k=20, config=SearchConfig(method="hippo2")), source
    )
    at_five_and_ten = (found[DEPTHS.index(5)], found[DEPTHS.index(10)])
    check = equal("edge rule max on the oracle's vectors: R@5, R@10", at_five_and_ten, MAX_RULE_RECALL)
    return [check], {"recall": dict(zip(map(str, DEPTHS), found, strict=True))}


def seeds_agree(ranking: Ranking, question: Mapping[str, Any]) -> str:
    """'same'; 'tie' when they differ only in phrases that weigh as much as the lightest one kept; else 'other'."""
    ours = {seed.phrase: seed.weight for seed in ranking.seeds}
    theirs = {seed["phrase"]: seed["weight"] for seed in question["phrase_seeds"]}
    if len(ours) != len(theirs) or not np.allclose(
        sorted(ours.values()), sorted(theirs.values()), atol=SCORE_TOLERANCE
    ):
        return "other"
    if ours.keys() == theirs.keys():
        agree = all(abs(ours[phrase] - theirs[phrase]) <= SCORE_TOLERANCE for phrase in ours)
        return "same" if agree else "other"
    least = min(theirs.values())
    strays = [ours.get(phrase, theirs.get(phrase, 0.0)) for phrase in ours.keys() ^ theirs.keys()]
    return "tie" if all(abs(weight - least) <= SCORE_TOLERANCE for weight in strays) else "other"


def _same_facts(ranking: Ranking, question: Mapping[str, Any]) -> bool:
    return bool([[fact.subject, fact.predicate, fact.object] for fact in ranking.facts] == question["facts"])


def _facts_apart(ranking: Ranking, question: Mapping[str, Any]) -> float:
    pairs = zip(ranking.facts, question["fact_scores"], strict=True)
    return max(abs(fact.score - float(score)) for fact, score in pairs)


def _top_apart(rankings: Sequence[Ranking], source: Source, oracle: Oracle, scores: str | None) -> float:
    """The worst place of any question, in the oracle's own scores."""
    row = {passage.id: number for number, passage in enumerate(source.passages)}
    found = np.array([[row[hit.passage.id] for hit in ranking.hits] for ranking in rankings])
    if scores is not None:
        # A question whose five-phrase cut fell otherwise in a tie restarts elsewhere, so its masses cannot compare.
        same = np.array([seeds_agree(*pair) == "same" for pair in zip(rankings, oracle.questions, strict=True)])
        apart = places_apart(found, oracle.answers["top20"], oracle.answers[scores])
        return float(apart[same].max())
    cosines = oracle.vectors["query"].astype(np.float64) @ oracle.vectors["passage"].astype(np.float64).T
    return float(places_apart(found, oracle.answers["dense_top20"], cosines).max())
