"""The files that PyPy's own recorders write to, out of the program's way.

They go on writing to a descriptor, whoever has its number by then. A program that closes what it did not open, as
daemons do, gets the lowest numbers for its own files next, and those had the recording in them. So the files are moved
to high numbers, and nothing is done to one of those that has become somebody else's.
"""

from __future__ import annotations

import fcntl
import os

_FLOORS = (1000, 240, 48)  # the first one that the limit of open files allows
_F_DUPFD_CLOEXEC = getattr(fcntl, "F_DUPFD_CLOEXEC", 1030)  # PyPy of Python 3.9 does not name it


class RecordingFile:
    """A new file, for a recorder that wants a descriptor."""

    def __init__(self, path: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        low = os.open(path, flags, 0o600)
        self._identity = _identity(low)
        high = _high_copy(low)
        if high != low:
            os.close(low)
        self.descriptor = high

    def is_ours(self) -> bool:
        """Whether the descriptor is still that of the file."""
        return _identity(self.descriptor) == self._identity

    def point_nowhere(self) -> bool:
        """For a child process: what is still written goes nowhere. False if the descriptor is somebody else's."""
        now = _identity(self.descriptor)
        if now is not None and now != self._identity:
            return False
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        if nowhere != self.descriptor:  # _vmprof closes its file in a child, and so its number is free
            os.dup2(nowhere, self.descriptor, inheritable=False)
            os.close(nowhere)
        return True


def _identity(descriptor: int) -> "tuple[int, int] | None":
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _high_copy(descriptor: int) -> int:
    for floor in _FLOORS:
        try:
            return fcntl.fcntl(descriptor, _F_DUPFD_CLOEXEC, floor)
        except OSError:
            continue
    return descriptor


def move_log() -> None:
    """Moves PyPy's own log (PYPYLOG), which PyPy has opened as a FILE before any of our code ran. Without its name for
    it, the log stays where it is."""
    import _rawffi  # what ctypes stands on, which would take 40 ms to import

    pointers, numbers = _rawffi.Array("P"), _rawffi.Array("i")
    process = _rawffi.CDLL(None)
    try:
        log = pointers.fromaddress(process.getaddressindll("pypy_debug_file"), 1)
    except (AttributeError, ValueError):
        return
    if not log[0]:
        return

    def call(name: str, *words: "tuple[str, int]", result: str) -> int:
        arguments = []
        for kind, value in words:
            one = (pointers if kind == "P" else numbers)(1, autofree=True)
            one[0] = value
            arguments.append(one)
        answer: int = process.ptr(name, [kind for kind, _ in words], result)(*arguments)[0]
        return answer

    old = log[0]
    low = call("fileno", ("P", old), result="i")
    high = _high_copy(low)
    if high == low:
        return
    mode = _rawffi.Array("B")(2, autofree=True)
    mode[0], mode[1] = ord("a"), 0
    new = call("fdopen", ("i", high), ("P", mode.buffer), result="P")
    if not new:
        os.close(high)
        return
    call("fflush", ("P", old), result="i")
    log[0] = new
    call("fclose", ("P", old), result="i")
