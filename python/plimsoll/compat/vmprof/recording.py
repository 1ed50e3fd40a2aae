"""A recording as vmprof's users start it: into a file of theirs that is open, in vmprof's format.

It is recorded as any other, into a private temporary file, and converted at the end: only then are all names known. A
program that is killed leaves that file (plimsoll-*.plim in the temporary directory), which ``plimsoll show`` reads.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Optional

from plimsoll import _core, _recording
from plimsoll.compat.vmprof import writing
from plimsoll.compat.vmprof.targets import RealTimeThreads, path_of

_MOST_HZ = 100000.0
_RSS_INTERVAL_S = 0.01
NATIVE_BY_DEFAULT = True


class Recording:
    """The one recording."""

    def __init__(self, fileno: int, period: float, memory: bool, lines: bool, native: bool, real_time: bool) -> None:
        import tempfile

        self.fileno = fileno
        self._wish = writing.Wish(lines=lines, memory=memory)
        self._is_native = native
        self._descriptor = os.dup(fileno)  # by the time of stop() the number may stand for another file
        temporary, self._path = tempfile.mkstemp(prefix="plimsoll-", suffix=".plim")
        os.close(temporary)
        self._file = _identity(self._descriptor)  # so may ours, in a program that closes all descriptors
        self.real_time_threads: Optional[RealTimeThreads] = None
        options = _recording.Options(path=self._path, rate_hz=min(1 / period, _MOST_HZ),
                                     mode="wall" if real_time else "cpu", native=native, sources=False)
        if memory:
            options.rss_interval_s = _RSS_INTERVAL_S
        try:
            self.core = _recording.start(options)
        except BaseException:
            self._close()
            raise
        if real_time:
            self.real_time_threads = RealTimeThreads(self.core)
            self.real_time_threads.insert(threading.get_ident())

    def profile_path(self) -> Optional[str]:
        """The path of the file; None if it has none."""
        return path_of(self._descriptor)

    def stop(self) -> None:
        """Ends the recording and writes the file. OSError if that fails."""
        try:
            if _recording.active() is self.core:
                _recording.stop()
            # What an exit handler or a full disk has stopped already is in the file.
            rest = memoryview(self._converted())
            if not self._is_ours():
                raise OSError("the program has closed the file that the profile was to be written to")
            while rest:
                rest = rest[os.write(self._descriptor, rest):]
        finally:
            self._close()

    def _converted(self) -> bytes:
        data = _core.ProfileData.open(self._path)
        if self._is_native:
            data = data.with_folded_native()
        if self.real_time_threads is not None:
            data = data.in_spans(self.real_time_threads.spans())
        return writing.rewrite(data.convert(format="vmprof", path=""), self._wish)

    def abandon(self) -> None:
        """In a child made by fork: the recording and its files are the parent's."""
        if self._is_ours():
            os.close(self._descriptor)

    def _is_ours(self) -> bool:
        try:
            return _identity(self._descriptor) == self._file
        except OSError:
            return False

    def _close(self) -> None:
        if self._is_ours():
            os.close(self._descriptor)
        try:
            os.unlink(self._path)
        except FileNotFoundError:  # somebody tidied up
            pass


def _identity(descriptor: int) -> "tuple[int, int]":
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino


# ---- the one there is ----

_lock = threading.RLock()
_active: Optional[Recording] = None
_is_hooked = False


def active() -> Optional[Recording]:
    """The recording that start() began, if stop() has not ended it."""
    return _active


def native_unsupported(real_time: bool) -> str:
    """Why native frames cannot be recorded; empty if they can."""
    return "in real-time mode there are none" if real_time else _core.native_unsupported()


def start(fileno: int, period: float, memory: bool, lines: bool, native: bool, real_time: bool) -> None:
    """Starts recording. ValueError if it is going on."""
    global _active
    with _lock:
        if _active is not None:
            raise ValueError("vmprof is already enabled")
        _active = Recording(fileno, period, memory, lines, native, real_time)
        _hook()


def stop() -> None:
    """Ends the recording, if there is one."""
    global _active
    with _lock:
        recording, _active = _active, None
        if recording is not None:
            recording.stop()


def _hook() -> None:
    global _is_hooked
    if not _is_hooked:
        _is_hooked = True
        atexit.register(_stop_at_exit)
        os.register_at_fork(after_in_child=_forget_in_child)


def _stop_at_exit() -> None:
    try:
        stop()
    except Exception as error:
        print(f"plimsoll: the profile is not written: {error}", file=sys.stderr)


def _forget_in_child() -> None:
    global _active, _lock
    recording, _active = _active, None
    _lock = threading.RLock()
    if recording is not None:
        recording.abandon()
