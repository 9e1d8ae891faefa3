"""The graph as GraphML, written in a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from hippogpu.exchange.graph_edges import graph_edges
from hippogpu.exchange.packing import text_file
from hippogpu.exchange.values import OnProgress, Written
from hippogpu.store import Snapshot
from hippogpu.types import Refusal

# Characters that no XML 1.0 file can hold, escaped or not.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# A parser would read a carriage return as a line break, and a tab in an attribute as a space.
_ENTITIES = {"\r": "&#13;"}
_REPLACEMENT = "\ufffd"
_BLOCK_NODES = 8192

XML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
<key id="kind" for="node" attr.name="kind" attr.type="string"/>
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="weight" for="edge" attr.name="weight" attr.type="double"/>
<key id="edgekind" for="edge" attr.name="kind" attr.type="string"/>
<graph id="hippogpu" edgedefault="undirected">
"""
_TAIL = "</graph>\n</graphml>\n"


def write_graphml(snapshot: Snapshot, path: Path, on_progress: OnProgress) -> Written:
    """Nodes n0…: passages (name: the first id, label: the title, or the id), then phrases (both: the text).

    Weights are written so that they are read as the same numbers. Characters that XML cannot hold become U+FFFD, and
    each text they stood in is reported.
    """
    fit = _Fit()
    nodes, edges, done = snapshot.graph.nodes, snapshot.graph.nonzeros // 2, 0
    with text_file(path) as out:
        out.write(XML_HEAD)
        for number, line in enumerate(_nodes(snapshot, fit), start=1):
            out.write(line)
            if number % _BLOCK_NODES == 0 or number == nodes:
                on_progress("nodes", number, nodes)
        for block in graph_edges(snapshot):
            for edge in block:
                kind = fit(edge.kind, f"kind of the edge n{edge.source} n{edge.target}")
                out.write(
                    f'<edge source="n{edge.source}" target="n{edge.target}"><data key="weight">{edge.weight!r}</data>'
                    f'<data key="edgekind">{kind}</data></edge>\n'
                )
            done += len(block)
            on_progress("edges", done, edges)
        out.write(_TAIL)
    return Written({"nodes": nodes, "edges": edges}, replaced=tuple(fit.replaced))


class _Fit:
    """Texts as XML holds them; those in which a character had to be replaced are listed."""

    def __init__(self) -> None:
        self.replaced: list[Refusal] = []

    def __call__(self, text: str, where: str) -> str:
        found = _UNFIT.findall(text)
        if found:
            names = ", ".join(sorted({f"U+{ord(character):04X}" for character in found}))
            self.replaced.append(Refusal(where, f"XML cannot hold {names}; U+FFFD stands there instead"))
            text = _UNFIT.sub(_REPLACEMENT, text)
        return escape(text, _ENTITIES)


def _nodes(snapshot: Snapshot, fit: _Fit) -> Iterator[str]:
    passages = snapshot.passages
    for row in range(len(passages)):
        number = int(passages.first[row])
        id_, title = passages.ids[number], passages.titles[number]
        name = fit(id_, f"id of passage {id_!r}")
        label = fit(title, f"title of passage {id_!r}") if title else name
        yield _node(row, "passage", name, label)
    for number, phrase in enumerate(snapshot.tables.phrases):
        text = fit(phrase, f"phrase {phrase!r}")
        yield _node(len(passages) + number, "phrase", text, text)


def _node(number: int, kind: str, name: str, label: str) -> str:
    data = f'<data key="kind">{kind}</data><data key="name">{name}</data><data key="label">{label}</data>'
    return f'<node id="n{number}">{data}</node>\n'
