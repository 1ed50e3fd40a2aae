"""spprof's Python interface, recorded by Plimsoll.

::

    from plimsoll.compat import spprof

    spprof.start(interval_ms=5)
    work()
    spprof.stop().save("profile.json")

All threads are recorded, whether they register or not, with names and current lines; samples have measured weights.
Native frames are recorded after ``set_native_unwinding(True)``, where :func:`native_unwinding_available`.
"""

from __future__ import annotations

import functools
import json
import os
import platform as _platform
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, Sequence, TypeVar, Union

import plimsoll

if TYPE_CHECKING:
    PathLike = Union[str, "os.PathLike[str]"]
    F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "AggregatedProfile", "AggregatedStack", "Frame", "NativeFrame", "Profile", "Profiler", "ProfilerStats", "Sample",
    "StackTrace", "ThreadProfiler", "capture_native_stack", "is_active", "native_unwinding_available",
    "native_unwinding_enabled", "profile", "register_thread", "set_native_unwinding", "start", "stats", "stop",
    "unregister_thread",
]

_NS_PER_MS = 1_000_000
_NO_STACK = 0xFFFFFFFF


@dataclass(frozen=True)
class Frame:
    """A function at a line."""

    function_name: str
    filename: str
    lineno: int
    is_native: bool = False

    def _text(self) -> str:
        name = f"[native] {self.function_name}" if self.is_native else self.function_name
        has_place = self.filename and self.lineno and not self.is_native
        return f"{name} ({self.filename}:{self.lineno})" if has_place else name


@dataclass(frozen=True)
class Sample:
    """One sample. Times in nanoseconds since the start."""

    timestamp_ns: int
    thread_id: int
    thread_name: Optional[str]
    #: Innermost first.
    frames: Sequence[Frame]
    #: The CPU time that it stands for; 0 is one interval.
    weight_ns: int = 0


@dataclass
class ProfilerStats:
    """How a recording is going."""

    collected_samples: int
    dropped_samples: int
    duration_ms: float
    #: CPU time of the profiler's own threads, in percent of the duration. Measured.
    overhead_estimate_pct: float


@dataclass(frozen=True)
class StackTrace:
    """A stack of a thread."""

    frames: tuple[Frame, ...]
    thread_id: int
    thread_name: Optional[str] = None


@dataclass
class AggregatedStack:
    """A stack of a thread, and how often it was sampled."""

    frames: Sequence[Frame]
    thread_id: int
    thread_name: Optional[str]
    count: int
    #: The CPU time of those samples; 0 is one interval for each.
    weight_ns: int = 0


class _Saved:
    """What a profile can be written as."""

    interval_ms: int

    def _stacks(self) -> Iterable[AggregatedStack]:
        raise NotImplementedError

    def to_speedscope(self) -> dict[str, Any]:
        """A document for speedscope.app: a profile for each thread, with outermost frames first."""
        frames: dict[Frame, int] = {}
        threads: dict[int, dict[str, Any]] = {}
        for stack in self._stacks():
            thread = threads.setdefault(stack.thread_id, {
                "type": "sampled", "name": stack.thread_name or f"Thread-{stack.thread_id}", "unit": "nanoseconds",
                "startValue": 0, "endValue": 0, "samples": [], "weights": []})
            weight = stack.weight_ns or stack.count * self.interval_ms * _NS_PER_MS
            thread["samples"].append([frames.setdefault(frame, len(frames)) for frame in reversed(stack.frames)])
            thread["weights"].append(weight)
            thread["endValue"] += weight
        table = [{"name": frame.function_name, "file": frame.filename, "line": frame.lineno} for frame in frames]
        return {"$schema": "https://www.speedscope.app/file-format-schema.json", "version": "1.0.0",
                "shared": {"frames": table}, "profiles": list(threads.values()), "name": "spprof profile",
                "exporter": f"plimsoll {plimsoll.__version__}"}

    def to_collapsed(self) -> str:
        """A line for each stack, outermost frame first, with its number of samples: for flame graphs."""
        counts: dict[str, int] = {}
        for stack in self._stacks():
            if stack.frames:
                line = ";".join(frame._text() for frame in reversed(stack.frames))
                counts[line] = counts.get(line, 0) + stack.count
        return "\n".join(f"{line} {count}" for line, count in sorted(counts.items()))

    def save(self, path: PathLike, format: str = "speedscope") -> None:
        """Writes a file: ``speedscope`` or ``collapsed``. ValueError for another format."""
        from plimsoll import _core

        if format == "speedscope":
            text = json.dumps(self.to_speedscope())
        elif format == "collapsed":
            text = self.to_collapsed()
        else:
            raise ValueError(f"Unknown format: {format}")
        _core.write_file(os.fsdecode(path), text.encode("utf-8", "replace"))


