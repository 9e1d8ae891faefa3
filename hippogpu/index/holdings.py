"""What an index holds in terms of ids and texts, and how it changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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


class Holdings:
    """The passages of an index by id, in the order the ids first came. An update keeps its place."""

    def __init__(self, stored: Passages | None, *, chunked: bool) -> None:
        self._chunked = chunked
        self._by_id: dict[str, Passage] = {}
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
                known = self._by_id.get(passage.id)
                if known is not None and _same(known, passage):
                    unchanged += 1
                else:
                    self._put(passage)
                    added, updated = added + (known is None), updated + (known is not None)
        return AddReport(added, updated, unchanged, 0, tuple(refused))

    def _clash(self, parent: str, members: Sequence[Passage], taken: set[str]) -> str | None:
        """The first id among the members that belongs to another group, of this call or held."""
        own = {parent} | self._chunks.get(parent, set())
        ids = (member.id for member in members)
        return next((id_ for id_ in ids if id_ in taken or (id_ in self._by_id and id_ not in own)), None)

    def __contains__(self, id_: object) -> bool:
        """Whether the id is held, or is that of a passage whose chunks are."""
        return id_ in self._by_id or bool(isinstance(id_, str) and self._chunks.get(id_))

    def standing_for(self, id_: str) -> tuple[str, ...]:
        """The held ids that an id stands for: itself, or the chunks of its passage; () where there is none."""
        return (id_,) if id_ in self._by_id else tuple(sorted(self._chunks.get(id_, ())))

    def passages(self) -> tuple[Passages, tuple[str, ...]]:
        """The distinct passages and, one a passage, the content key under which its record is logged."""
        row_of: dict[str, int] = {}
        rows = np.empty(len(self._by_id), np.int32)
        titles: list[str] = []
        texts: list[str] = []
        for number, passage in enumerate(self._by_id.values()):
            key = content_key(identity(passage.title, passage.text))
            rows[number] = row = row_of.setdefault(key, len(row_of))
            if row == len(titles):
                titles.append(passage.title)
                texts.append(passage.text)
        metas = [_meta_json(passage.meta) for passage in self._by_id.values()]
        extractors = [self._extractor.get(key, "") for key in row_of]
        ids = list(self._by_id)
        return passages_of(ids, metas, rows, titles=titles, texts=texts, extractors=extractors), tuple(row_of)

    def _load(self, stored: Passages) -> None:
        titles, texts = list(stored.titles), list(stored.texts)
        keys = [content_key(identity(title, text)) for title, text in zip(titles, texts, strict=True)]
        self._extractor = dict(zip(keys, stored.extractors, strict=True))
        for id_, meta, row in zip(stored.ids, stored.metas, stored.rows, strict=True):
            self._put(Passage(id_, titles[row], texts[row], json.loads(meta)))
        self.changed = False

    def _put(self, passage: Passage) -> None:
        self._by_id[passage.id] = passage
        self.changed = True
        parent = passage.meta.get("chunk_of")
        # Passages may come with a chunk_of of their own: only ids that chunking gives are the parent's to replace.
        if self._chunked and isinstance(parent, str) and parent != passage.id and parent_id(passage.id) == parent:
            self._chunks.setdefault(parent, set()).add(passage.id)

    def _forget_old_chunks(self, parent: str, members: Sequence[Passage]) -> None:
        """Removes what stood for the parent before and stands for it no longer."""
        chunks = self._chunks.get(parent, set())
        if not chunks and len(members) == 1 and members[0].id == parent:
            return
        for old in sorted((chunks | {parent}) - {member.id for member in members}):
            chunks.discard(old)
            if self._by_id.pop(old, None) is not None:
                self.changed = True


def _same(known: Passage, passage: Passage) -> bool:
    """Whether both are stored alike: one identity (however it is split into title and text) and one meta in JSON."""
    whole = identity(known.title, known.text) == identity(passage.title, passage.text)
    return whole and _meta_json(known.meta) == _meta_json(passage.meta)


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
