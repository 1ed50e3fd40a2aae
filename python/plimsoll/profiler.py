"""Recording from within a program: :class:`Profiler`, :func:`profile`, and functions for the one active recording.

There is one recording at a time in a process, as there is one set of timers and one signal. All functions may be
called from any thread.
"""

from __future__ import annotations

import functools
import os

from plimsoll import _recording

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, Mapping, Optional, TypeVar, Union

    from plimsoll.profiles import Profile

    F = TypeVar("F", bound=Callable[..., Any])
    PathLike = Union[str, "os.PathLike[str]"]


# Endings of what other tools read, which a recording is not.
_FOREIGN_ENDINGS = (".json", ".gz", ".collapsed", ".vmprof")


class Statistics:
    """A look at a recording. Times are in seconds."""

    samples: int
    #: CPU time that the samples stand for.
    sampled_cpu: float
    #: CPU time of the whole process while it was recorded, without the profiler's own thread.
    process_cpu: float
    #: Time that the samples of waiting threads stand for; 0 unless wall-clock time is recorded.
    waited: float
    #: CPU time of the profiler's own threads.
    profiler_cpu: float
    duration: float
    rate_hz: float
    #: What makes the ticks, for example ``perf task-clock``.
    engine: str
    is_paused: bool
    #: By reason: how many samples, and how many seconds of CPU time, are not in the profile.
    drops: Mapping[str, tuple[int, float]]
    #: Why recording ended early, for example a full disk; empty if it did not.
    error: str
    #: What the handler of a tick took: in half of all ticks at most, and in 99 of 100. 0 unless ``max_overhead`` was
    #: given: without it nothing is measured.
    tick_median: float
    tick_p99: float

    def __init__(self, *values: Any) -> None:
        self.__dict__.update(zip(Statistics.__annotations__, values))

    def __repr__(self) -> str:
        return "Statistics(" + ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items()) + ")"


def _statistics(raw: Mapping[str, Any]) -> Statistics:
    drops = {reason: (count, cpu_ns / 1e9) for reason, (count, cpu_ns) in raw["drops"].items()}
    return Statistics(raw["samples"], raw["sampled_cpu_ns"] / 1e9, raw["process_cpu_ns"] / 1e9, raw["waited_ns"] / 1e9,
                      raw["profiler_cpu_ns"] / 1e9, raw["duration_ns"] / 1e9, raw["rate_hz"], raw["engine"],
                      raw["is_paused"], drops, raw["error"], raw["tick_median_ns"] / 1e9, raw["tick_p99_ns"] / 1e9)


