"""A model's reply to entities and triples: whatever form it has, what is whole is kept and the rest is reported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hippogpu.openie.json_text import FoundValues, Labelled, find_values
from hippogpu.openie.parse import drop, is_triple_object, parse_entities, parse_triples
from hippogpu.openie.unread import UnclosedDict, UnclosedList
from hippogpu.types import Drop, Triple

Wants = Literal["entities", "triples", "both"]

_NAME_KEYS = ("name", "entity", "text", "mention")
# Compared in small letters, without spaces, dashes, underscores, and the affixes.
_AFFIXES = re.compile("^(?:extracted|listof|all)|list$")
_ENTITY_KEYS = frozenset(("entities", "entity", "namedentities", "namedentity", "ner", "names", "nodes"))
_TRIPLE_KEYS = frozenset(
    ["triples", "triple", "triplets", "triplet", "tuples", "facts", "fact", "relations", "relation", "relationships"]
) | {"knowledgegraph", "graph", "kg", "rdf", "rdftriples", "openie", "edges", "statements"}
_ONE_TRIPLE_KEYS = frozenset(("triple", "triplet", "fact", "relation"))

_Place = Literal["anywhere", "names", "triples", "triple"]
_Task = tuple[_Place, object]


class ReadReply(NamedTuple):
    """What a reply holds.

    drops     : exactly what was not taken, and why
    fault     : why nothing of what was wanted could be read, so that it must be asked for again; None when something
                was kept, or the wanted list was there and empty. A reply that should hold both must hold the triples.
    truncated : the reply ended before its JSON did; what was complete is kept
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]
    drops: tuple[Drop, ...]
    fault: str | None
    truncated: bool


def read_reply(text: str, *, wants: Wants) -> ReadReply:
    """The entities and triples of a reply; nothing raises, nothing is evaluated, time is linear in its length.

    A list is known by its key or by the words before it, under any usual name; a bare list is what was wanted.
    """
    found = find_values(text)
    sorted_out = _Sorter(found.values, wants)
    entities, entity_drops = parse_entities(sorted_out.names)
    triples, triple_drops = parse_triples(sorted_out.triples)
    drops = (*found.drops, *sorted_out.drops, *entity_drops, *triple_drops)
    kind = "names" if wants == "entities" else "triples"
    kept, items = (entities, sorted_out.names) if wants == "entities" else (triples, sorted_out.triples)
    fault = (
        None
        if kept or (kind in sorted_out.found and not items)
        else _fault(text, found, kind, len(items) if kind in sorted_out.found else 0)
    )
    return ReadReply(entities, triples, drops, fault, found.truncated)


def read_numbers(text: str, *, most: int) -> frozenset[int] | None:
    """The numbers from 1 to most that a reply names, None when it cannot be read or was cut short.

    {"stated": [1, 3]}, [1, 3] and 3 name them; a list of most booleans says it of each. Numbers above most are passed
    over; one below 1 counts from elsewhere, so the reply cannot be read.
    """
    found = find_values(text)
    if found.truncated or len(found.values) != 1:
        return None
    value = found.values[0].value
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else None
    items = value if isinstance(value, list) else [value]
    if isinstance(value, UnclosedList):
        return None
    if items and all(isinstance(item, bool) for item in items):
        return frozenset(place for place, yes in enumerate(items, start=1) if yes) if len(items) == most else None
    return _numbers(items, most)


def _numbers(items: Sequence[object], most: int) -> frozenset[int] | None:
    numbers = [_whole(item) for item in items]
    if any(number is None or number < 1 for number in numbers):
        return None
    named = frozenset(number for number in numbers if number is not None and number <= most)
    return named if named or not numbers else None


def _whole(item: object) -> int | None:
    """A whole number, also written as 3.0 or "3"."""
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, str) and item.strip().isdecimal() and len(item) < 10:
        return int(item)
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def _fault(text: str, found: FoundValues, kind: str, items: int) -> str:
    if not text.strip():
        return "the reply is empty"
    if not found.values and found.truncated:
        return "the reply is a thought that does not end"
    if not found.values:
        return "the reply holds no JSON"
    what = "entities" if kind == "names" else "triples"
    if items:
        return f"the reply's list of {items} can not be read as {what}"
    return f"the reply holds no list of {what}"


