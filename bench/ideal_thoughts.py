"""IRCoT when every thought is right: the gold hops of MuSiQue in the place of a model's thoughts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hippogpu.config import SearchConfig
from hippogpu.corpus import Query
from hippogpu.llm import Llm, Request
from hippogpu.reading import retrieve
from hippogpu.reading.merging import MergeRule
from hippogpu.searcher import Searcher
from hippogpu.testing.engines import ScriptedEngine
from hippogpu.testing.llm_questions import question_of
from hippogpu.types import Ranking

CUTOFFS = (1, 2, 5, 10, 20)
RULES: tuple[MergeRule, ...] = ("rank", "min-max")
_THOUGHT = re.compile(r"^\d+\. ", re.MULTILINE)


def ideal_thoughts(searcher: Searcher, path: Path, queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Recall of one search and of IRCoT whose thoughts are the gold hops, by method, steps, rule; [] without them."""
    hops = _hops(path)
    if not all(hops.get(_line(query.text)) for query in queries):
        return []

    def think(request: Request) -> str:
        text = request.messages[-1].content
        thoughts = hops[question_of(text)]
        before = len(_THOUGHT.findall(text.partition("Thoughts so far:")[2]))
        return json.dumps({"thought": thoughts[min(before, len(thoughts) - 1)], "answer": ""})

    found = []
    for method in ("hippo2", "dense"):
        config, texts = SearchConfig(method=method), [query.text for query in queries]
        single = {"one search": recalls(searcher.rank(texts, k=20, config=config), queries)}
        for steps in (2, 4):
            llm = Llm(ScriptedEngine(think, in_flight=64))
            merged = {}
            for rule in RULES:
                retrieved = retrieve(searcher, llm, texts, steps=steps, config=config, rule=rule)
                merged[rule] = recalls([one.ranking for one in retrieved], queries)
            found.append({"method": method, "steps": steps, "recall": single | merged})
    return found


def recalls(rankings: Sequence[Ranking], queries: Sequence[Query]) -> list[float]:
    """Recall at each cut-off, in percent."""
    return [round(100 * recall(rankings, queries, k), 1) for k in CUTOFFS]


def recall(rankings: Sequence[Ranking], queries: Sequence[Query], k: int) -> float:
    """Mean share of a question's gold passages among the first k, in [0, 1]."""
    shares = [
        len({hit.passage.id for hit in ranking.hits[:k]} & set(query.supporting)) / len(query.supporting)
        for ranking, query in zip(rankings, queries, strict=True)
        if query.supporting
    ]
    return sum(shares) / max(len(shares), 1)


def _hops(path: Path) -> dict[str, list[str]]:
    """For each question its hops as statements, each with the answers of the hops before in their places."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answers: dict[str, str] = {}
        thoughts = []
        for number, hop in enumerate(row.get("hops", ()), start=1):
            asked = _filled(hop["question"], answers)
            answers[str(number)] = hop["answer"]
            thoughts.append(f"{asked} {hop['answer']}.")
        found[_line(row["question"])] = thoughts
    return found


def _filled(hop: str, answers: Mapping[str, str]) -> str:
    """The hop's question with the answers of earlier hops for their numbers."""
    return re.sub(r"#(\d)", lambda match: answers.get(match[1], match[0]), hop)


def _line(text: str) -> str:
    return " ".join(text.split())
