"""What the walks of the method hippo started from, and the evidence that its scores weigh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hippogpu.backends import Graph
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods import starts
from hippogpu.methods.explaining.carried import Source
from hippogpu.methods.explaining.naming import phrase_number
from hippogpu.methods.explaining.starting import Started, places_of, with_degrees
from hippogpu.methods.facts import Recognised
from hippogpu.methods.filter import Verdict
from hippogpu.methods.hippo.evidence import EVIDENCE, Pooled
from hippogpu.methods.hippo.focus import fact_factors, facts_behind
from hippogpu.methods.hippo.hubs import walked_edges
from hippogpu.methods.hippo.masses import dense_line, solver_of
from hippogpu.methods.hippo.method import Worked, work_out
from hippogpu.methods.hippo.weights import weights_for
from hippogpu.methods.linking import Linked, seed_divisors
from hippogpu.methods.loaded import Clock, Loaded, Queries
from hippogpu.methods.seam import Asked
from hippogpu.methods.seeds import linked_seeds
from hippogpu.types import AnyFloats, Csr, Evidence, Floats, KeptFact, Ranking


class KeptBefore:
    """The filter that keeps what a ranking has kept, so that no model is asked again."""

    name = "kept before"

    def __init__(self, facts: Sequence[KeptFact]) -> None:
        self._facts = {fact[:3] for fact in facts}

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        return [
            Verdict(tuple(place for place, fact in enumerate(row) if fact[:3] in self._facts)) for row in candidates
        ]


def start_hippo(loaded: Loaded, ranking: Ranking, question: Queries, config: SearchConfig) -> Started:
    """The ranking's facts, the names in the question and the passages near to it, each as a part of the walk.

    The masses are those that order the passages outside the pool; scores in the pool are the weighed evidence.
    """
    asked = Asked([ranking.query], question, fact_filter=KeptBefore(ranking.facts))
    started = _linked_before(loaded, ranking, config) if config.link == "entity" else None
    worked = work_out(loaded, asked, config=config, clock=Clock(), started=started)
    first = len(loaded.snapshot.passages)
    places = _checked_places(loaded, ranking, worked, first)
    plain = _plain_graph(loaded, config)
    facts, others = np.zeros(plain.nodes), np.zeros(plain.nodes)
    _sow(facts, worked.starts.facts[0], first=first)
    _sow(others, worked.starts.names[0], first=first, factor=config.name_weight)
    _sow(others, worked.starts.lexical[0])
    others[:first] += _passage_seeds(loaded, worked, question, config)
    seeds = facts + others
    unit = float(seeds.sum() - config.damping * seeds[plain.degrees == 0].sum())
    focused = _focused(loaded, plain, question.to_facts, config) if config.focus > 0 else plain
    sources = (Source(focused, facts), Source(plain, others)) if config.focus > 0 else (Source(plain, seeds),)
    left = _left(loaded, worked, plain, focused, config) / unit if unit > 0 else np.zeros(first)
    return Started(
        sources,
        places,
        unit,
        config.damping,
        masses=worked.masses.total(config)[0] / unit,
        evidence=lambda row: _weighed(loaded, worked.pools[0], row, config),
        left=lambda row: float(left[row]),
    )


def _left(loaded: Loaded, worked: Worked, plain: Graph, focused: Graph, config: SearchConfig) -> AnyFloats:
    """What the pushes that served may have left of each passage's mass, (P,), in the unit of the seeds.

    A push leaves every node at most push_epsilon · degree · its seeds, and G keeps the degrees. That along focused
    edges goes by the plain degrees, so what it leaves is larger by as much as those are at most.
    """
    first, pushes = len(loaded.snapshot.passages), solver_of(loaded, config) == "diffused"
    starts, degrees = worked.starts, plain.degrees[:first]
    facts, names, lexical = (sum(kind[0].values()) for kind in (starts.facts, starts.names, starts.lexical))
    left = np.zeros(first)
    if config.focus > 0:
        walks = focused.degrees > 0
        most = float((plain.degrees[walks] / focused.degrees[walks]).max(initial=0.0))
        left += facts * most * focused.degrees[:first]
    elif pushes:
        left += facts * degrees
    if pushes:
        left += (config.name_weight * names + lexical) * degrees
    return config.damping * config.push_epsilon * left


def _linked_before(loaded: Loaded, ranking: Ranking, config: SearchConfig) -> starts.Started:
    """The phrases that the ranking's entities were linked to, so that no question is read again."""
    numbers = (phrase_number(loaded.snapshot.tables.phrases, entity.phrase) for entity in ranking.entities)
    linked = Linked(tuple((number, 1.0) for number in numbers if number is not None), ranking.entities)
    seeds = linked_seeds(linked.phrases, seed_divisors(loaded, config))
    return starts.Started([dict([*seeds.items()][: config.top_phrases])], [Recognised(())], [linked])