class Profiler:
    """Records this process between :meth:`start` and :meth:`stop`, or in a ``with`` block.

    :param path: the profile's file, .plim. Without one a temporary file is used, which is gone once it has been read,
        or the process has ended.
    :param rate_hz: samples per second of each thread's CPU time, 1 to 100000.
    :param mode: ``cpu`` records CPU time; ``wall`` all time of all threads, and what they wait for; ``gil`` the CPU
        time of threads that hold the GIL.
    :param engine: ``auto``, ``perf`` (perf task-clock), ``cpu-timer`` (thread CPU timer) or ``timer`` (monotonic):
        what makes the ticks; or ``reader``: a thread of ours looks at the others, and only those that call too fast to
        be read get ticks (the default above 1 kHz).
    :param safe_mode: keep only stacks whose code objects were all known before the sample was taken.
    :param max_overhead: lower the rate while recording costs more than this part of the CPU time (0.01 is 1 %), and
        raise it again; weights stay right. 0 is no limit.
    :param memory_mb: memory budget of the profiler's buffers.
    :param alloc_bytes: sample allocations, too: one in so many bytes on average. 0 samples none.
    :param alloc_exact: record all allocations, by stack, and what becomes of them. Instead of ``alloc_bytes``.
    :param alloc_events: likewise, one by one: so it is known how long each block lived, and the file grows with them.
    :param native_memory: with either of these, also what malloc and its kin give out, called by whatever library:
        arrays of NumPy before 2.5, for example.
    :param native: record machine code, too: which C functions Python code spends its time in, down to the libraries'.
        x86-64; not with the engine ``reader``.
    :param max_depth: frames kept of a stack, innermost first.
    :param sources: keep the text of the profiled files in the profile.
    :param tasks: asyncio's tasks: what runs is below those that await it (not on CPython 3.13t), and has the tags
        ``task`` and ``task_path`` (all versions).
    :param after_fork: in a child made by fork, ``stop`` recording, or ``follow`` into a file of the child's own.
    """

    def __init__(self, path: Optional[PathLike] = None, *, rate_hz: float = 1000.0, mode: str = "cpu",
                 engine: str = "auto", safe_mode: bool = False, max_overhead: float = 0.0, memory_mb: int = 16,
                 alloc_bytes: int = 0, alloc_exact: bool = False, alloc_events: bool = False,
                 native_memory: bool = False, native: bool = False, max_depth: int = 2048,
                 sources: bool = True,
                 tasks: bool = False, after_fork: str = "stop") -> None:
        if after_fork not in ("stop", "follow"):
            raise ValueError(f"after_fork must be 'stop' or 'follow', not {after_fork!r}")
        if not 0 <= max_overhead <= 1:
            raise ValueError(f"max_overhead is a part of the CPU time, 0 to 1, not {max_overhead!r}")
        has_all = alloc_exact or alloc_events
        if has_all and alloc_bytes != 0:
            raise ValueError("alloc_exact and alloc_events record all allocations: alloc_bytes samples them")
        if alloc_bytes != 0 and not 64 <= alloc_bytes <= 1 << 32:
            raise ValueError(f"alloc_bytes is from 64 to 4 GiB, or 0, not {alloc_bytes!r}")
        if native_memory and not has_all and alloc_bytes == 0:
            raise ValueError("native_memory needs alloc_bytes, alloc_exact or alloc_events: how are allocations to be "
                             "recorded?")
        if callable(path):
            raise TypeError(f"a path is a text, not {path!r}: a decorator has parentheses, @plimsoll.profile()")
        self._path = None if path is None else os.fsdecode(path)
        if self._path is not None and self._path.endswith(_FOREIGN_ENDINGS):
            raise ValueError(f"a recording is a .plim file, and {self._path} is the name of another format: give no "
                             f"path, and write stop().save({os.path.basename(self._path)!r})")
        self._options: dict[str, Any] = dict(rate_hz=rate_hz, mode=mode, engine=engine, safe_mode=safe_mode,
                                             max_overhead=max_overhead, memory_mb=memory_mb, max_depth=max_depth,
                                             alloc_bytes=alloc_bytes, alloc_exact=alloc_exact,
                                             alloc_events=alloc_events,
                                             native_memory=native_memory, native=native,
                                             sources=sources,
                                             tasks=tasks, after_fork=after_fork)
        _recording.check(_recording.Options(path=self._path or "", **self._options))
        self._recording: Optional[Any] = None
        self._profile: Optional[Profile] = None
        self._statistics: Optional[Statistics] = None

    def start(self) -> "Profiler":
        """Starts recording. ValueError if a recording is active; OSError if the file cannot be written."""
        if self._path is not None:
            self._begin(os.path.abspath(self._path))  # the program may go to another directory
            return self
        import tempfile

        descriptor, path = tempfile.mkstemp(prefix="plimsoll-", suffix=".plim")
        os.close(descriptor)
        try:
            self._begin(path)
        except BaseException:
            os.unlink(path)
            raise
        return self

    def _begin(self, path: str) -> None:
        with _recording.locked():
            self._recording = _recording.start(
                _recording.Options(path=path, is_temporary=self._path is None, **self._options))
            self._profile = None

    def stop(self) -> Profile:
        """Ends the recording and returns the profile. ValueError if it is not active."""
        with _recording.locked():
            path = self._end()
            from plimsoll.profiles import Profile

            try:  # before another thread begins the next recording, into the same file if it has a name
                profile = self._profile = Profile._of_recording(path)
            finally:
                if self._path is None:
                    os.unlink(path)
        return profile

    def _end(self) -> str:
        """Ends the recording, whose file need not be read. Its path. ValueError if it is not active."""
        with _recording.locked():
            path = self._active_path()
            if path is None:
                raise ValueError("this profiler is not recording")
            self._recording = None
            self._statistics = _statistics(_recording.stop())
            return path

    @property
    def is_active(self) -> bool:
        """Whether this profiler is recording, paused or not."""
        return self._active_path() is not None

    def _active_path(self) -> Optional[str]:
        return None if self._recording is None else _recording.active_path(self._recording)

    @property
    def profile(self) -> Profile:
        """The profile of the recording that was stopped last. ValueError if there is none."""
        if self._profile is None:
            raise ValueError("there is no profile before stop()")
        return self._profile

    @property
    def statistics(self) -> Statistics:
        """The statistics so far, or of the recording that was stopped last. ValueError if there was none."""
        now = _recording.active()
        if now is not None and self.is_active:
            return _statistics(now.stats())
        if self._statistics is None:
            raise ValueError("this profiler has not recorded anything")
        return self._statistics

    def __enter__(self) -> "Profiler":
        return self.start()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.is_active:
            self.stop()

    def __repr__(self) -> str:
        state = "recording" if self.is_active else "stopped" if self._profile is not None else "not started"
        return f"<plimsoll.Profiler {state}, {self._options['rate_hz']:g} Hz{f', {self._path}' if self._path else ''}>"


