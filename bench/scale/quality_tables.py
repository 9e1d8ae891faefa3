"""Tables of what is found in a growing sea of passages, from the stored cases alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.quality.tables import figure, percent, short, told
from bench.scale.quality_asking import MAIN, MEASURES, METHODS
from hippogpu.evaluate.intervals import CONFIDENCE, Doubles, bootstrap_means
from hippogpu.evaluate.pages import Rows

Stored = Mapping[str, Any]

_VERDICTS = {(True, False): "better", (False, True): "worse"}
_TO = "to dense"


class Change(NamedTuple):
    """A difference of means over the same questions, and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float

    def told(self) -> str:
        """In points, with its interval and verdict: +5.1 [-2.5, 12.9] tie."""
        verdict = _VERDICTS.get((self.low > 0, self.high < 0), "tie")
        return told((self.mean, self.low, self.high, None, verdict))


def main_line(cases: Mapping[str, Stored], order: str = "near") -> list[Stored]:
    """A case a size, ascending, in that order of distractors: exact synonyms where they were measured, else cells."""
    by_size: dict[int, Stored] = {}
    for case in cases.values():
        if case["order"] == order and case["variant"] in ("exact", "cells"):
            held = by_size.get(case["size"])
            if held is None or case["variant"] == "exact":
                by_size[case["size"]] = case
    return [by_size[size] for size in sorted(by_size)]


def corpus_table(line: Sequence[Stored]) -> Rows:
    """What each index is made of."""
    rows = []
    for case in line:
        sources, counts = case["sources"], case["counts"]
        numbers = [case["size"], sources["asked_sets"], sources["modern_rest"], sources["of_1810"], case["unread"]]
        numbers += [case["gold_with_copies"], *(counts[name] for name in ("phrases", "facts", "synonyms"))]
        rows.append([*(f"{number:,}" for number in numbers), case["settings"]["synonym_search"]])
    columns = ["passages", "of the two sets", "other modern Wikipedia", "of 1810", "without a record"]
    columns += ["gold with a near copy", "phrases", "facts", "synonym edges", "synonyms by"]
    return Rows(columns, rows)


def recall_table(line: Sequence[Stored], group: str) -> Rows:
    """recall@5 of the methods by size, and the paired lead of the graph's methods over dense."""
    rows = []
    for case in line:
        found = {method: case["methods"][method]["groups"][group] for method in METHODS}
        cells = [figure(one, MAIN) for one in found.values()]
        leads = [_lead(found[method]) for method in METHODS if method != "dense"]
        rows.append([_size(case), *cells, *leads])
    return Rows(["passages", *METHODS, *(f"{method} {_TO}" for method in METHODS if method != "dense")], rows)


def measures_table(line: Sequence[Stored]) -> Rows:
    """Every measure of both sets together, a row a size and method."""
    rows = [
        [
            _size(case),
            method,
            *(percent(case["methods"][method]["groups"]["both"]["values"][name]) for name in MEASURES),
        ]
        for case in line
        for method in METHODS
    ]
    return Rows(["passages", "method", *map(short, MEASURES)], rows)


def change_table(line: Sequence[Stored]) -> Rows:
    """How recall@5, and the lead over dense, of the same questions differs from that at the smallest size."""
    first, rows = line[0], []
    for case in line[1:]:
        own = [_change(case, first, {method: 1}).told() for method in METHODS]
        leads = [_change(case, first, {method: 1, "dense": -1}).told() for method in METHODS if method != "dense"]
        rows.append([_size(case), *own, *leads])
    leads = [f"lead of {method}" for method in METHODS if method != "dense"]
    return Rows([f"from {_size(first)} to", *METHODS, *leads], rows)


def summary(line: Sequence[Stored]) -> str:
    """What the smallest and the largest size say, in three sentences."""
    first, last = line[0], line[-1]
    fallen = [
        f"{method} {percent(first['methods'][method]['groups']['both']['values'][MAIN])} → "
        f"{percent(last['methods'][method]['groups']['both']['values'][MAIN])}"
        for method in METHODS
    ]
    leads = [f"{method} {_lead(last['methods'][method]['groups']['both'])}" for method in METHODS if method != "dense"]
    changes = [
        f"{method} {_change(last, first, {method: 1, 'dense': -1}).told()}" for method in METHODS if method != "dense"
    ]
    return (
        f"**From {_size(first)} to {_size(last)} passages**, recall@5 in percent: {', '.join(fallen)}. Leads over "
        f"dense at {_size(last)}, in points: {', '.join(leads)}. What has become of these leads since {_size(first)}: "
        f"{', '.join(changes)}."
    )


def variant_table(cases: Mapping[str, Stored]) -> Rows:
    """Sizes that were measured under several settings: recall@5, and how many questions have another one."""
    rows = []
    for case, base in _compared(cases):
        for method in METHODS:
            own, other = case["methods"][method], base["methods"][method]
            differing = sum(a != b for a, b in zip(own["by_question"], other["by_question"], strict=True))
            cells = [percent(one["groups"]["both"]["values"][MAIN]) for one in (other, own)]
            change = _difference(np.array(own["by_question"]) - np.array(other["by_question"])).told()
            rows.append([_size(case), f"{base['variant']} → {case['variant']}", method, *cells, str(differing), change])
    columns = ["passages", "settings", "method", "R@5", "R@5 then", "questions that differ", "points"]
    return Rows(columns, rows)


def speed_table(line: Sequence[Stored]) -> Rows:
    """Seconds of building by stage and milliseconds a question, with the load meanwhile."""
    rows = []
    for case in line:
        stages = ", ".join(f"{name} {seconds:,.1f}" for name, seconds in case["build_s"].items() if seconds >= 1)
        ms = [_ms(case["methods"][method].get("ms")) for method in METHODS]
        where = case["machine"]
        load = f"{where['load_before']:.1f}–{where['load_after']:.1f}"
        rows.append([_size(case), stages, f"{case['build_cpu_s']:,.0f}", *ms, load])
    heads = [f"{method}, ms" for method in METHODS]
    return Rows(["passages", "seconds of stages", "s of processor", *heads, "load"], rows)


def _compared(cases: Mapping[str, Stored]) -> Iterator[tuple[Stored, Stored]]:
    """Cases with the one of the same size and order that they are held against: cells to exact, quantised to cells."""
    before = {"cells": "exact", "cells, quantised facts": "cells"}
    held = {(case["size"], case["order"], case["variant"]): case for case in cases.values()}
    for (size, order, variant), case in held.items():
        base = held.get((size, order, before.get(variant, "")))
        if base is not None:
            yield case, base


def _change(case: Stored, first: Stored, signs: Mapping[str, int]) -> Change:
    """Of a sum of methods' recalls, each with its sign: the change from the first case to this."""

    def sums(one: Stored) -> Doubles:
        terms = [sign * np.array(one["methods"][method]["by_question"]) for method, sign in signs.items()]
        total: Doubles = np.sum(terms, axis=0)
        return total

    return _difference(sums(case) - sums(first))


def _difference(values: Doubles) -> Change:
    means = bootstrap_means(values[:, None])[:, 0]
    low, high = np.round(np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]), 12)
    mean, low, high = (round(float(value), 6) + 0.0 for value in (values.mean(), low, high))
    return Change(mean, low, high)


def _lead(found: Stored) -> str:
    mean, low, high, verdict = found["against_dense"][MAIN]
    return told((mean, low, high, None, verdict))


def _ms(found: Stored | None) -> str:
    return f"{found['median']:.1f} ({found['cpu']:.1f})" if found else "–"


def _size(case: Stored) -> str:
    return f"{case['size']:,}"
