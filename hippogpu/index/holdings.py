"""What an index holds in terms of ids and texts, and how it changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.corpus import parent_id
from hippogpu.store import Passages, passages_of
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Refusal


class AddReport(NamedTuple):
    """What became of the passages of one call, counted in ids.

    added, updated, unchanged : new ids; known ids with new content; known ids as they were
    duplicates                : an id again with the same content
    refused                   : an id again with other content, or a passage that cannot be stored, and why
    edges_gone                : user edges of chunks that a shorter text no longer has; they went with them
    """

    added: int
    updated: int
    unchanged: int
    duplicates: int
    refused: tuple[Refusal, ...]
    edges_gone: int = 0


class DeleteReport(NamedTuple):
    """What became of the ids of one call.

    ids        : what is held no longer; chunks of a passage each
    missing    : ids that were not held, as they were given
    edges_gone : user edges that ended at what was deleted; they went with it
    """

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    edges_gone: int = 0

    @property
    def deleted(self) -> int:
        """How many ids are held no longer."""
        return len(self.ids)


class _Held(NamedTuple):
    """What an index holds under an id: its title, its identity, its meta as JSON, and the key of its record."""

    title: str
    whole: str
    meta: str
    key: str


class Holdings:
    """The passages of an index by id, in the order the ids first came. An update keeps its place.

    Where passages are chunked, an id given stands for a group: the passage itself, or its chunks in order.
    """

    def __init__(self, stored: Passages | None, *, chunked: bool) -> None:
        self._chunked = chunked
        self._by_id: dict[str, _Held] = {}
        self._extractor: dict[str, str] = {}
        # Kept only where passages are chunked; else every id is a group of its own.
        self._groups: dict[str, tuple[str, ...]] = {}
        self._group_of: dict[str, str] = {}
        self.changed = False
        if stored is not None:
            self._load(stored)

    def add(self, groups: Iterable[tuple[str, Sequence[Passage]]]) -> AddReport:
        """Takes in passages in groups: an id, and the passage or the chunks that now stand for it.

        The ids of the groups are distinct. A group is taken whole or refused whole.
        """
        added = updated = unchanged = 0
        refused: list[Refusal] = []
        for group, members in groups:
            clash = self._clash(group, members)
            if clash is not None:
                refused.append(Refusal(f"passage '{group}'", f"its part '{clash}' has the id of another passage"))
                continue
            ids = tuple(member.id for member in members)
            gone = set(self.standing_for(group)).difference(ids)
            for passage in members:
                known, new = self._by_id.get(passage.id), _held(passage)
                if known == new:
                    unchanged += 1
                else:
                    self._by_id[passage.id] = new
                    self.changed = True
                    added, updated = added + (known is None), updated + (known is not None)
            # Before the old members go: with the last of them the group would lose its place.
            self._group(group, ids)
            for old in gone:
                self._forget(old)
        return AddReport(added, updated, unchanged, 0, tuple(refused))

    def delete(self, ids: Iterable[str]) -> DeleteReport:
        """Takes passages out by id, the id of a chunked passage with all its chunks."""
        deleted: list[str] = []
        missing: list[str] = []
        for id_ in dict.fromkeys(ids):
            members = self.standing_for(id_)
            for member in members:
                self._take(member)
            deleted += members
            if not members:
                missing.append(id_)
        return DeleteReport(tuple(deleted), tuple(missing))

    def ids_where(self, test: Callable[[Passage], bool]) -> list[str]:
        """The ids of the passages that pass the test."""
        passages = (_passage(id_, self._by_id[id_]) for id_ in self._ordered())
        return [passage.id for passage in passages if test(passage)]

    def _clash(self, group: str, members: Sequence[Passage]) -> str | None:
        """The first id among the members that belongs to another group."""
        return next((member.id for member in members if self._owner(member.id) not in (None, group)), None)

    def _owner(self, id_: str) -> str | None:
        """The group that an id belongs to, None for one that is not held."""
        return self._group_of.get(id_, id_) if id_ in self._by_id else None

    def __len__(self) -> int:
        """How many ids are held."""
        return len(self._by_id)

    def __contains__(self, id_: object) -> bool:
        """Whether the id is held, or is that of a passage whose chunks are."""
        return id_ in self._by_id or id_ in self._groups

    def standing_for(self, id_: str) -> tuple[str, ...]:
        """The held ids that an id stands for: itself, or the chunks of its passage; () where there is none."""
        return (id_,) if id_ in self._by_id else self._groups.get(id_, ())

    def passages(self) -> tuple[Passages, tuple[str, ...]]:
        """The distinct passages and, one a passage, the content key under which its record is logged."""
        row_of: dict[str, int] = {}
        wholes: list[str] = []
        ids = list(self._ordered())
        held = [self._by_id[id_] for id_ in ids]
        rows = np.empty(len(ids), np.int32)
        for number, one in enumerate(held):
            rows[number] = row = row_of.setdefault(one.key, len(row_of))
            if row == len(wholes):
                wholes.append(one.whole)
        titles, metas = [one.title for one in held], [one.meta for one in held]
        extractors = [self._extractor.get(key, "") for key in row_of]
        return passages_of(ids, titles, metas, rows, wholes=wholes, extractors=extractors), tuple(row_of)

    def committed(self, keys: Sequence[str], extractors: Sequence[str]) -> None:
        """Takes note that all this is stored now, and who has read what."""
        self._extractor = dict(zip(keys, extractors, strict=True))
        self.changed = False

    def _ordered(self) -> Iterable[str]:
        if not self._chunked:
            return self._by_id
        return (id_ for members in self._groups.values() for id_ in members)

    def _load(self, stored: Passages) -> None:
        wholes = list(stored.wholes)
        keys = [content_key(whole) for whole in wholes]
        self._extractor = dict(zip(keys, stored.extractors, strict=True))
        for id_, title, meta, row in zip(stored.ids, stored.titles, stored.metas, stored.rows, strict=True):
            self._by_id[id_] = _Held(title, wholes[row], meta, keys[row])
        if self._chunked:
            members: dict[str, list[str]] = {}
            for id_, held in self._by_id.items():
                members.setdefault(_parent(id_, held.meta) or id_, []).append(id_)
            for group, ids in members.items():
                self._group(group, tuple(ids))

    def _group(self, group: str, ids: tuple[str, ...]) -> None:
        if self._chunked:
            self.changed = self.changed or self._groups.get(group, ids) != ids
            self._groups[group] = ids
            self._group_of.update(dict.fromkeys(ids, group))

    def _take(self, id_: str) -> None:
        """Lets an id go, and its group with the last of it."""
        if self._chunked:
            group = self._group_of[id_]
            left = tuple(other for other in self._groups[group] if other != id_)
            if left:
                self._groups[group] = left
            else:
                del self._groups[group]
        self._forget(id_)

    def _forget(self, id_: str) -> None:
        del self._by_id[id_]
        self._group_of.pop(id_, None)
        self.changed = True


def chunk_of_another(passage: Passage) -> bool:
    """Whether a passage calls itself a chunk as chunking does: by its id and its metadata."""
    return _parent(passage.id, _meta_json(passage.meta)) is not None


def _parent(id_: str, meta: str) -> str | None:
    """The id of the passage that this is a chunk of, None for a whole one."""
    if '"chunk_of"' not in meta:
        return None
    parent = json.loads(meta).get("chunk_of")
    return parent if isinstance(parent, str) and parent != id_ and parent_id(id_) == parent else None


def _held(passage: Passage) -> _Held:
    whole = identity(passage.title, passage.text)
    return _Held(passage.title, whole, _meta_json(passage.meta), content_key(whole))


def _passage(id_: str, held: _Held) -> Passage:
    text = held.whole[len(held.title) + 1 :] if held.title else held.whole
    return Passage(id_, held.title, text, json.loads(held.meta))


def unstorable(passage: Passage) -> str | None:
    """Why a passage cannot be stored, None when it can."""
    if not passage.id or not isinstance(passage.id, str):
        return f"its id must be text that is not empty; got {passage.id!r}"
    if not (passage.title.strip() or passage.text.strip()):
        return "it has neither title nor text"
    try:
        f"{passage.id}{passage.title}{passage.text}{_meta_json(passage.meta)}".encode()
    except UnicodeEncodeError as error:
        return f"it holds half a character (a lone surrogate) at position {error.start}"
    except (TypeError, ValueError) as error:
        return f"its meta is no JSON: {error}"
    return None


def _meta_json(meta: Mapping[str, object]) -> str:
    return json.dumps(dict(meta), ensure_ascii=False, separators=(",", ":")) if meta else "{}"