class _Sorter:
    """Names and triples of the values of a reply, in their order, still unchecked.

    found : "names" and "triples", for lists that stood under a key of theirs, and for an empty list
    The walk keeps its own stack, so values may be nested as deep as they like.
    """

    def __init__(self, values: Sequence[Labelled], wants: Wants) -> None:
        self.names: list[object] = []
        self.triples: list[object] = []
        self.drops: list[Drop] = []
        self.found: set[str] = set()
        self._wants = wants
        self._alone = len(values) == 1
        self._todo: list[_Task] = []
        self._push([("anywhere", _under_label(label, value)) for label, value in values])
        while self._todo:
            place, value = self._todo.pop()
            if place == "names":
                self._take_names(value)
            elif place == "triples":
                self._take_triples(value)
            elif place == "triple":
                self._take_triple(value)
            else:
                self._look(value)

    def _push(self, tasks: Sequence[_Task]) -> None:
        self._todo.extend(reversed(tasks))

    def _look(self, value: object) -> None:
        """A value of which nothing is known but that it stands in the reply."""
        if is_triple_object(value):
            self.triples.append(value)
        elif isinstance(value, dict):
            self._look_under_keys(value)
        elif isinstance(value, list):
            self._look_in_list(value)
        else:
            self.drops.append(drop("no list or object", value))

    def _look_under_keys(self, value: dict[str, object]) -> None:
        """The lists under known keys; without one, whatever the others hold."""
        places = [(_place(key, item), key, item) for key, item in value.items()]
        known: list[_Task] = [(place, item) for place, _, item in places if place is not None]
        inside: list[_Task] = [("anywhere", item) for item in value.values() if _nested(item)]
        self.found.update("names" if place == "names" else "triples" for place, item in known if _is_list(item))
        self._push(known or inside)
        if not value:
            self.drops.append(drop("an empty object", value))
        if known or not inside:
            self.drops.extend(drop(_key_fault(key), key) for place, key, _ in places if place is None)

    def _look_in_list(self, items: list[object]) -> None:
        """A bare list: names, triples, one triple, or objects with lists of either."""
        if not items and self._alone:
            self.found.update(("names", "triples"))
        elif not items:
            self.drops.append(drop("an empty list beside others", items))
        elif any(map(_has_known_key, items)):
            self._push([("anywhere" if _nested(item) else "triple", item) for item in items])
        elif any(map(_nested, items)):
            named = self._wants == "entities" and not any(isinstance(i, list) or is_triple_object(i) for i in items)
            self._take_name_items(items) if named else self._take_triples(items)
        elif self._wants == "triples":
            self.triples.append(items)
        else:
            self._take_name_items(items)

    def _take_names(self, value: object) -> None:
        """What stands under a key of entities: a list, or lists by the kind of entity."""
        if isinstance(value, list):
            self._take_name_items(value)
        elif isinstance(value, dict):
            for kind, items in value.items():
                if isinstance(items, list):
                    self._take_name_items(items)
                else:
                    self.drops.append(drop("the entities of a kind are no list", {kind: items}))
        else:
            self.drops.append(drop("null in the place of the entities", value))

    def _take_name_items(self, items: Sequence[object]) -> None:
        for item in items:
            names = [item[key] for key in _NAME_KEYS if key in item] if isinstance(item, dict) else []
            self.names.append(names[0] if names else item)

    def _take_triples(self, value: object) -> None:
        """What stands under a key of triples: a list of them, or an object that holds such lists."""
        if isinstance(value, list):
            self._push([("triple", item) for item in value])
        elif isinstance(value, dict):
            self._look(value)
        else:
            self.drops.append(drop("null in the place of the triples", value))

    def _take_triple(self, item: object) -> None:
        """An item of a list of triples. Lists inside it that are no field of it were caught there by a bracket too
        few or too many; they are items of their own."""
        if isinstance(item, dict) and not is_triple_object(item) and any(map(_nested, item.values())):
            self._look_under_keys(item)
            return
        inside = _caught(item)
        if not inside:
            self.triples.append(item)
            return
        own = [field for field in item if not _nested(field)] if isinstance(item, list) else item
        if own:
            self.drops.append(drop("a triple without its closing bracket", own))
        self._push([("triple", field) for field in inside])


def _caught(item: object) -> list[object]:
    """The lists and objects inside a triple that are no field of it."""
    if isinstance(item, UnclosedDict):
        return [field for field in item.values() if is_triple_object(field)]
    if not isinstance(item, list):
        return []
    inside = [field for field in item if _nested(field)]
    is_field = len(item) == 3 and len(inside) == 1 and not is_triple_object(inside[0])
    return [] if is_field and any(isinstance(field, str) for field in item) else inside


def _nested(value: object) -> bool:
    return isinstance(value, list | dict)


def _key_fault(key: str) -> str:
    return "a key without its list" if _plain(key) in _ENTITY_KEYS | _TRIPLE_KEYS else "a key that is not known"


def _is_list(value: object) -> bool:
    """Whether a list was given, or null in its place."""
    return value is None or isinstance(value, list)


def _plain(key: str) -> str:
    return _AFFIXES.sub("", "".join(filter(str.isalnum, key.casefold())))


def _place(key: str, value: object) -> _Place | None:
    """What kind of list stands under a key; null stands for an empty one."""
    plain = _plain(key)
    if value is not None and not _nested(value):
        return None
    if plain in _ENTITY_KEYS:
        return "names"
    if plain not in _TRIPLE_KEYS:
        return None
    return "triple" if plain in _ONE_TRIPLE_KEYS and _is_flat_list(value) else "triples"


def _is_flat_list(value: object) -> bool:
    return isinstance(value, list) and not any(map(_nested, value))


def _has_known_key(item: object) -> bool:
    if not isinstance(item, dict) or is_triple_object(item):
        return False
    return any(_place(key, value) is not None for key, value in item.items())


def _under_label(label: str, value: object) -> object:
    """The value as if it stood in an object under the words before it, or under their last, when one is a known key."""
    if isinstance(value, dict):
        return value
    key = next((key for key in (label, label.rsplit(" ", 1)[-1]) if _place(key, value) is not None), None)
    return value if key is None else {key: value}
