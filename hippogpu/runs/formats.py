"""The three forms of a run: how rankings become lines or rows, and how those are added durably, a batch at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet

from hippogpu.errors import UsageError
from hippogpu.types import Explanation, MassPath, Ranking, SeedShare

_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("query_id", pa.string()),
    ("rank", pa.int32()),
    ("passage_id", pa.string()),
    ("title", pa.string()),
    ("score", pa.float64()),
    ("solver", pa.string()),
    ("fallback", pa.string()),
    ("certified", pa.bool_()),
)
RUN_SCHEMA = pa.schema(_COLUMNS)


class Answer(NamedTuple):
    """A question's id and its ranking."""

    query_id: str
    ranking: Ranking


class Sink(Protocol):
    """Where the batches of one run go. position counts what is durable, in a unit of the sink's own."""

    @property
    def position(self) -> int: ...

    def write(self, answers: Sequence[Answer]) -> None:
        """Adds a batch; it is on disk when this returns."""
        ...

    def finish(self) -> Path:
        """One durable file of all that was written; nothing is added afterwards."""
        ...

    def close(self) -> None: ...


class Format(NamedTuple):
    """open takes the folder of the unfinished run and the position it goes on from; holds says if an id can be written.

    why_not ends the sentence about an id that cannot.
    """

    name: str
    open: Callable[[Path, int], Sink]
    holds: Callable[[str], bool]
    why_not: str = ""


def format_of(output: Path) -> Format:
    """The form that the output's name asks for; UsageError for another ending."""
    found = FORMATS.get(output.suffix.lower())
    if found is None:
        raise UsageError(f"'{output}' names no form of a run. End it in one of: {', '.join(FORMATS)}.")
    return found


def ranking_value(ranking: Ranking, query_id: str | None, explanations: Sequence[Explanation] = ()) -> dict[str, Any]:
    """A ranking as the JSON object of `search --json`; passages that are explained have a "why".

    Explanations of passages that are no hits stand under "explained".
    """
    passages: list[dict[str, Any]] = [
        {"id": hit.passage.id, "title": hit.passage.title, "score": hit.score} for hit in ranking.hits
    ]
    place = {passage["id"]: passage for passage in passages}
    beyond: list[dict[str, Any]] = []
    for one in explanations:
        if one.passage.id not in place:
            beyond.append({"id": one.passage.id, "title": one.passage.title, "score": one.score})
        (place.get(one.passage.id) or beyond[-1])["why"] = explanation_value(one)
    return {
        "query_id": query_id,
        "query": ranking.query,
        "method": ranking.method,
        "solver": ranking.solver,
        "fallback": ranking.fallback,
        "filter_failure": ranking.filter_failure,
        "certified": ranking.certified,
        "fact_search": ranking.fact_search,
        "generation": ranking.generation,
        "passages": passages,
        **({"explained": beyond} if beyond else {}),
        "facts": [[fact.subject, fact.predicate, fact.object] for fact in ranking.facts],
        "entities": [entity._asdict() for entity in ranking.entities],
        "seeds": [seed._asdict() for seed in ranking.seeds],
        "ms": {stage: round(spent, 3) for stage, spent in ranking.ms.items()},
    }


def explanation_value(explanation: Explanation) -> dict[str, Any]:
    """What carried mass to a passage, as "why" of `search --json`; a note alone where nothing was carried."""
    if explanation.note is not None:
        words = {"words": [word._asdict() for word in explanation.words]} if explanation.words else {}
        return {"note": explanation.note, **words}
    return {
        "note": None,
        "mass": explanation.mass,
        "evidence": [kind._asdict() for kind in explanation.evidence],
        "own": explanation.own,
        "seeds": [
            {"phrase": seed.phrase, "mass": seed.mass, "weight": seed.weight, **_made_by(seed)}
            for seed in explanation.seeds
        ],
        "others": explanation.others,
        "bound": explanation.bound,
        "paths": [_path_value(path) for path in explanation.paths],
    }


def _made_by(seed: SeedShare) -> dict[str, Any]:
    return {"facts": [list(fact) for fact in seed.facts], "entities": list(seed.entities)}


