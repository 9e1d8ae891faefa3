"""What is counted: passages under one of their ids, or titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hippogpu.corpus.headings import TITLE_SEPARATOR
from hippogpu.evaluate.measures import Gold
from hippogpu.types import Passage


class ByTitle(NamedTuple):
    """Rankings and gold as titles. unplaced holds gold names that are neither an id nor a title, as they were."""

    ranked: dict[str, list[str]]
    gold: dict[str, dict[str, int]]
    unplaced: tuple[str, ...]


def ranked_ids(passages: Iterable[Passage], aliases: Mapping[str, Sequence[str]], wanted: Iterable[str]) -> list[str]:
    """Ids of ranked passages, best first, without repeats; a chunk counts for its parent.

    aliases : every id of a passage, by its first; where one of them is wanted (is gold), that one is given
    """
    wanted = set(wanted)
    ids: dict[str, None] = {}
    for passage in passages:
        parent = [str(passage.meta["chunk_of"])] if "chunk_of" in passage.meta else []
        names = [*parent, *aliases.get(passage.id, [passage.id])]
        ids.setdefault(next((name for name in names if name in wanted), names[0]))
    return list(ids)


def one_id_each(gold: Gold, aliases: Mapping[str, Sequence[str]]) -> tuple[dict[str, dict[str, int]], int]:
    """The gold with one id for each passage: of several the first, with the greatest relevance; how many were left out.

    aliases : every id of a passage, by its first
    Ids are one where the same passages have both: documents that share a chunk and no more stay two.
    """
    rows: dict[str, list[str]] = {}
    for first, names in aliases.items():
        for name in dict.fromkeys(names):
            rows.setdefault(name, []).append(first)
    merged: dict[str, dict[str, int]] = {}
    for query, row in gold.items():
        ids: dict[tuple[str, ...], str] = {}
        grades = merged.setdefault(query, {})
        for name, grade in row.items():
            # An id that the index lacks stands for itself; NUL begins no id of an index.
            first = ids.setdefault(tuple(rows.get(name, ["\0" + name])), name)
            grades[first] = max(grade, grades.get(first, 0))
    return merged, sum(map(len, gold.values())) - sum(map(len, merged.values()))


def titles_of(passages: Iterable[Passage], aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The title of each id that has one; of a chunk and its parent that of the parent.

    A chunk's title goes on with headings ("Title › Heading"): the parent's is what those of all its chunks begin with.
    """
    found: dict[str, list[str]] = {}
    chunks: dict[str, str] = {}
    for passage in passages:
        for name in dict.fromkeys(aliases.get(passage.id, [passage.id])):
            found.setdefault(name, []).append(passage.title)
            if "chunk_of" in passage.meta:
                chunks[name] = str(passage.meta["chunk_of"])
    titles = {name: _shared(several) if name in chunks else several[0] for name, several in found.items()}
    # A chunk's own id was met once, its parent's once a chunk.
    parents = {name: parent for name, parent in chunks.items() if len(found[name]) == 1}
    own = {name: titles.get(parents.get(name, name), title) for name, title in titles.items()}
    return {name: title for name, title in own.items() if title}


def _shared(titles: Sequence[str]) -> str:
    """The parts that all of the titles begin with."""
    parts = [title.split(TITLE_SEPARATOR) for title in titles]
    same = 0
    while all(len(part) > same and part[same] == parts[0][same] for part in parts):
        same += 1
    return TITLE_SEPARATOR.join(parts[0][:same])


def to_titles(ranked: Mapping[str, Sequence[str]], gold: Gold, titles: Mapping[str, str]) -> ByTitle:
    """The same rankings and gold with each passage under its title: a title counts once, at its best place.

    titles : the title of each id. An id without one stands for itself; a gold name that is no id may be a title.
    A title's relevance is the greatest of its passages'.
    """
    known = set(titles.values())
    by_title: dict[str, dict[str, int]] = {}
    for query, row in gold.items():
        grades = by_title.setdefault(query, {})
        for name, grade in row.items():
            title = titles.get(name) or name
            grades[title] = max(grade, grades.get(title, 0))
    places = {query: list(dict.fromkeys(titles.get(id_) or id_ for id_ in ids)) for query, ids in ranked.items()}
    names = {name for row in gold.values() for name in row}
    unplaced = sorted(name for name in names if name not in titles and name not in known)
    return ByTitle(places, by_title, tuple(unplaced))
