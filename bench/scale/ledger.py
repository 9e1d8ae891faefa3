"""What has been done in a work folder, and what it took: DIR/stages.json."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.scale.watching import Taken
from hippogpu.disk import write_atomically

NAME = "stages.json"


class Stage(NamedTuple):
    """A stage's tries, and what its program said when it was done; said is None before."""

    digest: str
    tries: tuple[Taken, ...]
    said: Any

    def value(self) -> dict[str, Any]:
        """For the result: times summed over the tries, peaks and bytes as they are."""
        tries = self.tries
        return {
            "wall_s": round(sum(one.wall_s for one in tries), 2),
            "cpu_s": round(sum(one.cpu_s for one in tries), 2),
            "anon_bytes": max(one.anon_bytes for one in tries),
            "peak_bytes": max(one.peak_bytes for one in tries),
            "written_bytes": sum(one.written for one in tries),
            "load_before": tries[0].load_before,
            "began": tries[0].began,
            "tries": [one.ended for one in tries],
        }


_Held = tuple[dict[str, Stage], dict[str, dict[str, Any]]]
"""Stages by name, and what was foretold."""


class Ledger:
    """The stages of a work folder by name, kept on disk at every change; several programs may keep theirs in one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def stage(self, name: str, digest: str) -> Stage:
        """What is known of a stage under these settings; what was done under others is forgotten with the next note."""
        held = self._held()[0].get(name)
        return held if held is not None and held.digest == digest else Stage(digest, (), None)

    def finished(self) -> dict[str, Stage]:
        """The stages that are done, by name."""
        return {name: stage for name, stage in self._held()[0].items() if stage.said is not None}

    @property
    def predicted(self) -> dict[str, dict[str, Any]]:
        """What was foretold of each case, by stage."""
        return self._held()[1]

    def forget(self, name: str) -> None:
        """Lets a stage be done anew."""
        with self._changing() as (stages, _):
            stages.pop(name, None)

    def note(self, name: str, stage: Stage) -> None:
        with self._changing() as (stages, _):
            stages[name] = stage

    def predict(self, name: str, value: Mapping[str, Any]) -> None:
        """Keeps predictions by stage; one that was made before stays as it was."""
        with self._changing() as (_, predicted):
            predicted[name] = {**value, **predicted.get(name, {})}

    def _held(self) -> _Held:
        held = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        return {name: _stage(value) for name, value in held.get("stages", {}).items()}, held.get("predicted", {})

    @contextmanager
    def _changing(self) -> Iterator[_Held]:
        """What is held now, to be changed; nobody else changes it meanwhile."""
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stages, predicted = self._held()
            yield stages, predicted
            values = {
                name: {"digest": stage.digest, "tries": [one._asdict() for one in stage.tries], "said": stage.said}
                for name, stage in stages.items()
            }
            write_atomically(self._path, json.dumps({"stages": values, "predicted": predicted}, indent=1).encode())


def _stage(value: Mapping[str, Any]) -> Stage:
    return Stage(value["digest"], tuple(Taken(**one) for one in value["tries"]), value["said"])


def digest_of(*parts: Sequence[str] | Mapping[str, Any] | str | int) -> str:
    """Eight hex digits that stand for settings."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