def _checked_places(loaded: Loaded, ranking: Ranking, worked: Worked, first: int) -> dict[str, int]:
    """The nodes of the ranking's phrase seeds; UsageError when these settings make others of its facts and names."""
    places = places_of(loaded, ranking, first)
    made = {first + phrase for seeds in (worked.starts.facts[0], worked.starts.names[0]) for phrase in seeds}
    if made != set(places.values()):
        raise UsageError(
            f"The ranking of '{ranking.query[:60]}' has other seeds than the walk under these settings. Explain it "
            "with the SearchConfig it was ranked with."
        )
    return places


def _sow(seeds: AnyFloats, weights: Mapping[int, float], *, first: int = 0, factor: float = 1.0) -> None:
    """Adds weights to seeds; number 0 is the node `first`."""
    for number, weight in weights.items():
        seeds[first + number] += factor * weight


def _passage_seeds(loaded: Loaded, worked: Worked, question: Queries, config: SearchConfig) -> AnyFloats:
    """What the question's vector gives each passage, (P,)."""
    slope, offset = dense_line(loaded, worked.starts, config)
    products = loaded.backend.get(loaded.backend.scores(question.to_passages, loaded.passages))
    seeds: AnyFloats = np.maximum(slope[0] * products[0].astype(np.float64) + offset[0], 0.0)
    return seeds


def _plain_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph that all walk, but for the focus, as NumPy arrays."""
    key = ("explained graph of hippo", config.synonyms, config.hubs)
    return loaded.derived.once(key, lambda: with_degrees(walked_edges(loaded, config)))


def _focused(loaded: Loaded, graph: Graph, vectors: Floats, config: SearchConfig) -> Graph:
    """The graph with the weights that the question gives its edges (hippo.focus)."""
    behind = facts_behind(loaded, config)
    cosines = np.asarray(loaded.backend.get(loaded.backend.scores(vectors, loaded.facts)))[0]
    factors = fact_factors(cosines, config.focus)
    stated = np.flatnonzero(np.diff(behind.indptr))
    weights = graph.weights.astype(np.float64)
    if len(stated):
        weights[stated] *= np.maximum.reduceat(factors[behind.facts], behind.indptr[stated])
    return with_degrees(Csr(graph.indptr, graph.indices, weights.astype(np.float32)))


def _weighed(loaded: Loaded, pool: Pooled, row: int, config: SearchConfig) -> tuple[Evidence, ...]:
    """The evidence for a passage of the pool, with its weights; none for one outside it, or where none is weighed."""
    place = np.flatnonzero(pool.rows == row)
    if not len(place) or config.rerank != "learned":
        return ()
    values, weights = pool.evidence[place[0]].tolist(), weights_for(config).tolist()
    passages, partner = loaded.snapshot.passages, int(pool.partners[place[0]])
    named = {"pair": passages.ids[int(passages.first[partner])]} if partner >= 0 else {}
    return tuple(
        Evidence(kind, value, weight, named.get(kind))
        for kind, value, weight in zip(EVIDENCE, values, weights, strict=True)
        if weight
    )