class profile(Profiler):
    """Records a ``with`` block, or, as a decorator, each call of a function.

    ::

        with plimsoll.profile() as session:
            work()
        session.profile.tree()

        @plimsoll.profile("parse.plim")
        def parse(text): ...

    Coroutine functions are recorded until they return, generators until they are exhausted or closed. A call that
    begins while a recording is active becomes part of it. The profile of the last call is ``parse.profiler.profile``.
    Takes the same arguments as :class:`Profiler`.
    """

    def __call__(self, function: F) -> F:
        import inspect

        if not callable(function) or isinstance(function, staticmethod):  # (callable from 3.10 on)
            raise TypeError(f"a function can be recorded, not {function!r}: @classmethod and @staticmethod stand above "
                            "what records it")
        recorder = self
        is_object = not (inspect.isroutine(function) or inspect.isclass(function)
                         or isinstance(function, functools.partial))
        called: Any = type(function).__call__ if is_object else function  # what runs when it is called
        if inspect.iscoroutinefunction(called):
            @functools.wraps(function)
            async def record_coroutine(*args: Any, **kwargs: Any) -> Any:
                with _Call(recorder):
                    return await function(*args, **kwargs)
            wrapper: Any = record_coroutine
        elif inspect.isasyncgenfunction(called):
            @functools.wraps(function)
            async def record_async_generator(*args: Any, **kwargs: Any) -> Any:
                with _Call(recorder):
                    inner = function(*args, **kwargs)
                    step = inner.asend(None)
                    try:
                        while True:  # what "yield from" would be, were there one for these
                            try:
                                item = await step
                            except StopAsyncIteration:
                                return
                            try:
                                step = inner.asend((yield item))
                            except GeneratorExit:
                                raise
                            except BaseException as error:
                                step = inner.athrow(error)
                    finally:
                        await inner.aclose()
            wrapper = record_async_generator
        elif inspect.isgeneratorfunction(called):
            @functools.wraps(function)
            def record_generator(*args: Any, **kwargs: Any) -> Any:
                with _Call(recorder):
                    return (yield from function(*args, **kwargs))
            wrapper = record_generator
        else:
            @functools.wraps(function)
            def record_call(*args: Any, **kwargs: Any) -> Any:
                with _Call(recorder):
                    return function(*args, **kwargs)
            wrapper = record_call
        wrapper.profiler = recorder
        return wrapper  # type: ignore[no-any-return]


class _Call:
    """One call of a decorated function: starts the recorder unless something is being recorded already."""

    def __init__(self, recorder: Profiler) -> None:
        self._recorder = recorder
        self._begun: Optional[Any] = None  # what this call has to stop

    def __enter__(self) -> None:
        with _recording.locked():
            if _recording.active() is None:
                self._begun = self._recorder.start()._recording

    def __exit__(self, *_: Any) -> None:
        with _recording.locked():
            is_ours = self._begun is not None and self._begun is self._recorder._recording
            if is_ours and self._recorder.is_active:
                self._recorder.stop()


# ---- the one active recording ----

_started: Optional[Profiler] = None


def start(path: Optional[PathLike] = None, **options: Any) -> Profiler:
    """Starts recording until :func:`stop` or the end of the process. Takes the arguments of :class:`Profiler`."""
    global _started
    profiler = Profiler(path, **options).start()
    _started = profiler
    return profiler


def stop() -> Profile:
    """Ends what :func:`start` began and returns the profile. ValueError if nothing was started."""
    global _started
    if _started is None:
        raise ValueError("no recording was started with plimsoll.start()")
    profiler, _started = _started, None
    return profiler.stop()


def is_active() -> bool:
    """Whether this process is being recorded, paused or not, by whomever."""
    return _recording.active() is not None


def pause() -> None:
    """Stops sampling until :func:`resume` has been called as often. Without an active recording, does nothing."""
    recording = _recording.active()
    if recording is not None:
        recording.pause()


def resume() -> None:
    """Takes back one :func:`pause`."""
    recording = _recording.active()
    if recording is not None:
        recording.resume()


def set_rate(rate_hz: float) -> None:
    """Changes the rate of the active recording. ValueError if it is not 1 to 100000 or nothing is being recorded."""
    recording = _recording.active()
    if recording is None:
        raise ValueError("no recording is active")
    recording.set_rate(float(rate_hz))


def stats() -> Statistics:
    """The statistics of the active recording so far. ValueError if there is none."""
    recording = _recording.active()
    if recording is None:
        raise ValueError("no recording is active")
    return _statistics(recording.stats())
