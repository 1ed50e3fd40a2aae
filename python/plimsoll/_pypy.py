"""Recording on PyPy, by what is built into it: ``_vmprof``, which samples, and ``_jitlog``, a log of what its JIT does.

They write beside the profile, into FILE.vmprof and FILE.jit, and PyPy's own log into FILE.pypylog, of which
``plimsoll run`` makes the profile when the program has ended, however it ended; see src/cli/pypy_files.cc.
"""

from __future__ import annotations

import atexit
import os
import struct
import sys
import time

import _vmprof

from plimsoll import _session_facts
from plimsoll._pypy_files import RecordingFile, move_log

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

_LONGEST_PERIOD_S = 0.999
_SHORTEST_PERIOD_S = 1e-6
_LEAST_ROOM_BYTES = 16 << 20  # some minutes of samples
_OFTEN_S = 0.01  # how often --mem asks for the memory in use
_TRAILER = b"\3"
_LOG = "PYPYLOG"
_TRAILER_BYTES = 1 + 24
#: What each setting that this recorder has nothing for is called, and what it is if nobody has set it.
_NOT_HERE = {"engine": ("--engine", "auto"), "safe_mode": ("--safe-mode", ""), "max_overhead": ("--max-overhead", "0"),
             "duration_s": ("--duration", "0"), "tasks": ("--tasks", ""), "alloc_exact": ("--alloc=exact", ""),
             "alloc_events": ("--alloc=events", ""), "native_memory": ("--native-memory", ""),
             "max_depth": ("--max-depth", "2048"), "memory_mb": ("--memory-limit", "16")}


class _Active:
    """What is being recorded."""

    def __init__(self, path: str, settings: dict[str, str], has_log: bool) -> None:
        self.has_log = has_log
        self.is_native = bool(settings.get("native"))
        self.profile = RecordingFile(path + ".vmprof")
        self.jitlog = RecordingFile(path + ".jit") if settings.get("jitlog") else None


_active: Optional[_Active] = None


def start(path: str, settings: dict[str, str], path_of_children: str) -> None:
    """Starts the recording of this process, which is the only one; child processes that are started anew will record
    into path_of_children, with "%d" for their ids, if it is not empty. ValueError for a mode that PyPy does not have;
    OSError if a file cannot be written, or the disk is nearly full."""
    global _active
    has_log = "pypylog" in settings and _take_log(path, path_of_children)  # which PyPy writes whatever comes of this
    mode = settings.get("mode", "cpu")
    if mode not in ("cpu", "wall"):
        raise ValueError(f"PyPy records CPU time or all time: --mode cpu or wall, not {mode}")
    missing = [option for name, (option, unset) in _NOT_HERE.items() if settings.get(name, unset) != unset]
    if missing:
        print(f"plimsoll: on PyPy there is no {', '.join(missing)}", file=sys.stderr)
    _check_room(os.path.dirname(path) or ".")
    now = _Active(path, settings, has_log)
    _enable(now.profile.descriptor, settings)
    facts = [b"\7" + _text("plimsoll." + name) + _text(value) for name, value in _facts()]
    os.write(now.profile.descriptor, b"".join(facts))  # at once: ticks write there, too
    if now.jitlog is not None:
        import _jitlog

        _jitlog.enable(now.jitlog.descriptor)
        _compile_a_loop()
    if now.has_log:
        _mark_clock()
    _active = now
    atexit.register(_stop_at_exit)
    os.register_at_fork(after_in_child=_after_fork_in_child)
    _wrap_exec()
    _wrap_signals(mode == "wall" and not _samples_allocations(settings))


def _facts() -> "list[tuple[str, str]]":
    """What is known of the session, and of the process, whose number PyPy does not write."""
    return [*_session_facts.facts(), ("pid", str(os.getpid())), ("parent_pid", str(os.getppid()))]


