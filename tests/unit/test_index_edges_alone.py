"""An index of user edges alone: no language model, no entity recognition, no fact; a walk from the passage seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_index import WIDTH, hashes

from hippogpu import Index, Passage, Searcher
from hippogpu.config import SearchConfig, SolverName
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.openie.nothing import NoExtractor
from hippogpu.store import current_manifest, verify
from hippogpu.types import Floats, UserEdge

TEXTS = {
    "question?": (1.0, 0.0, 0.0, 0.0),
    "near": (0.8, 0.6, 0.0, 0.0),
    "far and alone": (0.28, 0.0, 0.96, 0.0),
    "far and tagged": (0.28, 0.0, 0.0, 0.96),
}


class Placed(HashingEmbedder):
    """An encoder that knows where a few texts lie; the others lie where hashing puts them."""

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        rows = super().encode(texts, instruction=instruction)
        for number, text in enumerate(texts):
            if text in TEXTS:
                rows[number] = np.array([*TEXTS[text], *[0.0] * (WIDTH - 4)])
        return rows


def of_edges_alone(root: Path, *edges: UserEdge) -> Searcher:
    with Index.open(root, extractor=NoExtractor(), embedder=Placed(WIDTH)) as index:
        index.add([Passage(text, "", text) for text in [*TEXTS][1:]])
        index.add_edges(edges)
        index.commit()
    return Searcher.open(root, embedder=Placed(WIDTH))


def order(searcher: Searcher, solver: SolverName = "auto") -> list[str]:
    (ranking,) = searcher.rank(["question?"], config=SearchConfig(method="hippo2", solver=solver))
    return [hit.passage.id for hit in ranking.hits]


TAGS = [UserEdge((text,), ("a tag",), "tag") for text in ("near", "far and tagged")]


@pytest.mark.parametrize("solver", ["power", "chebyshev", "diffused"])
def test_a_tag_that_the_nearest_passage_shares_lifts_a_passage_above_one_as_similar(
    root: Path, tmp_path: Path, solver: SolverName
) -> None:
    assert order(of_edges_alone(tmp_path / "plain")) == ["near", "far and alone", "far and tagged"]
    assert order(of_edges_alone(root, *TAGS), solver) == ["near", "far and tagged", "far and alone"]


def test_an_index_of_edges_alone_walks_from_the_passage_seeds_and_certifies(root: Path) -> None:
    (ranking,) = of_edges_alone(root, *TAGS).rank(["question?"], config=SearchConfig(method="hippo2"))
    assert (ranking.solver, ranking.certified, ranking.fallback) == ("diffused", True, None)
    assert (ranking.facts, ranking.seeds) == ((), ())


def test_the_walk_of_edges_alone_is_the_solution_from_the_passage_seeds(root: Path) -> None:
    searcher = of_edges_alone(root, UserEdge(("near", "far and tagged"), weight=3.0))
    scores = {
        h.passage.id: h.score
        for h in searcher.rank(["question?"], config=SearchConfig(method="hippo2", solver="power"))[0].hits
    }
    # All seed mass is on "near"; it walks to and fro over the one edge: x = ½·(1, 0) + ½·P·x.
    assert [scores[text] for text in [*TEXTS][1:]] == pytest.approx([2 / 3, 0, 1 / 3], abs=1e-6)


def test_an_index_without_extractor_edges_and_facts_falls_back_to_dense(root: Path) -> None:
    (ranking,) = of_edges_alone(root).rank(["question?"], config=SearchConfig(method="hippo2"))
    assert ranking.fallback is not None


def test_an_index_of_edges_alone_is_whole_and_a_second_run_changes_nothing(root: Path) -> None:
    of_edges_alone(root, *TAGS)
    before = hashes(root)
    of_edges_alone(root, *TAGS)
    assert (current_manifest(root).generation, hashes(root), verify(root, full=True)) == (1, before, [])
    assert current_manifest(root).counts["facts"] == 0
