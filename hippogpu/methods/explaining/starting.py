"""What the walk of a ranking started from: the seeds, and the graph they walked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends import Graph
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.explaining.carried import Source
from hippogpu.methods.explaining.naming import phrase_number
from hippogpu.methods.loaded import Loaded
from hippogpu.types import AnyFloats, Seed


class Started(NamedTuple):
    """What a question's walk starts from, and what its masses are divided by to become scores.

    sources : walks whose masses add up · phrases : number by text of each phrase seed · unit : S − d·m₀
    """

    sources: tuple[Source, ...]
    phrases: Mapping[str, int]
    unit: float


def started_hippo2(loaded: Loaded, seeds: Sequence[Seed], dense: AnyFloats, config: SearchConfig) -> Started:
    """Phrase seeds as the ranking has them, and passage seeds of the min-max scores dense (P,), on the whole graph."""
    graph, first = host_graph(loaded), len(dense)
    start = np.zeros(graph.nodes)
    start[:first] = config.passage_weight * dense
    phrases: dict[str, int] = {}
    for seed in seeds:
        number = phrase_number(loaded.snapshot.tables.phrases, seed.phrase)
        if number is None:
            raise UsageError(
                f"The index has no phrase '{seed.phrase}', a seed of the ranking. Rank the question again."
            )
        phrases[seed.phrase] = first + number
        start[first + number] = seed.weight
    unit = float(start.sum() - config.damping * start[graph.degrees == 0].sum())
    return Started((Source(graph, start),), phrases, unit)


def host_graph(loaded: Loaded) -> Graph:
    """The graph as NumPy arrays, with its degrees in float64, wherever the backend computes."""
    graph = loaded.snapshot.graph
    degrees = np.asarray(loaded.backend.get(loaded.graph.degrees), np.float64)
    return Graph(graph.indptr, graph.indices, graph.weights, degrees)
