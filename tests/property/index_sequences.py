"""Random lives of an index over real passages and their stored extractions, and the corpus that each leaves.

    python tests/property/index_sequences.py SEQUENCES SEED

Prints one JSON object: what was done in all, and the seeds whose index is not the one-shot index of the survivors.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from hippogpu import Index, IndexConfig, Passage, Record, RunConfig
from hippogpu.config import PROFILES
from hippogpu.demo import demo_folder, demo_passages
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index import clean_index
from hippogpu.openie import ReplayExtractor
from hippogpu.store import current_manifest, verify
from hippogpu.text import identity
from hippogpu.types import UserEdge

EDGES_A_STEP, WIDTH = 3, 64
# Low thresholds and caps: full lists of synonyms lose and gain members all the time.
CONFIGS = (
    IndexConfig(synonym_threshold=0.35, synonym_cap=2),
    IndexConfig(synonym_threshold=0.3, synonym_cap=7),
    IndexConfig(),
    IndexConfig(resolve="names"),
    PROFILES["oracle"],
    IndexConfig(synonym_threshold=0.35, passage_vectors="float16", phrase_vectors="float16", fact_vectors="float16"),
    IndexConfig(synonym_threshold=0.35, passage_vectors="int8", phrase_vectors="int8", fact_vectors="int8"),
    IndexConfig(synonym_threshold=0.35, phrase_vectors="float16", fact_vectors="int8"),
)
STORED = CONFIGS[-3:]


@cache
def records() -> dict[str, Record]:
    """The stored record of each text."""
    passages = {passage.id: passage for passage in demo_passages()}
    found = ReplayExtractor(demo_folder() / "openie.jsonl.gz").extract(passages.values())
    return {identity(*passages[record.passage_id][1:3]): record for record in found}


class ByText:
    """Says of each text what its stored record says."""

    name = "stored"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for passage in passages:
            stored = records()[identity(passage.title, passage.text)]
            yield Record(passage.id, stored.triples, stored.entities)


def opened(root: Path, config: IndexConfig) -> Index:
    return Index.open(
        root,
        extractor=ByText(),
        embedder=HashingEmbedder(WIDTH),
        config=config,
        run=RunConfig(grace_s=0.0),
        encoder_spec=f"hashing:{WIDTH}",
    )


def hashes(root: Path) -> dict[str, str]:
    """The SHA-256 of every file of the current generation but the diffused vectors, by role."""
    files = current_manifest(root).files
    return {role: entry.sha256 for role, entry in files.items() if not role.startswith("diffused")}


class Life:
    """What an index should hold after a random sequence of steps, which are taken on the index too."""

    def __init__(self, root: Path, seed: int, config: IndexConfig | None = None) -> None:
        self.root, self.chance = root, random.Random(seed)
        self.config = config or self.chance.choice(CONFIGS)
        self.held: dict[str, Passage] = {}
        self.edges: dict[tuple[tuple[str, ...], tuple[str, ...]], float] = {}
        self.done: Counter[str] = Counter()

    def live(self, steps: int) -> None:
        """Takes steps in commits of one or several, closing and opening the index now and then."""
        index = opened(self.root, self.config)
        for number in range(steps):
            steps_there_are = [self.insert, self.insert, self.delete, self.update, self.alias, self.join]
            step = self.chance.choice(steps_there_are) if number else self.insert
            step(index)
            self.done[step.__name__] += 1
            if (self.held or self.done["commit"]) and (number == steps - 1 or self.chance.random() < 0.6):
                self.done["commit"] += index.commit(diffuse=self.chance.choice(["never", "always"])).changed
                if self.chance.random() < 0.4:
                    index.close()
                    clean_index(self.root, grace_s=0.0)
                    index = opened(self.root, self.config)
                    self.done["reopened"] += 1
        index.close()

    def insert(self, index: Index) -> None:
        self._take(index, self.chance.sample(demo_passages(), self.chance.choice([1, 1, 2, 7, 31])))

    def delete(self, index: Index) -> None:
        ids = self.chance.sample(sorted(self.held), min(len(self.held), self.chance.choice([1, 2, 9, 99])))
        index.delete([*ids, "nobody"])
        for id_ in ids:
            del self.held[id_]
        self.edges = {key: weight for key, weight in self.edges.items() if self.held.keys() >= set(key[0])}

    def update(self, index: Index) -> None:
        """Known ids get the text of some passage, or other metadata."""
        known = self.chance.sample(sorted(self.held), min(len(self.held), self.chance.choice([1, 3])))
        texts = self.chance.choices(demo_passages(), k=len(known))
        self._take(
            index, [text._replace(id=id_, meta={"n": len(self.done)}) for id_, text in zip(known, texts, strict=True)]
        )

    def alias(self, index: Index) -> None:
        """Another id for a text, split elsewhere into title and text."""
        one = self.chance.choice(demo_passages())
        whole = identity(one.title, one.text)
        cuts = [at for at, character in enumerate(whole) if character == "\n"]
        title = whole[: self.chance.choice(cuts)] if cuts and self.chance.random() < 0.5 else ""
        text = whole[len(title) + 1 :] if title else whole
        self._take(index, [Passage(f"alias {self.chance.randrange(9)}", title, text)])

    def join(self, index: Index) -> None:
        """Edges of one's own between passages, and from a passage to a phrase."""
        pairs = [((low, high), ()) for low, high in combinations(sorted(self.held)[:9], 2)]
        phrases = [((id_,), (phrase,)) for id_ in sorted(self.held)[:9] for phrase in ("tag", "russia")]
        for key in self.chance.sample([*pairs, *phrases], min(len(pairs) + len(phrases), EDGES_A_STEP)):
            self.edges[key] = self.chance.choice([0.5, 2.0])
        index.add_edges(UserEdge(*key, "link", weight) for key, weight in self.edges.items())

    def _take(self, index: Index, passages: list[Passage]) -> None:
        index.add(passages)
        self.held |= {passage.id: passage for passage in passages}


def one_shot(root: Path, life: Life) -> None:
    """The index of what a life has left."""
    with opened(root, life.config) as index:
        index.add(life.held.values())
        index.add_edges(UserEdge(*key, "link", weight) for key, weight in life.edges.items())
        index.commit(diffuse="never")


def differing(seed: int, folder: Path, done: Counter[str], config: IndexConfig | None = None) -> list[str]:
    """What a life's index has otherwise than the one-shot index of its survivors, and what verify says of it."""
    life = Life(folder / "lived", seed, config)
    life.live(steps=life.chance.choice([2, 5, 12]))
    done.update(life.done)
    if not life.held:
        # A corpus of nothing makes no index, and an index that lost all is empty.
        return (
            ["an empty index has nodes"] if life.done["commit"] and current_manifest(life.root).counts["nodes"] else []
        )
    one_shot(folder / "once", life)
    lived, once = hashes(life.root), hashes(folder / "once")
    return [role for role in lived.keys() | once.keys() if lived.get(role) != once.get(role)] + verify(
        life.root, full=True
    )


def main(sequences: int, seed: int) -> None:
    done: Counter[str] = Counter()
    wrong = {}
    for number in range(seed, seed + sequences):
        with TemporaryDirectory() as folder:
            found = differing(number, Path(folder), done)
        if found:
            wrong[number] = found
    print(json.dumps({"sequences": sequences, "wrong": wrong, **done}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
