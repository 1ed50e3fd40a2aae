"""The recording of this process: options, start and stop, and the hooks that keep it right.

There is one recording at a time. Starting it installs hooks, and stopping it takes them out again: threads are
registered as they start, forks are survived, profiles are completed before ``os._exit`` and ``exec``, and garbage
collections leave markers.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal  # (before a recording: it keeps what it finds in _signal, which is not to be ours)
import sys
import threading

from plimsoll import _core, _session_facts
from plimsoll._replacing import replace
from plimsoll._session_facts import path_with_pid

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Callable, Optional


class Options:
    """How to record. ``plimsoll run --help`` and ``docs/recording.md`` explain each of them."""

    path: str = ""
    rate_hz: float = 1000.0
    mode: str = "cpu"
    engine: str = "auto"
    safe_mode: bool = False
    max_overhead: float = 0.0
    memory_mb: int = 16
    max_depth: int = 2048
    duration_s: float = 0.0
    rss_interval_s: float = 0.1
    alloc_bytes: int = 0  # mean distance of sampled allocations; 0 = they are not sampled
    alloc_exact: bool = False  # all allocations are recorded
    alloc_events: bool = False  # likewise, one by one
    native_memory: bool = False  # those by malloc, too
    native: bool = False
    sources: bool = True
    tasks: bool = False
    after_fork: str = "stop"  # or "follow"
    is_temporary: bool = False  # the file is for this process alone
    base_path: str = ""  # of the process that the recording began in, for the names of its children's profiles

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if name not in Options.__annotations__:
                raise TypeError(f"no option {name!r}")
            setattr(self, name, value)

    @property
    def has_all_allocations(self) -> bool:
        return self.alloc_exact or self.alloc_events

    def with_values(self, **values: Any) -> Options:
        """A copy in which some differ."""
        return Options(**{**self.__dict__, **values})

    def with_texts(self, texts: dict[str, str]) -> Options:
        """A copy with some read from text; a flag is set by any text but the empty one. ValueError for what is none."""
        return self.with_values(**{name: type(getattr(Options, name))(text) for name, text in texts.items()})


#: From where to where options may be.
_RANGES = {"rate_hz": (1, 100000), "max_overhead": (0, 1), "memory_mb": (1, 65536), "max_depth": (1, 65536),
           "duration_s": (0, 1e9), "rss_interval_s": (0.001, 1e9), "alloc_bytes": (0, 1 << 32)}


_CHOICES = {"mode": ("cpu", "wall", "gil"), "engine": ("auto", "perf", "cpu-timer", "timer", "reader")}


def check(options: Options) -> None:
    """TypeError or ValueError for what is no option, or a number that makes no sense."""
    if "\0" in options.path:  # the system would take what stands before it for the name
        raise ValueError("a path cannot have a null character in it")
    for name, choices in _CHOICES.items():
        if getattr(options, name) not in choices:
            raise ValueError(f'unknown {name} "{getattr(options, name)}": choose {", ".join(choices[:-1])} or '
                             f"{choices[-1]}")
    for name, default in vars(Options).items():
        if isinstance(default, bool) and not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} is True or False, not {getattr(options, name)!r}")
    for name, limits in _RANGES.items():
        value, wanted = getattr(options, name), type(getattr(Options, name))
        # (NumPy's are numbers, too.)
        if not (hasattr(value, "__index__") or wanted is float and hasattr(value, "__float__")):
            raise TypeError(f"{name} must be {'a number' if wanted is float else 'an integer'}, not {value!r}")
        if not limits[0] <= value <= limits[1]:
            raise ValueError(f"{name} is from {limits[0]} to {limits[1]}, not {value!r}")
    if options.engine == "reader" and (options.native or options.mode == "gil"):
        raise ValueError("the engine reader knows neither native frames nor who holds the GIL: choose another one")


class _Active:
    """What the hooks need of the active recording."""

    def __init__(self, options: Options, recording: _core.Recording) -> None:
        self.options = options
        self.recording = recording
        self.first = recording  # in the child of a fork that of the process which forked first
        self.process = os.getpid()
        self.undo: list[Callable[[], None]] = []
        self.standins: dict[int, Any] = {}  # by the id of the function that each stands for
        self.is_registered_at_exit = False


_lock = threading.RLock()  # held by whoever begins or ends a recording, and across a fork
_active: Optional[_Active] = None


def locked() -> Any:
    """A context in which no other thread begins or ends a recording, nor forks."""
    _leave_parents()  # (before, as it makes the lock anew)
    return _lock


def active() -> Optional[_core.Recording]:
    """The active recording, or None."""
    _leave_parents()
    now = _active
    return now.recording if now is not None and now.recording.is_active else None


def active_path(begun: _core.Recording) -> Optional[str]:
    """The file of this recording, if it is active; in the child of a fork that of the one which follows it there."""
    now = _active
    if now is None or not now.recording.is_active or begun not in (now.recording, now.first):
        return None
    return now.options.path


def is_into(path: str) -> bool:
    """Whether a recording goes on, or has come to the end of its duration, into that file."""
    now = _active
    return now is not None and now.options.path == path


def start(options: Options) -> _core.Recording:
    """Starts recording this process into ``options.path``.

    Raises ValueError if a recording is active or an option makes no sense, OSError if the file cannot be written, and
    UnsupportedError if this Python or this system cannot be profiled.
    """
    global _active
    with locked():
        if active() is not None:
            raise ValueError("a recording is active already: stop it first")
        _install_once()  # before a tick can come
        core = _make(options)
        now = _active = _Active(options, core)
        try:
            _install_hooks(now)
            _name_threads(core)
        except BaseException:  # Ctrl-C, for example
            _active = None
            _take_out(now.undo)
            core.stop()
            raise
        return core


def _make(options: Options) -> _core.Recording:
    check(options)
    known_task = None
    if options.tasks:
        from plimsoll import _tasks

        known_task = _tasks.known_task()
    try:
        return _core.Recording(
            path=options.path, rate_hz=options.rate_hz, mode=options.mode, engine=options.engine,
            safe_mode=options.safe_mode, max_overhead=options.max_overhead, memory_mb=options.memory_mb,
            max_depth=options.max_depth, duration_s=options.duration_s, rss_interval_s=options.rss_interval_s,
            alloc_bytes=options.alloc_bytes, alloc_exact=options.has_all_allocations,
            alloc_events=options.alloc_events, native_memory=options.native_memory, native=options.native,
            known_task=known_task.facts if known_task else None, sources=options.sources,
            meta=[("plimsoll", _core.version), *_session_facts.facts()], process_name=_session_facts.process_name())
    finally:
        if known_task:
            known_task.close()


def stop() -> dict[str, Any]:
    """Ends the active recording, completes its file, and returns its statistics. ValueError if there is none."""
    global _active
    with locked():
        if _active is None:
            raise ValueError("no recording is active")
        now, _active = _active, None
        try:
            _name_threads(now.recording)
            _take_out(now.undo)
            _session_facts.tell_sources(now.recording)
        finally:
            now.recording.stop()
        return now.recording.stats()


def _stop_at_exit() -> None:
    """At the end of the process: whatever is wrong with the profile is said here, as nobody else will."""
    with locked():  # another thread may be about to stop it, and is waited for
        if _active is None:
            return
        options = _active.options
        stats = stop()
    # Nobody wants the file of a child that did nothing, and nobody knows of one without a name of the program's own.
    if options.is_temporary or (stats["samples"] == 0 and options.base_path):
        try:
            os.unlink(options.path)
        except OSError:  # it is gone, or its directory is
            pass
    if stats["error"]:
        print(f"plimsoll: {stats['error']}\nplimsoll: the profile ends there", file=sys.stderr)


# ---- hooks ----


def _install_hooks(now: _Active) -> None:
    _wrap_thread_starts(now)
    _wrap_signals(now)
    _wrap_forks(now)
    if now.recording.has_reader:
        _wrap_fault_handlers(now)
    _mark_collections(now)
    if now.options.alloc_bytes or now.options.has_all_allocations:
        _wrap_loading(now)
    if now.options.tasks:
        from plimsoll import _tasks

        now.undo.extend(_tasks.install())


def _take_out(undo: list[Callable[[], None]]) -> None:
    """Takes hooks out in the reverse order; all of them, also if Ctrl-C comes meanwhile."""
    if undo:
        try:
            undo.pop()()
        finally:
            _take_out(undo)


_installed = False


def _install_once() -> None:
    """Hooks that cannot be taken out again. They look for the active recording when they are called."""
    global _installed
    if _installed:
        return
    _installed = True
    atexit.register(_stop_at_exit)
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)
    _wrap_exec()
    _wrap_exit()


def _wrap_exit() -> None:
    """os._exit runs no exit handlers; multiprocessing's forked children end with it."""
    import posix

    os._exit = posix._exit = _core.ExitCaller(os._exit, _stop_at_exit)


