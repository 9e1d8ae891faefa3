"""A tiny set of questions and its recipe, for tests of the bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PASSAGES = (
    {"_id": "p1", "title": "Erik Hort", "text": "Erik Hort was born in Montebello.", "group": "people"},
    {"_id": "p2", "title": "Montebello", "text": "Montebello is a part of Rockland County.", "group": "people"},
    {"_id": "p3", "title": "Steam", "text": "The engine ran on steam.", "group": "things"},
    {"_id": "p4", "title": "Charles Babbage", "text": "Charles Babbage built the engine.", "group": "things"},
    {"_id": "p5", "title": "Cats", "text": "Cats sleep all day.", "group": "things"},
    {"_id": "p6", "title": "Dogs", "text": "Dogs bark at night.", "group": "things"},
    {"_id": "p7", "title": "Rockland County", "text": "It lies in New York.", "group": "people"},
    {"_id": "p8", "title": "Weather", "text": "Rain falls in spring.", "group": "people"},
)
TRIPLES = {
    "p1": [["Erik Hort", "born in", "Montebello"]],
    "p2": [["Montebello", "part of", "Rockland County"]],
    "p3": [["engine", "ran on", "steam"]],
    "p4": [["Charles Babbage", "built", "engine"]],
    "p7": [["Rockland County", "lies in", "New York"]],
}
QUERIES = (
    {
        "_id": "q1",
        "question": "In which county was Erik Hort born?",
        "answer": "Rockland",
        "supporting_ids": ["p1", "p2"],
    },
    {"_id": "q2", "question": "What did Charles Babbage's engine run on?", "supporting_ids": ["p3", "p4"]},
    {"_id": "q3", "question": "When do dogs bark?", "supporting_ids": ["p6"]},
)
ROWS = (
    {"name": "dense", "method": "dense", "group": "Baselines"},
    {"name": "bm25", "method": "bm25", "group": "Baselines"},
    {"name": "hippo2", "method": "hippo2", "note": "as published"},
    {"name": "hippo2, far", "method": "hippo2", "settings": {"damping": 0.8}, "than": "hippo2"},
    {"name": "hippo2, llm", "method": "hippo2", "settings": {"filter": "llm"}},
)
RECIPE: dict[str, Any] = {
    **{"name": "tiny", "title": "A tiny set", "use": "report", "data": "tiny", "index": "tiny", "family": "musique"},
    **{"records": {"file": "openie.jsonl"}, "records_by": "hand", "llm_records": False, "encoder": "hashing:64"},
}


def write_data(folder: Path, *, grouped: bool = False) -> Path:
    """The folder of --data."""
    tiny = folder / "tiny"
    tiny.mkdir(parents=True)
    records = [{"_id": row["_id"], "entities": [], "triples": TRIPLES.get(row["_id"], [])} for row in PASSAGES]
    groups = {"q1": "people", "q2": "things", "q3": "things"} if grouped else {}
    queries = [{**row, "group": groups.get(str(row["_id"]))} for row in QUERIES]
    for name, rows in (("corpus", PASSAGES), ("openie", records), ("queries", queries)):
        (tiny / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def write_recipe(folder: Path, *, rows: Any = ROWS, **changed: Any) -> Path:
    """A recipe file. JSON is YAML."""
    path = folder / "tiny.yaml"
    path.write_text(json.dumps({**RECIPE, "rows": list(rows) if not isinstance(rows, str) else rows, **changed}))
    return path
