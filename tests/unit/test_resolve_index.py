"""An index that is built with names: the same whatever its history, whole, exported and imported, explained."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from small_index import hashes, index_of, open_index, stating

from hippogpu import IndexConfig, Searcher
from hippogpu.errors import ConfigError
from hippogpu.exchange import export_index, import_parquet
from hippogpu.exchange.graph_edges import graph_edges
from hippogpu.index import verify_index
from hippogpu.index.verifying import _graph
from hippogpu.resolve import KINDS
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.store.manifest import from_json, to_json

NAMES = IndexConfig(resolve="names", synonym_threshold=1.0)
PASSAGES = [
    stating("p0", "j r r tolkien|wrote|the hobbit"),
    stating("p1", "john ronald reuel tolkien|was born on|3 january 1892;tolkien|lived in|oxford"),
    stating("p2", "tolkien|was born on|january 3 1892;hobbit|is|a book"),
    stating("p3", "alien 1979 film|stars|sigourney weaver;alien|is|a film", title="alien 1979 film"),
    stating("p4", "john robert reuel tolkien|is|somebody else"),
    stating("p5", "nasa|abbreviates|national aeronautics and space administration;nasa|also known as|the agency"),
]


def built(root: Path) -> Path:
    index_of(root, PASSAGES[:4] + PASSAGES[5:], config=NAMES)
    return root


def test_any_history_leaves_the_arrays_of_one_build(tmp_path: Path) -> None:
    once = hashes(built(tmp_path / "once"))
    with open_index(tmp_path / "lived", config=NAMES) as index:
        for parts in pairwise([0, 1, 3, 5, 6]):
            index.add(PASSAGES[slice(*parts)])
            index.commit()
        index.delete(["p4"])
        index.commit()
    assert hashes(tmp_path / "lived") == once


def test_a_name_that_becomes_ambiguous_loses_its_edge_and_gets_it_back(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    counts = []
    for change in (lambda index: index.add([PASSAGES[4]]), lambda index: index.delete(["p4"])):
        counts.append(current_manifest(root).counts["names_initials"])
        with open_index(root) as index:
            change(index)
            index.commit()
    assert [*counts, current_manifest(root).counts["names_initials"]] == [1, 0, 1]


def test_the_manifest_counts_names_by_evidence(tmp_path: Path) -> None:
    counts = current_manifest(built(tmp_path / "index")).counts
    assert {kind: counts[f"names_{kind}"] for kind in KINDS if counts[f"names_{kind}"]} == {
        "initials": 1,
        "date": 1,
        "acronym": 1,
        "surname": 1,
        "alias": 1,
    }


def test_full_verification_owes_the_names_too(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    assert verify_index(root, full=True) == []
    without = index_of(tmp_path / "without", PASSAGES, config=replace(NAMES, resolve="none"))
    assert not any(name.startswith("names_") for name in without.counts)


def test_an_index_that_says_otherwise_than_it_was_built_is_found(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    manifest = current_manifest(root)
    lying = load_snapshot(root, replace(manifest, config=replace(manifest.config, resolve="none")))
    assert [line.split(":")[0] for line in _graph(lying)] == ["graph_indptr", "graph_indices", "graph_weights"]


def test_an_export_comes_back_with_its_names(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    export_index(root, tmp_path / "export", form="parquet")
    import_parquet(tmp_path / "back", tmp_path / "export")
    assert hashes(tmp_path / "back") == hashes(root)


def test_an_edge_of_names_has_its_kind_in_the_exported_graph(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    snapshot = load_snapshot(root, current_manifest(root))
    kinds = [edge.kind for block in graph_edges(snapshot) for edge in block]
    assert (kinds.count("name"), kinds.count("fact;name"), kinds.count("")) == (3, 2, 0)


def test_an_edge_that_only_names_make_is_there_under_the_setting_alone(tmp_path: Path) -> None:
    parts, edges = [stating("a", "4 july 1776|saw|a declaration"), stating("b", "july 4 1776|saw|a parade")], []
    for rule in ("none", "names"):
        config = IndexConfig(resolve=rule, synonym_threshold=1.0)  # type: ignore[arg-type]
        edges.append(index_of(tmp_path / rule, parts, config=config).counts["edges"])
    assert edges == [6, 7]


def test_the_setting_is_fixed_for_the_life_of_an_index(tmp_path: Path) -> None:
    root = built(tmp_path / "index")
    with pytest.raises(ConfigError, match="resolve"):
        open_index(root, config=replace(NAMES, resolve="none"))


def test_a_manifest_without_the_setting_means_none(tmp_path: Path) -> None:
    index_of(tmp_path / "index", PASSAGES)
    manifest = current_manifest(tmp_path / "index")
    value = json.loads(to_json(manifest))
    del value["config"]["resolve"]
    assert from_json(json.dumps(value).encode(), Path("m")) == manifest


def test_a_searcher_ranks_and_explains_over_names(tmp_path: Path) -> None:
    searcher = Searcher.open(built(tmp_path / "index"))
    rankings = searcher.rank(["who wrote the hobbit?"], k=3)
    steps = {step.kind for one in searcher.explain(rankings, k=3)[0] for path in one.paths for step in path.steps}
    assert "name" in steps
