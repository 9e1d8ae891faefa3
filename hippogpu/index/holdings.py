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

    deleted    : ids that are held no longer; chunks of a passage count each
    missing    : ids that were not held, as they were given
    edges_gone : user edges that ended at what was deleted; they went with it
    """

    deleted: int
    missing: tuple[str, ...]
    edges_gone: int = 0


class _Held(NamedTuple):
    """What an index holds under an id: its title, its identity, its meta as JSON, and the key of its record."""

    title: str
    whole: str
    meta: str
    key: str


class Holdings:
    """The passages of an index by id, in the order the ids first came. An update keeps its place."""

    def __init__(self, stored: Passages | None, *, chunked: bool) -> None:
        self._chunked = chunked
        self._by_id: dict[str, _Held] = {}
        self._extractor: dict[str, str] = {}
        self._chunks: dict[str, set[str]] = {}
        self.changed = False
        if stored is not None:
            self._load(stored)

    def add(self, groups: Iterable[tuple[str, Sequence[Passage]]]) -> AddReport:
        """Takes in passages in groups: an id, and the passage or the chunks that now stand for it.

        The ids of the groups are distinct. A group is taken whole or refused whole.
        """
        added = updated = unchanged = 0
        refused: list[Refusal] = []
        taken: set[str] = set()
        for parent, members in groups:
            clash = self._clash(parent, members, taken)
            if clash is not None:
                refused.append(Refusal(f"passage '{parent}'", f"its part '{clash}' has the id of another passage"))
                continue
            taken.update(member.id for member in members)
            self._forget_old_chunks(parent, members)
            for passage in members:
                known, new = self._by_id.get(passage.id), _held(passage)
                if known == new:
                    unchanged += 1
                else:
                    self._put(passage.id, new)
                    added, updated = added + (known is None), updated + (known is not None)
        return AddReport(added, updated, unchanged, 0, tuple(refused))

    def delete(self, ids: Iterable[str]) -> DeleteReport:
        """Takes passages out by id, the id of a chunked passage with all its chunks."""
        deleted, missing = 0, []
        for id_ in dict.fromkeys(ids):
            members = self.standing_for(id_)
            for member in members:
                self._take(member)
            deleted += len(members)
            if not members:
                missing.append(id_)
        return DeleteReport(deleted, tuple(missing))

    def ids_where(self, test: Callable[[Passage], bool]) -> list[str]:
        """The ids of the passages that pass the test."""
        passages = (_passage(id_, held) for id_, held in self._by_id.items())
        return [passage.id for passage in passages if test(passage)]

    def _clash(self, parent: str, members: Sequence[Passage], taken: set[str]) -> str | None:
        """The first id among the members that belongs to another group, of this call or held."""
        own = {parent} | self._chunks.get(parent, set())
        ids = (member.id for member in members)
        return next((id_ for id_ in ids if id_ in taken or (id_ in self._by_id and id_ not in own)), None)

    def __len__(self) -> int:
        """How many ids are held."""
        return len(self._by_id)

    def __contains__(self, id_: object) -> bool:
        """Whether the id is held, or is that of a passage whose chunks are."""
        return id_ in self._by_id or bool(isinstance(id_, str) and self._chunks.get(id_))

    def standing_for(self, id_: str) -> tuple[str, ...]:
        """The held ids that an id stands for: itself, or the chunks of its passage; () where there is none."""
        return (id_,) if id_ in self._by_id else tuple(sorted(self._chunks.get(id_, ())))

    def passages(self) -> tuple[Passages, tuple[str, ...]]:
        """The distinct passages and, one a passage, the content key under which its record is logged."""
        row_of: dict[str, int] = {}
        wholes: list[str] = []
        rows = np.empty(len(self._by_id), np.int32)
        for number, held in enumerate(self._by_id.values()):
            rows[number] = row = row_of.setdefault(held.key, len(row_of))
            if row == len(wholes):
                wholes.append(held.whole)
        titles, metas = ([getattr(held, name) for held in self._by_id.values()] for name in ("title", "meta"))
        extractors = [self._extractor.get(key, "") for key in row_of]
        return passages_of(list(self._by_id), titles, metas, rows, wholes=wholes, extractors=extractors), tuple(row_of)

    def committed(self, keys: Sequence[str], extractors: Sequence[str]) -> None:
        """Takes note that all this is stored now, and who has read what."""
        self._extractor = dict(zip(keys, extractors, strict=True))
        self.changed = False

    def _load(self, stored: Passages) -> None:
        wholes = list(stored.wholes)
        keys = [content_key(whole) for whole in wholes]
        self._extractor = dict(zip(keys, stored.extractors, strict=True))
        for id_, title, meta, row in zip(stored.ids, stored.titles, stored.metas, stored.rows, strict=True):
            self._put(id_, _Held(title, wholes[row], meta, keys[row]))
        self.changed = False

    def _put(self, id_: str, held: _Held) -> None:
        self._by_id[id_] = held
        self.changed = True
        parent = self._parent(id_, held)
        if parent is not None:
            self._chunks.setdefault(parent, set()).add(id_)

    def _take(self, id_: str) -> None:
        held = self._by_id.pop(id_)
        self.changed = True
        parent = self._parent(id_, held)
        if parent is not None:
            self._chunks[parent].discard(id_)

    def _parent(self, id_: str, held: _Held) -> str | None:
        """The id of the passage that this is a chunk of, None for a whole one."""
        # Passages may come with a chunk_of of their own: only ids that chunking gives are the parent's to replace.
        if not self._chunked or '"chunk_of"' not in held.meta:
            return None
        parent = json.loads(held.meta).get("chunk_of")
        return parent if isinstance(parent, str) and parent != id_ and parent_id(id_) == parent else None

    def _forget_old_chunks(self, parent: str, members: Sequence[Passage]) -> None:
        """Removes what stood for the parent before and stands for it no longer."""
        chunks = self._chunks.get(parent, set())
        if not chunks and len(members) == 1 and members[0].id == parent:
            return
        for old in sorted((chunks | {parent}) - {member.id for member in members}):
            if old in self._by_id:
                self._take(old)


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
