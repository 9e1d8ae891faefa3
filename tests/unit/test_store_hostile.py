"""An index folder can come from anyone: nothing in it is run, followed, waited for, or believed before a check."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_index import PASSAGES, WIDTH, Saying, file_of
from source_imports import PACKAGE

from hippogpu import Index
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ExtractionError, IndexDamagedError
from hippogpu.openie import ExtractionLog, verify_log
from hippogpu.openie.log_lines import encode_line
from hippogpu.store import current_manifest, load_snapshot, verify
from hippogpu.store.columns import read_columns, read_table
from hippogpu.store.files import Entry, write_table
from hippogpu.store.mapped import read_array
from hippogpu.types import Record, Triple, UserEdge

CASES, A_PROCESS = int(os.environ.get("HIPPOGPU_FUZZ", "120")), 4000
TEXT = pa.schema([("text", pa.large_string())])
GOOD = pa.table({"text": pa.array(["北京", "", "a\0b"], pa.large_string())})


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that has every file there can be."""
    root = tmp_path_factory.mktemp("hostile") / "small.hippo"
    with Index.open(root, extractor=Saying(failing=["p3"]), embedder=HashingEmbedder(WIDTH)) as index:
        index.add(PASSAGES)
        index.add_edges([UserEdge(("p0", "p4")), UserEdge(("p1",), ("Analytical Engine",), "tag", 0.5)])
        index.commit(diffuse="always")
    return root


@pytest.fixture
def copied(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "small.hippo"))


RUNS_CODE = (
    r"pickle|import marshal|marshal\.|shelve|dill|\beval\(|\bexec\(|shell\s*=\s*True|os\.system|yaml\.|joblib"
    r"|allow_pickle\s*=\s*True"
)


def test_nothing_in_the_package_runs_what_it_reads() -> None:
    """The room of exchange apart, which reads other programs' stores and has a reader of its own for their pickles."""
    found = {
        f"{path.relative_to(PACKAGE)}:{number}": line.strip()
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "exchange"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(RUNS_CODE, line) or ("np.load(" in line and "allow_pickle=False" not in line)
    }
    assert {place: line for place, line in found.items() if "allow_pickle=False" not in line} == {}
    assert len(list(PACKAGE.rglob("*.py"))) > 100


def test_no_model_of_a_hub_may_bring_code_of_its_own() -> None:
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    assert not any(re.search(r"trust_remote_code\s*=\s*True", source) for source in sources)


def opened(root: Path) -> None:
    load_snapshot(root, current_manifest(root))


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link": lambda path: path.symlink_to("elsewhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["CURRENT", "manifest", "ids", "fact_vectors", "edges"])
def test_what_is_no_plain_file_is_refused_at_once(copied: Path, what: str, kind: str) -> None:
    path = {"CURRENT": copied / "CURRENT", "manifest": next((copied / "manifests").iterdir())}.get(what)
    path = path or file_of(copied, what)
    shutil.copy(path, path.parent / "elsewhere")
    path.unlink()
    KINDS[kind](path)
    with pytest.raises(IndexDamagedError, match=path.name):
        opened(copied)
    assert [path.name in line for line in verify(copied, full=True)] == [True]


@pytest.mark.timeout(20)
def test_a_socket_in_place_of_a_file_is_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    path = file_of(copied, "ids")
    path.unlink()
    monkeypatch.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
        with pytest.raises(IndexDamagedError, match=r"ids-.* no plain file"):
            opened(copied)


def test_a_folder_of_files_that_is_a_link_is_refused(copied: Path) -> None:
    (copied / "files").rename(copied / "elsewhere")
    (copied / "files").symlink_to(copied / "elsewhere")
    with pytest.raises(IndexDamagedError, match="is a link"):
        opened(copied)


def arrow(table: pa.Table, **options: Any) -> bytes:
    """The bytes of an Arrow file."""
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return file.getvalue()


