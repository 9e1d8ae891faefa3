"""How much memory this process holds, and the most it ever held (Linux).

The figure of getrusage starts at what the parent held when it started this process; /proc's does not.
"""

from __future__ import annotations

from pathlib import Path

_SELF = Path("/proc/self")


def resident_bytes() -> int:
    """Memory in use now, memory-mapped file pages among it."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """The most memory in use since the process started or the peak was forgotten."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak start again from what is in use now."""
    (_SELF / "clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = (_SELF / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) * 1024
