"""The stages of an index of a size: which program each is, in which order, and what it says when it is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.scale.corpus import CORPUS, QUESTIONS, RECORDS
from bench.scale.ledger import digest_of

ENCODER = "hashing:384"
BUILDING = ("generate", "extract", "index", "diffuse", "verify")
SEED, QUESTIONS_ASKED, CHECKED = 0, 256, 32
CHECK_AT_MOST = 20_000
"""The largest index whose rankings are held against a float64 solution."""

EXACT: Mapping[str, str] = {}
COMPACT = {
    "passage_vectors": "float16",
    "phrase_vectors": "float16",
    "fact_vectors": "int8",
    "synonym_search": "cells",
    "fact_search": "ivfpq",
}
SETTINGS: Mapping[str, Mapping[str, str]] = {"exact": EXACT, "compact": COMPACT}


class Case(NamedTuple):
    """An index to be made: of so many passages, by settings of that name."""

    passages: int
    settings: str
    values: Mapping[str, str | int | float | bool]
    encoder: str = ENCODER

    @property
    def name(self) -> str:
        return f"{self.passages}-{self.settings}"

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.values, self.encoder, SEED, QUESTIONS_ASKED)

    def toml(self) -> str:
        lines = (f"{key} = {_toml(value)}\n" for key, value in self.values.items())
        return "[index]\n" + "".join(lines)


def _toml(value: str | int | float | bool) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


class Places(NamedTuple):
    """Where a case's files lie. corpus is shared by all cases of a size."""

    corpus: Path
    config: Path
    index: Path


def places(work: Path, case: Case) -> Places:
    """Under the work folder; other settings under a name have other folders."""
    name = f"{case.name}-{case.digest}"
    return Places(work / f"{case.passages}-corpus", work / f"{name}.toml", work / f"{name}.hippo")


def building(case: Case, at: Places) -> dict[str, list[str]]:
    """The programs that make an index, in order."""
    hippogpu = [sys.executable, "-m", "hippogpu"]
    index = [*hippogpu, "index", str(at.index), str(at.corpus / CORPUS), "--config", str(at.config), "--json"]
    index += ["--encoder", case.encoder, "--backend", "cpu"]
    corpus = [sys.executable, "-m", "bench.scale.corpus", str(at.corpus), "--passages", str(case.passages)]
    return {
        "generate": [*corpus, "--seed", str(SEED), "--questions", str(QUESTIONS_ASKED)],
        "extract": [*index, "--openie", str(at.corpus / RECORDS), "--extract-only"],
        "index": [*index, "--diffuse", "never"],
        "diffuse": [*hippogpu, "diffuse", str(at.index), "--backend", "cpu", "--json"],
        "verify": [*hippogpu, "verify", str(at.index), "--full", "--json"],
    }


def checking(case: Case, at: Places) -> dict[str, list[str]]:
    """The comparison of all solvers with a float64 solution, where the size allows it."""
    if case.passages > CHECK_AT_MOST:
        return {}
    result = str(at.index.with_suffix(".agreement.json"))
    words = [sys.executable, "-m", "bench", "agreement", str(at.index), "--queries", str(some_questions(at))]
    return {"agreement": [*words, "--json", result]}


def asking(at: Places, cases: Sequence[str]) -> dict[str, list[str]]:
    """A process for each way to ask, and one for the search of facts."""
    words = [sys.executable, "-m", "bench.scale.asking", str(at.index), str(at.corpus / QUESTIONS)]
    return {f"ask {case}": [*words, case] for case in (*cases, "facts")}


def some_questions(at: Places) -> Path:
    return at.corpus / f"first-{CHECKED}-{QUESTIONS}"