def texts(data: bytes, schema: pa.Schema = TEXT) -> list[str]:
    """The first column of a file's bytes, as they are read from an index."""
    columns, _ = read_columns(Path("texts-0.arrow"), memoryview(data), schema)
    return list(columns.texts[schema.names[0]])


class Spell(pa.ExtensionType):
    """An extension type that must never be made from a file."""

    made = 0

    def __init__(self) -> None:
        super().__init__(pa.large_string(), "hippogpu.spell")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Spell:
        cls.made += 1
        return cls()


def with_field(**changes: Any) -> pa.Table:
    return GOOD.cast(pa.schema([pa.field("text", pa.large_string(), **changes)]))


HOSTILE = {
    "compressed by zstd": lambda: arrow(GOOD, compression="zstd"),
    "compressed by lz4": lambda: arrow(GOOD, compression="lz4"),
    "a dictionary": lambda: arrow(pa.table({"text": GOOD["text"].dictionary_encode()})),
    "another type": lambda: arrow(pa.table({"text": pa.array(["a"], pa.string())})),
    "a view": lambda: arrow(pa.table({"text": pa.array(["a"], pa.string_view())})),
    "numbers": lambda: arrow(pa.table({"text": [1, 2]})),
    "lists of itself": lambda: arrow(pa.table({"text": pa.array([["a"]], pa.large_list(pa.large_string()))})),
    "another name": lambda: arrow(GOOD.rename_columns(["texts"])),
    "one more column": lambda: arrow(GOOD.append_column("more", GOOD["text"])),
    "no column": lambda: arrow(GOOD.select([])),
    "missing values": lambda: arrow(pa.table({"text": pa.array(["a", None], pa.large_string())})),
    "two batches": lambda: arrow(pa.concat_tables([GOOD, GOOD])),
    "metadata": lambda: arrow(GOOD.replace_schema_metadata({"pandas": "{}"})),
    "metadata of a column": lambda: arrow(with_field(metadata={"ARROW:extension:name": "arrow.json"})),
    "a stream": lambda: arrow(GOOD)[8:],
    "old metadata": lambda: arrow(GOOD, metadata_version=pa.ipc.MetadataVersion.V4),
    "nothing": lambda: b"",
    "its ends alone": lambda: b"ARROW1\0\0" + bytes(20) + b"ARROW1",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_table_that_no_writer_of_ours_writes_is_refused(kind: str) -> None:
    with pytest.raises(IndexDamagedError, match=r"texts-0\.arrow.*no table of text: "):
        texts(HOSTILE[kind]())


def test_an_extension_type_of_a_file_is_never_made() -> None:
    pa.register_extension_type(Spell())
    try:
        data = arrow(pa.table({"text": pa.ExtensionArray.from_storage(Spell(), GOOD["text"].chunk(0))}))
        Spell.made = 0
        with pytest.raises(IndexDamagedError, match="metadata of its own"):
            texts(data)
        assert Spell.made == 0
    finally:
        pa.unregister_extension_type("hippogpu.spell")


def test_texts_and_numbers_come_back_as_pyarrow_wrote_them() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 2)
    table = pa.table({"text": pa.array([b"\xed\xa0\x80", b"", b"x"], pa.large_binary()), "vector": vectors})
    columns, rows = read_columns(Path("x"), memoryview(arrow(table)), table.schema)
    assert (rows, list(columns.texts["text"])) == (3, ["\ud800", "", "x"])
    assert columns.numbers["vector"].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_a_column_of_texts_is_a_sequence() -> None:
    column = read_columns(Path("x"), memoryview(arrow(GOOD)), TEXT)[0].texts["text"]
    assert (len(column), column[0], column[-1], column[np.int64(2)]) == (3, "北京", "a\0b", "a\0b")
    assert (column[1:], column[::-1], list(column)) == (["", "a\0b"], ["a\0b", "", "北京"], ["北京", "", "a\0b"])
    for outside in (3, -4, 2**63):
        with pytest.raises(IndexError):
            column[outside]


