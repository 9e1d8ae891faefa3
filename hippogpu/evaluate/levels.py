"""What is counted: passages under one of their ids, or titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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
