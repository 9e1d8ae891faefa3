"""Edges between phrases that name one thing in another way: each kind of evidence, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hippogpu import IndexConfig, Record, Triple
from hippogpu.demo import demo_folder, demo_passages
from hippogpu.graph import assemble
from hippogpu.openie import ReplayExtractor
from hippogpu.resolve import KINDS, NameEdges, find_names, kinds_between, linked, why_joined, with_names
from hippogpu.resolve.dates import day_of
from hippogpu.tables import tabulate
from hippogpu.text import content_key, identity
from hippogpu.types import NO_EDGES, Edges, Tables

NAMES = IndexConfig(resolve="names")


def tables_of(*passages: str, predicate: str = "is near") -> Tables:
    """Passages of phrases with commas between them, each joined to the next by a fact; "a|p|b" is a fact of its own."""
    return tabulate([Record(str(at), triples(text, predicate)) for at, text in enumerate(passages)], NAMES).tables


def triples(text: str, predicate: str) -> tuple[Triple, ...]:
    if "|" in text:
        return tuple(Triple(*part.split("|")) for part in text.split(";"))
    phrases = text.split(", ")
    return tuple(Triple(one, predicate, other) for one, other in zip(phrases, [*phrases[1:], phrases[0]], strict=True))


def joined(*passages: str, wholes: Sequence[str] = ()) -> dict[tuple[str, str], tuple[str, ...]]:
    """The pairs of phrases that are joined, with their kinds."""
    tables = tables_of(*passages)
    names = find_names(tables, wholes, NAMES)
    pairs = zip(names.edges.source.tolist(), names.edges.target.tolist(), strict=True)
    return {(tables.phrases[one], tables.phrases[other]): kinds_between(names, one, other) for one, other in pairs}


def weight_of(names: NameEdges, tables: Tables, one: str, other: str) -> float:
    pair = sorted([tables.phrases.index(one), tables.phrases.index(other)])
    pairs = list(zip(names.edges.source.tolist(), names.edges.target.tolist(), strict=True))
    return float(names.edges.weight[pairs.index((pair[0], pair[1]))])


@pytest.mark.parametrize(
    ("short", "full", "kind"),
    [
        ("j r r tolkien", "john ronald reuel tolkien", "initials"),
        ("jrr tolkien", "john ronald reuel tolkien", "initials"),
        ("f scott fitzgerald", "francis scott fitzgerald", "initials"),
        ("u s army", "united states army", "initials"),
        ("franklin roosevelt", "franklin d roosevelt", "middle"),
        ("john adams jr", "john q adams jr", "middle"),
        ("4 july 1776", "july 4 1776", "date"),
        ("4 july 1776", "1776 07 04", "date"),
        ("july 4th", "4 july", "date"),
        ("13 04 1776", "13 april 1776", "date"),
        ("mark of cain", "the mark of cain", "article"),
        ("u s a", "usa", "acronym"),
    ],
)
def test_two_names_of_one_thing_are_joined_wherever_they_stand(short: str, full: str, kind: str) -> None:
    assert joined(f"{short}, one thing", f"{full}, another thing") == {tuple(sorted([short, full])): (kind,)}


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("а с пушкин", "александр сергеевич пушкин"),
        ("ν βενιζέλου", "νίκου βενιζέλου"),
        ("न दत्त", "नरेन्द्र दत्त"),
        ("ا حسین", "احمد حسین"),
    ],
)
def test_initials_are_read_in_any_script(short: str, full: str) -> None:
    assert joined(f"{short}, {full}") == {tuple(sorted([short, full])): ("initials",)}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("j tolkien", "john tolkien", "initials"),
        ("franklin roosevelt", "franklin delano roosevelt", "middle"),
        ("vince da silva", "vincent da silva", "cut"),
        ("winston churchill", "sir winston churchill", "honorific"),
        ("lincoln", "president lincoln", "honorific"),
        ("godfather", "the godfather", "article"),
        ("nasa", "national aeronautics and space administration", "acronym"),
        ("u k", "united kingdom", "acronym"),
        ("lincoln", "abraham lincoln", "surname"),
    ],
)
def test_weaker_likeness_joins_only_what_meets(one: str, other: str, kind: str) -> None:
    pair = tuple(sorted([one, other]))
    assert joined(f"{one}, {other}, one thing") == {pair: (kind,)}
    assert joined(f"{one}, one thing", f"{other}, another thing") == {}


@pytest.mark.parametrize(
    "phrases",
    [
        "paris, paris texas",
        "july 4 1776, 1776",
        "july 1776, 4 july 1776",
        "03 04 1776, 3 april 1776",
        "31 february 2000, february 31 2000",
        "george w bush, george h w bush",
        "amaury i de montfort, amaury ii de montfort",
        "henry v, henry vi",
        "john wood, mrs john wood",
        "who, world health organization",
        "war, civil war",
        "york, new york",
        "david williams, davida williams",
        "royal society, royal geographical society",
        "a, an a",
        "1, the 1",
        "band, the band",
        "it, the it",
        "martin luther king, martin luther king jr",
        "北京, 北京大学",
        "п, петр",
    ],
)
def test_unlike_things_stay_apart_though_they_meet(phrases: str) -> None:
    assert joined(phrases) == {}


def test_an_initial_that_fits_two_people_joins_neither() -> None:
    assert joined("j r smith", "john robert smith", "james robert smith") == {}


def test_forms_of_one_name_do_not_compete() -> None:
    assert len(joined("j r r tolkien", "john ronald reuel tolkien", "john r r tolkien")) == 3


def test_a_surname_is_not_joined_where_two_bear_it() -> None:
    assert joined("lincoln, abraham lincoln, mary lincoln") == {}


def test_a_surname_weighs_the_share_of_its_passages_that_have_the_name() -> None:
    tables = tables_of("lincoln, abraham lincoln", "lincoln, nebraska")
    names = find_names(tables, (), NAMES)
    assert weight_of(names, tables, "lincoln", "abraham lincoln") == pytest.approx(0.3)


def test_a_title_in_brackets_is_joined_to_what_stands_before_them() -> None:
    film = "Titanic (1997 film)\nTitanic is a film."
    assert joined("titanic 1997 film, titanic", wholes=[film]) == {("titanic", "titanic 1997 film"): ("bracket",)}


@pytest.mark.parametrize("other", ["Titanic\nA ship.", "Titanic (ship)\nA ship."])
def test_a_title_that_competes_keeps_the_two_apart(other: str) -> None:
    assert joined("titanic 1997 film, titanic", wholes=["Titanic (1997 film)\nIt is.", other]) == {}


@pytest.mark.parametrize(
    "fact",
    [
        "salt march|also known as|dandi march",
        "salt march|Is Also Known As|dandi march",
        "great railway|abbreviated as|gipr",
        "salt march|Salt March, also known as Dandi March, was a march.|dandi march",
        "salt march|Salt March (German: Dandi March) is a march.|dandi march",
        "peter glenville|Peter Glenville (born Peter Browne, 28 October 1913) was a director.|peter browne",
    ],
)
def test_the_text_states_an_alias(fact: str) -> None:
    subject, _, object_ = fact.split("|")
    assert joined(fact) == {tuple(sorted([subject, object_])): ("alias",)}


@pytest.mark.parametrize(
    "fact",
    [
        "salt march|known for|dandi march",
        "salt march|is known as|1930",
        "salt march|was born in|dandi march",
        "peter glenville|Peter Glenville (born London Town) was a director.|london town",
        "salt march|Salt March was led by Gandhi, also known as Mahatma Gandhi, to Dandi.|mahatma gandhi",
        "the night|The Night, also known as Danger in Damascus, is a film.|danger man",
        "the night|The Night, also known as Danger in Damascus Town, is a film.|danger in damascus",
    ],
)
def test_what_states_no_alias_joins_nothing(fact: str) -> None:
    assert joined(fact) == {}


def test_an_alias_of_two_things_is_joined_to_neither() -> None:
    assert joined("juan carlos gómez|known as|juan carlos;juan carlos pérez|known as|juan carlos") == {}


def test_a_pair_has_every_kind_of_evidence_and_the_greatest_weight() -> None:
    tables = tables_of("j r r tolkien|also known as|john ronald reuel tolkien")
    names = find_names(tables, (), NAMES)
    assert kinds_between(names, 1, 0) == ("initials", "alias")
    assert names.edges.weight.tolist() == [np.float32(0.9)]


def test_two_phrases_are_told_why_they_are_joined() -> None:
    tables = tables_of("4 july 1776, july 4 1776, zebra")
    names = find_names(tables, (), NAMES)
    lines = [why_joined(names, tables.phrases, "july 4 1776", other) for other in ("4 july 1776", "zebra", "nobody")]
    assert lines == [("date: one day",), (), ()]


def test_phrases_that_no_rule_joins_have_no_kinds() -> None:
    names = find_names(tables_of("one thing, another thing, third thing"), (), NAMES)
    assert [kinds_between(names, one, other) for one, other in ((0, 1), (1, 2), (2, 2))] == [()] * 3


def test_ten_thousand_bearers_of_one_surname_make_few_edges_and_say_what_was_left() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    given = [f"{a}{b}{c}" for a in letters for b in letters for c in letters][:10_000]
    names = find_names(tables_of(*(f"mary {word} smith, john {word} smith, smith" for word in given)), (), NAMES)
    assert len(names.edges.source) < 100
    assert names.refused["initials: surname too common"] > 19_000


def test_a_hub_of_one_kind_is_cut_and_told() -> None:
    many = ";".join(f"big thing|also known as|name {'x' * at} here" for at in range(1, 6))
    names = find_names(tables_of(many), (), NAMES)
    assert (names.counts["alias"], "alias: too many names" in names.refused) == (5, False)
    more = find_names(tables_of(";".join([many, *(f"big thing|alias|y{at} here" for at in range(3))])), (), NAMES)
    assert (more.counts["alias"], more.refused["alias: too many names"]) == (0, 8)


def test_nothing_is_found_in_an_empty_index() -> None:
    names = find_names(tabulate([], NAMES).tables, (), NAMES)
    assert (len(names.edges.source), dict(names.counts)) == (0, dict.fromkeys(KINDS, 0))


def test_edges_ascend_each_once_between_two_phrases() -> None:
    tolkien = "j r r tolkien, jrr tolkien, john ronald reuel tolkien, tolkien"
    tables = tables_of(tolkien, "july 4, 4 july, the 4th of july")
    edges = find_names(tables, (), NAMES).edges.check("names", below=len(tables.phrases))
    keys = edges.source.astype(np.int64) * len(tables.phrases) + edges.target
    assert len(keys) > 4
    assert np.all(np.diff(keys) > 0)
    assert edges.weight.max() <= 1


def test_a_pair_of_synonyms_and_names_takes_the_greater_weight_each_way() -> None:
    names = NameEdges(Edges(*map(np.array, ([0], [1], [0.9]))), np.array([1]), {}, {})
    synonyms = Edges(np.array([0, 1, 2]), np.array([1, 0, 0]), np.array([0.95, 0.85, 0.8], np.float32))
    edges = with_names(synonyms, names)
    assert edges.source.tolist() == [0, 1, 2]
    assert edges.weight.tolist() == pytest.approx([0.95, 0.9, 0.8])


@pytest.mark.parametrize("rule", ["max", "parallel"])
def test_names_are_edges_of_the_graph(rule: str) -> None:
    tables = tables_of("j r r tolkien, one thing", "john ronald reuel tolkien, another thing")
    config = IndexConfig(resolve="names", edge_rule=rule)  # type: ignore[arg-type]
    graph = assemble(tables, linked(tables, NO_EDGES, (), config), config.edge_rule).check()
    one, other = (2 + tables.phrases.index(name) for name in ("j r r tolkien", "john ronald reuel tolkien"))
    row = slice(int(graph.indptr[one]), int(graph.indptr[one + 1]))
    weight = dict(zip(graph.indices[row].tolist(), graph.weights[row].tolist(), strict=True))[other]
    assert weight == pytest.approx(0.9 if rule == "max" else 1.8)


def test_without_the_setting_there_are_the_synonyms_alone() -> None:
    tables = tables_of("4 july 1776, july 4 1776")
    assert linked(tables, NO_EDGES, (), IndexConfig()) is NO_EDGES


@pytest.mark.parametrize(
    ("phrase", "day"),
    [
        ("4 july 1776", (1776, 7, 4)),
        ("the 4th of july 1776", (1776, 7, 4)),
        ("thursday 4 july 1776", (1776, 7, 4)),
        ("february 29 1900", None),
        ("29 february", (0, 2, 29)),
        ("may 2004", None),
        ("may", None),
        ("9 11", None),
        ("1914 18", None),
        ("10 000 metres", None),
        ("april june 4", None),
    ],
)
def test_a_date_is_read_whole_or_not_at_all(phrase: str, day: tuple[int, int, int] | None) -> None:
    assert day_of(tuple(phrase.split())) == day


def test_the_rules_of_the_setting_find_what_they_found_when_it_was_made() -> None:
    """Stored graphs are verified against them: rules that find other pairs need another value of the setting."""
    passages = demo_passages()
    records = ReplayExtractor(demo_folder() / "openie.jsonl.gz").extract(passages)
    tables = tabulate(records, NAMES).tables
    names = find_names(tables, [identity(one.title, one.text) for one in passages], NAMES)
    assert {kind: count for kind, count in names.counts.items() if count} == {"surname": 4, "alias": 23}
    found = "".join(
        f"{tables.phrases[one]}~{tables.phrases[other]}~{weight:.4f}\n"
        for one, other, weight in zip(*(column.tolist() for column in names.edges), strict=True)
    )
    assert content_key(found) == "4a138f6ecdd0fad96450499ccd61ec22"
