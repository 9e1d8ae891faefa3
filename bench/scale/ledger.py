"""What has been done in a work folder, and what it took: DIR/stages.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
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


class Ledger:
    """The stages of a work folder by name, kept on disk at every change."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        held = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        self._stages = {name: _stage(value) for name, value in held.get("stages", {}).items()}
        self.predicted: dict[str, Any] = held.get("predicted", {})

    def stage(self, name: str, digest: str) -> Stage:
        """What is known of a stage under these settings; what was done under others is forgotten with the next note."""
        held = self._stages.get(name)
        return held if held is not None and held.digest == digest else Stage(digest, (), None)

    def note(self, name: str, stage: Stage) -> None:
        self._stages[name] = stage
        self._write()

    def finished(self) -> dict[str, Stage]:
        """The stages that are done, by name."""
        return {name: stage for name, stage in self._stages.items() if stage.said is not None}

    def predict(self, name: str, value: Mapping[str, Any]) -> None:
        """Keeps predictions by stage; one that was made before stays as it was."""
        self.predicted[name] = {**value, **self.predicted.get(name, {})}
        self._write()

    def _write(self) -> None:
        stages = {
            name: {"digest": stage.digest, "tries": [one._asdict() for one in stage.tries], "said": stage.said}
            for name, stage in self._stages.items()
        }
        whole = {"stages": stages, "predicted": self.predicted}
        write_atomically(self._path, json.dumps(whole, indent=1).encode())


def _stage(value: Mapping[str, Any]) -> Stage:
    return Stage(value["digest"], tuple(Taken(**one) for one in value["tries"]), value["said"])


def digest_of(*parts: Sequence[str] | Mapping[str, Any] | str | int) -> str:
    """Eight hex digits that stand for settings."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
