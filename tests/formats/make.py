"""Makes the index that stands for the format of today: python tests/formats/make.py FOLDER

One index a past format is kept in this folder as it was written then; each is opened, checked and extended by a test.
It holds what a format can hold: ids of one text, metadata, a failed passage, user edges, diffused vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from hippogpu import Index, Passage, Record, Triple
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.types import UserEdge

PASSAGES = (
    Passage("p0", "Oliver Badman", "Oliver Badman|is a|politician;Badman|won|the election", {"page": 1}),
    Passage("p1", "", "Ada Lovelace|wrote|notes;Ada Lovelace|knew|Charles Babbage"),
    Passage("p2", "Engines", "Charles Babbage|built|the engine;北京|is|a city"),
    Passage("p3", "", "This one fails"),
    Passage("p4", "", "the engines|ran on|steam"),
    Passage("twin", "", "Engines\nCharles Babbage|built|the engine;北京|is|a city", {"tags": ["x", "é"]}),
)
EDGES = (UserEdge(("p0", "p4"), (), "link", 2.0), UserEdge(("p1",), ("Analytical Engine",), "tag", 0.5))


class Saying:
    """Says what each text states: triples "s|p|o" with semicolons between them; fails where there is none."""

    name = "saying"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for passage in passages:
            parts = (part.split("|") for part in passage.text.split("\n")[-1].split(";"))
            triples = tuple(Triple(*fields) for fields in parts if len(fields) == 3)
            yield Record(passage.id, triples, error=None if triples else "nothing is stated")


def opened(folder: Path) -> Index:
    return Index.open(folder, extractor=Saying(), embedder=HashingEmbedder(32), encoder_spec="hashing:32")


def make(folder: Path) -> None:
    with opened(folder) as index:
        index.add(PASSAGES)
        index.add_edges(EDGES)
        index.commit()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
