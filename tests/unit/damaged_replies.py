"""Replies made from known triples with damage between or in some of them: what must be kept is known beforehand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import NamedTuple

Fields = tuple[str, str, str]

# None begins with a closing bracket: behind a text without its closing quote, that can be read in two ways.
WORDS = [
    *("Ada Lovelace", "Charles Babbage", "the engine", "notes", "1843", "北京", "Москва", "القاهرة", "हिन्दी", "Straße"),
    *("café", "cafe\u0301", "İstanbul", "x_{1}", r"\frac{a}{b}", "[sic]", "a, b", "it's", 'the "Analytical" one'),
    *("```json", "</think>", "C:\\new", "a\nb", "tab\there", "👩‍🔬", "__import__('os').abort()", "null", "{}", "x];["),
    *("50 %", "http://x.org/#a", "/* c */", "// d", "\x07", "a: b", "“quoted”", "\u2028", "l'été", "é" * 40),
]
VERBS = ["wrote", "met", "is a", "was born in", "hat gesehen", "находится в", "写了", "has \\alpha of", "is 'the'"]


class Damaged(NamedTuple):
    """A reply, the triples that no damage touched, in order, and every triple that was put in."""

    text: str
    untouched: tuple[Fields, ...]
    all: tuple[Fields, ...]
    damages: tuple[str, ...]


def damaged_reply(random: random.Random) -> Damaged:
    """One reply in any form a model may choose, with up to four damages."""
    triples = _triples(random)
    form = random.choice(FORMS)
    written = [form(triple, random) for triple in triples]
    touched: set[int] = set()
    names: list[str] = []
    for _ in range(random.randrange(5)):
        at = random.randrange(len(triples))
        if at in touched:
            continue
        name, damage = random.choice(DAMAGES[form is _object])
        written[at] = damage(written[at], triples[at], random)
        touched.add(at)
        names.append(name)
    body = written[0]
    for item in written[1:]:
        noise = random.choice(NOISE) if random.random() < 0.15 else ", "
        names += [] if noise == ", " else [noise[:40]]
        body += noise + item
    untouched = tuple(triple for at, triple in enumerate(triples) if at not in touched)
    return Damaged(random.choice(WRAPPERS)(body, random), untouched, tuple(triples), tuple(names))


def cut_reply(random: random.Random) -> Damaged:
    """A whole reply that ends at any character; untouched are the triples whose last bracket is still there."""
    triples = _triples(random)
    head = random.choice(['{"triples": [', "[", '```json\n{"facts": [', "Here they are:\n["])
    text, ends = head, []
    for triple in triples:
        text += _list(triple, random)
        ends.append(len(text))
        text += ", "
    at = random.randrange(len(head), len(text))
    return Damaged(
        text[:at], tuple(t for t, end in zip(triples, ends, strict=True) if end <= at), tuple(triples), ("cut",)
    )


def mutated_reply(random: random.Random) -> Damaged:
    """A reply with characters deleted, inserted, swapped and its end cut anywhere: nothing is known to be whole."""
    reply = damaged_reply(random)
    characters = list(reply.text)
    for _ in range(random.randrange(1, 12)):
        at = random.randrange(len(characters) + 1)
        what = random.randrange(4)
        if what == 0:
            del characters[at : at + random.choice((1, 1, 1, 3, 20))]
        elif what == 1:
            characters.insert(at, random.choice("[]{}(),:\"'\\\n \0\ud800`#/-0e.\u0301"))
        elif what == 2 and characters:
            other = random.randrange(len(characters))
            at = min(at, len(characters) - 1)
            characters[at], characters[other] = characters[other], characters[at]
        elif random.random() < 0.2:
            del characters[at:]
    return Damaged("".join(characters), (), reply.all, ("mutated",))


def _triples(random: random.Random) -> list[Fields]:
    """Distinct triples."""
    fields = {
        (random.choice(WORDS), f"{random.choice(VERBS)} {n}", random.choice(WORDS)): None
        for n in range(random.randrange(1, 13))
    }
    return list(fields)


def _text(value: str, random: random.Random) -> str:
    return json.dumps(value, ensure_ascii=random.random() < 0.5)


def _list(triple: Fields, random: random.Random) -> str:
    return "[" + random.choice([", ", ","]).join(_text(field, random) for field in triple) + "]"


def _object(triple: Fields, random: random.Random) -> str:
    keys = random.choice(
        [("subject", "predicate", "object"), ("head", "relation", "tail"), ("Subject", "Verb", "Object")]
    )
    pairs = [f'"{key}": {_text(field, random)}' for key, field in zip(keys, triple, strict=True)]
    random.shuffle(pairs)
    return "{" + ", ".join(pairs) + "}"


def _python(triple: Fields, _random: random.Random) -> str:
    return repr(triple)


FORMS: list[Callable[[Fields, random.Random], str]] = [_list, _list, _object, _object, _python]

Damage = Callable[[str, Fields, random.Random], str]


def _without(character: str, *, last: bool = False) -> Damage:
    def damage(written: str, _fields: Fields, _random: random.Random) -> str:
        at = written.rfind(character) if last else written.find(character)
        return written if at < 0 else written[:at] + written[at + 1 :]

    return damage


def _instead(value: str) -> Damage:
    return lambda _written, _fields, _random: value


def _field(value: str) -> Damage:
    """One field of the list replaced by this text."""

    def damage(_written: str, fields: Fields, random: random.Random) -> str:
        parts = [_text(field, random) for field in fields]
        parts[random.randrange(3)] = value
        return f"[{', '.join(parts)}]"

    return damage


def _arity(written: str, fields: Fields, random: random.Random) -> str:
    parts = [*map(json.dumps, fields), '"more"']
    return f"[{', '.join(parts[: random.choice((0, 1, 2, 4))])}]"


def _cut(written: str, _fields: Fields, random: random.Random) -> str:
    """The closing bracket is lost, with all behind any comma of the triple."""
    return written[:-1]


_BOTH: list[tuple[str, Damage]] = [
    ("null", _instead("null")),
    ("number", _instead("17")),
    ("text", _instead('"abc"')),
    ("empty list", _instead("[]")),
    ("empty object", _instead("{}")),
    ("set", _instead('{"a", "b"}')),
    ("ellipsis", _instead("...")),
    ("expression", _instead("__import__('os').abort()")),
    ("prose", _instead("and so on")),
    ("nothing", _instead("")),
    ("deep", _instead("[" * 1_500 + "]" * 1_500)),
    ("deep objects", _instead('{"a":' * 1_200 + "1" + "}" * 1_200)),
    ("long field", _field(json.dumps("x" * 20_000))),
    ("null field", _field("null")),
    ("NaN field", _field("NaN")),
    ("true field", _field("True")),
    ("nested field", _field('["a", "b"]')),
    ("object field", _field('{"a": {"b": [1]}}')),
    ("unquoted field", _field("some words")),
    ("inner quotes", _field('"the "big" one"')),
    ("inches", _field('"6" pipe"')),
    ("latex", _field('"\\alpha_{1} \\le"')),
    ("bad escape", _field('"\\u12 \\q"')),
    ("lone surrogate", _field('"\\ud800"')),
    ("huge number", _field("1" * 5_000)),
    ("arity", _arity),
    ("spaces", _instead('["a", "b"' + " " * 5_000 + ', "c"]')),
    ("no comma", _without(",")),
    ("no closing bracket", _cut),
    ("no last quote", _without('"', last=True)),
    ("no first quote", _without('"')),
    ("wrong bracket", lambda written, _fields, _random: written[:-1] + ("}" if written[0] == "[" else "]")),
    ("bracket twice", lambda written, _fields, _random: written + written[-1]),
    ("opened twice", lambda written, _fields, _random: written[0] + written),
    ("trailing comma", lambda written, _fields, _random: written[:-1] + "," + written[-1]),
    ("key again", _instead('{"subject": "a", "subject": "b", "predicate": "p", "object": "o"}')),
]
DAMAGES: dict[bool, list[tuple[str, Damage]]] = {
    False: [*_BOTH, ("no opening bracket", lambda written, _fields, _random: written[1:])],
    True: [*_BOTH, ("no colon", _without(":"))],
}

NOISE = [
    "\n", ",\n", " ", ",, ", " , null, ", ' , "abc", ', ", ..., ", ", 3, ", ", /* and */ ", " // more\n,",
    ",\n# note\n", ",\n```\n", ", and then ", " ] , ", " [ , ", " { , ", " } , ", " ) , ", ' " , ', " ' , ", ", \\ ",
    "," + " " * 5_000, ", \0 ", ", {}, ", ", [], ", ", [[[[]]]], ", ", \ud83d , ", "; ", ",\u3000", ", \ufeff",
]  # fmt: skip


def _wrapped(before: str, after: str) -> Callable[[str, random.Random], str]:
    return lambda body, _random: before + body + after


WRAPPERS: list[Callable[[str, random.Random], str]] = [
    _wrapped("[", "]"),
    _wrapped('{"triples": [', "]}"),
    _wrapped('{"named_entities": ["Ada", 3, null], "triples": [', "]}"),
    _wrapped('{"triples": [', '], "entities": ["Ada"]}'),
    _wrapped('```json\n{"extracted_triples": [', "]}\n```"),
    _wrapped("~~~\n[", "]\n~~~\nThese are all."),
    _wrapped("```\n[", "]"),
    _wrapped('<think>Is [it] {"so"}? "Yes.</think>\n{"facts": [', "]}"),
    _wrapped("Here are the triples (as asked):\n\n[", "]\n\nI hope [this] helps!"),
    _wrapped('\ufeff{"result": {"Knowledge Graph": [', "]}}"),
    _wrapped("triples = [", "]"),
    _wrapped("", ""),
    _wrapped('"triples": [', "]}"),
    _wrapped('{"triples": [', ""),
    _wrapped('{"triples": [', "]"),
    _wrapped("[[", "]]"),
    _wrapped('[{"triples": [', "]}]"),
]