def _wrap_thread_starts(now: _Active) -> None:
    """Binds the ways to start a thread to callables that register it; see src/python/thread_binding.cc."""
    import _thread

    for module, name in ((_thread, "start_new_thread"), (_thread, "start_new"), (_thread, "start_joinable_thread"),
                         (threading, "_start_new_thread"), (threading, "_start_joinable_thread")):
        _wrap(now, module, name, _core.ThreadStarter)


def _wrap_forks(now: _Active) -> None:
    """From 3.12 on Python warns a program with several threads when it forks: those of the recording do not count."""
    import posix

    if sys.version_info < (3, 12):
        return
    for module in (os, posix):
        for name in ("fork", "forkpty"):
            _wrap(now, module, name, _core.ForkCaller)


def _wrap_exec() -> None:
    """Before the process becomes another program, what is recorded goes to the file, and no tick is on its way; one may
    be when a recording begins, or has just ended.

    Not by an audit hook: with one, each id() and each sys._getframe() is an event; copy.deepcopy took a sixth longer.
    """
    import posix

    for name in ("execv", "execve"):
        in_os, in_posix = getattr(os, name), getattr(posix, name)
        ours = _core.ExecCaller(in_os, _lock)
        setattr(os, name, ours)
        setattr(posix, name, ours if in_posix is in_os else _core.ExecCaller(in_posix, _lock))


