"""What the walk of a ranking started from: the seeds, the graph they walked, and how passages score by its masses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from hippogpu.backends import Graph
from hippogpu.backends.reference import row_sums
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.explaining.carried import Source, Target
from hippogpu.methods.explaining.naming import phrase_number
from hippogpu.methods.loaded import Loaded, Queries
from hippogpu.methods.walks import phrase_edges, walk_edges
from hippogpu.types import AnyFloats, Csr, Evidence, Ranking, Tables


def no_evidence(row: int) -> tuple[Evidence, ...]:
    """Of a method whose scores are masses."""
    return ()


def nothing_left(row: int) -> float:
    """Of a walk that leaves no more than rounding."""
    return 0.0


class Started(NamedTuple):
    """What a question's walk starts from, and how its masses become scores.

    sources : walks over one set of nodes, whose masses add up · phrases : the node of each phrase seed
    unit    : S − d·m₀, by which masses are divided · damping : of the walk
    masses  : (P,) what all passages have of it, where the method tells; else the ranking's scores are the masses
    evidence : what makes the score of a passage of that row, where it is more than mass
    left    : what the push that served may have left of the mass of a passage of that row, in the unit of the score
    shift   : what makes a node of the sources one of the index's graph: 0, or P where phrases alone are walked. Then a
              passage scores the masses of its phrases, each once for each of its distinct facts that holds it
    """

    sources: tuple[Source, ...]
    phrases: Mapping[str, int]
    unit: float
    damping: float
    shift: int = 0
    masses: AnyFloats | None = None
    evidence: Callable[[int], tuple[Evidence, ...]] = no_evidence
    left: Callable[[int], float] = nothing_left

    def target(self, tables: Tables, row: int) -> Target:
        """The masses that the passage of that row scores."""
        return held_phrases(tables, row) if self.shift else Target(np.array([row], np.int32), np.ones(1))

    def own(self, row: int) -> int:
        """The passage's own node, −1 where it has none."""
        return -1 if self.shift else row


Start = Callable[[Loaded, Ranking, Queries, SearchConfig], Started]
"""From a ranking, and its question as vectors (1, w), to what its walk started from."""


def start_hippo2(loaded: Loaded, ranking: Ranking, question: Queries, config: SearchConfig) -> Started:
    """Passage seeds from min-max dense scores and the ranking's phrase seeds, on the whole graph. HippoRAG 2, 3.5."""
    if not config.passage_nodes:
        return start_phrases(loaded, ranking, question, config)
    dense, graph = passage_scores(loaded, question)[0], whole_graph(loaded, config)
    started = _started(loaded, ranking, graph, config.passage_weight * dense, config.damping)
    if ranking.solver != "diffused":
        return started
    # The push leaves every node at most epsilon · degree, and G keeps the degrees.
    left = config.damping * config.epsilon / max(started.unit, np.finfo(float).tiny)
    return started._replace(left=lambda row: left * float(graph.degrees[row]))


def start_phrases(loaded: Loaded, ranking: Ranking, question: Queries, config: SearchConfig) -> Started:
    """The ranking's phrase seeds, on the graph of phrases. HippoRAG 1, section 2.3."""
    return _started(loaded, ranking, phrases_alone(loaded, config), np.empty(0), config.damping)


def start_seeds_only(loaded: Loaded, ranking: Ranking, question: Queries, config: SearchConfig) -> Started:
    """The ranking's phrase seeds, which stay where they are."""
    return _started(loaded, ranking, phrases_alone(loaded, config), np.empty(0), 0.0)


def _started(loaded: Loaded, ranking: Ranking, graph: Graph, passages: AnyFloats, damping: float) -> Started:
    """passages (P,): their seeds, where they are nodes; else (0,)."""
    start = np.zeros(graph.nodes)
    start[: len(passages)] = passages
    phrases = places_of(loaded, ranking, len(passages))
    for seed in ranking.seeds:
        start[phrases[seed.phrase]] += seed.weight
    unit = float(start.sum() - damping * start[graph.degrees == 0].sum())
    shift = 0 if len(passages) else len(loaded.snapshot.passages)
    return Started((Source(graph, start),), phrases, unit, damping, shift)


def whole_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph over passages and phrases as NumPy arrays, wherever the backend computes."""
    key = ("explained graph", config.synonyms)
    return loaded.derived.once(key, lambda: with_degrees(walk_edges(loaded, config)))


def phrases_alone(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph over phrases as NumPy arrays."""
    key = ("explained graph of phrases", config.synonyms)
    return loaded.derived.once(key, lambda: with_degrees(phrase_edges(loaded, config)))


def held_phrases(tables: Tables, row: int) -> Target:
    """The phrases of a passage's facts, each with the number of its distinct facts that hold it. HippoRAG 1, 2.3."""
    facts = np.unique(tables.statements.row(row))
    subject, object_ = tables.facts.subject[facts], tables.facts.object[facts]
    phrases, counts = np.unique(np.concatenate([subject, object_[subject != object_]]), return_counts=True)
    return Target(phrases.astype(np.int32), counts.astype(np.float64))


def with_degrees(graph: Csr) -> Graph:
    """The graph with the sums of its weights."""
    return Graph(graph.indptr, graph.indices, graph.weights, row_sums(graph, graph.weights))


def places_of(loaded: Loaded, ranking: Ranking, first: int) -> dict[str, int]:
    """The node of each phrase seed, phrase 0 being the node `first`; UsageError for one that the index lacks."""
    places: dict[str, int] = {}
    for phrase in (seed.phrase for seed in ranking.seeds):
        number = phrase_number(loaded.snapshot.tables.phrases, phrase)
        if number is None:
            raise UsageError(f"The index has no phrase '{phrase}', a seed of the ranking. Rank the question again.")
        places[phrase] = first + number
    return places