def _wrap_exec() -> None:
    """The sampler's timer goes on when the process becomes another program, which its signal kills: nobody handles it
    there. So the recording ends before that."""
    import posix

    for name in ("execv", "execve"):
        ours = _stopping(getattr(posix, name))
        setattr(os, name, ours)
        setattr(posix, name, ours)


def _wrap_signals(is_wall: bool) -> None:
    """There is one timer for a process, and one handler of its signal: with the program's handler in place of the
    sampler's that would be called at each tick. So the recording ends before the program takes either."""
    import _signal

    name, timer = ("SIGALRM", _signal.ITIMER_REAL) if is_wall else ("SIGPROF", _signal.ITIMER_PROF)
    number = getattr(_signal, name)

    def giving_up(original: Callable[..., Any], takes: Callable[..., bool]) -> Callable[..., Any]:
        def give_up_and_call(*words: Any) -> Any:
            if _active is not None and takes(*words):
                _stop_early()
                _say(f"the program uses {name}, and so does PyPy's sampler: what follows is not recorded")
            return original(*words)

        return give_up_and_call

    ours = {"signal": giving_up(_signal.signal, lambda which=None, *_: which == number),
            "setitimer": giving_up(_signal.setitimer, lambda which=None, *_: which == timer)}
    if is_wall:
        ours["alarm"] = giving_up(_signal.alarm, lambda *_: True)
    loaded = sys.modules.get("signal")
    for function, call in ours.items():
        if loaded is not None and getattr(loaded, function) is getattr(_signal, function):
            setattr(loaded, function, call)
        setattr(_signal, function, call)


def _stop_early() -> None:
    """Ends the recording while the program goes on, which may be as another one. The sampler leaves its signals
    ignored, which those that are started would inherit."""
    import _signal

    _stop_at_exit()
    for number in (_signal.SIGPROF, _signal.SIGALRM):
        try:
            if _signal.getsignal(number) == _signal.SIG_DFL:  # as far as the program knows
                _signal.signal(number, _signal.SIG_DFL)
        except ValueError:
            pass  # only the main thread may


def _stopping(become: Callable[..., Any]) -> Callable[..., Any]:
    def stop_and_become(path: Any, *words: Any, **names: Any) -> Any:
        # (os.execvp tries one directory after the other.)
        stops = _active is not None and (isinstance(path, int) or os.access(path, os.X_OK) and not os.path.isdir(path))
        if stops:
            _stop_early()
        try:
            return become(path, *words, **names)
        finally:
            if stops:
                _say("the program has not become another one: what follows is not recorded")

    return stop_and_become


def _check_room(directory: str) -> None:
    """PyPy's sampler waits for ever, and the program with it, when what it writes finds no room."""
    disk = os.statvfs(directory)
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < _LEAST_ROOM_BYTES:
        raise OSError(f"less than {_LEAST_ROOM_BYTES >> 20} MiB are free in {directory}: PyPy's sampler would stop the "
                      "program for ever where the disk is full")


def _samples_allocations(settings: dict[str, str]) -> bool:
    return int(settings.get("alloc_bytes", "0")) > 0 and hasattr(_vmprof, "enable_allocation_triggered")


def _compile_a_loop() -> None:
    """Lets the JIT compile a loop of ours, of which the log tells. A loop that is too long to be unrolled is logged as
    a part of the trace before it; where there is none yet, PyPy aborts the process, with the program in it."""
    done = 0
    while done < 2000:  # by itself the JIT compiles what has gone round 1,039 times
        done += 1


def _enable(profile: int, settings: dict[str, str]) -> None:
    period = min(max(1 / float(settings.get("rate_hz", "1000")), _SHORTEST_PERIOD_S), _LONGEST_PERIOD_S)
    has_memory = float(settings.get("rss_interval_s", "1")) <= _OFTEN_S
    is_native = bool(settings.get("native"))
    if _samples_allocations(settings):
        if settings.get("mode") == "wall":
            _say("with --alloc PyPy records CPU time: there is no --mode wall")
        _vmprof.enable_allocation_triggered(profile, int(settings["alloc_bytes"]), period, is_native, has_memory)
        return
    if int(settings.get("alloc_bytes", "0")):
        print("plimsoll: this PyPy cannot sample allocations: there is no --alloc", file=sys.stderr)
    _vmprof.enable(profile, period, has_memory, False, is_native, settings.get("mode") == "wall")


