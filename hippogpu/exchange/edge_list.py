"""The graph as a list of edges, TSV or CSV, in the columns that `index --edges` reads."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hippogpu.errors import UsageError
from hippogpu.exchange.graph_edges import GraphEdge, graph_edges
from hippogpu.exchange.packing import text_file
from hippogpu.exchange.values import OnProgress, Written
from hippogpu.store import Snapshot
from hippogpu.types import Refusal

COLUMNS = ("passage", "other_passage", "phrase", "other_phrase", "kind", "weight")
HEADS = ("\t".join(COLUMNS), ",".join(COLUMNS))
"""How such a file begins."""
_BREAK = re.compile("[\t\n\r]")

Row = tuple[str, str, str, str, str, str]


def write_edge_list(snapshot: Snapshot, path: Path, on_progress: OnProgress) -> Written:
    """One row an edge of the graph: two ends (first ids of passages, texts of phrases), its kinds, its weight.

    An edge at a phrase without a letter or number is refused: a row could not name its end. UsageError when a text
    cannot stand in a TSV file.
    """
    tabs = Path(path.name.lower().removesuffix(".gz")).suffix != ".csv"
    if tabs:
        _check_breaks(snapshot)
    refused: list[Refusal] = []
    done, edges = 0, snapshot.graph.nonzeros // 2
    with text_file(path) as out:
        put: Callable[[Iterator[Row]], object]
        put = _tab_separated(out.write) if tabs else csv.writer(out, lineterminator="\n").writerows
        put(iter([COLUMNS]))
        for block in graph_edges(snapshot):
            put(_rows(snapshot, block, refused))
            done += len(block)
            on_progress("edges", done, edges)
    return Written({"edges": edges - len(refused)}, refused=tuple(refused))


def _rows(snapshot: Snapshot, block: list[GraphEdge], refused: list[Refusal]) -> Iterator[Row]:
    ids, phrases, first, count = (
        snapshot.passages.ids,
        snapshot.tables.phrases,
        snapshot.passages.first,
        len(snapshot.passages),
    )
    for source, target, weight, kind in block:
        if target < count:
            yield ids[int(first[source])], ids[int(first[target])], "", "", kind, repr(weight)
            continue
        one, other = "" if source < count else phrases[source - count], phrases[target - count]
        if not other or (not one and source >= count):
            refused.append(Refusal(f"edge {source} {target}", "one of its phrases is the empty text"))
        elif source < count:
            yield ids[int(first[source])], "", other, "", kind, repr(weight)
        else:
            yield "", "", one, other, kind, repr(weight)


def _tab_separated(write: Callable[[str], object]) -> Callable[[Iterator[Row]], object]:
    def put(rows: Iterator[Row]) -> None:
        for row in rows:
            write("\t".join(row) + "\n")

    return put


def _check_breaks(snapshot: Snapshot) -> None:
    """UsageError when the name of a node or a kind holds what separates the cells of a TSV file."""
    passages = snapshot.passages
    texts: Sequence[Iterator[str]] = (
        (passages.ids[int(number)] for number in passages.first),
        iter(snapshot.tables.phrases),
        (edge.kind for edge in snapshot.user_edges),
    )
    broken = next((text for some in texts for text in some if _BREAK.search(text)), None)
    if broken is not None:
        raise UsageError(
            f"The text {broken!r} holds a tab or a line break, which TSV cannot hold. Write a .csv instead."
        )
