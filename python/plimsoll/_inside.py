"""Recordings of a process that runs already, from inside it: ``plimsoll attach PID --alloc``.

Two sides live here. ``main`` is the profiler's: ``python -m plimsoll._inside``, started by src/cli/attach.cc with an
interpreter of the target's version. It has the target run scripts (``sys.remote_exec``, CPython 3.14 and later), which
call ``prepare``, ``begin`` and ``end`` there, in its main thread, when that comes to an instruction of Python at which
signals are looked at. What came of it the target writes into a pipe that only its user may open.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    import argparse
    from typing import Callable, Optional

_PREPARED, _BEGUN, _ENDED = "prepared", "begun", "ended"
_LONGEST = 1 << 16  # bytes of what the target says
_SCRIPT = "script.py"  # beside the pipe


# ---- in the target ----


def prepare(pipe: str) -> None:
    """Imports what a recording needs, and makes room for it, in a thread of its own: the program goes on between one
    module and the next."""
    import _thread  # threading's own would be one of the program's threads, for which it waits at its end

    def load() -> None:
        from plimsoll import _core, _recording  # noqa: F401 - that it is loaded is all that is wanted

        _core.grow_descriptor_table()  # while the program goes on

    _thread.start_new_thread(_answer, (pipe, load, _PREPARED))


_listened_to: "Optional[tuple[str, str]]" = None  # the pipe, and the file of the recording


def begin(pipe: str, settings: "dict[str, str]") -> None:
    """Starts a recording, unless whoever asked for it has gone; and has it ended when they have."""

    def start() -> None:
        global _listened_to
        from plimsoll import _recording

        listener = os.open(pipe, os.O_NONBLOCK | os.O_NOFOLLOW | os.O_WRONLY)
        try:
            recording = _recording.start(_recording.Options().with_texts(settings))
        except BaseException:
            os.close(listener)
            raise
        _listened_to = pipe, settings["path"]
        recording.watch_listener(listener)

    _answer(pipe, start, _BEGUN)


def end_unheard() -> None:
    """Ends that recording, if it goes on: whoever asked for it was killed. Called by src/python/session_binding.cc."""
    if _listened_to is None:
        return
    from plimsoll import _recording

    pipe, path = _listened_to
    if _recording.is_into(path):
        _recording.stop()
    try:
        os.unlink(pipe)  # or is it gone already? Then they wait for a script to be run, which is to stay
        os.unlink(os.path.join(os.path.dirname(pipe), _SCRIPT))
        os.rmdir(os.path.dirname(pipe))
    except OSError:
        pass


def end(pipe: str, path: str) -> None:
    """Ends that recording, if it goes on."""

    def stop() -> None:
        from plimsoll import _recording

        if _recording.is_into(path):
            _recording.stop()

    _answer(pipe, stop, _ENDED, is_wanted_anyway=True)


def _answer(pipe: str, action: "Callable[[], None]", done: str, is_wanted_anyway: bool = False) -> None:
    """Does it, and says `done`, or what came in between. Nothing is done if nobody listens, unless it is to be."""
    answer = _open(pipe)
    if answer < 0 and not is_wanted_anyway:
        return
    said = done
    try:
        action()
    except Exception as error:  # the program must run, whatever happens here
        said = str(error) or type(error).__name__
    if answer < 0:
        return
    try:
        os.write(answer, said.replace("\n", " ").encode("utf-8", "replace")[:4000] + b"\n")
    except OSError:
        pass
    finally:
        os.close(answer)


def _open(pipe: str) -> int:
    """What to answer into, or -1 if nobody listens."""
    flags = os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        listened_to = os.open(pipe, flags | os.O_WRONLY)
    except OSError:
        return -1
    try:
        # A reader of its own, so that there is no SIGPIPE if the other one goes meanwhile: programs may end by that.
        return os.open(pipe, flags | os.O_RDWR)
    except OSError:
        return -1
    finally:
        os.close(listened_to)


# ---- the profiler's side ----


class _Gone(Exception):
    """The target has ended."""


class _Interrupted(Exception):
    """Ctrl-C, or a polite kill; or the command that has started us is no more."""


class _Target:
    """A process that runs scripts for us, one at a time."""

    def __init__(self, pid: int) -> None:
        import signal
        import tempfile

        self._pid = pid
        self._process = os.pidfd_open(pid)
        self._signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        self._directory = tempfile.mkdtemp(prefix="plimsoll-")
        self.pipe = os.path.join(self._directory, "answers")
        self._script = os.path.join(self._directory, _SCRIPT)
        os.mkfifo(self.pipe, 0o600)
        self._answers = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._said = b""
        self._is_left = False
        self._parent = os.getppid()

    def hand_over(self) -> None:
        """The target's user must be able to read the script and to answer, nobody else; and must not put anything else
        in their place, so that the directory stays ours."""
        theirs = os.stat(f"/proc/{self._pid}")
        if theirs.st_uid != os.geteuid():
            os.chmod(self._directory, 0o711)
            os.chown(self.pipe, theirs.st_uid, theirs.st_gid, follow_symlinks=False)
        try:
            is_same = os.path.samefile(self._directory, f"/proc/{self._pid}/root{self._directory}")
        except OSError:
            is_same = False
        if not is_same:
            raise OSError(f"process {self._pid} sees other files than this one (a container, or a private /tmp): "
                          "run plimsoll where it runs")

    def give_up(self) -> None:
        """When it comes to it, it takes the files away, and does nothing else of what it has not done yet."""
        self._have_run(f"import shutil\nshutil.rmtree({self._directory!r}, ignore_errors=True)\n")
        self.leave()

    def leave(self) -> None:
        """The script is to be run when it comes to it; whoever finds no pipe leaves that there."""
        self._is_left = True
        try:
            os.unlink(self.pipe)
        except FileNotFoundError:  # it has come to it
            pass

    def close(self) -> None:
        """Leaves no file behind, but for those of a script that is still to be run."""
        import shutil

        if not self._is_left:
            shutil.rmtree(self._directory, ignore_errors=True)
        os.close(self._answers)
        os.close(self._process)

    def run(self, call: str, *arguments: object) -> None:
        """Has the target call a function of this module as soon as it can."""
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        words = ", ".join(repr(argument) for argument in (self.pipe, *arguments))
        self._have_run("import os, sys\n"
                       "place = []\n"
                       "try:\n"
                       "    try:\n"
                       "        import plimsoll\n"
                       "    except ImportError:\n"
                       f"        place = [{package!r}]\n"
                       "    sys.path += place\n"
                       "    try:\n"
                       "        from plimsoll import _inside\n"
                       "    finally:\n"
                       "        for one in place: sys.path.remove(one)\n"
                       f"    _inside.{call}({words})\n"
                       "except Exception as error:\n"  # there is none of ours to answer with
                       f"    answer = os.open({self.pipe!r}, os.O_WRONLY | os.O_NONBLOCK)\n"
                       "    os.write(answer, f'{error}\\n'.encode())\n"
                       "    os.close(answer)\n")

    def _have_run(self, text: str) -> None:
        """Instead of what it was to run, if it has not come to that."""
        script = os.open(self._script, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(script, text.encode())
            theirs = os.stat(f"/proc/{self._pid}")
            os.fchown(script, theirs.st_uid, theirs.st_gid)
        finally:
            os.close(script)
        vars(sys)["remote_exec"](self._pid, self._script)  # of 3.14 and later; stubs of earlier ones lack it

    def answer(self, patience_s: float, waiting: str) -> str:
        """What it says next. Says `waiting` once if that takes a while; TimeoutError if it takes longer than that."""
        import time

        began, has_told = time.monotonic(), False
        while b"\n" not in self._said:
            self._wait(0.02)
            try:
                self._said += os.read(self._answers, 4096)
            except BlockingIOError:
                pass
            if len(self._said) > _LONGEST:
                raise OSError("it says too much")
            waited = time.monotonic() - began
            if waited > 1 and not has_told:
                has_told = True
                _notice(waiting)
            if waited > patience_s:
                raise TimeoutError
        line, _, self._said = self._said.partition(b"\n")
        # It may say what it likes; the terminal is ours.
        return "".join(letter if letter.isprintable() else "?" for letter in line.decode("utf-8", "replace"))

    def wait(self, seconds: "Optional[float]") -> None:
        """For so long, or without an end."""
        import time

        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            self._wait(0.1 if end is None else max(0.0, min(0.1, end - time.monotonic())))

    def _wait(self, seconds: float) -> None:
        import select
        import signal

        if select.select([self._process], [], [], 0)[0]:
            raise _Gone
        if signal.sigtimedwait(self._signals, seconds) is not None:
            raise _Interrupted
        if os.getppid() != self._parent:  # said once, like a signal
            self._parent = os.getppid()
            raise _Interrupted


def _notice(text: str) -> None:
    print(f"plimsoll: {text}", file=sys.stderr, flush=True)


def _arguments() -> "argparse.Namespace":
    import argparse

    parser = argparse.ArgumentParser(prog="python -m plimsoll._inside", description="Used by plimsoll attach --alloc.")
    parser.add_argument("pid", type=int)
    parser.add_argument("version", help="of the target's Python: 3.14")
    parser.add_argument("settings", nargs="+", help="of the recording: name=value")
    parser.add_argument("--duration", type=float)
    return parser.parse_args()


def main() -> int:
    """The exit codes are those of src/cli/exit_code.h."""
    given = _arguments()
    settings = dict(word.split("=", 1) for word in given.settings)
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if ours != given.version:
        _notice(f"process {given.pid} runs Python {given.version}, this plimsoll is installed for {ours}, and code can "
                f"be run in a process by its own version only: use a plimsoll that is installed for {given.version}")
        return 1
    from plimsoll import _core

    target = None
    # Else the target would stand still until the kernel has made itself ready for its perf events.
    counter = _core.open_idle_counter()
    try:
        target = _Target(given.pid)
        target.hand_over()
        return _record(target, given.pid, settings, given.duration)
    except _Gone:
        _notice(f"process {given.pid} has ended, or runs another program now")
        return 0
    except PermissionError as error:
        _notice(f"process {given.pid} may not be written to: {error}")
        return 3
    except (OSError, RuntimeError) as error:
        _notice(f"process {given.pid} could not be made to record: {error}")
        return 1
    finally:
        if target is not None:
            target.close()
        if counter >= 0:
            os.close(counter)


def _record(target: _Target, pid: int, settings: "dict[str, str]", duration: "Optional[float]") -> int:
    busy = f"waiting until the main thread of process {pid} runs Python code, not C (Ctrl-C gives up)"
    for call, arguments, hoped in (("prepare", (), _PREPARED), ("begin", (settings,), _BEGUN)):
        target.run(call, *arguments)
        try:
            said = target.answer(float("inf"), busy)
        except _Interrupted:
            target.give_up()
            _notice("given up: it is not recorded")
            return 1
        if said != hoped:
            _notice(f"process {pid} is not recorded: {said}")
            return 1
    _notice(f"recording process {pid} (Python {sys.version.split()[0]}) from inside, into {settings['path']}; "
            "Ctrl-C ends it")
    try:
        target.wait(duration)
    except _Interrupted:
        pass
    target.run("end", settings["path"])
    try:
        said = target.answer(30, busy)
    except (_Interrupted, TimeoutError):
        target.leave()
        _notice(f"process {pid} has not come to Python code: its recording goes on, into {settings['path']}, until it "
                "comes to some, or ends")
        return 1
    if said != _ENDED:
        _notice(f"the recording did not end well: {said}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
