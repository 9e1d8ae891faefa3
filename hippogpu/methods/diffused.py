"""HippoRAG 2's ranking from diffused passage vectors: two dense products and a push, instead of a walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends import Certified, PassagePart, SparseSeeds
from hippogpu.config import SearchConfig, ServingSolver
from hippogpu.errors import UsageError
from hippogpu.methods.loaded import Loaded, equal_within_rounding
from hippogpu.types import AnyFloats, Floats


class Mass(NamedTuple):
    """Seed mass of each query, (B,) float64: all of it, and that on nodes without edges."""

    whole: AnyFloats
    isolated: AnyFloats


def solver_for(loaded: Loaded, config: SearchConfig) -> ServingSolver:
    """The solver that serves: auto takes diffused where its vectors are fresh and of this walk, else power."""
    whole = config.synonyms and config.passage_nodes
    fits = whole and loaded.diffused is not None and loaded.diffused.damping == config.damping
    if config.solver == "auto":
        return "diffused" if fits else "power"
    if config.solver == "diffused" and not fits:
        raise UsageError(_unfit(loaded, config.damping))
    return config.solver


def _unfit(loaded: Loaded, damping: float) -> str:
    state = loaded.snapshot.manifest.diffusion_state
    if loaded.diffused is not None:
        state = f"made for the damping {loaded.diffused.damping:g}, not {damping:g}"
    elif state == "none":
        state = "not there"
    return (
        f"The solver 'diffused' cannot serve: the index's diffused vectors are {state}. Bring them up to date with: "
        f"hippogpu diffuse DIR --damping {damping:g}, or leave the choice to --solver auto."
    )


def rank_by_diffusion(
    loaded: Loaded,
    vectors: Floats,
    phrases: Sequence[Mapping[int, float]],
    low: AnyFloats,
    high: AnyFloats,
    *,
    k: int,
    config: SearchConfig,
) -> tuple[Certified, Mass]:
    """The k passages with the greatest G·s of each query, and its seed mass; x = G·s ÷ (whole − d·isolated).

    vectors (B, w) questions · phrases: seed weights by phrase · low, high (B,) extremes of the passages' products
    """
    diffused = loaded.diffused
    assert diffused is not None
    slope, offset = passage_seed_line(low, high, config.passage_weight, low.dtype)
    seeds = sparse_seeds(phrases, first=len(loaded.snapshot.passages))
    part = PassagePart(diffused.vectors, diffused.ones, vectors, slope, offset, diffused.error)
    certified = loaded.backend.rank_diffused(
        loaded.graph,
        part,
        seeds,
        k,
        damping=config.damping,
        epsilon=config.epsilon,
        least_epsilon=config.least_epsilon,
    )
    return certified, seed_mass(loaded, vectors, phrases, slope, offset)


def passage_seed_line(low: AnyFloats, high: AnyFloats, weight: float, dtype: Any) -> tuple[AnyFloats, AnyFloats]:
    """Slope and offset (B,) of passage seed = slope · product + offset: the min-max score times the weight.

    Where all products are equal, every passage scores 1.
    """
    span = np.asarray(high - low, np.float64)
    flat = equal_within_rounding(span, dtype)
    slope = np.divide(weight, span, out=np.zeros(span.shape), where=~flat)
    return slope, np.where(flat, weight, -slope * low)


def sparse_seeds(phrases: Sequence[Mapping[int, float]], *, first: int) -> SparseSeeds:
    """Phrase seeds as nodes: phrase 0 is the node `first`."""
    counts = np.array([len(seeds) for seeds in phrases], np.int64)
    nodes = [first + phrase for seeds in phrases for phrase in seeds]
    weights = [weight for seeds in phrases for weight in seeds.values()]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return SparseSeeds(indptr, np.array(nodes, np.int32), np.array(weights, np.float64))


def seed_mass(
    loaded: Loaded, vectors: Floats, phrases: Sequence[Mapping[int, float]], slope: AnyFloats, offset: AnyFloats
) -> Mass:
    """Sums of seeds, from the sums of the passage vectors: no pass over the passages."""
    diffused = loaded.diffused
    assert diffused is not None
    questions = vectors.astype(np.float64)
    passages = len(loaded.snapshot.passages)
    given = np.array([sum(seeds.values()) for seeds in phrases], np.float64)
    # A phrase is in some fact or user edge, so it has an edge: only passages stand alone.
    whole = given + slope * (questions @ diffused.sum) + offset * passages
    return Mass(whole, slope * (questions @ diffused.lone_sum) + offset * diffused.lone)
