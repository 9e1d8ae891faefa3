"""An index whose passages say in which generation they were written, and the questions asked of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from hippogpu.config import BackendName, RunConfig, SearchConfig
from hippogpu.searcher import Searcher
from hippogpu.types import Passage, Ranking, Record, Triple

ENCODER = "hashing:64"
REGIONS = 24
# A small budget, so that one call of all questions is answered in several batches.
BUDGET_BYTES = 2**20
SETTINGS = {
    "diffused": SearchConfig(method="hippo2", solver="diffused"),
    "power": SearchConfig(method="hippo2", solver="power"),
    "dense": SearchConfig(method="dense"),
    "hippo": SearchConfig(method="hippo"),
}
QUESTIONS = tuple(f"Where does resident {region} of the valley work, and in which generation was that written?"
                  for region in range(REGIONS))  # fmt: skip


class Stating:
    """Reads a passage that is its own extraction: "subject|predicate|object;…"."""

    name = "stating"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """One record a passage, in order."""
        for passage in passages:
            yield Record(passage.id, tuple(Triple(*part.split("|")) for part in passage.text.split(";")))


def passage(number: int, generation: int) -> Passage:
    """The passage of that number as the generation writes it. Passages of one region live in one town."""
    who, town = f"Resident {number}", f"Town {number % REGIONS}"
    stated = (
        f"{who}|lives in|{town}",
        f"{who}|works for|Firm {number * 7 % 53}",
        f"{town}|was visited in|generation {generation}",
        f"{who}|was written in|generation {generation}",
    )
    return Passage(f"p{number}", who, ";".join(stated), {"generation": generation})


def change(generation: int, passages: int) -> tuple[list[Passage], list[str]]:
    """What a generation puts in and takes out: a passage rewritten in every third region, one new, one old one gone."""
    rewritten = [
        passage(region + REGIONS * ((generation * 5 + region) % (passages // REGIONS)), generation)
        for region in range(generation % 3, REGIONS, 3)
    ]
    return [*rewritten, passage(passages + generation, generation)], [f"p{passages + generation - 1}"]


def run_config(backend: BackendName) -> RunConfig:
    """As the writer and all readers run: files of an earlier generation go with the commit that replaces it."""
    return RunConfig(backend=backend, budget_bytes=BUDGET_BYTES, grace_s=0)


def answers(searcher: Searcher) -> dict[str, str]:
    """The digest of each answer of the searcher's generation, by settings and question."""
    return {
        f"{name} {number}": digest(ranking)
        for name, config in SETTINGS.items()
        for number, ranking in enumerate(searcher.rank(QUESTIONS, k=10, config=config))
    }


def digest(ranking: Ranking) -> str:
    """Of all that an answer says: passages whole, scores to the last bit, facts, seeds, solver."""
    hits = [[*hit.passage[:3], dict(hit.passage.meta), hit.score.hex()] for hit in ranking.hits]
    value = [hits, ranking.facts, ranking.seeds, ranking.solver, ranking.certified, ranking.fallback]
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def record_path(root: Path, generation: int) -> Path:
    """Where the writer leaves the digests of a generation's answers: beside the index."""
    return root.with_name(f"answers-{generation:04d}.json")
