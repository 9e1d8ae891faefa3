"""The graph in other programs' forms has the nodes, edges and weights it has here."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from exchange_cases import rich_index, snapshot_of
from small_index import PASSAGES, index_of, open_index, stating

from hippogpu import Passage
from hippogpu.config import PROFILES
from hippogpu.corpus import read_edges
from hippogpu.errors import UsageError
from hippogpu.exchange import export_index, graph_edges
from hippogpu.openie import NoExtractor
from hippogpu.store import Snapshot

Weights = dict[tuple[int, int], float]


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_index(tmp_path_factory.mktemp("graph") / "rich.hippo")


def weights_of(snapshot: Snapshot) -> Weights:
    graph = snapshot.graph
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    pairs = zip(rows.tolist(), graph.indices.tolist(), graph.weights.tolist(), strict=True)
    return {(row, column): weight for row, column, weight in pairs if row < column}


@pytest.mark.parametrize("name", ["g.graphml", "g.graphml.gz"])
def test_networkx_reads_the_same_weights(rich: Path, tmp_path: Path, name: str) -> None:
    networkx = pytest.importorskip("networkx")
    export_index(rich, tmp_path / name)
    graph = networkx.read_graphml(tmp_path / name)
    found = {(int(a[1:]), int(b[1:])): data["weight"] for a, b, data in graph.edges(data=True)}
    assert {(min(pair), max(pair)): weight for pair, weight in found.items()} == weights_of(snapshot_of(rich))
    assert graph.number_of_nodes() == snapshot_of(rich).graph.nodes


def test_networkx_reads_every_name_as_it_is(rich: Path, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    export_index(rich, tmp_path / "g.graphml")
    nodes = networkx.read_graphml(tmp_path / "g.graphml").nodes
    snapshot = snapshot_of(rich)
    names = [snapshot.passages.passage(row).id for row in range(len(snapshot.passages))]
    assert [nodes[f"n{number}"]["name"] for number in range(len(nodes))] == [*names, *snapshot.tables.phrases]
    assert nodes["n5"]["label"] == "<&\"'> \u2028 title"
    assert {nodes["n0"]["kind"], nodes[f"n{len(nodes) - 1}"]["kind"]} == {"passage", "phrase"}


def test_igraph_reads_the_same_weights(rich: Path, tmp_path: Path) -> None:
    igraph = pytest.importorskip("igraph")
    export_index(rich, tmp_path / "g.graphml")
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "g.graphml"))
    found = dict(zip((tuple(sorted(edge.tuple)) for edge in graph.es), graph.es["weight"], strict=True))
    assert found == weights_of(snapshot_of(rich))


def test_every_edge_says_what_it_comes_of(rich: Path) -> None:
    snapshot = snapshot_of(rich)
    edges = [edge for block in graph_edges.graph_edges(snapshot) for edge in block]
    kinds = {kind for edge in edges for kind in edge.kind.split(";")}
    assert all(edge.kind for edge in edges)
    assert kinds == {"mention", "fact", "user:link", "user:tag", "user:see & also"}


def test_a_synonym_and_a_fact_between_two_phrases_are_both_named(root: Path) -> None:
    index_of(root, [stating("a", "a long name of a thing|is like|a long name of a things")])
    kinds = [edge.kind for block in graph_edges.graph_edges(snapshot_of(root)) for edge in block]
    assert "fact;synonym" in kinds


def test_blocks_of_any_size_give_the_same_edges(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [edge for block in graph_edges.graph_edges(snapshot_of(rich)) for edge in block]
    for size in (1, 7):
        monkeypatch.setattr(graph_edges, "BLOCK_EDGES", size)
        assert [edge for block in graph_edges.graph_edges(snapshot_of(rich)) for edge in block] == whole


def test_what_xml_cannot_hold_is_replaced_and_told(root: Path, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    index_of(root, [Passage("p\x00\x1f", "a\ttab\r\nand \ufffe", "a|b|c"), Passage("fine", "", "a|b|d")])
    report = export_index(root, tmp_path / "g.graphml")
    assert [item.where.split()[0] for item in report.replaced] == ["id", "title"]
    assert "U+0000, U+001F" in report.replaced[0].reason
    node = networkx.read_graphml(tmp_path / "g.graphml").nodes["n0"]
    assert (node["name"], node["label"]) == ("p\ufffd\ufffd", "a\ttab\r\nand \ufffd")


def test_the_same_graph_packs_to_the_same_bytes(rich: Path, tmp_path: Path) -> None:
    for name in ("a.tsv.gz", "b.tsv.gz"):
        export_index(rich, tmp_path / name)
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


@pytest.mark.parametrize("name", ["e.tsv", "e.csv", "e.tsv.gz", "e.csv.gz"])
def test_a_list_of_edges_makes_the_graph_again(rich: Path, tmp_path: Path, name: str) -> None:
    export_index(rich, tmp_path / name)
    read = read_edges(tmp_path / name)
    snapshot = snapshot_of(rich)
    with open_index(tmp_path / "again.hippo", extractor=NoExtractor()) as index:  # type: ignore[arg-type]
        index.add(snapshot.passages.named(number) for number in range(len(snapshot.passages.ids)))
        assert index.add_edges(read.edges).refused == read.refusals == ()
        index.commit()
    again = snapshot_of(tmp_path / "again.hippo")
    assert list(again.tables.phrases) == list(snapshot.tables.phrases)
    assert weights_of(again) == weights_of(snapshot)


def test_a_text_with_a_tab_needs_csv(root: Path, tmp_path: Path) -> None:
    index_of(root, [Passage('i\t"d\n', "", "a|b|c")])
    with pytest.raises(UsageError, match=r"tab or a line break.*\.csv"):
        export_index(root, tmp_path / "e.tsv")
    assert not list(tmp_path.glob("e.*"))
    export_index(root, tmp_path / "e.csv.gz")
    with gzip.open(tmp_path / "e.csv.gz", "rt", newline="") as file:
        assert next(csv.DictReader(file))["passage"] == 'i\t"d\n'


def test_edges_at_the_empty_phrase_are_refused_and_counted(root: Path, tmp_path: Path) -> None:
    index_of(root, [stating("a", "—|is|something")], config=PROFILES["oracle"])
    report = export_index(root, tmp_path / "e.tsv")
    assert (report.rows, len(report.refused)) == ({"edges": 1}, 2)
    assert "empty text" in report.refused[0].reason


def test_an_index_without_edges_has_an_empty_list(root: Path, tmp_path: Path) -> None:
    index_of(root, [PASSAGES[3]])
    assert export_index(root, tmp_path / "e.tsv").rows == {"edges": 0}
    assert export_index(root, tmp_path / "g.graphml").rows == {"nodes": 1, "edges": 0}
