"""Manifests: what is read back, and hostile ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_index import index_of

from hippogpu.config import PROFILES, IndexConfig
from hippogpu.errors import HippoError, IndexDamagedError, IndexFormatError, IndexMissingError
from hippogpu.store import Encoder, Manifest, current_manifest, load_snapshot, verify
from hippogpu.store.files import Entry
from hippogpu.store.generations import manifest_path
from hippogpu.store.manifest import FORMAT, from_json, to_json

PATH = Path("manifests/0000000001.json")
ENTRY = Entry("mentions-0123456789abcdef.npy", 152, "0" * 64, "<i4", (6,))
MANIFEST = Manifest(
    1,
    "2026-01-01T00:00:00+00:00",
    "0.1",
    PROFILES["oracle"],
    Encoder("hashing-32", 32, ""),
    {"facts": 0},
    {"mentions": ENTRY},
)
HUGE, DEEP = 10**30, b"[" * 100_000


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("manifests") / "small.hippo"
    index_of(root)
    return root


@pytest.fixture
def made(kept: Path, tmp_path: Path) -> Path:
    """A copy of a small index of one generation."""
    return Path(shutil.copytree(kept, tmp_path / "small.hippo"))


def altered(made: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrites the manifest of an index, and CURRENT after it: anyone can reckon a checksum."""
    path = manifest_path(made, 1)
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value))
    (made / "CURRENT").write_text(f"0000000001 {hashlib.sha256(path.read_bytes()).hexdigest()}\n")


def set_at(*keys: Any) -> Callable[[dict[str, Any]], object]:
    """A change that puts the last of the arguments at the place that the others lead to."""
    *way, last, new = keys

    def change(value: dict[str, Any]) -> None:
        for key in way:
            value = value[key]
        value[last] = new

    return change


def test_a_manifest_comes_back_as_it_was() -> None:
    assert from_json(to_json(MANIFEST), PATH) == MANIFEST


def test_an_index_of_a_newer_format_is_refused_with_the_way_out(made: Path) -> None:
    altered(made, set_at("format", FORMAT + 1))
    with pytest.raises(IndexFormatError, match=rf"format {FORMAT + 1}.*0000000001.json.*Upgrade"):
        current_manifest(made)


def test_a_newer_format_is_told_even_when_all_else_is_unknown() -> None:
    with pytest.raises(IndexFormatError):
        from_json(b'{"format": 7, "shards": []}', PATH)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"{}",
        DEEP,
        b'{"a":' * 50_000,
        b"\xff\xfe\x00",
        b"\x00" * 99,
        b"9" * 9999,
    ],
)
def test_what_is_no_manifest_is_damage_named_by_its_path(data: bytes) -> None:
    with pytest.raises(IndexDamagedError, match=r"0000000001\.json"):
        from_json(data, PATH)


WRONG_TYPES = (None, True, -1, 1.5, HUGE, "x", [], ["x"], {}, {"x": None})


@pytest.mark.parametrize("key", ["generation", "config", "encoder", "counts", "files", "format", "created", "program"])
@pytest.mark.parametrize("new", WRONG_TYPES)
def test_a_value_of_another_kind_never_escapes_the_error_tree(made: Path, key: str, new: object) -> None:
    altered(made, set_at(key, new))
    try:
        load_snapshot(made, current_manifest(made))
    except HippoError as error:
        assert str(error)  # noqa: PT017
    else:
        assert key in ("created", "program", "counts", "config")


@pytest.mark.parametrize("key", ["file", "bytes", "sha256", "dtype", "shape"])
@pytest.mark.parametrize("new", WRONG_TYPES)
def test_an_entry_with_a_value_of_another_kind_never_escapes_the_error_tree(made: Path, key: str, new: object) -> None:
    altered(made, set_at("files", "graph_weights", key, new))
    if key == "sha256":
        assert verify(made, full=True)
        return
    with pytest.raises(IndexDamagedError):
        load_snapshot(made, current_manifest(made))


@pytest.mark.parametrize("key", ["generation", "created", "program", "config", "encoder", "counts", "files", "format"])
def test_a_missing_key_is_damage(made: Path, key: str) -> None:
    altered(made, lambda value: value.pop(key))
    with pytest.raises(IndexDamagedError, match=r"0000000001\.json"):
        current_manifest(made)


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc/passwd", "/etc/passwd", "graph_weights-0123456789abcdef.npy/..", "a/graph-0123456789abcdef.npy"),
        *("graph_weights-0123456789ABCDEF.npy", "graph_weights-0123456789abcdef.npy\n", "CURRENT", "", "."),
        *("graph_weights-0123456789abcdef.pkl", "graph_weights\0-0123456789abcdef.npy"),
    ],
)
def test_a_path_in_place_of_a_file_name_is_refused(made: Path, name: str) -> None:
    altered(made, set_at("files", "graph_weights", "file", name))
    with pytest.raises(IndexDamagedError, match="no name of an index file"):
        current_manifest(made)


@pytest.mark.parametrize("shape", [[-1], [HUGE], [2**62, 2**62], [0, HUGE], [1.0], ["1"], [[1]], [], [True], "11"])
def test_an_absurd_shape_is_damage(made: Path, shape: object) -> None:
    altered(made, set_at("files", "passage_vectors", "shape", shape))
    with pytest.raises(IndexDamagedError):
        load_snapshot(made, current_manifest(made))


