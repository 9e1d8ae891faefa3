"""Replies of models to entities and triples: the forms they come in, and what broke other programs."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Sequence

import pytest
from damaged_replies import Damaged, cut_reply, damaged_reply, mutated_reply

from hippogpu.openie.json_text import find_values
from hippogpu.openie.replies import ReadReply, Wants, read_numbers, read_reply

A, B, C = ["Ada", "wrote", "notes"], ["Ada", "met", "Babbage"], ["Babbage", "built", "the engine"]
AT, BT, CT = (json.dumps(triple) for triple in (A, B, C))
OBJECTS = [dict(zip(("subject", "predicate", "object"), triple, strict=True)) for triple in (A, B)]
NAMES = ("Ada", "Babbage")

# CPU seconds a character of the worst damage, and a second for a busy machine; what is not linear is far above.
SECONDS_A_CHARACTER, SLACK_S = 30e-6, 1.0
# Replies of each kind; more with HIPPOGPU_FUZZ=10000.
FUZZED = int(os.environ.get("HIPPOGPU_FUZZ", "300"))


def triples(text: str, wants: Wants = "triples") -> list[list[str]]:
    return [list(triple[:3]) for triple in read_reply(text, wants=wants).triples]


def reasons(text: str, wants: Wants = "triples") -> list[str]:
    return [drop.reason for drop in read_reply(text, wants=wants).drops]


@pytest.mark.parametrize(
    "reply",
    [
        f"[{AT}, {BT}]",
        f'{{"triples": [{AT}, {BT}]}}',
        f'{{"facts": [{AT}, {BT}]}}',
        f'{{"Extracted Triples": [{AT}, {BT}]}}',
        f'{{"relations": [{AT}, {BT}]}}',
        f'{{"knowledge graph": {{"nodes": ["Ada"], "edges": [{AT}, {BT}]}}}}',
        f'{{"result": {{"output": [{AT}, {BT}]}}}}',
        f'{{"anything": [{AT}, {BT}]}}',
        f'{{"triples": [{{"triple": {AT}}}, {{"triple": {BT}}}]}}',
        f'[{{"triples": [{AT}]}}, {{"triples": [{BT}]}}]',
        f"```json\n[{AT}, {BT}]\n```",
        f"~~~\n[{AT}, {BT}]\n~~~",
        f"```\n[{AT}, {BT}]",
        f"Here you are:\n\n```json\n[{AT}, {BT}]\n```\nAnything else?",
        f"The [requested] triples: [{AT}, {BT}]. I left {{out}} none.",
        f"Triples: [{AT}, {BT}]",
        f"triples = [{AT}, {BT}]",
        f"{AT}\n{BT}",
        f"{AT}, {BT}",
        "\n".join(map(json.dumps, OBJECTS)),
        json.dumps(OBJECTS),
        json.dumps({"triples": OBJECTS}),
        json.dumps(json.dumps({"triples": [A, B]})),
        f'{{"triples": [{AT}]}}\n{{"triples": [{BT}]}}',
        f'{{"triples": [{AT}], "triples": [{BT}]}}',
        f'{{"triples": [{AT}], "facts": [{BT}]}}',
        f'"triples": [{AT}, {BT}]}}',
        f"{AT}, {BT}]}}",
        f'\ufeff{{"triples": [{AT}, {BT}]}}',
        f'\0{{"triples": [{AT}, {BT}]}}\0',
        f"<think>Perhaps [{CT}]?</think>[{AT}, {BT}]",
        f"Perhaps [{CT}]?\n</think>\n[{AT}, {BT}]",
        f"[{AT}, {BT},]",
        f"[{AT} {BT}]",
        f"[{AT}, // the first\n{BT} /* [the] last */]",
        f"{{triples: [{AT}, {BT}]}}",
        str([tuple(A), tuple(B)]),
        str({"triples": [A, B]}),
        f"{tuple(A)}\n{tuple(B)}",
        f'{{"triples": [{AT}, {BT}',
        f'{{"triples": [{AT}, {BT}}}',
        f'{{"triples": [{AT}, ["Ada", "met", "Babbage]]}}, {BT}',
        '[["Ada", "wrote", "no\\u0074es"], ["Ada", "met" "Babbage"]]',
    ],
)
def test_triples_are_read_from_any_form_of_reply(reply: str) -> None:
    reply_read = read_reply(reply, wants="triples")
    assert [list(triple[:3]) for triple in reply_read.triples] == [A, B]
    assert reply_read.fault is None


@pytest.mark.parametrize(
    "reply",
    [
        '["Ada", "Babbage"]',
        '{"entities": ["Ada", "Babbage"]}',
        '{"named_entities": ["Ada", "Babbage"]}',
        '{"NER": ["Ada", "Babbage"]}',
        '{"namedEntities": {"person": ["Ada"], "other": ["Babbage"]}}',
        '{"entities": [{"name": "Ada", "type": "person"}, {"text": "Babbage"}]}',
        '[{"entity": "Ada"}, {"entity": "Babbage"}]',
        "Entities: ['Ada', 'Babbage']",
        "{'Ada', 'Babbage'}",
        '```json\n{"list of named entities": ["Ada", "Babbage"]}\n```',
        '{"entities": ["Ada", "Babbage", "Charl',
    ],
)
def test_entities_are_read_from_any_form_of_reply(reply: str) -> None:
    reply_read = read_reply(reply, wants="entities")
    assert (reply_read.entities, reply_read.fault) == (NAMES, None)


def test_a_reply_to_both_questions_gives_both() -> None:
    reply = read_reply(f'{{"entities": ["Ada", "Babbage"], "triples": [{AT}]}}', wants="both")
    assert (reply.entities, [list(triple[:3]) for triple in reply.triples]) == (NAMES, [A])


@pytest.mark.parametrize(
    ("reply", "wants", "fault"),
    [
        ("", "triples", "the reply is empty"),
        (" \n" * 100_000, "triples", "the reply is empty"),
        ("I cannot do that.", "triples", "the reply holds no JSON"),
        ("<think>Let me see [", "triples", "the reply is a thought that does not end"),
        ("null", "triples", "the reply holds no list of triples"),
        ("{}", "entities", "the reply holds no list of entities"),
        ('{"entities": ["Ada"]}', "triples", "the reply holds no list of triples"),
        ('{"entities": ["Ada"]}', "both", "the reply holds no list of triples"),
        ('{"triples": "none"}', "triples", "the reply holds no list of triples"),
        ('{"triples": ', "triples", "the reply holds no list of triples"),
        ("I saw nothing [in it].", "triples", "the reply holds no list of triples"),
        (f'{{"triples": [{AT}]}}', "entities", "the reply holds no list of entities"),
    ],
)
def test_a_reply_without_what_was_wanted_says_so(reply: str, wants: Wants, fault: str) -> None:
    assert read_reply(reply, wants=wants).fault == fault


@pytest.mark.parametrize("reply", ["[]", '{"triples": []}', '{"triples": null}', '{"triples": [', "```json\n[]\n```"])
def test_an_empty_list_is_an_answer(reply: str) -> None:
    assert (triples(reply), read_reply(reply, wants="triples").fault) == ([], None)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('["Ada", "wrote"]', "2 fields, not 3"),
        ('["Ada", "wrote", "notes", "1843"]', "4 fields, not 3"),
        ('["Ada", null, "notes"]', "a field is null"),
        ('["Ada", None, "notes"]', "a field is null"),
        ('["Ada", "is", True]', "a field is a boolean"),
        ('["Ada", "weighs", NaN]', "a field is no finite number"),
        ('["Ada", "weighs", -Infinity]', "a field is no finite number"),
        ('["Ada", "weighs", 1e999]', "a field is no finite number"),
        (f'["Ada", "weighs", {"1" * 5_000}]', "a field is too long a number"),
        ('["Ada", "wrote", ["notes"]]', "a field is nested"),
        ('["Ada", "wrote", ...]', "a field is unreadable"),
        ('["Ada", {"a", "b"}, "notes"]', "a field is nested"),
        ('["Ada", wrote some, "notes"]', "a field is unreadable"),
        ('["Ada", , "notes"]', "a field is missing"),
        ("...", "unreadable, not a triple"),
        ("", "missing, not a triple"),
        ('"abc"', "text, not a triple"),
        ("null", "null, not a triple"),
        ("17", "a number, not a triple"),
        ("{}", "an object without a 'subject'"),
        ('{"subject": "Ada", "object": "notes"}', "an object without a 'predicate'"),
        ('{"subject": "Ada", "predicate":, "object": "notes"}', "a field is missing"),
        ('"Ada", "wrote", "notes"]', "text, not a triple"),
        ('["Ada", "wrote", "notes"', "a triple without its closing bracket"),
        ('{"subject": "Ada", "predicate": "wrote", "object": "x"', "a triple without its closing bracket"),
        ("__import__('os').abort()", "text, not a triple"),
        (AT, "repeated triple"),
    ],
)
def test_one_bad_triple_is_dropped_with_its_reason_and_its_neighbours_kept(bad: str, reason: str) -> None:
    reply = f'{{"triples": [{AT}, {bad}, {BT}, {CT}]}}'
    assert triples(reply) == [A, B, C]
    assert reason in reasons(reply) or bad.startswith("__import__")


@pytest.mark.parametrize(
    "field",
    [
        r"\frac{a}{b} } {",
        "x_{1}, [2]",
        "__import__('os').abort()",
        "北京",
        "café",
        "cafe\u0301",
        "हिन्दी",
        "İstanbul",
        "a\nb\tc\x07",
        "\ud800",
        "👩‍🔬",
        '"quoted"',
        "it's",
        "</think>",
        "```",
        "x" * 100_000,
    ],
)
def test_a_field_comes_out_as_it_was_written(field: str) -> None:
    second = ["Ada", "wrote", field]
    for ascii_ in (True, False):
        whole = json.dumps({"triples": [A, second, B]}, ensure_ascii=ascii_)
        assert triples(whole) == triples(whole[:-1]) == triples(f"Sure:\n{whole[:-2]},,{CT}]}}")[:3] == [A, second, B]


def test_a_raw_line_break_in_a_text_stays() -> None:
    assert triples('[["Ada", "wrote\nmore", "notes"]]') == [["Ada", "wrote\nmore", "notes"]]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"the "big" one"', 'the "big" one'),
        ('"6" pipe"', '6" pipe'),
        ('"12""', '12"'),
        ('"\\alpha_{1} \\le"', "\\alpha_{1} \\le"),
        ('"\\q\\u12"', "\\q\\u12"),
        ("'it's'", "it's"),
        ("'it\\'s'", "it's"),
        ("'caf\\xe9'", "café"),
        ('"\\ud83d\\ude00"', "😀"),
        ("1843", "1843"),
        ("2.50", "2.5"),
    ],
)
def test_a_text_with_its_quotes_or_escapes_wrong_is_read_as_meant(written: str, read: str) -> None:
    reply = f'[{AT}, ["Ada", "is", {written}], {BT},]'
    assert triples(reply) == [A, ["Ada", "is", read], B]


def test_every_character_a_reply_may_end_at_keeps_what_was_complete() -> None:
    reply = (
        '{"triples": [["A\\u0064a", "is", 1.5e3], {"subject": "x", "predicate": "y", "object": "z"}, ["a", "b", "c"]]}'
    )
    ends = [reply.index("1.5e3]") + 6, reply.index("}") + 1, reply.index("]]}") + 1]
    for cut in range(1, len(reply)):
        read = read_reply(reply[:cut], wants="triples")
        assert (len(read.triples), read.truncated) == (sum(cut >= end for end in ends), True)


def test_what_a_cut_took_is_reported() -> None:
    drops = read_reply(f'{{"triples": [{AT}, ["Ada", "met', wants="triples").drops
    assert drops == (("a triple without its closing bracket", "['Ada', \"met]"),)


def test_the_entity_that_was_cut_is_reported() -> None:
    reply = read_reply('{"entities": ["Ada", "Bab', wants="entities")
    assert (reply.entities, reply.drops) == (("Ada",), (("an entity is cut short", '"Bab'),))


def test_numbers_null_and_repeats_among_names_keep_their_neighbours() -> None:
    reply = read_reply('["Ada", 1843, null, "Ada", "Babbage"]', wants="entities")
    assert reply.entities == ("Ada", "1843", "Babbage")
    assert [drop.reason for drop in reply.drops] == ["an entity is null", "repeated entity"]


def test_a_key_again_in_one_triple_keeps_the_first_and_says_so() -> None:
    reply = '[{"subject": "Ada", "predicate": "wrote", "object": "notes", "object": "letters"}]'
    assert (triples(reply), reasons(reply)) == ([A], ["a key again"])


def test_three_sentences_in_place_of_triples_are_no_triple() -> None:
    assert triples('{"triples": ["Ada wrote.", "Ada met Babbage.", "He built."]}') == []


def test_a_list_in_place_of_an_object_is_no_triple_of_its_own() -> None:
    assert triples(f'[["Ada", "wrote", ["notes", "letters", "books"]], {BT}]') == [B]


def test_text_around_the_json_is_reported() -> None:
    assert read_reply(f"Sure! [{AT}] Bye.", wants="triples").drops == (("text around the JSON", "Sure! Bye."),)


def test_a_clean_reply_drops_nothing() -> None:
    assert read_reply(f'```json\n{{"triples": [{AT}]}}\n```', wants="triples").drops == ()


DEEP = 10_000


@pytest.mark.parametrize(
    "deep",
    ["[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * DEEP, "{" * DEEP, "(" * DEEP, "]" * DEEP],
    ids=["lists", "objects", "open lists", "open objects", "open tuples", "closing"],
)
def test_ten_thousand_levels_between_two_triples_cost_neither(deep: str) -> None:
    assert triples(f"[{AT}, {deep}, {BT}]") == [A, B]


@pytest.mark.parametrize(
    ("start", "part"),
    [
        *(
            ("", part)
            for part in ("[", "{", "[]", "[x]", "a: []", '{"t":[1]}', "```", "<think>", "</think>", "\n</think>")
        ),
        *(("", part) for part in ('{"', "{'", "]", "0", "-", "\ud800", "\0", "), ('',\\\"", '"', "[1 2]")),
        *(
            ("[", part)
            for part in ("(", "[{", "[,", "]", '"a', "'a", '" a', "[x", "//", "/*", "# ", " ", '["a\n', "' ")
        ),
        *(("[", part) for part in ('" "', "[1,", "null,", '\\"', "), ('',\\\"", "0", ":", '"a":')),
        *(('["', part) for part in ("a", "\\", '}"', "],[", '"}, {', "\\u12", '" ', '""', "'")),
        *(("{", part) for part in ('"a":', '"a":{', '"t":[1],', "a,", "a[", "a{", ":")),
    ],
)
def test_fifty_kilobytes_of_anything_take_bounded_time(start: str, part: str) -> None:
    text = start + part * (50_000 // len(part))
    began = time.process_time()
    read_reply(text, wants="triples")
    assert time.process_time() - began < SLACK_S + SECONDS_A_CHARACTER * len(text)


def test_endless_whitespace_in_the_middle_takes_bounded_time() -> None:
    began = time.process_time()
    assert triples(f"[{AT}, " + " \n" * 100_000) == [A]
    assert time.process_time() - began < SLACK_S


def _fuzzed(make: Callable[[random.Random], Damaged], first_seed: int) -> Sequence[Damaged]:
    return [make(random.Random(seed)) for seed in range(first_seed, first_seed + min(100, FUZZED))]


SEEDS = range(0, FUZZED, 100)


def _read_in_time(reply: Damaged) -> ReadReply:
    began = time.process_time()
    read = read_reply(reply.text, wants="triples")
    assert time.process_time() - began < SLACK_S + SECONDS_A_CHARACTER * len(reply.text)
    return read


@pytest.mark.parametrize("seed", SEEDS)
def test_no_damage_costs_a_triple_that_it_did_not_touch(seed: int) -> None:
    for reply in _fuzzed(damaged_reply, seed):
        read = _read_in_time(reply)
        kept = iter(tuple(triple[:3]) for triple in read.triples)
        assert all(triple in kept for triple in reply.untouched), (reply.damages, reply.text[:2_000])


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_that_costs_a_triple_is_reported(seed: int) -> None:
    for reply in _fuzzed(damaged_reply, seed):
        read = read_reply(reply.text, wants="triples")
        lost = len(reply.all) - sum(reply.damages.count(name) for name in ("nothing", "empty list")) - len(read.triples)
        assert lost <= 0 or read.drops or read.fault, (reply.damages, reply.text[:2_000])


@pytest.mark.parametrize("seed", SEEDS)
def test_any_change_of_characters_is_read_without_an_error(seed: int) -> None:
    for reply in _fuzzed(mutated_reply, seed):
        _read_in_time(reply)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_keeps_what_was_complete_and_says_so(seed: int) -> None:
    for reply in _fuzzed(cut_reply, seed):
        read = _read_in_time(reply)
        kept = tuple(tuple(triple[:3]) for triple in read.triples)
        assert (read.truncated, kept) == (True, reply.untouched)


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ('{"stated": [1, 3]}', {1, 3}),
        ("[1, 3]", {1, 3}),
        ('```json\n{"stated": ["1", 3.0]}\n```', {1, 3}),
        ("[true, false, true, false]", {1, 3}),
        ("{'stated': [True, False, True, False]}", {1, 3}),
        ("3", {3}),
        ("[]", set()),
        ('{"stated": []}', set()),
        ("[1, 9]", {1}),
        ("[true, false]", None),
        ("[9]", None),
        ("[0, 1]", None),
        ("[1.5]", None),
        ("[1, null]", None),
        ("[1, true]", None),
        ('{"stated": [1, 3', None),
        ('{"stated": [1], "not": [2]}', None),
        ("all of them", None),
        ("Facts [1] and [3].", None),
        ("", None),
    ],
)
def test_the_numbers_of_a_verification_reply(reply: str, numbers: set[int] | None) -> None:
    assert read_numbers(reply, most=4) == numbers


def test_every_value_of_a_reply_is_found_in_order() -> None:
    found = [[value for _, value in find_values(text).values] for text in ("x {} y", "[1] [2]", "3")]
    assert found == [[{}], [[1], [2]], [3]]


def test_a_reply_without_a_value_has_none_and_what_stood_around_one_is_dropped() -> None:
    assert find_values("nothing").values == ()
    assert find_values("Sure: {}")[1:] == (False, (("text around the JSON", "Sure:"),))
