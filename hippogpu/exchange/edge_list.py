"""The graph as a list of edges, TSV or CSV, in the columns that `index --edges` reads."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hippogpu.errors import UsageError
from hippogpu.exchange.graph_edges import GraphEdge, graph_edges
from hippogpu.exchange.packing import text_file
from hippogpu.exchange.values import OnProgress, Written
from hippogpu.store import Snapshot
from hippogpu.types import Refusal

COLUMNS = ("passage", "other_passage", "phrase", "other_phrase", "kind", "weight")
_BREAKS = "\t\n\r"


def write_edge_list(snapshot: Snapshot, path: Path, on_progress: OnProgress) -> Written:
    """One row an edge of the graph: two ends (first ids of passages, texts of phrases), its kinds, its weight.

    An edge at a phrase without a letter or number is refused: a row could not name its end. UsageError when a text
    cannot stand in a TSV file.
    """
    tabs = Path(path.name.lower().removesuffix(".gz")).suffix != ".csv"
    refused: list[Refusal] = []
    done, edges = 0, snapshot.graph.nonzeros // 2
    with text_file(path) as out:
        put: Callable[[Sequence[object]], object]
        put = _tab_separated(out.write) if tabs else csv.writer(out, lineterminator="\n").writerow
        put(COLUMNS)
        for block in graph_edges(snapshot):
            for row in _rows(snapshot, block, refused):
                put(row)
            done += len(block)
            on_progress("edges", done, edges)
    return Written({"edges": edges - len(refused)}, refused=tuple(refused))


def _rows(snapshot: Snapshot, block: list[GraphEdge], refused: list[Refusal]) -> Iterator[Sequence[object]]:
    passages, phrases, first = snapshot.passages, snapshot.tables.phrases, snapshot.passages.first
    count = len(passages)
    for source, target, weight, kind in block:
        ids = [passages.ids[int(first[end])] for end in (source, target) if end < count]
        texts = [phrases[end - count] for end in (source, target) if end >= count]
        if not all((*ids, *texts)):
            refused.append(Refusal(f"edge {source} {target}", "one of its phrases is the empty text"))
            continue
        yield (*_padded(ids), *_padded(texts), kind, repr(weight))


def _padded(ends: list[str]) -> tuple[str, str]:
    first, second = (*ends, "", "")[:2]
    return first, second


def _tab_separated(write: Callable[[str], object]) -> Callable[[Sequence[object]], object]:
    def put(row: Sequence[object]) -> None:
        cells = [str(cell) for cell in row]
        broken = next((cell for cell in cells if any(character in cell for character in _BREAKS)), None)
        if broken is not None:
            raise UsageError(
                f"The text {broken!r} holds a tab or a line break, which TSV cannot hold. Write a .csv instead."
            )
        write("\t".join(cells) + "\n")

    return put
