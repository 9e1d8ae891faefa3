"""Decoded JSON that an extractor wrote, to triples and entities: what can be kept, and what cannot and why.

Nothing is evaluated, nothing is guessed from text, and one bad item never costs its neighbours.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hippogpu.openie.unread import UnclosedDict, UnclosedList, Unread
from hippogpu.types import Drop, Triple

SUBJECT_KEYS = ("subject", "subj", "head", "head_entity", "s", "source", "from", "entity1", "arg1")
PREDICATE_KEYS = ("predicate", "pred", "relation", "relationship", "rel", "relation_type", "verb", "property", "p")
OBJECT_KEYS = ("object", "obj", "tail", "tail_entity", "o", "target", "to", "entity2", "arg2")

DROP_CHARACTERS = 200


class Triples(NamedTuple):
    """The triples that can be kept, in order, and what was dropped."""

    kept: tuple[Triple, ...]
    drops: tuple[Drop, ...]


class Entities(NamedTuple):
    """The entities that can be kept, in order, and what was dropped."""

    kept: tuple[str, ...]
    drops: tuple[Drop, ...]


class _DropError(ValueError):
    """Why an item cannot be kept; never leaves this file."""


def parse_triples(items: object, *, texts: object = None) -> Triples:
    """The triples of one passage from a list of [subject, predicate, object] or of objects with such keys.

    Fields stay as written; numbers are cast to text. Dropped with a reason: other lengths, null, boolean, nested or
    non-finite fields, anything that is no list or object, and exact repeats (the first is kept).
    texts is an optional list, parallel to items, of what to encode for each fact; an object may have its own "text".
    """
    drops: list[Drop] = []
    kept: dict[tuple[str, str, str], Triple] = {}
    for item, text in _paired(items, texts, drops):
        try:
            fields = _fields(item)
            if fields in kept:
                raise _DropError("repeated triple")
            kept[fields] = Triple(*fields, _fact_text(item, text, drops))
        except _DropError as reason:
            drops.append(drop(str(reason), item))
    return Triples(tuple(kept.values()), tuple(drops))


def _paired(items: object, texts: object, drops: list[Drop]) -> list[tuple[object, object]]:
    """Each item with its text; texts that are not parallel to the items are dropped as a whole."""
    if not isinstance(items, list | tuple):
        drops.append(drop("the triples are no list", items))
        return []
    if texts is None:
        return [(item, None) for item in items]
    if not isinstance(texts, list | tuple) or len(texts) != len(items):
        drops.append(drop("the texts are no list as long as the triples", texts))
        return [(item, None) for item in items]
    return list(zip(items, texts, strict=True))


def is_triple_object(item: object) -> bool:
    """Whether an object has keys of a triple: a subject and an object, under any of their names."""
    if not isinstance(item, Mapping):
        return False
    keys = _keys(item)
    return all(any(name in keys for name in names) for names in (SUBJECT_KEYS, OBJECT_KEYS))


def _fields(item: object) -> tuple[str, str, str]:
    if isinstance(item, UnclosedList | UnclosedDict):
        raise _DropError("a triple without its closing bracket")
    if isinstance(item, Mapping):
        keys = _keys(item)
        return _three([_value(keys, names) for names in (SUBJECT_KEYS, PREDICATE_KEYS, OBJECT_KEYS)])
    if isinstance(item, list | tuple):
        return _three(item)
    raise _DropError(f"{_kind(item)}, not a triple")


def _three(values: Sequence[object]) -> tuple[str, str, str]:
    if len(values) != 3:
        raise _DropError(f"{len(values)} fields, not 3")
    subject, predicate, object_ = map(_scalar, values)
    return subject, predicate, object_


def _keys(item: Mapping[object, object]) -> dict[str, object]:
    """The object's values under its keys in small letters with "_" for spaces; of two keys alike the first counts."""
    keys: dict[str, object] = {}
    for key, value in item.items():
        if isinstance(key, str):
            keys.setdefault(key.strip().casefold().replace(" ", "_").replace("-", "_"), value)
    return keys


def _value(keys: Mapping[str, object], names: Sequence[str]) -> object:
    name = next((name for name in names if name in keys), None)
    if name is None:
        raise _DropError(f"an object without a '{names[0]}'")
    return keys[name]


def _scalar(value: object) -> str:
    """Text as it is, a number as text; a drop for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _DropError(f"a field is {_kind(value)}")
    if not math.isfinite(value):
        raise _DropError("a field is no finite number")
    return str(value)


def _fact_text(item: object, text: object, drops: list[Drop]) -> str | None:
    """What to encode for the fact: the object's own text, else the parallel one. One that is no text is dropped."""
    own = _keys(item).get("text") if isinstance(item, Mapping) else None
    given = text if own is None else own
    if given is None or isinstance(given, str):
        return given
    drops.append(drop("a triple's text is no text", given))
    return None


def parse_entities(items: object) -> Entities:
    """The entities of one passage from a list of names, as written; numbers are cast to text.

    Dropped with a reason: null, boolean, nested, empty, and exact repeats (the first is kept).
    """
    if not isinstance(items, list | tuple):
        return Entities((), (drop("the entities are no list", items),))
    drops: list[Drop] = []
    kept: dict[str, None] = {}
    for item in items:
        reason = _entity_fault(item, kept)
        if reason is None:
            kept[_scalar(item)] = None
        else:
            drops.append(drop(reason, item))
    return Entities(tuple(kept), tuple(drops))


def _entity_fault(item: object, kept: Mapping[str, None]) -> str | None:
    try:
        name = _scalar(item)
    except _DropError:
        return f"an entity is {_kind(item)}"
    if not name.strip():
        return "an entity is empty"
    return "repeated entity" if name in kept else None


def drop(reason: str, value: object) -> Drop:
    """A drop whose value is cut to DROP_CHARACTERS, however large or deep it was."""
    return Drop(reason, value[:DROP_CHARACTERS] if isinstance(value, str) else _SHORT.repr(value)[:DROP_CHARACTERS])


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, Unread):
        return value.reason
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else "nested"


class _Excerpt(reprlib.Repr):
    """Bounded in depth and length, so a huge or deep value costs no more than a small one."""

    def repr_UnclosedList(self, value: UnclosedList, level: int) -> str:
        return self.repr_list(value, level)

    def repr_UnclosedDict(self, value: UnclosedDict, level: int) -> str:
        return self.repr_dict(value, level)


_SHORT = _Excerpt()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 4, DROP_CHARACTERS, DROP_CHARACTERS, 40
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 10
