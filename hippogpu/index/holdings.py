"""What an index holds in terms of ids and texts, and how it changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.corpus import distinct
from hippogpu.store import Passages, passages_of
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Refusal


class AddReport(NamedTuple):
    """What became of the passages of one call, counted in ids.

    added, updated, unchanged : new ids; known ids with new content; known ids as they were
    duplicates                : an id again with the same content
    refused                   : an id again with other content, or a passage that cannot be stored, and why
    """

    added: int
    updated: int
    unchanged: int
    duplicates: int
    refused: tuple[Refusal, ...]


class Holdings:
    """The passages of an index by id, in the order the ids first came. An update keeps its place."""

    def __init__(self, stored: Passages | None) -> None:
        self._by_id: dict[str, Passage] = {}
        self._extractor: dict[str, str] = {}
        self._chunks: dict[str, set[str]] = {}
        self.changed = False
        if stored is not None:
            self._load(stored)

    def add(self, groups: Iterable[tuple[str, Sequence[Passage]]]) -> AddReport:
        """Takes in passages in groups: an id, and the passage or the chunks that now stand for it."""
        added = updated = unchanged = 0
        parents: list[str] = []
        passages: list[Passage] = []
        for parent, members in groups:
            parents.append(parent)
            passages.extend(members)
        kept, refused, duplicates = distinct(passages)
        current = {passage.id for passage in kept}
        for parent in parents:
            self._forget_old_chunks(parent, current)
        for passage in kept:
            reason = unstorable(passage)
            known = self._by_id.get(passage.id)
            if reason is not None:
                refused = (*refused, Refusal(f"passage '{passage.id}'", reason))
            elif known == passage:
                unchanged += 1
            else:
                self._put(passage)
                added, updated = added + (known is None), updated + (known is not None)
        return AddReport(added, updated, unchanged, duplicates, refused)

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
        if "chunk_of" in passage.meta:
            self._chunks.setdefault(str(passage.meta["chunk_of"]), set()).add(passage.id)

    def _forget_old_chunks(self, parent: str, current: set[str]) -> None:
        """Removes what stood for the parent before and stands for it no longer."""
        for old in sorted(self._chunks.get(parent, set()) | {parent}):
            if old not in current and self._by_id.pop(old, None) is not None:
                self._chunks.get(parent, set()).discard(old)
                self.changed = True


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
