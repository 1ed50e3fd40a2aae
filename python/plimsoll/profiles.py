"""Profiles: open one, ask it, show it, save it in other formats. Times are in seconds unless named _ns: of
CPU time, or of all time if the recording was one of wall-clock time."""

from __future__ import annotations

import os
from functools import cached_property

from plimsoll import _core
from plimsoll._texts import html_of

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Union

    from plimsoll.memory import Allocation, Memory, Moment
    from plimsoll.rows import (Counter as Counter, Drop as Drop, FlatRow as FlatRow, Frame as Frame,
                               Function as Function, Marker as Marker, Thread as Thread)
    from plimsoll.views import (Callers as Callers, FlameGraph as FlameGraph, Flat as Flat, Lines as Lines,
                                Node as Node, Tree as Tree)

    PathLike = Union[str, "os.PathLike[str]"]


#: What a thread may do with the time of a sample, by number.
ACTIVITIES: "tuple[str, ...]" = _core.activities


def __getattr__(name: str) -> Any:
    """Rows and views, which are imported when they are asked for: a recording ends without them."""
    if name in ("Counter", "Drop", "FlatRow", "Frame", "Function", "Marker", "Thread"):
        from plimsoll import rows
        return getattr(rows, name)
    if name in ("Callers", "FlameGraph", "Flat", "Lines", "Node", "Tree"):
        from plimsoll import views
        return getattr(views, name)
    raise AttributeError(f"module 'plimsoll.profiles' has no attribute {name!r}")


