"""Tables of the stored results: figures in percent with intervals, signs of comparisons, directions, errors, cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from hippogpu.evaluate.pages import Rows, code, plain

RECALLS = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20")
MEASURES = (*RECALLS, "all_recall@5", "mrr", "ndcg@10")
SIGNS = {"better": "+", "tie": "·", "worse": "−"}
_LEXICAL = ("dense", "bm25")

Set = Mapping[str, Any]

# A difference that reaches no farther, as a fraction of the gold passages, is about none.
_NEAR = 0.03


def short(measure: str) -> str:
    """R@5 for recall@5, all@5 for all_recall@5."""
    return measure.replace("all_recall@", "all@").replace("recall@", "R@").replace("ndcg", "nDCG").replace("mrr", "MRR")


def percent(fraction: float, digits: int = 1, sign: str = "") -> str:
    """A stored fraction in percent, half rounded up on its decimal text: 0.2875 is 28.8. sign "+" shows either sign."""
    value = (100 * Decimal(repr(fraction))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{value:{sign}f}"


def figure(row: Mapping[str, Any], measure: str) -> str:
    """A mean in percent with its interval: 63.3 [55.6, 70.8]."""
    low, high = row["intervals"][measure]
    return f"{percent(row['values'][measure])} [{percent(low)}, {percent(high)}]"


def rows_of(found: Set) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The measured rows of a set in the recipe's order; those that the recipe has no longer stand at the end."""
    order = [name for name in found["order"] if name in found["rows"]]
    for name in [*order, *(name for name in found["rows"] if name not in order)]:
        yield name, found["rows"][name]


def all_rows(sets: Mapping[str, Set]) -> list[str]:
    """The names of all measured rows, in the order of the longest recipe and then of the others."""
    names: dict[str, None] = {}
    for found in sorted(sets.values(), key=lambda found: -len(found["order"])):
        names |= dict.fromkeys(name for name, _ in rows_of(found))
    order: list[str] = max((found["order"] for found in sets.values()), key=len, default=[])
    return [*(name for name in order if name in names), *(name for name in names if name not in order)]


def set_table(sets: Mapping[str, Set]) -> Rows:
    """What each set is."""
    rows = []
    for name, found in sets.items():
        use = "tuned on" if found["use"] == "train" else "**report**"
        counts = found["index"]["counts"]
        rows.append(
            [
                *(f"`{name}`", found["title"], use, f"{found['questions']:,}", f"{found['gold_pairs']:,}"),
                *(f"{found['passages']:,}", f"{counts['facts']:,}", found["records"]["by"], found["level"]),
            ]
        )
    return Rows(["set", "", "use", "questions", "gold", "passages", "facts", "records", "level"], rows)


def overview_table(sets: Mapping[str, Set], measure: str) -> Rows:
    """Every row on every set, one measure with its interval."""
    names = {name: found for name, found in sets.items() if not found["cases_set"]}
    rows = []
    for row in all_rows(names):
        cells = [figure(found["rows"][row], measure) if row in found["rows"] else "" for found in names.values()]
        rows.append([row, *cells])
    return Rows([short(measure), *names], rows)


def better_table(sets: Mapping[str, Set]) -> Rows:
    """Every row on every set against the better of dense and bm25, a sign each cut-off."""
    names = {name: found for name, found in sets.items() if all(one in found["rows"] for one in _LEXICAL)}
    rows = []
    for row in all_rows(names):
        cells = [better_signs(found, found["rows"][row]) if row in found["rows"] else "" for found in names.values()]
        if any(cells):
            rows.append([row, *cells])
    return Rows(["R@1, 2, 5, 10, 20", *names], rows)


def measure_table(found: Set) -> Rows:
    """All measures of a set's rows, with intervals, and questions a second."""
    rows = []
    for name, row in rows_of(found):
        fell = sum(row["fallbacks"].values())
        cells = [figure(row, measure) for measure in MEASURES if measure in row["values"]]
        rows.append([name, *cells, speed(row), str(fell) if fell else "", row["note"]])
    measures = [short(measure) for measure in MEASURES]
    return Rows(["", *measures, "queries/s", "fell back", ""], rows)


def comparison_table(found: Set) -> Rows:
    """Signs at R@1, 2, 5, 10, 20 against each baseline, and the difference at R@5 to the row it changes."""
    rows = []
    for name, row in rows_of(found):
        against = row["against"]
        if not against:
            continue
        than = row["than"] if row["than"] in against else "hippo2"
        difference = told(against[than]["recall@5"]) + f" to {than}" if than in against else ""
        cells = [signs(against.get(other)) for other in ("dense", "bm25", "hippo2")]
        rows.append([name, better_signs(found, row), *cells, difference])
    columns = ["", "better of dense and bm25", "dense", "bm25", "hippo2", "R@5, points"]
    return Rows(columns, rows)


def signs(differences: Mapping[str, Sequence[Any]] | None) -> str:
    """The verdict at each cut-off, one sign each."""
    return " ".join(SIGNS[differences[measure][4]] for measure in RECALLS) if differences else ""