def _path_value(path: MassPath) -> dict[str, Any]:
    nodes = [
        {"phrase": node.name} if node.kind == "phrase" else {"passage": node.name, "title": node.title}
        for node in path.nodes
    ]
    steps = [
        {
            "edge": step.kind,
            "weight": step.weight,
            "cosine": step.cosine,
            "facts": [{"triple": list(fact[:3]), "passages": list(fact.passages)} for fact in step.facts],
        }
        for step in path.steps
    ]
    return {"mass": path.mass, "nodes": nodes, "steps": steps}


def json_line(answer: Answer) -> str:
    return json.dumps(ranking_value(answer.ranking, answer.query_id), ensure_ascii=False) + "\n"


def trec_lines(answer: Answer) -> str:
    """The six columns query, Q0, passage, rank from 1, score, tag: a line a passage, none when there is no passage."""
    id_, ranking = answer
    return "".join(
        f"{id_} Q0 {hit.passage.id} {rank} {hit.score!r} hippogpu-{ranking.method}\n"
        for rank, hit in enumerate(ranking.hits, start=1)
    )


def run_rows(answers: Sequence[Answer]) -> pa.Table:
    """The rows of a batch, one a passage."""
    rows = [
        (
            *(id_, rank, hit.passage.id, hit.passage.title, hit.score),
            *(ranking.solver, ranking.fallback, ranking.certified),
        )
        for id_, ranking in answers
        for rank, hit in enumerate(ranking.hits, start=1)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(RUN_SCHEMA)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, RUN_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RUN_SCHEMA)


class LineSink:
    """One growing file; its position is its size. What lies beyond the position given was cut by a kill and goes."""

    def __init__(self, folder: Path, position: int, lines_of: Callable[[Answer], str]) -> None:
        self._path, self._lines_of = folder / "rows", lines_of
        found = self._path.stat().st_size if self._path.exists() else 0
        if found < position:
            raise UsageError(f"'{self._path}' has {found} bytes, its state says {position}. Start again with --force.")
        self._file = self._path.open("ab")
        self._file.truncate(position)
        self._file.seek(position)

    @property
    def position(self) -> int:
        return self._file.tell()

    def write(self, answers: Sequence[Answer]) -> None:
        self._file.writelines(self._lines_of(answer).encode() for answer in answers)
        _to_disk(self._file)

    def finish(self) -> Path:
        self._file.close()
        return self._path

    def close(self) -> None:
        self._file.close()


class PartSink:
    """A Parquet file a batch, joined at the end; its position is their number. A part beyond it is written over."""

    def __init__(self, folder: Path, position: int) -> None:
        self._folder, self._count = folder, position
        missing = [path for path in self._parts() if not path.exists()]
        if missing:
            raise UsageError(f"'{missing[0]}' is missing, its state says it is there. Start again with --force.")

    @property
    def position(self) -> int:
        return self._count

    def write(self, answers: Sequence[Answer]) -> None:
        with self._part(self._count).open("wb") as file:
            pyarrow.parquet.write_table(run_rows(answers), file)
            _to_disk(file)
        self._count += 1

    def finish(self) -> Path:
        """A row group a batch, one held at a time."""
        path = self._folder / "rows"
        with path.open("wb") as file:
            with pyarrow.parquet.ParquetWriter(file, RUN_SCHEMA) as writer:
                for part in self._parts():
                    writer.write_table(pyarrow.parquet.ParquetFile(part).read())
            _to_disk(file)
        return path

    def close(self) -> None:
        """Nothing is held open between batches."""

    def _parts(self) -> list[Path]:
        return [self._part(number) for number in range(self._count)]

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:08d}.parquet"


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _without_spaces(id_: str) -> bool:
    return id_.split() == [id_]


def _any_id(id_: str) -> bool:
    return True


FORMATS = {
    ".jsonl": Format("jsonl", lambda folder, position: LineSink(folder, position, json_line), _any_id),
    ".trec": Format(
        "trec",
        lambda folder, position: LineSink(folder, position, trec_lines),
        _without_spaces,
        "holds white space, which separates the columns of a TREC run; write .jsonl or .parquet instead",
    ),
    ".parquet": Format("parquet", PartSink, _any_id),
}