def starts_at(data: bytes) -> int:
    """Where the places of the texts of GOOD lie in a file."""
    return data.index(struct.pack("<4q", 0, 6, 6, 9))


@pytest.mark.parametrize(
    "starts", [(0, 6, 6, 2**62), (0, 6, 6, 10), (-1, 6, 6, 9), (0, 7, 6, 9), (6, 0, 6, 9), (0, -(2**63), 6, 9)]
)
def test_places_of_texts_that_do_not_ascend_inside_are_refused(starts: tuple[int, ...]) -> None:
    data = arrow(GOOD)
    at = starts_at(data)
    with pytest.raises(IndexDamagedError, match="do not ascend inside"):
        texts(data[:at] + struct.pack("<4q", *starts) + data[at + 32 :])


def test_half_a_letter_is_refused_when_it_is_read_and_the_file_named() -> None:
    data = arrow(GOOD)
    at = starts_at(data)
    column = read_columns(
        Path("x.arrow"), memoryview(data[:at] + struct.pack("<4q", 0, 5, 6, 9) + data[at + 32 :]), TEXT
    )
    for read in (list, lambda texts: texts[0], lambda texts: texts[:2]):
        with pytest.raises(IndexDamagedError, match=r"x\.arrow.*UTF-8"):
            read(column[0].texts["text"])
    assert column[0].texts["text"][2] == "a\0b"


