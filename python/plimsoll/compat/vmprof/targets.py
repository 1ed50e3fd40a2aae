"""What vmprof's users choose: the file to record into, and the threads of real-time mode."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import Any, Optional

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR  # PyPy has no O_ACCMODE

def check_descriptor(fileno: int, native: bool) -> None:
    """ValueError for a file that vmprof would not take: with native frames it reads the file again."""
    try:
        access = fcntl.fcntl(fileno, fcntl.F_GETFL) & _ACCESS
    except (OSError, ValueError, OverflowError):
        access = os.O_RDONLY
    if access == os.O_RDONLY:
        raise ValueError("file descriptor must be writeable")
    if native and access != os.O_RDWR:
        raise ValueError("file descriptor must be readable")


def path_of(descriptor: int) -> Optional[str]:
    """The path of an open file; None if it has none."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return path if path.startswith("/") else None


class RealTimeThreads:
    """The threads that are sampled in real-time mode, and since when. Threads are known by threading's ident."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._now: dict[int, int] = {}  # ident: the kernel's id, 0 if unknown
        #: (since when, kernel's ids).
        self._history: list[tuple[int, frozenset[int]]] = []

    def insert(self, ident: int) -> int:
        """How many there are now; -1 if it was there."""
        if ident in self._now:
            return -1
        self._now[ident] = _native_id(ident)
        return self._remember()

    def remove(self, ident: int) -> int:
        """How many there are now; -1 if it was not there."""
        if self._now.pop(ident, None) is None:
            return -1
        return self._remember()

    def _remember(self) -> int:
        self._history.append((self._core.stats()["duration_ns"], frozenset(self._now.values())))
        return len(self._now)

    def spans(self) -> "list[tuple[int, int, list[int]]]":
        """From when to when, in nanoseconds since the start, which threads were sampled."""
        ends = [begin for begin, _ in self._history[1:]] + [2**63 - 1]
        return [(0 if i == 0 else begin, end, list(threads))
                for i, ((begin, threads), end) in enumerate(zip(self._history, ends))]


def _native_id(ident: int) -> int:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return thread.native_id or 0
    return threading.get_native_id() if ident == threading.get_ident() else 0
