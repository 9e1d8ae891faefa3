"""HippoRAG 2 once more, from the description of the method alone: dictionaries and loops, nothing of hippogpu's.

Node keys are ("passage", number) and ("phrase", text). Slow on purpose; only PageRank itself is igraph's.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import igraph
import numpy as np
from numpy.typing import NDArray

Node = tuple[str, Any]
Fact = tuple[str, str, str]
Rows = NDArray[np.floating[Any]]


class Rules(NamedTuple):
    """The choices of a profile."""

    text: str
    edges: str
    keep_empty: bool
    fact_as_tuple: bool
    cap: int
    threshold: float = 0.8


PROFILES = {
    "oracle": Rules("ascii", "parallel", True, True, 101),
    "default": Rules("unicode", "max", False, False, 100),
}


class Corpus(NamedTuple):
    """Each passage's normalised facts, in order, repeats kept; and the distinct phrases and facts, sorted."""

    statements: list[list[Fact]]
    phrases: list[str]
    facts: list[Fact]


class Answer(NamedTuple):
    """What a question leads to: the facts kept, all phrase weights (uncut), the seeds, and passages' mass.

    walk_from gives the mass for another choice of phrases, where the cut falls in a tie.
    """

    facts: list[Fact]
    weights: dict[str, float]
    seeds: dict[str, float]
    mass: list[float]
    walk_from: Callable[[Iterable[str]], list[float]]


def normalise(text: str, rule: str) -> str:
    if rule == "ascii":
        kept = [c if c in "abcdefghijklmnopqrstuvwxyz0123456789 " else " " for c in text.lower()]
        return "".join(kept).strip()
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join("".join(c if is_word(c) else " " for c in folded).split())


def is_word(character: str) -> bool:
    return unicodedata.category(character).startswith(("L", "M", "N"))


def read(rows: Sequence[Mapping[str, Any]], rules: Rules) -> Corpus:
    """Stored extractions, one a passage, {"triples": [[…], …]}, as normalised facts."""
    statements = [[fact for fact in (normalised(t, rules) for t in distinct(row)) if fact] for row in rows]
    facts = sorted({fact for row in statements for fact in row})
    phrases = sorted({end for fact in facts for end in (fact[0], fact[2])})
    return Corpus(statements, phrases, facts)