def better_signs(found: Set, row: Mapping[str, Any]) -> str:
    """As signs, at each cut-off against the baseline that is higher there; "" for a row that is one of them."""
    lexical = [name for name in _LEXICAL if name in found["rows"]]
    if len(lexical) < 2 or any(name not in row["against"] for name in lexical):
        return ""
    marks = []
    for measure in RECALLS:
        best = max(lexical, key=lambda name: found["rows"][name]["values"][measure])
        marks.append(SIGNS[row["against"][best][measure][4]])
    return " ".join(marks)


def told(difference: Sequence[Any]) -> str:
    """A difference in points with its interval and what it means: +5.1 [-2.5, 12.9] tie."""
    mean, low, high, _, verdict = difference
    return f"{percent(mean, sign='+')} [{percent(low)}, {percent(high)}] {verdict}"


def speed(row: Mapping[str, Any]) -> str:
    """Questions a second: median, least and greatest; empty where nothing was timed."""
    rate = row.get("queries_per_s")
    return f"{rate['median']:,.0f} ({rate['least']:,.0f}–{rate['greatest']:,.0f})" if rate else ""


def direction_table(results: Mapping[str, Any]) -> Rows:
    """Each published direction on each set of its family: theirs, ours, and whether ours agrees.

    Extrapolated where the paper's figures are of another family than the set (`any`: of one development set).
    """
    rows = []
    for direction in results["published"].get("directions", ()):
        for name, found in results["sets"].items():
            published = direction["values"].get(found["family"]) or direction["values"].get("any")
            row = found["rows"].get(direction["row"])
            if published is None or row is None or direction["than"] not in row["against"]:
                continue
            ours = row["against"][direction["than"]]["recall@5"]
            change = published[1] - published[0]
            equal = ", about equal" if _about_equal(change) else ""
            cells = [f"{published[0]:.1f} → {published[1]:.1f} ({change:+.1f}{equal})", told(ours)]
            further = "" if found["family"] in direction["values"] else ", extrapolated"
            rows.append([direction["claim"], f"`{name}`", *cells, f"**{agreement(change, ours)}**{further}"])
    return Rows(["change", "set", "published, R@5", "ours, R@5, points", ""], rows)


def agreement(change: float, ours: Sequence[Any]) -> str:
    """confirmed or contradicted when our interval lies on one side of 0, undecided when it holds 0.

    A published change of less than a point claims no direction. Ours confirms that when its interval reaches no farther
    than three points to either side; it differs when it lies on one side of 0, and is undecided else.
    """
    if _about_equal(change):
        narrow = max(abs(ours[1]), abs(ours[2])) <= _NEAR
        return "differs" if ours[4] != "tie" else "confirmed as equal" if narrow else "undecided"
    if ours[4] == "tie":
        return "undecided"
    return "confirmed" if (change > 0) is (ours[4] == "better") else "contradicted"


def _about_equal(change: float) -> bool:
    # The figures have one decimal; 74.7 - 73.7 is a whole point, whatever floats make of it.
    return abs(round(change, 6)) < 1


def reference_table(results: Mapping[str, Any]) -> Rows:
    """The papers' own figures."""
    families = ("musique", "2wiki", "hotpotqa")
    rows = [
        [row["name"], row["from"], *(f"{row['values'][family]:.1f}" for family in families)]
        for row in results["published"].get("reference", ())
    ]
    return Rows(["published R@5", "from", "MuSiQue", "2Wiki", "HotpotQA"], rows)


def error_rows(found: Set) -> Rows | None:
    """Failures by class, one column a row; None where none were sorted."""
    errors = found.get("errors", {})
    if not errors:
        return None
    classes = list(next(iter(errors.values()))["classes"])
    rows = [[kind, *(str(one["classes"][kind]) for one in errors.values())] for kind in classes]
    rows.append(["**all failures**", *(f"{one['failed']} of {one['questions']}" for one in errors.values())])
    return Rows(["class", *errors], rows)


def speed_table(sets: Mapping[str, Set]) -> Rows:
    """Questions a second of the rows without a comma in their name, by set."""
    timed = {
        name: found for name, found in sets.items() if any("queries_per_s" in row for row in found["rows"].values())
    }
    main = [row for row in all_rows(timed) if "," not in row]
    rows = [
        [row, *(speed(found["rows"][row]) if row in found["rows"] else "" for found in timed.values())] for row in main
    ]
    return Rows(["queries/s", *(f"{name}, {found['passages']:,} passages" for name, found in timed.items())], rows)


def case_rows(case: Mapping[str, Any]) -> Rows:
    """The ranks of a question's wanted passages, one column a row of the recipe."""
    passages = case["passages"]
    methods = list(next(iter(passages.values()))["ranks"])
    rows = [
        [
            f"{plain(one['title'])} ({code(id_)})",
            *("–" if one["ranks"][m] is None else str(one["ranks"][m]) for m in methods),
        ]
        for id_, one in passages.items()
    ]
    return Rows(["wanted passage", *methods], rows)
