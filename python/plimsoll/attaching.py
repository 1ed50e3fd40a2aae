"""Recordings of other processes: :func:`attach`.

The program ``plimsoll attach`` does the work in a process of its own: nothing of it runs in the target, unless
allocations are to be recorded, nor under this interpreter's lock.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import weakref
from typing import TYPE_CHECKING, Optional, Union

from plimsoll import _program
from plimsoll._core import UnsupportedError

if TYPE_CHECKING:
    from types import TracebackType

    from plimsoll.profiles import Profile

    PathLike = Union[str, "os.PathLike[str]"]

_LONGEST_END_S = 10.0

# The exit codes of src/cli/exit_code.h.
_FINE, _USAGE, _NO_PERMISSION, _NO_SAMPLES, _BAD_INPUT = 0, 2, 3, 4, 5


class Attachment:
    """A recording of another process, made by :func:`attach`. It goes on until :meth:`stop`, the end of its ``with``
    block, its duration, or the end of either process, whichever comes first. One without a path ends, too, when nobody
    has it any more: nobody could read it.
    """

    #: Those that go on into files with names, whether or not anybody has them.
    _going_on: "set[Attachment]" = set()

    def __init__(self, pid: int, path: Optional[PathLike], words: "list[str]") -> None:
        program = _program.find()
        #: The process that is recorded.
        self.pid = pid
        # A directory that only this user can look into.
        self._directory = tempfile.mkdtemp(prefix="plimsoll-") if path is None else None
        self._path = os.path.join(self._directory or "", f"{pid}.plim") if path is None else os.path.abspath(path)
        self._profile: "Optional[Profile]" = None
        command = [program, "attach", str(pid), "-o", self._path, *words]
        self._recorder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True, start_new_session=True)
        # Who drops it without a word, or ends, leaves no process behind, nor a file without a name.
        self._finalizer = weakref.finalize(self, _discard, self._recorder, self._directory, os.getpid())
        assert self._recorder.stderr is not None
        said = ""
        for line in self._recorder.stderr:  # it may have to say what it waits for
            if line.startswith("plimsoll: recording"):
                self._keep()
                return
            said += line
        code = self._recorder.wait()
        self._finalizer()
        raise _error(code, said)

    def _keep(self) -> None:
        if self._directory is None:
            self._going_on.difference_update([each for each in self._going_on if not each.is_active])
            self._going_on.add(self)

    @property
    def is_active(self) -> bool:
        """Whether it still records."""
        return self._recorder.poll() is None

    def stop(self) -> "Profile":
        """Ends the recording, if it has not ended, and returns the profile. May be called again."""
        if self.is_active:
            self._recorder.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout: Optional[float] = None) -> "Profile":
        """Waits for the end of the recording, and returns the profile.

        :param timeout: in seconds.
        :raises subprocess.TimeoutExpired: if it goes on for longer; the recording does go on.
        """
        if self._profile is None:
            _, said = self._recorder.communicate(timeout=timeout)
            # A profile without samples is one.
            if self._recorder.returncode not in (_FINE, _NO_SAMPLES):
                raise _error(self._recorder.returncode, said)
            from plimsoll.profiles import Profile

            self._profile = Profile.open(self._path)
            self._finalizer()
            self._going_on.discard(self)
        return self._profile

    @property
    def profile(self) -> "Profile":
        """What was recorded, once it has ended; ends it."""
        return self.stop()

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(self, kind: "Optional[type[BaseException]]", error: Optional[BaseException],
                 traceback: "Optional[TracebackType]") -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<plimsoll.Attachment: process {self.pid}, {'recording' if self.is_active else 'ended'}>"


def _discard(recorder: "subprocess.Popen[str]", directory: Optional[str], owner: int) -> None:
    if os.getpid() != owner:  # the child of a fork has no part in it
        return
    if directory is None:  # its file is to be whole
        recorder.terminate()
        try:
            recorder.wait(_LONGEST_END_S)
        except subprocess.TimeoutExpired:
            pass
    recorder.kill()
    recorder.wait()
    if recorder.stderr is not None:
        recorder.stderr.close()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _error(code: int, said: str) -> Exception:
    """What the program's exit code and last words mean to Python."""
    text = "\n".join(line[len("plimsoll: "):] if line.startswith("plimsoll: ") else line for line in said.splitlines())
    if code == _USAGE:
        return ValueError(text)
    if code == _NO_PERMISSION:
        return PermissionError(text)
    if code == _BAD_INPUT and text.startswith("there is no process"):
        return ProcessLookupError(text)
    return UnsupportedError(text)


def attach(pid: int, path: "Optional[PathLike]" = None, *, rate_hz: Optional[float] = None, mode: str = "cpu",
           duration: Optional[float] = None, apart: bool = False, native: bool = False, max_depth: int = 2048,
           sources: bool = True, alloc_bytes: int = 0, native_memory: bool = False,
           max_overhead: float = 0.2) -> Attachment:
    """Records a process that runs already, from outside::

        with plimsoll.attach(pid) as recording:
            ...  # whatever the process does meanwhile
        print(recording.profile.tree())

        profile = plimsoll.attach(pid, duration=10).wait()

    No code runs in the process, nothing is written into it, and it is not stopped (but for native frames) - unless its
    allocations are to be recorded: these it must record itself, by code that its main thread is made to run. It returns
    once looking has begun.

    :param pid: its number; CPython 3.9 to 3.15, whatever version this one is.
    :param path: the profile's file. Without one a temporary file is used, which is gone once it has been read.
    :param rate_hz: looks per second, 1 to 100000; 1000 by default, with native frames 100.
    :param mode: ``cpu``, ``wall`` or ``gil``, as for :class:`plimsoll.Profiler`.
    :param duration: ends after so many seconds.
    :param apart: look from other CPUs than the process's own: takes no time from it, and loses fast functions.
    :param native: native frames, too; threads that run are stopped while their stacks are copied.
    :param max_depth: frames kept of a stack, innermost first.
    :param sources: keep the text of the profiled files in the profile.
    :param alloc_bytes: sample allocations, too, one in so many bytes on average; CPython 3.14 and later, our version.
    :param native_memory: those that C libraries make by malloc, too; needs `alloc_bytes`.
    :param max_overhead: the part of a CPU that looks may take: where they would take more, as with very many threads,
        there are fewer.
    :raises ProcessLookupError: there is no such process.
    :raises FileNotFoundError: the program ``plimsoll`` is not installed.
    :raises PermissionError: it may not be looked at; the error says what would allow it.
    :raises UnsupportedError: it is no Python, or none that can be recorded.
    :raises ValueError: the arguments make no sense.
    """
    if not 0 < max_overhead <= 1:
        raise ValueError(f"max_overhead is a part of a CPU, more than 0 and at most 1, not {max_overhead!r}")
    words = ["--mode", mode, "--max-depth", str(max_depth)]
    if alloc_bytes == 0:  # else it is recorded from inside
        words += ["--max-overhead", f"{max_overhead * 100:.12g}"]
    if rate_hz is not None:
        words += ["-r", f"{rate_hz:.12g}"]
    if duration is not None:
        words += ["-d", f"{duration:.12g}"]
    if apart:
        words.append("--apart")
    if native:
        words.append("--native")
    if not sources:
        words.append("--no-sources")
    if alloc_bytes != 0:
        words.append(f"--alloc={alloc_bytes}")
    elif native_memory:
        raise ValueError("native_memory needs alloc_bytes")
    if native_memory:
        words.append("--native-memory")
    return Attachment(pid, path, words)
