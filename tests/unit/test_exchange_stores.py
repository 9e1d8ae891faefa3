"""Collections of vector stores: passages and vectors go out and come back, each store through its own client."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange_cases import RICH, rich_index, snapshot_of
from small_index import WIDTH, Counting, Saying, index_of, open_index

from hippogpu import Passage, Searcher
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import CorpusError, EncoderMismatchError, MissingExtraError, UsageError
from hippogpu.exchange import Fields, Form, export_index, import_collection, points_import
from hippogpu.exchange.points import Collection, Points, store_of
from hippogpu.exchange.values import WHATS, silent
from hippogpu.store import verify
from hippogpu.text import identity

ENDINGS: dict[Form, str] = {"qdrant": ".qdrant", "chroma": ".chroma", "milvus": ".db"}
MODULES: dict[Form, str] = {"qdrant": "qdrant_client", "chroma": "chromadb", "milvus": "pymilvus"}
STORES = list(ENDINGS)


@pytest.fixture(scope="module", params=STORES)
def form(request: pytest.FixtureRequest) -> Form:
    pytest.importorskip(MODULES[request.param], reason=f"the extra '{request.param}' is not installed")
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_index(tmp_path_factory.mktemp("stores") / "rich.hippo")


@pytest.fixture(scope="module")
def stored(form: Form, rich: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rich index in a store, all three collections."""
    target = tmp_path_factory.mktemp(form) / f"x{ENDINGS[form]}"
    export_index(rich, target, what=WHATS)
    return target


def store_with(folder: Path, form: Form, vectors: Any, *, metas: Sequence[dict[str, Any]] | None = None) -> Path:
    """A store of somebody's texts t0, t1, … with these vectors."""
    texts = [f"t{number}" for number in range(len(vectors))]
    points = Points(0, texts, [""] * len(texts), texts, metas or [{}] * len(texts), np.asarray(vectors, np.float32))
    path = folder / f"other{ENDINGS[form]}"
    store_of(form).write(
        path, [Collection("passages", points.vectors.shape[1], len(texts), lambda: iter([points]))], silent
    )
    return path


def encoded(count: int, width: int = WIDTH) -> Any:
    return HashingEmbedder(width).encode([f"t{number}" for number in range(count)])


def test_ids_texts_metadata_and_vectors_come_back(form: Form, stored: Path, rich: Path, tmp_path: Path) -> None:
    report = import_collection(tmp_path / "copy", stored, embedder=HashingEmbedder(WIDTH))
    before, after = snapshot_of(rich), snapshot_of(tmp_path / "copy")
    found = {passage.id: passage for passage in map(after.passages.named, range(len(after.passages.ids)))}
    assert found == {passage.id: passage for passage in RICH}
    rows = {whole: row for row, whole in enumerate(before.passages.wholes)}
    expected = [before.passage_vectors[rows[whole]] for whole in after.passages.wholes]
    assert np.array_equal(after.passage_vectors, np.array(expected))
    assert (report.vectors, report.refused, verify(tmp_path / "copy", full=True)) == (len(RICH), (), [])


def test_only_a_few_texts_are_encoded_again(form: Form, tmp_path: Path) -> None:
    source, embedder = store_with(tmp_path, form, encoded(33)), Counting()
    report = import_collection(tmp_path / "copy", source, embedder=embedder)
    assert report.built.counts["passages"] == 33
    assert len(embedder.texts) == 16
    assert report.least_cosine == pytest.approx(1.0)


def test_an_extractor_reads_what_comes_and_the_vectors_stay(
    form: Form, stored: Path, rich: Path, tmp_path: Path
) -> None:
    extractor = Saying(failing={"down"})
    import_collection(tmp_path / "copy", stored, embedder=HashingEmbedder(WIDTH), extractor=extractor)  # type: ignore[arg-type]
    first, again = snapshot_of(rich), snapshot_of(tmp_path / "copy")
    assert list(again.tables.facts.text) == list(first.tables.facts.text)


def test_passages_that_nobody_read_are_found_by_their_vectors(form: Form, stored: Path, tmp_path: Path) -> None:
    import_collection(tmp_path / "copy", stored, embedder=HashingEmbedder(WIDTH), encoder_spec=f"hashing:{WIDTH}")
    (ranking,) = Searcher.open(tmp_path / "copy").rank(["Nothing is stated here"], k=1)
    assert ranking.hits[0].passage.id == "p3"


def test_phrases_and_facts_are_collections_of_their_own(form: Form, stored: Path, rich: Path) -> None:
    snapshot = snapshot_of(rich)
    points = {name: list(store_of(form).read(stored, name, None, silent)) for name in ("phrases", "facts")}
    assert sorted(str(p.fields["text"]) for p in points["phrases"]) == list(snapshot.tables.phrases)
    assert sorted(str(p.fields["text"]) for p in points["facts"]) == sorted(snapshot.tables.facts.text)