@pytest.mark.parametrize("number", [-1, 4, 2**31 - 1, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("good", [3, 9, 32])
def test_a_length_that_lies_is_refused_without_memory(number: int, good: int) -> None:
    """3 rows, 9 letters and 32 bytes of places: wherever the file says so."""
    data, most = arrow(GOOD), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for at in range(8, len(data) - 7, 4):
        if data[at : at + 8] == struct.pack("<q", good) and at != starts_at(data) + 24:
            altered = data[:at] + struct.pack("<q", number) + data[at + 8 :]
            try:
                assert texts(altered) == GOOD["text"].to_pylist()
            except IndexDamagedError:
                continue
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 64 << 10


def test_a_footer_that_points_outside_is_refused() -> None:
    data = arrow(GOOD)
    for size in (-1, 0, 1, 2**31 - 1, -(2**31), len(data), len(data) - 18):
        with pytest.raises(IndexDamagedError):
            texts(data[:-10] + struct.pack("<i", size) + data[-6:])


def test_a_file_of_many_columns_or_batches_takes_no_time() -> None:
    wide = arrow(pa.table({f"c{number}": pa.array([], pa.int32()) for number in range(20_000)}))
    started = time.perf_counter()
    with pytest.raises(IndexDamagedError):
        texts(wide)
    assert time.perf_counter() - started < 1


HEADER = "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }"


def npy(header: str, *, version: bytes = b"\1\0", pad: int = 64) -> bytes:
    text = header + " " * (-(10 + len(header) + 1) % pad) + "\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text.encode() + bytes(24)


@pytest.mark.parametrize(
    "data",
    [
        npy("__import__('os').abort()"),
        npy(HEADER.replace("<i4", "|O")),
        npy(HEADER.replace("6", "10**9")),
        npy(HEADER.replace("False", "True")),
        npy(f"{HEADER[:-1]}, 'more': 1}}"),
        npy(HEADER, version=b"\2\0"),
        npy(HEADER, pad=1),
        npy("(" * 60_000),
    ],
)
def test_a_header_of_an_array_is_compared_and_never_evaluated(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "numbers-0.npy").write_bytes(data)
    with pytest.raises(IndexDamagedError, match="numbers-0"):
        read_array(tmp_path, Entry("numbers-0.npy", len(data), "", "<i4", (6,)))


def test_an_array_without_rows_may_not_claim_any_width(tmp_path: Path) -> None:
    data = npy(HEADER.replace("(6,)", f"(0, {10**30})"))[:-24]
    (tmp_path / "numbers-0.npy").write_bytes(data)
    with pytest.raises(IndexDamagedError, match="numbers-0"):
        read_array(tmp_path, Entry("numbers-0.npy", len(data), "", "<i4", (0, 10**30)))


def test_a_table_of_another_number_of_rows_is_refused(tmp_path: Path) -> None:
    entry = write_table(tmp_path, "texts", GOOD)
    with pytest.raises(IndexDamagedError, match="holds 3 rows, not 4"):
        read_table(tmp_path, entry._replace(shape=(4,)), TEXT)


def test_a_table_without_rows_has_none(tmp_path: Path) -> None:
    columns = read_table(tmp_path, write_table(tmp_path, "texts", GOOD.slice(0, 0)), TEXT)
    assert (list(columns.texts["text"]), columns.texts["text"][:]) == ([], [])


RECORD = Record("p1", (Triple("a", "is", "b"),), ("a",))
LINES = {
    "no JSON": b'"key":',
    "no object": b"}[1]",
    "deep": b'"key":' + b"[" * 200_000,
    "huge number": b'"key":"k","record":' + b"9" * 100_000 + b"}",
    "no record": b'"key":"k"}',
    "a key that is none": b'"key":1,"record":{}}',
    "an empty record": b'"key":"k","record":{}}',
    "no UTF-8": b'"key":"\xff","record":{}}',
}
FIELDS = {
    "passage_id": 1,
    "error": 0,
    "entities": "abc",
    "triples": [["a", "b"]],
    "drops": [["why"]],
    "attempt": 10**30,
    "outage": 1,
    "tokens": [1, 2, 3, 4],
}


def signed(body: bytes) -> bytes:
    return b'{"crc":"%08x",%b\n' % (zlib.crc32(body), body)


@pytest.mark.parametrize("kind", [*LINES, *FIELDS])
def test_a_log_line_under_a_right_checksum_that_is_no_record_is_named_and_passed_over(
    tmp_path: Path, kind: str
) -> None:
    good = encode_line("k", RECORD)
    value = json.loads(good)
    value["record"] |= {kind: FIELDS.get(kind)}
    bad = LINES.get(kind, json.dumps({"key": "k", "record": value["record"]})[1:].encode())
    path = tmp_path / "log.jsonl"
    path.write_bytes(good + signed(bad) + good)
    assert [line.startswith(f"{path}:2: ") and "right checksum" in line for line in verify_log(path)] == [True]
    with ExtractionLog(path) as log:
        assert (log.load().records, log.outcomes().finished) == ({"k": RECORD}, {"k"})


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_a_log_that_is_no_plain_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    KINDS[kind](tmp_path / "log.jsonl")
    assert verify_log(tmp_path / "log.jsonl") == [f"{tmp_path / 'log.jsonl'}: missing"]


def test_a_log_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(encode_line("k", RECORD))
    (tmp_path / "log.jsonl").symlink_to("elsewhere")
    with pytest.raises(ExtractionError, match="cannot be read"):
        verify_log(tmp_path / "log.jsonl")


def ended(root: Path, first: int, count: int) -> str:
    """How the process that runs so many hostile cases ended: "" when it came to the end of them all."""
    command = [sys.executable, str(Path(__file__).with_name("hostile.py")), str(root), str(first), str(count)]
    path = os.pathsep.join([str(PACKAGE.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return "" if run.returncode == 0 else f"case {run.stdout.split()[-1:]}: exit {run.returncode}\n{run.stderr[-3000:]}"


@pytest.mark.timeout(0)
def test_hostile_folders_meet_errors_of_our_tree_alone(copied: Path) -> None:
    for first in range(0, CASES, A_PROCESS):
        assert ended(copied, first, min(A_PROCESS, CASES - first)) == ""


def test_a_process_that_is_ended_by_a_case_is_told(copied: Path) -> None:
    shutil.rmtree(copied / "manifests")
    assert "exit 1" in ended(copied, 0, 1)
