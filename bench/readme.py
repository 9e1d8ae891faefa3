"""The result tables of README, generated from the JSON of the benches: python -m bench readme."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.oracle.rawtext import ORACLE_RECALL
from bench.ppr.results import RESULTS, costs, read_results, slope
from bench.quality.results import RESULTS as QUALITY
from bench.quality.results import read_results as read_quality
from bench.quality.tables import percent
from bench.scale.page import COST as SCALE_COST
from bench.scale.page import QUALITY as SCALE_QUALITY
from bench.scale.page import stored as stored_scale
from bench.scale.quality_tables import main_line

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = r"(<!-- {0} table -->\n).*(<!-- /{0} table -->)"
_SETS = ("musique_dev", "2wiki", "musique_train", "hotpotqa_train")
_METHODS = ("dense", "bm25", "hippo2", "hippo")
_BUILDING = ("extract", "index", "diffuse")
_ASKED = ("hippo2 diffused", "hippo", "dense", "bm25")
_SOLVERS = {
    "igraph-prpack": "igraph PRPACK, what the authors' library calls",
    "scipy-power-32": "SciPy, 32 questions together",
    "torch-csr-32": "torch sparse CSR, 32 together",
    "cpu-power-32": "power, 32 together",
    "cpu-chebyshev-32": "chebyshev, 32 together",
    "cpu-diffused-1": "diffused and certified, alone",
    "cpu-diffused-32": "diffused and certified, 32 together",
}


def readme() -> None:
    """Write the tables of the results oracle, quality, ppr, scale and scale_quality into README.md."""
    path = ROOT / "README.md"
    text = with_table(path.read_text(encoding="utf-8"), stored_result())
    text = with_quality(text, read_quality(QUALITY))
    text = with_scale(text, stored_scale(SCALE_COST), stored_scale(SCALE_QUALITY))
    path.write_text(with_engine(text, read_results(RESULTS)), encoding="utf-8")


def stored_result() -> Any:
    """The committed result of python -m bench oracle."""
    return json.loads((ROOT / "bench" / "results" / "oracle.json").read_text(encoding="utf-8"))


def with_table(text: str, result: Mapping[str, Any]) -> str:
    """The page with what stands between its two marks replaced by the table of the result."""
    table = "\n".join([*_exactness(result), "", *_recall(result), "", *_times(result), ""])
    return _replaced(text, "oracle", table)


def with_quality(text: str, results: Mapping[str, Any]) -> str:
    """The page with the recall of the main methods on reported sets, and on those that were learned from."""
    names = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5")
    lines = ["| recall, percent | R@1 | R@2 | R@5 | R@10 | R@20 | all@5 |", "|---|---|---|---|---|---|---|"]
    for name in _SETS:
        found = results["sets"][name]
        records = "" if found["records"]["llm"] else ", read by spaCy"
        learned = "; weights learned from it too" if found["use"] == "train" else ""
        title = ", ".join(found["title"].split(", ")[:2])
        lines.append(f"| **{title}** ({found['questions']}{records}{learned}) | | | | | | |")
        for method in _METHODS:
            values = found["rows"][method]["values"]
            lines.append(f"| {method} | " + " | ".join(percent(values[one]) for one in names) + " |")
    return _replaced(text, "quality", "\n".join([*lines, ""]))


def with_engine(text: str, results: Mapping[str, Any]) -> str:
    """The page with the engine's table replaced by milliseconds a question at each size of synthetic graph."""
    found = costs(results)
    sizes = sorted({size for cost in found.values() for size in cost})
    rows = []
    for name, shown in _SOLVERS.items():
        cost = found.get(name, {})
        cells = " | ".join(_ms(cost[size]) if size in cost else "–" for size in sizes)
        exponent = slope(cost)
        rows.append(f"| {shown} | {cells} | {'–' if exponent is None else f'{exponent:.2f}'} |")
    head = "| ms a question, by passages | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent |"
    return _replaced(text, "engine", "\n".join([head, "|---" * (len(sizes) + 2) + "|", *rows, ""]))


def with_scale(text: str, cost: Mapping[str, Any], quality: Mapping[str, Any]) -> str:
    """The page with what an index of each size costs, and what it still finds."""
    return _replaced(text, "scale", "\n".join([*_cost_of_size(cost), "", *_found_at_size(quality), ""]))