def _mark_clock() -> None:
    """Tells PyPy's log (PYPYLOG) the time of day, as the name of a section: its own clock counts ticks of unknown
    length.

    Two marks when a program starts give their length roughly, which is what remains of a program that is killed;
    one at its end gives it exactly.
    """
    _section(f"plimsoll-clock-{time.time_ns()}")


def _section(section: str) -> None:
    import __pypy__

    __pypy__.debug_start(section)
    __pypy__.debug_stop(section)


def _take_log(path: str, path_of_children: str) -> bool:
    """Whether PyPy's log is the one that belongs to the profile: a child's may have been wanted elsewhere."""
    logs = [f"+{name}.pypylog" for name in (path, path_of_children)]
    if os.environ.get(_LOG, logs[0]) not in logs:
        return False
    _mark_clock()
    move_log()
    if path_of_children:
        os.environ[_LOG] = logs[1]
    else:
        os.environ.pop(_LOG, None)  # the log is this process's
    os.register_at_fork(before=_before_fork, after_in_parent=_restore_log, after_in_child=_leave_log)
    return True


def _before_fork() -> None:
    """In a child that is made by fork PyPy opens its log anew: where the variable says, or else on stderr."""
    os.putenv(_LOG, "+" + os.devnull)


def _leave_log() -> None:
    _section("plimsoll-fork")  # opens it, if that has not happened yet
    _restore_log()


def _restore_log() -> None:
    if _LOG in os.environ:
        os.putenv(_LOG, os.environ[_LOG])
    else:
        os.unsetenv(_LOG)


def _stop_at_exit() -> None:
    global _active
    now, _active = _active, None
    if now is None:
        return
    if now.has_log:
        _mark_clock()
    if now.profile.is_ours():
        try:
            _vmprof.disable()
            if now.is_native:
                _add_native_names(now.profile.descriptor)
        except (OSError, _vmprof.VMProfError) as error:
            _say(f"the end of the recording could not be written: {error}")
    else:
        _say("the program has closed the file of its recording, which ends there")
    if now.jitlog is not None and now.jitlog.is_ours():
        import _jitlog

        _jitlog.disable()


def _say(text: str) -> None:
    try:
        if sys.stderr is not None:
            print("plimsoll: " + text, file=sys.stderr, flush=True)  # PyPy 3.9 would keep it back
    except (OSError, ValueError):
        pass  # the program has closed that, too


def _add_native_names(descriptor: int) -> None:
    """Puts them in front of the trailer, where a reader ends."""
    from plimsoll import _pypy_native

    at = os.lseek(descriptor, -_TRAILER_BYTES, os.SEEK_END)
    trailer = os.read(descriptor, _TRAILER_BYTES)
    if trailer[:1] != _TRAILER:
        return
    names = _pypy_native.names_in(descriptor).items()
    records = [b"\x08" + struct.pack("<q", address) + _text(name) for address, name in names]
    os.lseek(descriptor, at, os.SEEK_SET)
    os.write(descriptor, b"".join(records) + trailer)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return struct.pack("<q", len(data)) + data


def _after_fork_in_child() -> None:
    """The files are the parent's. What the samplers still write here when they are told to end goes nowhere.

    A second recording in this process would not know the names of code that is older, so there is none.
    """
    global _active
    now, _active = _active, None
    if now is None:
        return
    if now.profile.point_nowhere():
        try:
            _vmprof.disable()
        except _vmprof.VMProfError:
            pass  # it has closed its file in the child, and wonders
    if now.jitlog is not None and now.jitlog.point_nowhere():
        import _jitlog

        _jitlog.disable()
