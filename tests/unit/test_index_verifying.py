"""What files of an index owe each other is checked, though every checksum is right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from small_index import hashes, index_of, open_index, stating

from hippogpu import Passage, diffuse_index, export_index
from hippogpu.config import PROFILES
from hippogpu.errors import IndexDamagedError
from hippogpu.index import verify_index
from hippogpu.store import current_manifest, files_folder, logs_folder, publish, verify
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.types import UserEdge


def republished(root: Path, files: dict[str, Entry], counts: dict[str, int] | None = None) -> None:
    """A further generation with some files replaced, each with its right checksum."""
    manifest = current_manifest(root)
    made = replace(manifest, generation=manifest.generation + 1, files={**manifest.files, **files})
    publish(root, replace(made, counts={**manifest.counts, **(counts or {})}))


def array(root: Path, role: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Replaces an array by what the change makes of it."""
    folder, entry = files_folder(root), current_manifest(root).files[role]
    republished(root, {role: write_array(folder, role, change(np.load(folder / entry.file)))})


def table(root: Path, role: str, change: Callable[[pa.Table], pa.Table]) -> None:
    folder, entry = files_folder(root), current_manifest(root).files[role]
    with pa.ipc.open_file(folder / entry.file) as file:
        columns = file.read_all()
    republished(root, {role: write_table(folder, role, change(columns).combine_chunks())})


def rows(*numbers: int) -> Callable[[pa.Table], pa.Table]:
    return lambda columns: columns.take(list(numbers))


def first_text(column: str, text: str) -> Callable[[pa.Table], pa.Table]:
    """A change of the first text of a column."""

    def change(columns: pa.Table) -> pa.Table:
        texts = pa.array([text, *columns[column].to_pylist()[1:]], pa.large_string())
        return columns.set_column(columns.schema.get_field_index(column), column, texts)

    return change


@pytest.fixture
def edged(root: Path) -> Path:
    """An index with user edges."""
    with open_index(root) as index:
        index.add([stating("a", "x y|knows|z"), stating("b", "z|is|w"), stating("c", "w|is|w")])
        index.add_edges([UserEdge(("a", "b")), UserEdge(("c",), ("new phrase",))])
        index.commit()
    return root


BROKEN = (
    (array, "mentions", lambda old: old[::-1], "mentions: they are not"),
    (array, "graph_weights", lambda old: old * 2, "graph_weights: it is not what"),
    (array, "statements", lambda old: old * 0, "is stated by no passage"),
    (array, "synonym_weight", lambda old: old + 1, "synonyms: one is its own, or its cosine"),
    (array, "edge_weight", lambda old: old * 2, "user edges: the nodes"),
    (array, "phrase_vectors", lambda old: old * 2, "phrase_vectors: row 0 is no unit vector"),
    (array, "graph_indices", lambda old: old[::-1], "Columns must ascend"),
    (table, "facts", rows(2, 1, 0), "facts: they do not ascend"),
    (table, "phrases", first_text("text", "zzz"), "phrases: they do not ascend"),
    (table, "ids", first_text("id", "b"), "ids: one comes twice"),
    (table, "ids", first_text("meta", "[]"), "meta of passage 'a'"),
    (table, "ids", first_text("title", "Another"), "passage of the id 'a' does not begin with its title"),
    (table, "passages", first_text("whole", "z|is|w"), "passages: a text comes twice"),
    (table, "edges", first_text("passage", "gone"), "stored user edge 'link'"),
)


@pytest.mark.parametrize(("kind", "role", "change", "told"), BROKEN)
def test_a_broken_promise_is_told_under_right_checksums(
    edged: Path, kind: Callable[..., None], role: str, change: Callable[..., object], told: str
) -> None:
    if role.startswith("synonym"):
        array(edged, "synonym_source", lambda old: np.array([0], np.int32))
        array(edged, "synonym_target", lambda old: np.array([1], np.int32))
        array(edged, "synonym_weight", lambda old: np.array([0.9], np.float32))
    kind(edged, role, change)
    assert any(told in line for line in verify_index(edged, full=True)), verify_index(edged, full=True)
    assert verify(edged) == []


def test_a_count_that_is_not_so_is_told(edged: Path) -> None:
    republished(edged, {}, {"facts": 4})
    assert verify_index(edged, full=True) == ["The manifest counts 4 under 'facts', but there are 3."]