@pytest.mark.parametrize(
    "dtype", ["|O", "O8", "<f8", ">f4", "i4,f8", "", "<f4" * 99, "arrow", "{'names': ['a']}", "\0"]
)
def test_an_absurd_type_is_damage(made: Path, dtype: str) -> None:
    altered(made, set_at("files", "passage_vectors", "dtype", dtype))
    with pytest.raises(IndexDamagedError, match="passage_vectors"):
        load_snapshot(made, current_manifest(made))


def test_an_entry_under_the_name_of_another_role_is_refused(made: Path) -> None:
    def swap(value: dict[str, Any]) -> None:
        files = value["files"]
        files["synonym_source"], files["synonym_target"] = files["synonym_target"], files["synonym_source"]

    altered(made, swap)
    with pytest.raises(IndexDamagedError, match="synonym_"):
        load_snapshot(made, current_manifest(made))


@pytest.mark.parametrize("role", ["ids", "graph_indices", "fact_vectors"])
def test_a_role_without_a_file_is_damage(made: Path, role: str) -> None:
    altered(made, lambda value: value["files"].pop(role))
    with pytest.raises(IndexDamagedError, match=f"no file for '{role}'"):
        load_snapshot(made, current_manifest(made))


def test_another_width_than_the_vectors_have_is_damage(made: Path) -> None:
    altered(made, set_at("encoder", "width", 31))
    with pytest.raises(IndexDamagedError, match="width of diffused vectors: 32, but 31"):
        load_snapshot(made, current_manifest(made))


def test_an_unknown_setting_is_damage(made: Path) -> None:
    altered(made, set_at("config", "synonym_treshold", 0.9))
    with pytest.raises(IndexDamagedError, match="synonym_treshold"):
        current_manifest(made)


def test_a_manifest_that_calls_itself_otherwise_is_damage(made: Path) -> None:
    altered(made, set_at("generation", 2))
    with pytest.raises(IndexDamagedError, match="calls itself generation 2"):
        current_manifest(made)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"1", b"../000001", b"0000000001x", b"\xff" * 10, b"-000000001", b"1" * 9**5]
)
def test_a_current_file_of_garbage_is_damage_that_names_it(made: Path, content: bytes) -> None:
    (made / "CURRENT").write_bytes(content)
    with pytest.raises(IndexDamagedError, match=r"CURRENT' names no generation.*ten-digit") as caught:
        current_manifest(made)
    assert len(str(caught.value)) < 1000


def test_a_generation_that_is_not_there_is_damage_that_names_its_file(made: Path) -> None:
    (made / "CURRENT").write_text("0000000009\n")
    with pytest.raises(IndexDamagedError, match=r"0000000009\.json' is missing"):
        current_manifest(made)


@pytest.mark.parametrize("name", ["CURRENT", "manifests/0000000001.json"])
def test_a_folder_in_place_of_a_file_is_damage_that_names_it(made: Path, name: str) -> None:
    (made / name).unlink()
    (made / name).mkdir()
    with pytest.raises(IndexDamagedError, match=name):
        current_manifest(made)


def test_a_folder_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, said in (
        (tmp_path, "holds no index"),
        (tmp_path / "gone", "no folder"),
        (tmp_path / "file", "is a file"),
    ):
        with pytest.raises(IndexMissingError, match=said):
            current_manifest(path)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"generation": 1', '"generation": 1, "generation": 1'),
        ('"facts": 0', '"facts": NaN'),
        ('"facts": 0', '"facts": 9007199254740993'),
        ('"facts": 0', '"facts": 0, "a b": 1'),
        ('"synonym_threshold": 0.8', '"synonym_threshold": Infinity'),
        ('"width": 32', '"width": 99999999'),
        ('"generation": 1', '"generation": 9999999999'),
        ('"program": "0.1"', f'"program": "{"x" * 5000}"'),
        ("0" * 64, "0" * 63 + "G"),
        ('"diffusion": null', '"diffusion": {"damping": 1.0, "error": 0.1, "sources": {}}'),
        ('"diffusion": null', '"diffusion": {"damping": 0.5, "error": 1e999, "sources": {}}'),
        ('"diffusion": null', '"diffusion": {"damping": 0.5, "error": ' + "9" * 400 + ', "sources": {}}'),
        ('"diffusion": null', '"diffusion": {"damping": true, "error": 0.1, "sources": {}}'),
    ],
)
def test_a_value_that_no_writer_writes_is_damage_told_in_short(good: str, bad: str) -> None:
    text = to_json(MANIFEST).decode()
    assert good in text
    with pytest.raises(IndexDamagedError, match=r"0000000001\.json") as caught:
        from_json(text.replace(good, bad, 1).encode(), PATH)
    assert len(str(caught.value)) < 800


def test_a_format_of_thousands_of_digits_is_damage() -> None:
    with pytest.raises(IndexDamagedError, match="names no format"):
        from_json(b'{"format": ' + b"9" * 4000 + b"}", PATH)


def test_the_settings_of_an_index_are_those_it_was_made_with(made: Path) -> None:
    assert current_manifest(made).config == IndexConfig()