class Samples:
    """The samples as columns of equal length: read-only memoryviews, which ``numpy.asarray`` takes without a copy.

    ``time_ns`` since the start of the profile; ``thread``: index into :attr:`Profile.threads`; ``stack``: id for
    :meth:`Profile.frames_of`, 0xffffffff for none; ``weight_ns``: the time that the sample stands for; ``activity``:
    what the thread did with it, as an index into :data:`ACTIVITIES`; 0 is running, and then the weight is CPU time;
    ``tag``: index into :attr:`Profile.tag_sets`, 0xffffffff for no tags.
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    @cached_property
    def time_ns(self) -> memoryview:
        return memoryview(self._data.time_ns())

    @cached_property
    def thread(self) -> memoryview:
        return memoryview(self._data.thread())

    @cached_property
    def stack(self) -> memoryview:
        return memoryview(self._data.stack())

    @cached_property
    def weight_ns(self) -> memoryview:
        return memoryview(self._data.weight_ns())

    @cached_property
    def activity(self) -> memoryview:
        return memoryview(self._data.activity())

    @cached_property
    def tag(self) -> memoryview:
        return memoryview(self._data.tag())

    def __len__(self) -> int:
        return int(self._data.sample_count)

    def __repr__(self) -> str:
        return f"<plimsoll.Samples: {len(self)} rows of time_ns, thread, stack, weight_ns, activity, tag>"


def _ns(seconds: float) -> int:
    """In nanoseconds; of what is beyond all times, the last one. ValueError for what is no number."""
    if abs(seconds) < 9e9:  # 285 years
        return int(seconds * 1e9)
    if seconds != seconds:
        raise ValueError("a time is a number of seconds, not nan")
    return 2**63 - 1 if seconds > 0 else -9 * 10**18


class Profile:
    """A profile in memory. Open one with :meth:`open`; a recording returns one from ``stop``."""

    _bytes: bytes

    def __init__(self, data: Any, path: str = "") -> None:
        if not isinstance(data, _core.ProfileData):
            raise TypeError(f"plimsoll.Profile.open(path) opens a profile, not plimsoll.Profile({data!r})")
        self._data = data
        self._path = path

    @classmethod
    def _of_recording(cls, path: str) -> "Profile":
        """The profile of a recording that has just ended. Its file may go: the bytes are kept, and made sense of when
        the profile is first asked for something."""
        profile = cls.__new__(cls)
        profile._path = path
        with open(path, "rb") as file:
            profile._bytes = file.read()
        return profile

    @cached_property
    def _data(self) -> Any:
        return _core.ProfileData.read(self._bytes)

    def __getstate__(self) -> "dict[str, Any]":
        """For pickle, and so for other processes: the bytes of its file, whether or not it has been looked at."""
        return {"_path": self._path, "_bytes": self.__dict__.get("_bytes") or self._data.encoded()}

    def __copy__(self) -> "Profile":
        copied = self.__class__.__new__(self.__class__)
        copied.__dict__.update(self.__dict__)
        return copied

    @classmethod
    def open(cls, path: "PathLike") -> "Profile":
        """Reads a .plim file, also one that is still being written or was cut short.

        ProfileError if it is not a profile.
        """
        return cls(_core.ProfileData.open(os.fsdecode(path)), os.fsdecode(path))

    @cached_property
    def meta(self) -> "dict[str, str]":
        """Facts about the session: ``python``, ``engine``, ``rate_hz``, ``argv`` and more."""
        return dict(self._data.meta)

    @property
    def complete(self) -> bool:
        """False if the recording is still going on or was cut short."""
        return bool(self._data.complete)

    @property
    def duration(self) -> float:
        """From the start of the recording to its end, in seconds."""
        return float(self._data.end_ns) / 1e9

    @property
    def process_cpu(self) -> float:
        """CPU time of the process while it was recorded, in seconds."""
        return float(self._data.process_cpu_ns) / 1e9

    @property
    def sampled(self) -> float:
        """Seconds that the samples stand for: of CPU time, and in recordings of wall-clock time of waits, too."""
        return float(self._data.sampled_ns()) / 1e9

    @property
    def sampled_cpu(self) -> float:
        """CPU time that the samples stand for, in seconds."""
        return float(self._data.sampled_cpu_ns()) / 1e9

    @cached_property
    def samples(self) -> Samples:
        return Samples(self._data)

    @cached_property
    def functions(self) -> "list[Function]":
        from plimsoll.rows import Function

        return [Function(*row) for row in self._data.functions()]

    @cached_property
    def frames(self) -> "list[Frame]":
        from plimsoll.rows import Frame

        return [Frame(self.functions[function], *rest) for function, *rest in self._data.frames()]

    @cached_property
    def threads(self) -> "list[Thread]":
        from plimsoll.rows import Thread

        return [Thread(*row) for row in self._data.threads()]

    @cached_property
    def tag_sets(self) -> "list[Mapping[str, str]]":
        """The combinations of tags that the program put on what it did; see :func:`plimsoll.tag`."""
        return list(self._data.tag_sets())

    @cached_property
    def markers(self) -> "list[Marker]":
        from plimsoll.rows import Marker

        return [Marker(*row) for row in self._data.markers()]

    @cached_property
    def counters(self) -> "dict[str, Counter]":
        """What was measured over time, by name: ``rss``. With several processes ``rss`` is the first one's, and
        ``rss of 1234`` that of process 1234."""
        from plimsoll.rows import Counter

        return {name: Counter(unit, memoryview(times), memoryview(values))
                for name, (unit, times, values) in self._data.counters().items()}

    @cached_property
    def drops(self) -> "list[Drop]":
        from plimsoll.rows import Drop

        return [Drop(*row) for row in self._data.drops()]

    @cached_property
    def sources(self) -> "dict[str, str]":
        """The text of profiled files, by name, as they were while the program ran."""
        return {name: text.decode("utf-8", "replace") for name, text in self._data.sources().items()}

    def frames_of(self, stack: int) -> "list[Frame]":
        """The frames of a stack id, outermost call first. IndexError if there is no such stack."""
        return [self.frames[number] for number in self._data.stack_frames(stack)]

    def tree(self, *, by_line: bool = False) -> Tree:
        """The call tree; with ``by_line`` a function is one node for each of its lines."""
        from plimsoll.views import Tree

        return Tree(self._data.tree(by_line=by_line), self.functions)

    def callers(self, function: str = "", *, by_line: bool = False) -> Callers:
        """Who calls what takes time: a tree with the functions in which samples end below its root, and below each
        those that have called it. With ``function``, a part of a name in any case, it begins at the innermost function
        of that name on each stack, and has the time of all that this has called."""
        from plimsoll.views import Callers

        return Callers(self._data.turned_round(function).tree(by_line=by_line), self.functions)

    def memory(self, view: str = "live", *, start: float = 0.0, end: float = float("inf"),
               within: float = 0.001) -> Memory:
        """Allocations: ``alloc`` all of them, ``live`` what was alive at ``end``, ``peak`` what was alive when most was
        in the whole program, ``leaks`` what was allocated from ``start`` on and alive at ``end``, ``temporary`` what
        was freed no later than ``within`` after; all in seconds. For what was allocated in a stretch of time see
        :meth:`filter`. ValueError if no allocations were recorded; if the view knows no such time; and for the peak of
        a part of an exact recording, or of several processes, which is not known."""
        from plimsoll.memory import Memory

        given = {"start": start != 0.0, "end": end != float("inf"), "within": within != 0.001}
        of_views = {"start": ("leaks",), "end": ("live", "leaks"), "within": ("temporary",)}
        for name, views in of_views.items():
            if given[name] and view not in views:
                raise ValueError(f"{name} is a time for {' and '.join(views)}, not for {view}"
                                 + ("" if name == "within" else ": profile.filter() takes a part of a recording"))
        report = _core.memory_report(self._data, view, from_ns=_ns(start), at_ns=_ns(end), within_ns=_ns(within))
        return Memory(view, report, self.functions)

    def memory_over_time(self, moments: int = 20) -> "list[Moment]":
        """Memory at equal distances of time, the last one at the end."""
        from plimsoll.memory import moment

        return [moment(self.functions, row) for row in _core.memory_over_time(self._data, moments)]

    @cached_property
    def allocations(self) -> "list[Allocation]":
        """Each sampled allocation, in the order of recording."""
        from plimsoll.memory import Allocation

        return [Allocation(*row) for row in _core.allocations(self._data)]

    def _rows(self, raw: Any) -> "list[FlatRow]":
        from plimsoll.rows import FlatRow

        return [FlatRow(self.functions[function], line, self_ns / 1e9, total_ns / 1e9, self_samples, total_samples)
                for function, line, self_ns, total_ns, self_samples, total_samples in raw]

    def flat(self) -> Flat:
        """CPU time per function."""
        from plimsoll.views import Flat

        return Flat(self._rows(self._data.flat()), self.sampled)

    def lines(self) -> Lines:
        """CPU time per line."""
        from plimsoll.views import Lines

        return Lines(self._rows(self._data.lines()), self.sampled)

    def filter(self, *, thread: str = "", function: str = "", file: str = "", activity: "Iterable[str] | str" = (),
               tag: "Iterable[str] | str" = (), start: float = 0.0, end: float = float("inf")) -> "Profile":
        """The samples that meet all conditions, as a new profile.

        ``thread``: part of its name, or its system id; ``function``, ``file``: part of a name on the stack, in any
        case; ``activity``: of :data:`ACTIVITIES`, one or several; ``tag``: ``name``, or ``name=pattern`` with ``*`` and
        ``?``, and ``name=`` for samples without it; all of several; ``start``, ``end``: seconds since the start of the
        profile.
        """
        return Profile(self._data.filter(thread=thread, function=function, file=file,
                                         activities=[activity] if isinstance(activity, str) else list(activity),
                                         tags=[tag] if isinstance(tag, str) else list(tag),
                                         from_ns=_ns(start), to_ns=_ns(end)), self._path)

    def joined(self, *others: "Profile") -> "Profile":
        """A copy with what other processes' profiles hold, each at its time; of the same machine, since it was started.

        After ``plimsoll run --children``: ``Profile.open("app.plim").joined(*map(Profile.open, glob("app.*.plim")))``.
        ProfileError if allocations were recorded in different ways, and for a recording that is in there already.
        """
        data = self._data
        for other in others:
            data = data.joined(other._data)
        return Profile(data, self._path)

    def with_tasks(self) -> "Profile":
        """A copy with asyncio's tasks in place of the event loop's frames: ``[task main]``, and below it the tasks that
        it made. The recording must have been made with ``tasks=True``. Stacks that have the tasks that await what runs
        (all but those of CPython 3.13t) stay as they are."""
        return Profile(self._data.with_tasks(), self._path)

    def without_native(self) -> "Profile":
        """A copy of Python functions only: the time of native ones is that of the functions that called them."""
        return Profile(self._data.without_native(), self._path)

    def begun_at(self, file: str) -> "Profile":
        """A copy in which stacks begin at their outermost frame of this file, as :attr:`Function.file` has it: what has
        called that is left out. Stacks without one stay as they are."""
        return Profile(self._data.begun_at(file), self._path)

    def with_folded_native(self) -> "Profile":
        """A copy with one native frame for each time that a library was entered, as ``plimsoll show`` has them; how
        Python itself works is left out. The recording must have been made with ``native=True``."""
        return Profile(self._data.with_folded_native(), self._path)

    def flamegraph(self, height: int = 600) -> "FlameGraph":
        """A flame graph of time and of allocations, which a notebook shows in so many pixels: the page that
        ``save("app.html")`` writes. ValueError where there is nothing to show."""
        from plimsoll.views import FlameGraph

        return FlameGraph(self._written("flamegraph", "").decode(), height)

    def _written(self, format: str, path: str) -> bytes:
        """The profile in a format of another tool."""
        nothing = self._data.nothing_to_write(format=format, path=path)
        if nothing:
            raise ValueError(f"the profile {nothing}: there is nothing to write")
        written: bytes = self._data.convert(format=format, path=path)
        return written

    def save(self, path: "PathLike", format: str = "") -> None:
        """Writes the profile: as .plim, or in a format of another tool, by name or by the path's ending.

        A file that is there is replaced once all is written, and the new one is its owner's only.
        ``plimsoll.profiles.formats()`` lists the formats. ValueError for an unknown one, and where there
        is nothing that it could hold: no samples, or no allocations; OSError if it cannot be written.
        """
        target = os.fsdecode(path)
        if format == "plim" or (not format and target.endswith(".plim")):
            self._data.save(target)
        else:
            _core.write_file(target, self._written(format, target))

    def _is_cpu_time(self) -> bool:
        """Whether what was sampled of running threads is known to be CPU time; see src/profile/time_kind.h."""
        if self.sampled > self.sampled_cpu:
            return True
        mode = self.meta.get("mode", "")
        return mode in ("cpu", "gil") if self.meta.get("format") else mode != "wall"

    def __repr__(self) -> str:
        def counted(count: int, word: str) -> str:
            return f"{count} {word}{'s' if count != 1 else ''}"

        waited = self.sampled - self.sampled_cpu
        waits = f" and {waited:.3f} s of waits" if waited > 0 else ""
        cpu = "of CPU time" if self._is_cpu_time() else "of time"
        return (f"<plimsoll.Profile: {counted(len(self.samples), 'sample')}, {self.sampled_cpu:.3f} s {cpu}{waits} in "
                f"{self.duration:.3f} s, {counted(len(self.threads), 'thread')}"
                f"{'' if self.complete else ', incomplete'}>")

    def _repr_html_(self) -> str:
        return f"<p><b>{html_of(repr(self))}</b></p>{self.flat()._repr_html_()}"


def formats() -> "list[tuple[str, str, str]]":
    """The formats of other tools that :meth:`Profile.save` writes: name, file ending, description."""
    return [(name, ending, summary) for name, ending, summary in _core.formats()]