def test_another_encoder_is_found_out(form: Form, tmp_path: Path) -> None:
    vectors = encoded(7)
    source = store_with(tmp_path, form, np.roll(vectors, 1, axis=1))
    with pytest.raises(EncoderMismatchError, match=r"hashing-32.*differ.*--no-vectors"):
        import_collection(tmp_path / "copy", source, embedder=HashingEmbedder(WIDTH))
    assert not (tmp_path / "copy").exists()


def test_another_width_is_refused_and_vectors_can_be_left_out(form: Form, tmp_path: Path) -> None:
    source, embedder = store_with(tmp_path, form, encoded(3, 16)), Counting()
    with pytest.raises(EncoderMismatchError, match="width 16, those of the encoder 32"):
        import_collection(tmp_path / "copy", source, embedder=embedder)
    import_collection(tmp_path / "copy", source, embedder=embedder, vectors=False)
    assert sorted(embedder.texts) == ["t0", "t1", "t2"]


def test_a_vector_that_is_no_unit_is_refused_and_the_others_go_on(form: Form, tmp_path: Path) -> None:
    vectors = encoded(5)
    vectors[1] *= 2
    vectors[3] = 0
    source = store_with(tmp_path, form, vectors)
    report = import_collection(tmp_path / "copy", source, embedder=HashingEmbedder(WIDTH))
    assert [item.reason for item in report.refused] == [
        f"its vector has the length {n}, not 1 within 0.001" for n in (2, 0)
    ]
    assert report.built.counts["passages"] == 3


def test_a_collection_that_is_not_there_is_named_with_those_that_are(form: Form, stored: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no collection 'notes'; there is: facts, passages, phrases"):
        import_collection(tmp_path / "copy", stored, embedder=HashingEmbedder(WIDTH), collection="notes")


def test_an_index_that_is_there_is_extended(form: Form, stored: Path, made: Path) -> None:
    report = import_collection(made, stored, embedder=HashingEmbedder(WIDTH))
    assert (report.added.added, report.added.unchanged) == (len(RICH) - 5, 5)
    again = import_collection(made, stored, embedder=HashingEmbedder(WIDTH))
    assert (again.built.changed, again.added.unchanged) == (False, len(RICH))


def test_an_index_of_another_encoder_is_not_touched(form: Form, stored: Path, root: Path) -> None:
    index_of(root, embedder=HashingEmbedder(64))
    with pytest.raises(EncoderMismatchError, match="hashing-64"):
        import_collection(root, stored, embedder=HashingEmbedder(WIDTH))


@pytest.mark.parametrize("what", ["nothing", "a file", "a folder"])
def test_what_is_no_store_is_refused_and_nothing_is_made(form: Form, tmp_path: Path, what: str) -> None:
    source = tmp_path / f"x{ENDINGS[form]}"
    if what == "a file":
        source.write_bytes(b"not a database at all")
    elif what == "a folder":
        (source / "inside").mkdir(parents=True)
    with pytest.raises(CorpusError, match=source.name):
        import_collection(tmp_path / "copy", source, embedder=HashingEmbedder(WIDTH))
    assert not (tmp_path / "copy").exists()
    assert source.exists() == (what != "nothing")


def test_a_damaged_store_is_refused_by_name(form: Form, stored: Path, tmp_path: Path) -> None:
    damaged = {"qdrant": "storage.sqlite", "chroma": "chroma.sqlite3", "milvus": "*.parquet"}[form]
    for number, place in enumerate((0.0, 0.3, 0.7)):
        copy = tmp_path / f"{number}{stored.suffix}"
        shutil.copytree(stored, copy)
        for file in copy.rglob(damaged):
            data = file.read_bytes()
            file.write_bytes(data[: int(place * len(data))] + b"\xfe" * 3000 + data[int(place * len(data)) + 3000 :])
        with pytest.raises(CorpusError, match=copy.name):
            import_collection(tmp_path / "copy", copy, embedder=HashingEmbedder(WIDTH))
    assert not (tmp_path / "copy").exists()


def test_a_store_is_replaced_only_by_its_own_kind(form: Form, rich: Path, stored: Path, tmp_path: Path) -> None:
    target = tmp_path / stored.name
    for _ in range(2):
        export_index(rich, target, overwrite=True)
    with pytest.raises(UsageError, match="no export of this form"):
        export_index(rich, target, form="parquet", overwrite=True)
    assert len(list(store_of(form).read(target, "passages", None, silent))) == len(RICH)


@pytest.mark.parametrize("form", ["qdrant", "milvus"], indirect=True)
def test_fields_may_lie_inside_of_an_object(form: Form, tmp_path: Path) -> None:
    metas = [{"head": {"line": "A title"}, "body": f"text {n}", "year": 1900 + n} for n in range(3)]
    vectors = HashingEmbedder(WIDTH).encode([identity("A title", str(meta["body"])) for meta in metas])
    source = store_with(tmp_path, form, vectors, metas=metas)
    fields = Fields(title="meta.head.line", text="meta.body")
    import_collection(tmp_path / "copy", source, embedder=HashingEmbedder(WIDTH), fields=fields)
    passage = snapshot_of(tmp_path / "copy").passages.passage(1)
    assert (passage.title, passage.text, passage.meta["year"]) == ("A title", "text 1", 1901)


def test_flat_metadata_of_somebodys_chroma_become_the_passages(tmp_path: Path) -> None:
    chroma = pytest.importorskip("chromadb")
    client = chroma.PersistentClient(str(tmp_path / "c.chroma"), chroma.Settings(anonymized_telemetry=False))
    notes = client.create_collection("notes", embedding_function=None)
    metadata = [{"head": "A title", "year": 1900, "known": True}, {"year": 1901}]
    vectors = HashingEmbedder(WIDTH).encode(["A title\none", "two"])
    notes.add(ids=["z", "a"], embeddings=vectors, documents=["one", "two"], metadatas=metadata)
    client.close()
    fields, embedder = Fields(title="head"), HashingEmbedder(WIDTH)
    import_collection(tmp_path / "c", tmp_path / "c.chroma", embedder=embedder, collection="notes", fields=fields)
    passages = snapshot_of(tmp_path / "c").passages
    expected = [Passage("z", "A title", "one", {"year": 1900, "known": True}), Passage("a", "", "two", {"year": 1901})]
    assert [passages.passage(row) for row in range(2)] == expected


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, rich: Path, tmp_path: Path) -> None:
    for name, module in MODULES.items():
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(MissingExtraError, match=rf"hippogpu\[{name}\]"):
            export_index(rich, tmp_path / f"y{ENDINGS[name]}")
    assert list(tmp_path.iterdir()) == []


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("exploded"),)