def _cost_of_size(results: Mapping[str, Any]) -> list[str]:
    """Compact indexes of synthetic passages: time, memory, disk, and a question of hippo2 and hippo."""
    cases = [case for name, case in results["cost"].items() if "compact" in name]
    cases.sort(key=lambda case: case["passages"])
    rows: dict[str, list[str]] = {
        "extract (replayed records), index, diffuse, minutes": [_minutes(case) for case in cases],
        "the same, minutes of processor": [_minutes(case, "cpu_s") for case in cases],
        "most memory while building, GiB": [_most_memory(case) for case in cases],
        "on disk, GiB": [f"{case['bytes'] / 2**30:.2f}" for case in cases],
        **{f"{name}, alone / in 32, ms of processor": [_asked(case, name) for case in cases] for name in _ASKED},
    }
    head = "| passages, synthetic | " + " | ".join(f"{case['passages']:,}" for case in cases) + " |"
    return [head, "|---" * (len(cases) + 1) + "|", *(f"| {name} | {' | '.join(row)} |" for name, row in rows.items())]


def _minutes(case: Mapping[str, Any], clock: str = "wall_s") -> str:
    stages = [case["stages"].get(name) for name in _BUILDING]
    return f"{sum(stage[clock] for stage in stages) / 60:.1f}" if all(stages) else "–"


def _most_memory(case: Mapping[str, Any]) -> str:
    stages = [case["stages"].get(name) for name in _BUILDING]
    return f"{max(stage['anon_bytes'] for stage in stages) / 2**30:.1f}" if all(stages) else "–"


def _asked(case: Mapping[str, Any], name: str) -> str:
    said = case["questions"].get(name)
    return f"{_ms(said['single']['cpu'])} / {_ms(said['batched']['cpu'])}" if said else "–"


def _found_at_size(results: Mapping[str, Any]) -> list[str]:
    line = main_line(results["cases"])
    rows = []
    for method in _METHODS:
        values = [case["methods"][method]["groups"]["both"]["values"]["recall@5"] for case in line]
        rows.append(f"| {method} | " + " | ".join(map(percent, values)) + " |")
    head = "| R@5, percent, real passages | " + " | ".join(f"{case['size']:,}" for case in line) + " |"
    return [head, "|---" * (len(line) + 1) + "|", *rows]


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _replaced(text: str, name: str, table: str) -> str:
    return re.sub(_BLOCK.format(name), lambda found: found[1] + table + found[2], text, flags=re.DOTALL)


def _exactness(result: Mapping[str, Any]) -> list[str]:
    graph, ppr, raw = result["graph"], result["ppr"], result["rankings"]["oracle"]
    rows = [
        ("edges that differ, of " + f"{graph['edges']:,}", graph["missing"] + graph["surplus"]),
        ("largest difference of an edge weight", f"{graph['weight_difference']:.1e}"),
        ("largest difference of a PageRank mass, float64", f"{ppr['reference']['difference']:.1e}"),
        ("largest difference of a PageRank mass, float32", f"{ppr['cpu']['difference']:.1e}"),
        ("top-20 lists equal, same vectors and seeds", f"{ppr['cpu']['exact']} of 60"),
        ("top-20 sets equal from raw text, hippo2 / dense", f"{_sets(raw, 'hippo2')} / {_sets(raw, 'dense')} of 60"),
    ]
    return ["| against the authors' library | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _sets(methods: Mapping[str, Any], method: str) -> int:
    return int(methods[method]["top20_sets_equal"])


def _recall(result: Mapping[str, Any]) -> list[str]:
    rows = [(f"{name}, the authors' library", list(found)) for name, found in ORACLE_RECALL.items()]
    for profile, methods in result["rankings"].items():
        rows += [(f"{name}, profile {profile}", list(found["recall"].values())) for name, found in methods.items()]
    lines = [f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |" for name, values in rows]
    return ["| recall, percent | R@1 | R@2 | R@5 | R@10 | R@20 |", "|---|---|---|---|---|---|", *lines]


def _times(result: Mapping[str, Any]) -> list[str]:
    seconds, batch = result["index"]["oracle"]["seconds"], result["ms_a_question"]["oracle"]["hippo2"]["batch"]
    single = result["ms_a_question"]["oracle"]["hippo2"]["single"]
    machine = f"{result['machine']['cpu']}, {result['machine']['cores']} cores, {result['machine']['date']}"
    stages = ("encode", "facts", "seeds", "solve", "select")
    index_line = ", ".join(f"{name} {seconds[name]:.1f} s" for name in ("encode", "synonyms", "tables", "graph"))
    again = result["reindex"]["oracle"]["seconds"]["median"]
    return [
        f"On {machine} (other work was going on beside): indexing took {seconds['whole']:.0f} s",
        f"({index_line}), indexing again {again:.1f} s. A question took, in medians, "
        + _stages(batch, stages)
        + " of a batch of 60, and",
        _stages(single, stages) + " asked alone.",
    ]


def _stages(times: Mapping[str, Any], names: tuple[str, ...]) -> str:
    parts = ", ".join(f"{name} {times[name]['median']:.1f}" for name in names)
    return f"{times['whole']['median']:.1f} ms ({parts})"
