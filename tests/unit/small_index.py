"""A tiny corpus, an extractor that reads it, and an encoder that counts its calls: for tests of index and search."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from hippogpu import CommitReport, Index, IndexConfig, Passage, Record, Triple
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.store import current_manifest, files_folder
from hippogpu.types import Floats

WIDTH = 32


def stating(id_: str, text: str, *, title: str = "") -> Passage:
    """A passage whose text is its own extraction: triples "s|p|o" with semicolons between them."""
    return Passage(id_, title, text)


PASSAGES = [
    stating("p0", "Oliver Badman|is a|politician;Badman|won|the election", title="Oliver Badman"),
    stating("p1", "Ada Lovelace|wrote|notes;Ada Lovelace|knew|Charles Babbage"),
    stating("p2", "Charles Babbage|built|the engine;Charles  Babbage|built|the engine"),
    stating("p3", "Nothing is stated here"),
    stating("p4", "the engines|ran on|steam;steam|is|steam"),
]


class Saying:
    """Says what each text states; fails the ids it is told to, and is interrupted after so many passages."""

    def __init__(self, *, name: str = "saying", failing: Collection[str] = (), stop_after: int = 10**9) -> None:
        self.name, self.failing, self.stop_after = name, failing, stop_after
        self.seen: list[str] = []

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for passage in passages:
            if len(self.seen) == self.stop_after:
                raise KeyboardInterrupt
            self.seen.append(passage.id)
            if passage.id in self.failing:
                yield Record(passage.id, (), error="down")
            else:
                yield Record(passage.id, triples_of(passage.text))


def triples_of(text: str) -> tuple[Triple, ...]:
    parts = (part.split("|") for part in text.split(";"))
    return tuple(Triple(*fields) for fields in parts if len(fields) == 3)


class Counting(HashingEmbedder):
    """The hashing encoder, with every text it was given."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__(width)
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        self.texts.extend(texts)
        return super().encode(texts, instruction=instruction)


def index_of(
    root: Path,
    passages: Iterable[Passage] = PASSAGES,
    *,
    extractor: Saying | None = None,
    embedder: HashingEmbedder | None = None,
    config: IndexConfig | None = None,
) -> CommitReport:
    """One add and one commit."""
    with open_index(root, extractor=extractor, embedder=embedder, config=config) as index:
        index.add(passages)
        return index.commit()


def open_index(
    root: Path,
    *,
    extractor: Saying | None = None,
    embedder: HashingEmbedder | None = None,
    config: IndexConfig | None = None,
) -> Index:
    embedder = embedder or HashingEmbedder(WIDTH)
    spec = f"hashing:{embedder.width}"
    return Index.open(root, extractor=extractor or Saying(), embedder=embedder, config=config, encoder_spec=spec)


def hashes(root: Path) -> dict[str, str]:
    """The SHA-256 of every file of the current generation, by role."""
    return {role: entry.sha256 for role, entry in current_manifest(root).files.items()}


def file_of(root: Path, role: str) -> Path:
    return files_folder(root) / current_manifest(root).files[role].file