@dataclass
class AggregatedProfile(_Saved):
    """A profile with each stack once."""

    start_time: datetime
    end_time: datetime
    interval_ms: int
    stacks: list[AggregatedStack]
    total_samples: int
    dropped_count: int
    python_version: str
    platform: str

    def _stacks(self) -> Iterable[AggregatedStack]:
        return self.stacks

    @property
    def unique_stack_count(self) -> int:
        return len(self.stacks)

    @property
    def compression_ratio(self) -> float:
        """Samples for each stack."""
        return self.total_samples / len(self.stacks) if self.stacks else 1.0

    @property
    def memory_reduction_pct(self) -> float:
        """How many percent fewer stacks there are than samples."""
        return (1 - len(self.stacks) / self.total_samples) * 100 if self.total_samples else 0.0


@dataclass
class Profile(_Saved):
    """What was recorded."""

    start_time: datetime
    end_time: datetime
    interval_ms: int
    samples: list[Sample]
    dropped_count: int
    python_version: str
    platform: str
    #: The same, with all that Plimsoll knows of it.
    recording: Optional[plimsoll.Profile] = field(default=None, repr=False, compare=False)

    def _stacks(self) -> Iterable[AggregatedStack]:
        for one in self.samples:
            yield AggregatedStack(one.frames, one.thread_id, one.thread_name, 1, one.weight_ns)

    @property
    def sample_count(self) -> int:
        return len(self.samples)

    @property
    def total_duration_ms(self) -> float:
        return (self.end_time - self.start_time).total_seconds() * 1000

    @property
    def effective_rate_hz(self) -> float:
        """Samples per second of the recording."""
        seconds = self.total_duration_ms / 1000
        return self.sample_count / seconds if seconds > 0 else 0.0

    def aggregate(self) -> AggregatedProfile:
        """Each stack of each thread once, with its number of samples."""
        stacks: dict[StackTrace, AggregatedStack] = {}
        for one in self._stacks():
            key = StackTrace(tuple(one.frames), one.thread_id, one.thread_name)
            known = stacks.setdefault(key, AggregatedStack(list(one.frames), one.thread_id, one.thread_name, 0))
            known.count += one.count
            known.weight_ns += one.weight_ns or self.interval_ms * _NS_PER_MS
        return AggregatedProfile(self.start_time, self.end_time, self.interval_ms, list(stacks.values()),
                                 self.sample_count, self.dropped_count, self.python_version, self.platform)


# ---- recording ----


class _Session:
    """A recording that is going on."""

    def __init__(self, interval_ms: int, output_path: Optional[PathLike], memory_limit_mb: int) -> None:
        self.interval_ms = interval_ms
        self.output_path = output_path
        self.start_time = datetime.now()
        self._is_native = _is_native
        self.profiler = plimsoll.Profiler(rate_hz=max(1000 / interval_ms, 1.0), memory_mb=max(1, memory_limit_mb),
                                          native=self._is_native, sources=False)
        self.profiler.start()

    def stop(self) -> Profile:
        recording = self.profiler.stop()
        if self._is_native:
            recording = recording.with_folded_native()
        dropped = sum(count for count, _ in self.profiler.statistics.drops.values())
        return Profile(self.start_time, datetime.now(), self.interval_ms, _samples(recording), dropped,
                       _platform.python_version(),
                       f"{_platform.system()}-{_platform.release()}-{_platform.machine()}", recording)


def _samples(recording: plimsoll.Profile) -> list[Sample]:
    stacks: dict[int, tuple[Frame, ...]] = {_NO_STACK: ()}
    result = []
    columns = recording.samples
    for time_ns, thread, stack, weight_ns in zip(columns.time_ns, columns.thread, columns.stack, columns.weight_ns):
        if stack not in stacks:
            stacks[stack] = tuple(
                Frame(frame.function.name, frame.function.file, frame.line, frame.function.kind == "native")
                for frame in reversed(recording.frames_of(stack)))
        owner = recording.threads[thread]
        result.append(Sample(time_ns, owner.os_tid, owner.name or None, stacks[stack], weight_ns))
    return result


_lock = threading.Lock()
_session: Optional[_Session] = None


