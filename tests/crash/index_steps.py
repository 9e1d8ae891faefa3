"""What a writer does to a small index: each step with the index it starts from. For faults, power cuts and kills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from small_index import PASSAGES, WIDTH, Saying, index_of, open_index, stating

from hippogpu import Index, RunConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index import clean_index, diffuse_index
from hippogpu.openie.log_lines import Line, read_lines
from hippogpu.store import logs_folder

MORE = [*PASSAGES, stating("p5", "x|y|zzz"), stating("p6", "Ada Lovelace|met|Oliver Badman")]
CHANGED = [PASSAGES[0], stating("p1", "Ada Lovelace|wrote|letters"), stating("p3", "Something|is stated|here")]


class Step(NamedTuple):
    """act is done to the index that prepare has made; loses: whether records of texts that are gone may go."""

    name: str
    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    loses: bool = False


def nothing(root: Path) -> None:
    """No index."""


def small(root: Path) -> None:
    index_of(root)


def with_older(root: Path) -> None:
    """Two generations, the older one not needed any longer."""
    index_of(root, MORE)
    delete(root)


def undiffused(root: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES)
        index.commit(diffuse="never")


def add(root: Path) -> None:
    index_of(root, MORE)


def update(root: Path) -> None:
    """And removes the generation before, which a commit else leaves for a while."""
    run, embedder = RunConfig(grace_s=0), HashingEmbedder(WIDTH)
    with Index.open(root, extractor=Saying(), embedder=embedder, run=run, encoder_spec="hashing:32") as index:
        index.add(CHANGED)
        index.commit()


def delete(root: Path) -> None:
    with open_index(root) as index:
        index.delete(["p1", "p4"])
        index.commit()


def extract(root: Path) -> None:
    with open_index(root) as index:
        index.add(MORE)
        index.extract()


def force(root: Path) -> None:
    with open_index(root) as index:
        index.commit(force="all")


def diffuse(root: Path) -> None:
    diffuse_index(root)


def collect(root: Path) -> None:
    clean_index(root, grace_s=0)


def forget(root: Path) -> None:
    clean_index(root, grace_s=0, unfinished=True, forget=True)


STEPS = (
    Step("first", nothing, small),
    Step("add", small, add),
    Step("update", small, update),
    Step("delete", small, delete),
    Step("extract first", nothing, extract),
    Step("extract more", small, extract),
    Step("force", small, force),
    Step("diffuse", undiffused, diffuse),
    Step("gc", with_older, collect),
    Step("gc forgetting", with_older, forget, loses=True),
)


def records(root: Path) -> set[str]:
    """The content keys that have a success in a log."""
    lines = (line for path in sorted(logs_folder(root).glob("*.jsonl")) for line in read_lines(path))
    return {line.key for line in lines if isinstance(line, Line) and line.record["error"] is None}
