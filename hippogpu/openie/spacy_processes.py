"""Several processes that read passages with spaCy; one that dies costs at most the passage it died at."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from hippogpu.errors import ExtractionError
from hippogpu.openie.spacy_model import Model
from hippogpu.openie.spacy_worker import decode_records, encode_passages
from hippogpu.types import Passage, Record

_PROGRAM = "from hippogpu.openie.spacy_worker import main; main()"
_STDERR_CHARACTERS = 300
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerDied(Exception):
    """A worker's process is gone; the text says how."""


class Worker:
    """One process, and the passages it has and has not answered."""

    def __init__(self, model: Model) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
            # An interruption from the keyboard is for the program: it closes its workers itself.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self.ready = False
        self.waiting: Sequence[Passage] = ()

    def fileno(self) -> int:
        """The pipe that answers come through."""
        return self._answers.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, passages: Sequence[Passage]) -> None:
        """Sends passages to a worker that waits for none; WorkerDied when it is gone."""
        self.waiting = passages
        try:
            self._requests.write(encode_passages(passages))
            self._requests.flush()
        except BrokenPipeError as error:
            raise WorkerDied(self._epitaph()) from error

    def answer(self) -> list[Record]:
        """The records of the passages it has, waited for; WorkerDied when it is gone."""
        if not self.ready:
            self._line()
            self.ready = True
        records = decode_records(self._line())
        self.waiting = ()
        return records

    def _line(self) -> bytes:
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise WorkerDied(self._epitaph())
        return line

    def close(self) -> None:
        """Ends the process at once, and waits for it."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # The rest of a request that nobody reads any more.
            self._requests.close()
        self._answers.close()
        self._stderr.close()

    def _epitaph(self) -> str:
        code = self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return f"{how}: {lines[-1][:_STDERR_CHARACTERS]}" if lines else how


class Workers:
    """A number of workers that are fed as they come free. Leaving the context ends their processes."""

    def __init__(self, model: Model, count: int) -> None:
        self._model = model
        self._workers = [Worker(model) for _ in range(count)]
        self._again: deque[list[Passage]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.close()

    def pids(self) -> list[int]:
        """The process numbers of the workers."""
        return [worker.pid for worker in self._workers]

    def read(self, batches: Iterator[Sequence[Passage]]) -> Iterator[Record]:
        """One Record a passage, batch by batch as they are finished; as many batches are taken in as there are workers.

        The passages of a worker that died are given to a new one singly. The one that another dies at gets a Record
        with error set. ExtractionError when a worker dies before its model is loaded.
        """
        while True:
            for worker in list(self._workers):
                if not worker.waiting and (batch := self._next(batches)):
                    yield from self._asked(worker, batch)
            busy = [worker for worker in self._workers if worker.waiting]
            if not busy and not self._again:
                return
            for worker in select.select(busy, [], [])[0] if busy else ():
                yield from self._answered(worker)

    def _next(self, batches: Iterator[Sequence[Passage]]) -> Sequence[Passage]:
        return self._again.popleft() if self._again else next(batches, ())

    def _asked(self, worker: Worker, batch: Sequence[Passage]) -> list[Record]:
        try:
            worker.ask(batch)
        except WorkerDied as death:
            return self._buried(worker, death)
        return []

    def _answered(self, worker: Worker) -> list[Record]:
        try:
            return worker.answer()
        except WorkerDied as death:
            return self._buried(worker, death)

    def _buried(self, worker: Worker, death: WorkerDied) -> list[Record]:
        """Puts a new worker in the place of a dead one; the record of the passage it died at, once that is known."""
        if not worker.ready:
            raise ExtractionError(
                f"A spaCy process ended before its model '{self._model.name}' was loaded ({death}). Check that the "
                "model loads in Python and that there is memory for it, or use fewer processes."
            ) from death
        lost = worker.waiting
        worker.close()
        self._workers[self._workers.index(worker)] = Worker(self._model)
        if len(lost) > 1:
            self._again.extend([passage] for passage in lost)
            return []
        error = f"the spaCy process died at this passage ({death})"
        return [Record(passage.id, (), error=error) for passage in lost]
