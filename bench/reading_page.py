"""The tables of docs/answer.md, generated from the stored result: python -m bench reading-page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.ideal_thoughts import CUTOFFS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "answer.md"
_END = "<!-- end -->"
RESULT = ROOT / "bench" / "results" / "reading.json"


def reading_page() -> None:
    """Write the tables of the stored result into docs/answer.md."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), stored_result()), encoding="utf-8")


def stored_result() -> dict[str, Any]:
    """The committed result of bench reading."""
    value: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return value


def with_tables(page: str, result: Mapping[str, Any]) -> str:
    """The page with what stands between the marks replaced by the tables of the result."""
    for name, lines in (("ideal thoughts", ideal(result)), ("reading", tasks(result))):
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(_END)
        if not mark or not end:
            raise ValueError(f"The page has no place for '{name}'.")
        page = "".join([before, mark, "\n".join([*lines, ""]), end, after])
    return page


def ideal(result: Mapping[str, Any]) -> list[str]:
    """Recall of one search, and of two and four by each rule."""
    rows = []
    for found in result["ideal_thoughts"]:
        for name, recall in found["recall"].items():
            if name == "one search" and found["steps"] > 2:
                continue
            searches = "1" if name == "one search" else f"up to {found['steps']}"
            rule = "" if name == "one search" else name
            rows.append([found["method"], searches, rule, *(f"{value:.1f}" for value in recall)])
    return _table(["retriever", "searches", "rule", *(f"R@{k}" for k in CUTOFFS)], rows)


def tasks(result: Mapping[str, Any]) -> list[str]:
    """What each task took, and what came of it."""
    machine, found = result["machine"], result["tasks"]
    head = ["", "replies", "tokens in (of them from the prefix cache)", "tokens out", "seconds a question", "failed"]
    rows = [
        [
            name,
            f"{row['replies']:,}",
            f"{row['tokens_in']:,} ({row['tokens_cached']:,})",
            f"{row['tokens_out']:,}",
            f"{row['seconds_a_question']:.1f}",
            f"{row['failed']} of {row['asked']}",
        ]
        for name, row in found.items()
    ]
    judged, named, single, ircot = (found[name] for name in ("filter", "entities", "one search", "ircot"))
    stops = ", ".join(f"{stop} {count}" for stop, count in ircot["stops"].items())
    return [
        f"{result['questions']} questions of MuSiQue-train, {result['model']}, replies of {result['max_tokens']} "
        f"tokens at first; {machine['cpu']}, {machine['cores']} cores, load before {machine['load_before']}, "
        f"{machine['date']}.",
        "",
        *_table(head, rows),
        "",
        f"The filter kept {judged['kept_share']:.0%} of the facts and named {judged['unknown']} that were no "
        f"candidate. {named['names_in_the_question']} of {named['names']} entities stand in their question. "
        f"After one search: {_answers(single)}. After IRCoT (stops: {stops}): {_answers(ircot)}.",
    ]


def _answers(row: Mapping[str, Any]) -> str:
    """Answers, citations, recall and times of a question."""
    ms = row["ms_a_question"]
    think = f", its thoughts {ms['think'] / 1000:.1f} s" if "think" in ms else ""
    return (
        f"{row['cited']} passages cited ({row['strangers']} that were not shown), {row['unanswerable']} questions said "
        f"to have no answer, EM {row['em']:.2f}, F1 {row['f1']:.2f}, recall@5 {row['recall@5']:.2f}; a question's "
        f"searches took {_search(row):.0f} ms{think}, its answer {ms['read'] / 1000:.1f} s"
    )


def _search(row: Mapping[str, Any]) -> float:
    return float(sum(ms for stage, ms in row["ms_a_question"].items() if stage not in ("think", "read")))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head), *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
