"""An index of each size made and asked, stage by stage; what was done before is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bench.checks import Check, at_most, equal
from bench.scale.corpus import QUESTIONS
from bench.scale.ledger import Ledger, Stage, digest_of
from bench.scale.predicting import figures_by_size, predictions
from bench.scale.stages import BUILDING, CHECKED, Case, Places, asking, building, checking, places, some_questions
from bench.scale.watching import Taken, watch
from hippogpu.errors import HippoError

SOURCE = Path(__file__).parents[2]
_TAIL = 600

Say = Callable[[str], None]


class StageFailed(HippoError):
    """A stage did not come to its end; the message has the last lines of what it said."""


class Runner:
    """Runs stages once each under a work folder, and keeps what they took."""

    def __init__(self, work: Path, *, limit_bytes: int, say: Say) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.work, self.ledger = work, Ledger(work)
        self._limit_bytes, self._say = limit_bytes, say

    def stage(self, name: str, words: Sequence[str], digest: str) -> Stage:
        """The stage when it is done: now, or before. StageFailed when its program fails or outgrows the limit."""
        held = self.ledger.stage(name, digest)
        if held.said is not None:
            self._say(f"{name}: was done before, in {sum(one.wall_s for one in held.tries):,.1f} s")
            return held
        if held.tries:
            self._say(f"{name}: goes on after {len(held.tries)} tries that were cut short")
        out, err = self._logs(name)

        def beat(taken: Taken) -> None:
            # Should this process be killed, the try stands with what it had taken.
            self.ledger.note(name, held._replace(tries=(*held.tries, taken)))

        ran = watch(words, out=out, err=err, cwd=SOURCE, limit_bytes=self._limit_bytes, beat=beat)
        stage = held._replace(tries=(*held.tries, ran.taken))
        if ran.taken.ended != "done":
            self.ledger.note(name, stage)
            said = ran.stopped or f"exit {ran.status}: {_tail(err)}"
            raise StageFailed(f"The stage '{name}' was not finished: {said}. The same command goes on with it.")
        stage = stage._replace(said=_said(out))
        self.ledger.note(name, stage)
        gib = ran.taken.anon_bytes / 2**30
        self._say(f"{name}: {ran.taken.wall_s:,.1f} s, {ran.taken.cpu_s:,.1f} s of processor, {gib:.2f} GiB")
        return stage

    def _logs(self, name: str) -> tuple[Path, Path]:
        folder = self.work / "logs"
        folder.mkdir(exist_ok=True)
        plain = name.replace("/", "-").replace(" ", "-")
        return folder / f"{plain}.out", folder / f"{plain}.err"


def build_case(runner: Runner, case: Case, *, until: str) -> dict[str, Stage]:
    """Makes one index up to that stage, foretelling what its stages will take from the smaller ones in the folder."""
    at = places(runner.work, case)
    at.config.write_text(case.toml(), encoding="utf-8")
    _foretell(runner.ledger, case)
    wanted = BUILDING[: BUILDING.index(until) + 1]
    return _run(runner, case, {name: words for name, words in building(case, at).items() if name in wanted})


def ask_case(
    runner: Runner, case: Case, methods: Sequence[str], stages: dict[str, Stage], *, again: bool = False
) -> dict[str, Any]:
    """Checks and asks an index that is made; nothing is asked of one that fails a check. All of the result.

    again : questions that were timed before are timed anew
    """
    at = places(runner.work, case)
    for name in asking(at, methods) if again else ():
        runner.ledger.forget(f"{case.name}/{name}")
    _write_some_questions(at)
    stages |= _run(runner, case, checking(case, at))
    checks = [*_checks(stages), *_agreement(at)]
    if all(check.passed for check in checks):
        stages |= _run(runner, case, asking(at, methods))
        checks += _ranked_alike(stages)
    return _result(runner, case, at, stages, checks)


def _foretell(ledger: Ledger, case: Case) -> None:
    """Keeps predictions of the stages that are not done, where a smaller size has them."""
    done = ledger.finished()
    found = predictions(figures_by_size(done, case.settings), case.passages)
    over = {name.partition("/")[2] for name in done if name.startswith((f"{case.name}/", f"{case.passages}/"))}
    open_ = {stage: value for stage, value in found.items() if stage.partition(":")[0] not in over}
    ledger.predict(f"{case.name}-{case.digest}", open_)


def _run(runner: Runner, case: Case, programs: Mapping[str, Sequence[str]]) -> dict[str, Stage]:
    found = {}
    for name, words in programs.items():
        shared = name == "generate"
        digest = digest_of(case.passages) if shared else case.digest
        found[name] = runner.stage(f"{case.passages if shared else case.name}/{name}", words, digest)
    return found


def _write_some_questions(at: Places) -> None:
    with (at.corpus / QUESTIONS).open(encoding="utf-8") as lines:
        some_questions(at).write_text("".join(islice(lines, CHECKED)), encoding="utf-8")


def _checks(stages: Mapping[str, Stage]) -> list[Check]:
    """That every passage was read and that the index is whole."""
    index, verify = stages["index"].said, stages["verify"].said
    return [
        equal("passages without a record", index["counts"]["without_record"], 0),
        equal("passages refused", len(index["refused"]), 0),
        equal("problems of verify --full", len(verify["problems"]), 0),
    ]


def _agreement(at: Places) -> list[Check]:
    """What the bench of agreement checked of this index, where it ran."""
    path = at.index.with_suffix(".agreement.json")
    return [Check(**one) for one in json.loads(path.read_text(encoding="utf-8"))["checks"]] if path.exists() else []


def _ranked_alike(stages: Mapping[str, Stage]) -> list[Check]:
    """That questions of a batch rank as they do alone."""
    asked = {name[4:]: stage.said for name, stage in stages.items() if name.startswith("ask ") and name != "ask facts"}
    return [
        equal(f"{name}: questions of a batch that rank as alone", said["as_alone"], min(CHECKED, said["questions"]))
        for name, said in asked.items()
    ]


def _result(
    runner: Runner, case: Case, at: Places, stages: Mapping[str, Stage], checks: Sequence[Check]
) -> dict[str, Any]:
    index = stages["index"].said
    files = [path for path in at.index.rglob("*") if path.is_file()]
    value: dict[str, Any] = {
        "passages": case.passages,
        "settings": {**case.values, "encoder": case.encoder},
        "checks": [check._asdict() for check in checks],
        "passed": all(check.passed for check in checks),
        "counts": index["counts"],
        "bytes": sum(path.stat().st_size for path in files),
        "file_bytes": {
            path.name.rpartition("-")[0]: path.stat().st_size for path in files if path.parent.name == "files"
        },
        "predicted": runner.ledger.predicted.get(f"{case.name}-{case.digest}", {}),
        "stages": {name: stage.value() for name, stage in stages.items()},
    }
    inner = {"stages_s": index["seconds"], "stages_peak_bytes": index.get("peak_bytes", {})}
    value["stages"]["index"] |= inner
    asked = {name: stage.said for name, stage in stages.items() if name.startswith("ask ")}
    value["questions"] = {
        name[4:]: {key: found for key, found in said.items() if key not in ("lists", "scores")}
        for name, said in asked.items()
    }
    value["alike"] = _alike(asked)
    return value


def _alike(asked: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Of the questions of both, how many name the same first 20 passages under a solver as under power."""
    power = asked.get("ask hippo2 power")
    found = {}
    for name, said in asked.items():
        if power is None or not name.startswith("ask hippo2") or said is power:
            continue
        pairs = list(zip(said["lists"], power["lists"], strict=False))
        found[name[4:]] = {
            "questions": len(pairs),
            "same_order": sum(one == other for one, other in pairs),
            "same_set": sum(set(one) == set(other) for one, other in pairs),
            "shared": round(
                sum(len(set(one) & set(other)) for one, other in pairs) / sum(len(one) for one, _ in pairs), 4
            ),
        }
    return found


def _said(out: Path) -> Any:
    """The last line of the output as JSON; a table is no such line and says nothing."""
    lines = out.read_text(encoding="utf-8").strip().splitlines()
    try:
        return json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}


def _tail(err: Path) -> str:
    return err.read_text(encoding="utf-8", errors="replace").strip()[-_TAIL:] or "it said nothing"


def limit_check(result: Mapping[str, Any], limit_bytes: int) -> Check:
    """That no stage held more than the limit."""
    most = max(stage["anon_bytes"] for stage in result["stages"].values())
    return at_most("most memory of any stage, bytes", most, limit_bytes)
