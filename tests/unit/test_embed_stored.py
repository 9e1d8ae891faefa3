"""The encoder that an index names is followed only where it can do no harm, or where the user names it too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_server import Seen, embedding_server, hashing_reply
from small_index import PASSAGES, Saying

from hippogpu import Index, Searcher
from hippogpu.cli import app
from hippogpu.embed import embedder_from_name
from hippogpu.embed.stored import stored_embedder
from hippogpu.errors import UsageError
from hippogpu.testing.cli import run_verb


@pytest.fixture
def served(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str, list[Seen]]]:
    """An index whose manifest names a server, that server, and the requests it has had since."""
    monkeypatch.setenv("HIPPOGPU_EMBED_API_KEY", "a key")
    with embedding_server(hashing_reply) as (url, seen):
        spec = f"http:{url}#model"
        with Index.open(root, extractor=Saying(), embedder=embedder_from_name(spec), encoder_spec=spec) as index:
            index.add(PASSAGES)
            index.commit()
        seen.clear()
        yield root, spec, seen


def test_an_address_that_only_the_index_names_is_sent_nothing(served: tuple[Path, str, list[Seen]]) -> None:
    root, spec, seen = served
    with pytest.raises(UsageError, match=r"your key.*--encoder 'http:.*HIPPOGPU_ENCODER="):
        Searcher.open(root)
    ran = run_verb(app, "search", str(root), "who?")
    assert (ran.code, spec in ran.err, seen) == (2, True, [])


def test_an_address_that_the_user_names_too_is_used(served: tuple[Path, str, list[Seen]]) -> None:
    root, spec, seen = served
    assert run_verb(app, "search", str(root), "who?", "--encoder", spec, "-q").code == 0
    assert seen[0].headers["authorization"] == "Bearer a key"


def test_an_encoder_of_the_environment_is_trusted(
    served: tuple[Path, str, list[Seen]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, spec, _ = served
    monkeypatch.setenv("HIPPOGPU_ENCODER", f"st:another {spec}")
    assert Searcher.open(root).rank(["who?"])[0].hits
    assert run_verb(app, "index", str(root), str(root / "none.jsonl")).code == 1


def test_writing_verbs_send_nothing_either(served: tuple[Path, str, list[Seen]], tmp_path: Path) -> None:
    root, _, seen = served
    (tmp_path / "c.jsonl").write_text('{"_id": "new", "text": "new"}\n')
    assert run_verb(app, "index", str(root), str(tmp_path / "c.jsonl"), "--extractor", "none").code == 2
    assert run_verb(app, "delete", str(root), "p1", "--diffuse", "never", "-q").code == 0
    assert seen == []


@pytest.mark.parametrize("spec", ["minilm", "hashing", "hashing:7"])
def test_an_encoder_that_contacts_nobody_needs_no_word(spec: str, tmp_path: Path) -> None:
    assert stored_embedder(spec, "x", tmp_path).width


@pytest.mark.parametrize(
    "spec",
    [
        "st:someone/model",
        "vllm:someone/model?dtype=auto",
        "http:http://a.example#m",
        "http://a.example#m",
        "pickle:x",
        "-",
    ],
)
def test_any_other_needs_one(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="An index from someone else"):
        stored_embedder(spec, "x", tmp_path)


def test_an_encoder_made_in_python_must_be_passed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="made in Python"):
        stored_embedder("", "mine", tmp_path)
