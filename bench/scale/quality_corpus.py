"""Real passages and questions: one corpus of all sets, and which passages an index of a size holds."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

from hippogpu.corpus import Query, read_queries
from hippogpu.disk import write_atomically
from hippogpu.errors import CorpusError, UsageError
from hippogpu.evaluate import Gold
from hippogpu.types import Passage

ASKED = ("musique_dev", "2wiki")
"""Sets whose questions are asked: no weight was trained and no setting chosen on these."""
OTHERS = ("musique_train", "hotpotqa_train", "2wiki_train")
WIKIPEDIA, BRITANNICA = "wiki_passages", "eb4_passages"
OLD = "eb4"
SEED = 0

Order = Literal["near", "mixed"]

_SPACE, _NO_WORD = re.compile(r"\s+"), re.compile(r"\W+")
_COPY = 0.8
"""Passages of one title that share so much of their words (Jaccard) are copies of each other."""


class Sea(NamedTuple):
    """All passages, without the copies that differ in white space alone.

    passages : the sets that are asked, other sets, the rest of modern Wikipedia, then the encyclopaedia of 1810;
               meta["source"] says where each is from
    kept_as  : the id of the passage that stands for one that was left out as its copy
    modern   : how many of the passages are of modern Wikipedia: the first ones
    """

    passages: Sequence[Passage]
    kept_as: Mapping[str, str]
    modern: int

    @property
    def asked(self) -> int:
        """How many passages the sets have whose questions are asked."""
        return sum(passage.meta["source"] in ASKED for passage in self.passages)


class Questions(NamedTuple):
    """The questions of all sets under ids SET:ID, and their gold passages by the ids of the sea."""

    queries: Sequence[Query]
    gold: Gold

    def of(self, name: str) -> list[Query]:
        """Those of a set; all for "both"."""
        return [query for query in self.queries if name == "both" or query.id.startswith(f"{name}:")]

    def golden(self) -> set[str]:
        """Every passage that is gold of some question."""
        return {id_ for row in self.gold.values() for id_ in row}


def read_sea(data: Path, most: int) -> Sea:
    """All modern passages, and as many of 1810 as bring the sea to `most`; CorpusError where a file is missing.

    The encyclopaedia comes in a seeded order, so that a greater sea begins with a smaller one.
    """
    passages: list[Passage] = []
    known: dict[str, str] = {}
    kept_as: dict[str, str] = {}
    modern = 0
    for passage in chain(_modern(data), _old(data) if most else ()):
        is_old = passage.meta["source"] == OLD
        if is_old and len(passages) >= most:
            break
        key = _SPACE.sub(" ", f"{passage.title}\n{passage.text}").strip()
        if key in known:
            kept_as[passage.id] = known[key]
            continue
        known[key] = passage.id
        passages.append(passage)
        modern += not is_old
    return Sea(passages, kept_as, modern)


def read_asked(data: Path, sea: Sea) -> Questions:
    """The questions that are asked; their gold is in every sea."""
    queries, gold = [], {}
    for name in ASKED:
        for query in read_queries(data / name / "queries.jsonl").queries:
            ids = [sea.kept_as.get(f"{name}:{id_}", f"{name}:{id_}") for id_ in query.supporting]
            queries.append(query._replace(id=f"{name}:{query.id}", supporting=tuple(ids)))
            gold[f"{name}:{query.id}"] = dict.fromkeys(ids, 1)
    return Questions(queries, gold)


def write_corpus(path: Path, passages: Sequence[Passage]) -> None:
    """The passages as a corpus file for `hippogpu index`; left as it is where it says the same."""
    rows = ({"_id": p.id, "title": p.title, "text": p.text, "meta": dict(p.meta)} for p in passages)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if not path.exists() or path.read_bytes() != lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lines)


def chosen(sea: Sea, golden: Set[str], size: int, order: Order = "near") -> list[Passage]:
    """So many passages in the sea's order: all that are gold, then distractors, so that each size holds the smaller.

    near  : first what the asked sets have beside the gold, shuffled, then the rest of modern Wikipedia, then 1810
    mixed : all of modern Wikipedia shuffled, then 1810
    UsageError for a size that does not hold the gold, or that the sea does not have.
    """
    if not len(golden) <= size <= len(sea.passages):
        raise UsageError(f"A size must be from {len(golden)} to {len(sea.passages)} passages. Got {size}.")
    rest = [passage for passage in sea.passages[: sea.modern] if passage.id not in golden]
    random.Random(SEED).shuffle(rest)
    rest.sort(key=lambda passage: order == "near" and passage.meta["source"] not in ASKED)
    taken = {passage.id for passage in islice(chain(rest, sea.passages[sea.modern :]), size - len(golden))}
    return [passage for passage in sea.passages if passage.id in taken or passage.id in golden]


def by_digest(passages: Sequence[Passage]) -> list[Passage]:
    """The passages by a digest of their ids: ties of scores go to the lower row, which must not speak of the source."""
    return sorted(passages, key=lambda passage: sha256(passage.id.encode()).digest())


def digest_of_texts(passages: Sequence[Passage]) -> str:
    """Sixteen hex digits that stand for ids and texts."""
    whole = sha256()
    for passage in passages:
        whole.update(f"{passage.id}\n{passage.title}\n{passage.text}\n".encode())
    return whole.hexdigest()[:16]


def with_copies(passages: Sequence[Passage], golden: Set[str]) -> int:
    """How many gold passages have a copy with a few other words among those that are not gold."""
    by_title: dict[str, list[set[str]]] = defaultdict(list)
    for passage in passages:
        if passage.id not in golden:
            by_title[_plain(passage.title)].append(set(_plain(passage.text).split()))
    return sum(
        any(_alike(set(_plain(passage.text).split()), other) for other in by_title[_plain(passage.title)])
        for passage in passages
        if passage.id in golden
    )


def by_source(passages: Sequence[Passage]) -> dict[str, int]:
    """How many passages are of the sets that are asked, of the rest of modern Wikipedia, and of 1810."""
    sources = [str(passage.meta["source"]) for passage in passages]
    asked, old = sum(source in ASKED for source in sources), sources.count(OLD)
    return {"asked_sets": asked, "modern_rest": len(sources) - asked - old, "of_1810": old}


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= _COPY * len(one | other)


def _plain(text: str) -> str:
    return _NO_WORD.sub(" ", text.casefold()).strip()


def _modern(data: Path) -> Iterator[Passage]:
    for name in (*ASKED, *OTHERS):
        for row in _read(data / name / "corpus.jsonl"):
            yield _passage(f"{name}:{row['_id']}", row, name)
    for row in _read(data / "scale" / f"{WIKIPEDIA}.jsonl.xz"):
        yield _passage(f"wiki:{row['_id']}", row, row["source"])


def _old(data: Path) -> Iterator[Passage]:
    rows = list(_read(data / "scale" / f"{BRITANNICA}.jsonl.xz"))
    random.Random(SEED).shuffle(rows)
    for row in rows:
        yield _passage(f"{OLD}:{row['_id']}", row, OLD)


def _passage(id_: str, row: Mapping[str, str], source: str) -> Passage:
    return Passage(id_, row["title"], row["text"], {"source": source})


def _read(path: Path) -> Iterator[dict[str, str]]:
    if not path.exists():
        raise CorpusError(f"There is no '{path}'. Name with --data the folder that has the sets and 'scale'.")
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