def _wrap_signals(now: _Active) -> None:
    """A program that gives up its handler of SIGTERM ends by that signal as one that never had any; and one that sets,
    or waits for, all signals gets none of the recording's own."""
    underlying = sys.modules.get("_signal")
    _wrap(now, underlying, "signal", _core.SignalSetter)
    _wrap(now, underlying, "sigwait", _core.NumberWaiter)
    for module in (underlying, signal):
        _wrap(now, module, "pause", _core.PauseCaller)
        for name in ("sigwaitinfo", "sigtimedwait"):
            _wrap(now, module, name, _core.SignalWaiter)


def _wrap_loading(now: _Active) -> None:
    """Modules and libraries are looked at when they are loaded: malloc is recorded in them, their code is known, and
    some of them make interpreters that allocate at the same time."""
    import _imp

    for name in ("create_dynamic", "create_builtin"):
        _wrap(now, _imp, name, _core.Loader)
    for loaded, name in (("_ctypes", "dlopen"), ("ctypes", "_dlopen")):  # else when _ctypes is loaded
        _wrap(now, sys.modules.get(loaded), name, _core.Loader)
    for name in ("setrlimit", "prlimit"):  # likewise
        _wrap(now, sys.modules.get("resource"), name, _core.LimitSetter)


def _wrap_fault_handlers(now: _Active) -> None:
    """While faulthandler puts its handler over ours, no thread of ours reads memory that may be gone."""
    import faulthandler

    _wrap(now, faulthandler, "enable", _core.FaultHandlerSetter)


def _wrap(now: _Active, module: Any, name: str, standin: Callable[[Any], Any]) -> None:
    """What has several names, as posix.execv is os.execv, has one stand-in: pickle looks whether it is the same."""
    def ours(original: Any) -> Any:
        return now.standins.setdefault(id(original), standin(original))

    if module is not None:
        now.undo.append(replace(module, name, ours))


def _mark_collections(now: _Active) -> None:
    """Garbage collections become markers."""
    marker = _core.CollectionMarker()
    gc.callbacks.append(marker)

    def undo() -> None:
        if marker in gc.callbacks:
            gc.callbacks.remove(marker)

    now.undo.append(undo)


def _name_threads(recording: _core.Recording) -> None:
    """Tells the recording of the living threads what threading knows. Reads attributes only: runs no code of others."""
    if not recording.is_active:
        return
    for thread in list(getattr(threading, "_active", {}).values()):
        native_id = getattr(thread, "_native_id", None)
        name = thread.__dict__.get("_name")
        if native_id is not None and isinstance(name, str):
            recording.name_thread(native_id, _session_facts.in_utf8(name), thread.ident or 0)


def _after_fork_in_child() -> None:
    now = _forget()
    if now is None or not now.recording.is_active:
        return
    _abandon(now)
    if now.options.after_fork == "follow" and not _is_soon_another_program():
        try:
            base_path = now.options.base_path or now.options.path
            start(now.options.with_values(path=path_with_pid(base_path), base_path=base_path))
            if _active is not None:  # which start() has made
                _active.first = now.first
        except Exception as error:
            print(f"plimsoll: child process {os.getpid()}: {error}: it runs unprofiled", file=sys.stderr)


def _is_soon_another_program() -> bool:
    """Whether subprocess has made this child to call a preexec_fn in it: C code calls exec then, past all hooks, and
    what was recorded until then would be a profile that nobody completes. (Another Python has one of its own.)"""
    forking = sys._getframe(1).f_back  # whoever does that has called the hook, which has called us
    return (forking is not None and forking.f_code.co_name == "_execute_child"
            and forking.f_globals.get("__name__") == "subprocess")


def _forget() -> Optional[_Active]:
    """In the child of a fork: what was active in the parent is so no longer, and the lock is free."""
    global _active
    now, _active = _active, None
    _let_go_in_child()
    return now


def _abandon(now: _Active) -> None:
    try:
        _take_out(now.undo)
    finally:
        now.recording.abandon()


def _leave_parents() -> None:
    """In the child of a fork that Python was not told of, as C code makes them: the recording is the parent's."""
    if _active is not None and _active.process != os.getpid():
        now = _forget()
        if now is not None:
            _abandon(now)


_before_fork, _after_fork_in_parent, _let_go_in_child = _core.fork_hooks(_lock, _leave_parents)