def test_a_qdrant_folder_with_a_pickle_of_anything_else_is_not_opened(
    rich: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("qdrant_client")
    monkeypatch.chdir(tmp_path)
    export_index(rich, tmp_path / "x.qdrant")
    storage = tmp_path / "x.qdrant" / "collection" / "passages" / "storage.sqlite"
    base = sqlite3.connect(storage)
    base.execute("UPDATE points SET point = ? WHERE rowid = 3", (pickle.dumps(Bomb()),))
    base.commit()
    base.close()
    with pytest.raises(CorpusError, match=r"storage\.sqlite.*touch|storage\.sqlite.*Path"):
        import_collection(tmp_path / "copy", tmp_path / "x.qdrant", embedder=HashingEmbedder(WIDTH))
    assert not (tmp_path / "exploded").exists()


def test_milvus_refuses_a_text_that_is_too_long_for_it(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("pymilvus")
    index_of(root, [Passage("long", "", "é" * 40_000), Passage("short", "", "x")])
    report = export_index(root, tmp_path / "x.db")
    assert (report.rows, [item.where for item in report.refused]) == ({"passages": 1}, ["passages 'long'"])


def test_named_vectors_of_qdrant_are_chosen_by_name(tmp_path: Path) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    models, client = qdrant.models, qdrant.QdrantClient(path=str(tmp_path / "n.qdrant"))
    sizes = models.VectorParams(size=WIDTH, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config={"dense": sizes, "other": sizes})
    text = {"page_content": "t0", "metadata": {"page": 7}}
    vector = encoded(1)[0].tolist()
    client.upsert("notes", [models.PointStruct(id=1, vector={"dense": vector, "other": vector[::-1]}, payload=text)])
    client.close()
    fields, embedder = Fields(text="page_content", meta="metadata"), HashingEmbedder(WIDTH)
    with pytest.raises(UsageError, match="dense, other"):
        import_collection(tmp_path / "c", tmp_path / "n.qdrant", embedder=embedder, collection="notes", fields=fields)
    import_collection(
        *(tmp_path / "c", tmp_path / "n.qdrant"),
        embedder=embedder,
        collection="notes",
        fields=fields,
        vector_field="dense",
    )
    assert snapshot_of(tmp_path / "c").passages.passage(0) == Passage("1", "", "t0", {"page": 7})


def test_vectors_kept_by_hand_are_taken_by_the_commit(root: Path) -> None:
    embedder = Counting()
    passages = [Passage(f"t{n}", "", f"t{n}") for n in range(7)]
    with open_index(root, embedder=embedder) as index:
        index.add(passages)
        points_import.keep_vectors(root, embedder, passages, encoded(7))
        index.commit()
    assert embedder.texts == []
