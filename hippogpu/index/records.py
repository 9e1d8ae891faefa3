"""The record of each passage, read from the logs when it is asked for."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.disk import open_plain
from hippogpu.errors import ExtractionError
from hippogpu.openie.log_lines import decode_record, read_line
from hippogpu.openie.places import Keys
from hippogpu.types import Longs, Record

NOWHERE = -1


class Records(Sequence[Record | None]):
    """One record a passage, None where there is none; nothing of them is held.

    keys       : (P,) the passages' content keys · logs: the logs that have records
    log        : (P,) which of them has the passage's, NOWHERE for none · begin, end: (P,) its line · crc: its checksum
    elsewhere  : records that no log has, by passage
    """

    def __init__(
        self,
        keys: Keys,
        logs: Sequence[Path],
        log: NDArray[np.int16],
        begin: Longs,
        end: Longs,
        crc: NDArray[np.uint32],
        elsewhere: Mapping[int, Record],
    ) -> None:
        self._keys, self._logs, self._elsewhere = keys, logs, elsewhere
        self._log, self._begin, self._end, self._crc = log, begin, end, crc
        self._contents: dict[int, mmap.mmap] = {}

    def __len__(self) -> int:
        return len(self._log)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        at = range(len(self))[i]
        found = self._elsewhere.get(at)
        if found is not None:
            return found
        return None if self._log[at] == NOWHERE else self._read(at)

    def digest(self) -> str:
        """What tells these records from any others: 32 hex digits of the texts they are of and of their lines."""
        told = blake2b(digest_size=16)
        for column in (self._keys, self._log, self._begin, self._end, self._crc):
            told.update(np.ascontiguousarray(column).view(np.uint8).data)
        told.update(repr([path.name for path in self._logs]).encode())
        told.update(repr(sorted(self._elsewhere.items())).encode("utf-8", "surrogatepass"))
        return told.hexdigest()

    def _read(self, at: int) -> Record:
        log = int(self._log[at])
        if log not in self._contents:
            self._contents[log] = _mapped(self._logs[log])
        found = read_line(self._contents[log][int(self._begin[at]) : int(self._end[at])])
        if isinstance(found, str):
            raise ExtractionError(f"'{self._logs[log]}' was altered while it was read: {found}. Run again.")
        return decode_record(found.record)


def _mapped(path: Path) -> mmap.mmap:
    try:
        handle = open_plain(path)
        try:
            return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        raise ExtractionError(f"The extraction log '{path}' cannot be read ({error}). Run again.") from error
