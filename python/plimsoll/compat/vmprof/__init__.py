"""vmprof's Python interface, recorded by Plimsoll: the same names, defaults, units and errors.

::

    from plimsoll.compat import vmprof

    with open("app.prof", "w+b") as file:
        vmprof.enable(file.fileno(), period=0.001, lines=True)
        work()
        vmprof.disable()
    print(vmprof.read_profile("app.prof").get_tree())

A program that says ``import vmprof`` itself gets this one after :func:`plimsoll.compat.install_as_vmprof`.
docs/vmprof.md has what differs.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Iterable, Optional
from weakref import WeakValueDictionary

from plimsoll.compat.vmprof import profiler as profiler, reader as reader, stats as stats
from plimsoll.compat.vmprof.profiler import (Profiler as Profiler, VMProfError as VMProfError,
                                             read_profile as read_profile)
from plimsoll.compat.vmprof.stats import Node as Node, Stats as Stats

TYPE_CHECKING = False  # as elsewhere in this package
if TYPE_CHECKING:
    from types import CodeType

    from plimsoll.compat.vmprof.targets import RealTimeThreads

__all__ = [
    "DEFAULT_PERIOD", "Node", "Profiler", "Stats", "VMProfError", "disable", "enable", "get_profile_path",
    "insert_real_time_thread", "is_enabled", "read_profile", "remove_real_time_thread", "resolve_addr",
    "resolve_many_addr", "sample_stack_now", "start_sampling", "stop_sampling",
]

#: In seconds. Not a millisecond, so that work with that period cannot hide.
DEFAULT_PERIOD = 0.00099


def _recorder() -> Any:
    """The module that records: PyPy has a sampler of its own."""
    if sys.implementation.name == "pypy":
        from plimsoll.compat.vmprof import pypy

        return pypy
    from plimsoll.compat.vmprof import recording

    return recording


def enable(fileno: int, period: float = DEFAULT_PERIOD, memory: bool = False, lines: bool = False,
           native: Optional[bool] = None, real_time: bool = False, warn: bool = True) -> None:
    """Starts recording into an open file.

    :param period: seconds between samples, 0.000001 to 1; below 0.00001 it is 0.00001.
    :param memory: the memory in use with each sample.
    :param lines: the current line of each frame.
    :param native: native functions, too: those by which libraries were entered. None: where they can be
        recorded, and not on PyPy.
    :param real_time: all time, not CPU time, of this thread and of those given to :func:`insert_real_time_thread`.
    :param warn: say it if native frames were asked for and cannot be recorded here (RuntimeWarning).

    ValueError if recording is going on, the period is none, or the file cannot be written.
    """
    from plimsoll.compat.vmprof.targets import check_descriptor

    if not isinstance(period, float):
        raise ValueError(f"period must be a float, not {type(period)}")
    check_descriptor(_descriptor(fileno), native is None or bool(native))
    if not 1e-6 <= period < 1.0:
        raise ValueError("bad value for 'interval'")
    recorder = _recorder()
    why_not = recorder.native_unsupported(bool(real_time))
    if native and warn and why_not:
        import warnings

        warnings.warn(f"no native frames in this profile: {why_not}", RuntimeWarning, stacklevel=2)
    wants_native = recorder.NATIVE_BY_DEFAULT if native is None else bool(native)
    recorder.start(fileno, period, bool(memory), bool(lines), wants_native and not why_not, bool(real_time))


def _descriptor(fileno: int) -> int:
    if not isinstance(fileno, int):
        raise TypeError(f"'{type(fileno).__name__}' object cannot be interpreted as an integer")
    return fileno


def disable() -> None:
    """Stops recording and writes the file, which stays open. Without a recording, does nothing."""
    _recorder().stop()


def is_enabled() -> bool:
    """Whether this process is being recorded by :func:`enable`."""
    return _recorder().active() is not None


def get_profile_path() -> Optional[str]:
    """The path of the file that is being recorded into; None if there is none."""
    active = _recorder().active()
    path: Optional[str] = None if active is None else active.profile_path()
    return path


# ---- real-time mode ----


def _real_time_threads() -> RealTimeThreads:
    active = _recorder().active()
    if active is None:
        raise ValueError("vmprof is not enabled")
    threads: Optional[RealTimeThreads] = active.real_time_threads
    if threads is None:
        raise ValueError("vmprof is not in real time mode")
    return threads


def insert_real_time_thread(thread_id: int = 0) -> int:
    """Samples this thread, too, by its ``threading.Thread.ident``; 0 is the caller. How many that makes; -1 if it is
    sampled already. ValueError if nothing is being recorded, or not in real time."""
    return _real_time_threads().insert(thread_id or threading.get_ident())


def remove_real_time_thread(thread_id: int = 0) -> int:
    """Samples this thread no longer. How many are left; -1 if it was not sampled. ValueError as above."""
    return _real_time_threads().remove(thread_id or threading.get_ident())


# ---- pausing ----


def stop_sampling() -> int:
    """Takes no samples until :func:`start_sampling` has been called as often. The file's descriptor; -1 if there is no
    recording."""
    active = _recorder().active()
    if active is None:
        return -1
    active.core.pause()
    return int(active.fileno)


def start_sampling() -> None:
    """Takes back one :func:`stop_sampling`."""
    active = _recorder().active()
    if active is not None:
        active.core.resume()


# ---- addresses ----

#: Code that sample_stack_now has seen, as long as it lives.
_seen: WeakValueDictionary[int, CodeType] = WeakValueDictionary()


def sample_stack_now(skip: int = 0) -> list[int]:
    """The addresses of the caller's stack, innermost first, without the first ``skip``; for :func:`resolve_addr`."""
    frame = sys._getframe(1)
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back  # type: ignore[assignment]
    for code in codes:
        _seen[id(code)] = code
    return [id(code) for code in codes[skip:]]


def resolve_addr(addr: int) -> tuple[str, int, str]:
    """(name, line, file) of a native function or of code that :func:`sample_stack_now` returned; the name is empty if
    there is none. Of a native function line is 0 and file its library."""
    code = _seen.get(addr)
    if code is not None:
        return code.co_name, code.co_firstlineno, code.co_filename
    return _symbol_at(addr)


def resolve_many_addr(addrs: Iterable[int]) -> dict[int, tuple[str, int, str]]:
    """:func:`resolve_addr` of each."""
    return {addr: resolve_addr(addr) for addr in addrs}


def _symbol_at(addr: int) -> tuple[str, int, str]:
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                    ("address", ctypes.c_void_p)]

    info = Info()
    try:
        dladdr = ctypes.CDLL(None).dladdr
    except (AttributeError, OSError):
        return "", 0, "-"
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(Info)]
    if not dladdr(addr, ctypes.byref(info)):
        return "", 0, "-"
    return os.fsdecode(info.name or b""), 0, os.fsdecode(info.file or b"-")