def test_several_broken_promises_have_a_line_each(edged: Path) -> None:
    array(edged, "graph_weights", lambda old: old * 2)
    republished(edged, {}, {"ids": 7})
    table(edged, "facts", rows(1, 0, 2))
    told = verify_index(edged, full=True)
    assert [any(start in line for line in told) for start in ("graph_weights", "'ids'", "facts: ")] == [True] * 3


def test_text_that_is_no_utf_8_is_told_by_its_file(edged: Path) -> None:
    folder, entry = files_folder(edged), current_manifest(edged).files["phrases"]
    content = (folder / entry.file).read_bytes().replace(b"x y", b"x\xffy")
    digest = hashlib.sha256(content).hexdigest()
    name = f"phrases-{digest[:16]}.arrow"
    (folder / name).write_bytes(content)
    republished(edged, {"phrases": entry._replace(file=name, sha256=digest)})
    assert any(name in line and "UTF-8" in line for line in verify_index(edged, full=True))


@pytest.mark.parametrize("profile", ["default", "oracle"])
def test_an_index_that_was_changed_in_many_ways_keeps_every_promise(root: Path, profile: str) -> None:
    config = replace(PROFILES[profile], chunk_tokens=8, chunk_overlap=2, synonym_threshold=0.3)
    index_of(root, config=config)
    with open_index(root) as index:
        index.add([Passage("p1", "Now", "one two three four five six seven eight nine ten", {"n": [1]})])
        index.add([stating("twin", "Charles Babbage|built|the engine;Charles  Babbage|built|the engine")])
        index.add_edges([UserEdge(("p1", "p2")), UserEdge((), ("steam", "the engine!")), UserEdge(("p4",), ("x",))])
        index.commit(diffuse="never")
    assert verify_index(root, full=True) == []


def test_a_log_that_is_no_plain_file_is_told(made: Path) -> None:
    (logs_folder(made) / "linked.jsonl").symlink_to(made / "CURRENT")
    assert ["linked.jsonl" in line for line in verify_index(made, full=True)] == [True]


def test_a_log_that_is_gone_is_named_with_what_it_had(made: Path) -> None:
    log = made / "openie" / "saying.jsonl"
    log.unlink()
    assert verify_index(made) == []
    (line,) = verify_index(made, full=True)
    assert line.startswith(f"{log}: missing, the log of 5 passages")


def test_a_record_that_a_log_lacks_is_named_by_its_passage(made: Path) -> None:
    log = made / "openie" / "saying.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    (line,) = verify_index(made, full=True)
    assert "no record of 1 of its 5 passages, such as 'p4'" in line


def flipped(root: Path, role: str) -> Path:
    """Flips the last bit of a file of the current generation; its path."""
    path = files_folder(root) / current_manifest(root).files[role].file
    content = bytearray(path.read_bytes())
    # In a table a letter, so that it can be read still.
    letter = {"ids": b"p2", "facts": b"wrote", "passages": b"wrote"}.get(role)
    content[content.index(letter) if letter else -1] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("role", ["fact_vectors", "passage_vectors", "phrase_vectors", "ids", "facts", "passages"])
def test_an_altered_file_is_not_hidden_under_the_checksum_of_a_new_generation(made: Path, role: str) -> None:
    path = flipped(made, role)
    with open_index(made) as index:
        index.delete(["p1"])
        with pytest.raises(IndexDamagedError, match=path.name):
            index.commit()
    assert current_manifest(made).generation == 1


def test_what_a_forced_build_makes_anew_may_have_been_altered(made: Path, tmp_path: Path) -> None:
    index_of(tmp_path / "whole")
    flipped(made, "fact_vectors")
    with open_index(made) as index:
        index.commit(force="build")
    assert hashes(made) == hashes(tmp_path / "whole")


def test_altered_vectors_are_not_diffused(made: Path) -> None:
    path = flipped(made, "passage_vectors")
    with pytest.raises(IndexDamagedError, match=path.name):
        diffuse_index(made, damping=0.3)


def test_an_altered_index_is_not_exported(made: Path, tmp_path: Path) -> None:
    path = flipped(made, "fact_vectors")
    with pytest.raises(IndexDamagedError, match=path.name):
        export_index(made, tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()