def start(interval_ms: int = 10, output_path: Optional[PathLike] = None, memory_limit_mb: int = 100) -> None:
    """Starts recording CPU time.

    :param interval_ms: milliseconds of a thread's CPU time between its samples, at least 1, at most 1000.
    :param output_path: where :func:`stop` saves the profile, too.
    :param memory_limit_mb: for the profiler's buffers.

    RuntimeError if a recording is active; ValueError for another interval, or such a limit; PermissionError if the path
    is not writable.
    """
    global _session
    if not 1 <= interval_ms <= 1000:
        raise ValueError("interval_ms must be >= 1" if interval_ms < 1 else "interval_ms must be <= 1000")
    with _lock:
        if is_active():
            raise RuntimeError("Profiler already running")
        is_new = False
        if output_path is not None:
            output_path = os.path.abspath(os.fsdecode(output_path))  # the program may go to another directory
            is_new = not os.path.lexists(output_path)
            _check_writable(output_path)
        try:
            _session = _Session(interval_ms, output_path, memory_limit_mb)
        except ValueError as error:
            if not plimsoll.is_active():  # what was asked for makes no sense
                raise
            raise RuntimeError(str(error)) from None  # somebody else's recording
        finally:
            if is_new and output_path is not None and not is_active():
                os.unlink(output_path)  # an empty file would look like a profile


def _check_writable(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "ab"):
            pass
    except OSError as error:
        raise PermissionError(f"Cannot write to {path}: {error}") from error


def stop() -> Profile:
    """Ends the recording and returns it. RuntimeError if there is none."""
    global _session
    with _lock:
        session, _session = _session, None
        if session is None or not session.profiler.is_active:
            raise RuntimeError("Profiler not running")
        result = session.stop()
    if session.output_path is not None:
        result.save(session.output_path)
    return result


def is_active() -> bool:
    """Whether this module is recording."""
    return _session is not None and _session.profiler.is_active


def stats() -> Optional[ProfilerStats]:
    """How the recording is going; None if there is none."""
    session = _session
    if session is None or not session.profiler.is_active:
        return None
    now = session.profiler.statistics
    overhead = now.profiler_cpu / now.duration * 100 if now.duration > 0 else 0.0
    return ProfilerStats(now.samples, sum(count for count, _ in now.drops.values()), now.duration * 1000, overhead)


class Profiler:
    """Records a ``with`` block; its ``profile`` is there afterwards."""

    def __init__(self, interval_ms: int = 10, output_path: Optional[PathLike] = None,
                 memory_limit_mb: int = 100) -> None:
        self._options = (interval_ms, output_path, memory_limit_mb)
        self._profile: Optional[Profile] = None

    def __enter__(self) -> Profiler:
        start(*self._options)
        return self

    def __exit__(self, *_: object) -> None:
        self._profile = stop()

    @property
    def profile(self) -> Optional[Profile]:
        """What was recorded; None before the end of the block."""
        return self._profile


def profile(interval_ms: int = 10, output_path: Optional[PathLike] = None) -> Callable[[F], F]:
    """Decorates a function: each call is recorded, and saved if there is a path."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def record_call(*args: Any, **kwargs: Any) -> Any:
            with Profiler(interval_ms, output_path):
                return function(*args, **kwargs)

        return record_call  # type: ignore[return-value]

    return decorate


# ---- threads: all of them are recorded ----


def register_thread() -> bool:
    """True: this thread is recorded anyhow."""
    return True


def unregister_thread() -> bool:
    """True. The thread is recorded until it ends."""
    return True


class ThreadProfiler:
    """For ``with``, around what a thread does. It is recorded anyhow."""

    def __enter__(self) -> ThreadProfiler:
        return self

    def __exit__(self, *_: object) -> None:
        pass


# ---- native frames ----


@dataclass(frozen=True)
class NativeFrame:
    """A function that is not Python's. ``offset`` is of the instruction, in bytes from the function's beginning, or of
    the file where the function has no name."""

    ip: int
    symbol: str
    filename: str
    offset: int
    resolved: bool


def native_unwinding_available() -> bool:
    """Whether native frames can be recorded: on x86-64."""
    return not _why_no_native()


def native_unwinding_enabled() -> bool:
    """Whether the next recording has native frames."""
    return _is_native


def set_native_unwinding(enabled: bool) -> None:
    """Records native frames from the next :func:`start` on: those by which Python called libraries.

    RuntimeError if they cannot be recorded, and says why.
    """
    global _is_native
    if enabled:
        _check_native()
    _is_native = bool(enabled)


def capture_native_stack() -> list[NativeFrame]:
    """The native functions that this thread is in now, innermost first: those of Python itself, which are not in a
    profile, and of what called it. Takes some milliseconds.

    RuntimeError as above.
    """
    _check_native()
    from plimsoll import _core

    return [NativeFrame(ip, symbol, filename, offset, bool(symbol))
            for ip, symbol, filename, offset in _core.native_stack()]


_is_native = False


def _why_no_native() -> str:
    from plimsoll import _core

    return _core.native_unsupported()


def _check_native() -> None:
    why_not = _why_no_native()
    if why_not:
        raise RuntimeError(f"Native unwinding not available: {why_not}")