def distinct(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The triples of exactly three parts, exact repeats left out, first kept."""
    return list(dict.fromkeys(tuple(map(str, triple)) for triple in row["triples"] if len(triple) == 3))


def normalised(triple: tuple[str, ...], rules: Rules) -> Fact | None:
    subject, predicate, object_ = (normalise(part, rules.text) for part in triple)
    if not rules.keep_empty and (not subject or not object_):
        return None
    return subject, predicate, object_


def fact_text(fact: Fact, rules: Rules) -> str:
    return str(fact) if rules.fact_as_tuple else " ".join(fact)


def synonyms(phrases: Sequence[str], vectors: Rows, rules: Rules) -> dict[tuple[str, str], float]:
    """Cosine of (searching phrase, found phrase)."""
    found: dict[tuple[str, str], float] = {}
    for phrase, cosines in zip(phrases, products(vectors, vectors), strict=True):
        if letters(phrase, rules.text) <= 2:
            continue
        near = [
            (-float(cosines[number]), number)
            for number in np.flatnonzero(cosines >= rules.threshold).tolist()
            if phrases[number] and phrases[number] != phrase
        ]
        found.update({(phrase, phrases[number]): -negative for negative, number in sorted(near)[: rules.cap]})
    return found


def letters(phrase: str, rule: str) -> int:
    return sum(c.isascii() and c.isalnum() if rule == "ascii" else is_word(c) for c in phrase)


def products(left: Rows, right: Rows) -> Rows:
    """Inner products of all pairs of rows, in float64."""
    return np.asarray(left, np.float64) @ np.asarray(right, np.float64).T


def edges(corpus: Corpus, near: Mapping[tuple[str, str], float], rules: Rules) -> dict[tuple[Node, Node], float]:
    """Weight by unordered pair (the smaller node first)."""
    between = parallel_edges(corpus, near) if rules.edges == "parallel" else greatest_edges(corpus, near)
    graph: dict[tuple[Node, Node], float] = {
        (("phrase", low), ("phrase", high)): weight for (low, high), weight in between.items()
    }
    for number, row in enumerate(corpus.statements):
        for phrase in {end for fact in row for end in (fact[0], fact[2])}:
            graph[("passage", number), ("phrase", phrase)] = 1.0
    return graph


def parallel_edges(corpus: Corpus, near: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Each ordered pair has an edge of its own, which a synonym overwrites; the two of a pair add up."""
    ordered: dict[tuple[str, str], float] = defaultdict(float)
    for row in corpus.statements:
        for subject, _, object_ in row:
            if subject != object_:
                ordered[subject, object_] += 1
                ordered[object_, subject] += 1
    ordered.update(near)
    total: dict[tuple[str, str], float] = defaultdict(float)
    for (left, right), weight in ordered.items():
        total[min(left, right), max(left, right)] += weight
    return total


def greatest_edges(corpus: Corpus, near: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """One edge a pair: the number of statements or the cosine, whichever is greater."""
    greatest: dict[tuple[str, str], float] = defaultdict(float)
    for row in corpus.statements:
        for subject, _, object_ in row:
            if subject != object_:
                greatest[min(subject, object_), max(subject, object_)] += 1
    for (left, right), cosine in near.items():
        pair = min(left, right), max(left, right)
        greatest[pair] = max(greatest[pair], cosine)
    return greatest


def scaled(scores: Sequence[float]) -> list[float]:
    """Min–max over all; ones where all are equal."""
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def phrase_weights(kept: Sequence[tuple[Fact, float]], corpus: Corpus) -> dict[str, float]:
    """The mean of what the kept facts give each of their phrases: score ÷ passages that mention it."""
    given: dict[str, list[float]] = defaultdict(list)
    for fact, score in kept:
        for phrase in (fact[0], fact[2]):
            mentioning = sum(any(phrase in (f[0], f[2]) for f in row) for row in corpus.statements)
            given[phrase].append(score / mentioning)
    return {phrase: sum(shares) / len(shares) for phrase, shares in given.items()}


def answer(
    question: Rows,
    corpus: Corpus,
    *,
    fact_vectors: Rows,
    passage_vectors: Rows,
    walk: Callable[[Mapping[Node, float]], list[float]],
) -> Answer:
    """Facts, seeds and mass of one question; top 5 facts, top 5 phrases, passage weight 0.05."""
    fact_scores = scaled(products(question[None], fact_vectors)[0].tolist())
    best = sorted(range(len(fact_scores)), key=lambda number: (-fact_scores[number], number))[:5]
    kept = [(corpus.facts[number], fact_scores[number]) for number in best]
    weights = phrase_weights(kept, corpus)
    seeds = dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:5])
    passages: dict[Node, float] = {}
    for number, score in enumerate(scaled(products(question[None], passage_vectors)[0].tolist())):
        passages["passage", number] = 0.05 * score

    def walk_from(phrases: Iterable[str]) -> list[float]:
        return walk(passages | {("phrase", phrase): weights[phrase] for phrase in phrases})

    return Answer([fact for fact, _ in kept], weights, seeds, walk_from(seeds), walk_from)


def walker(corpus: Corpus, graph: Mapping[tuple[Node, Node], float]) -> Callable[[Mapping[Node, float]], list[float]]:
    """PageRank mass of the passages from a reset vector, by igraph's PRPACK at damping 0.5."""
    nodes: list[Node] = [("passage", number) for number in range(len(corpus.statements))]
    nodes += [("phrase", phrase) for phrase in corpus.phrases]
    place = {node: number for number, node in enumerate(nodes)}
    peer = igraph.Graph(n=len(nodes), edges=[(place[a], place[b]) for a, b in graph], directed=False)
    weights = list(graph.values())

    def walk(reset: Mapping[Node, float]) -> list[float]:
        row = [reset.get(node, 0.0) for node in nodes]
        mass = peer.personalized_pagerank(
            reset=row, weights=weights, damping=0.5, directed=False, implementation="prpack"
        )
        return list(mass[: len(corpus.statements)])

    return walk
