"""The rows of a profile's tables. They stand by themselves, as dataclasses cost more to import than all else here, and
who records need not look at what was recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass

from plimsoll._texts import printable

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Mapping


@dataclass(frozen=True)
class Function:
    """A function as it was seen on stacks."""

    name: str
    file: str
    first_line: int
    #: ``python``, ``native`` or ``synthetic`` (made by the profiler).
    kind: str

    def __str__(self) -> str:
        file = os.path.basename(self.file)
        return printable(f"{self.name} ({file}:{self.first_line})" if self.file else self.name)


@dataclass(frozen=True)
class Frame:
    """A function at a place in its source. Line and column count from 1; 0 is unknown. ``trace``, where it ran as
    machine code of PyPy's JIT, is the address of that, in hexadecimal: see :class:`plimsoll.jitlog.Forest`."""

    function: Function
    line: int
    column: int
    trace: str = ""

    def __str__(self) -> str:
        file = os.path.basename(self.function.file)
        return printable(f"{self.function.name} ({file}:{self.line})" if file else self.function.name)


@dataclass(frozen=True)
class Thread:
    """A sampled thread. Times in nanoseconds since the start of the profile; CPU time by the thread's own clock."""

    os_tid: int
    name: str
    is_main: bool
    pid: int
    start_ns: int
    end_ns: int
    cpu_ns: int


@dataclass(frozen=True)
class Marker:
    """Something that happened, for example a garbage collection (``GC``)."""

    name: str
    time_ns: int
    duration_ns: int
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Counter:
    """A quantity over time, as columns; values in ``unit``."""

    unit: str
    time_ns: "memoryview"
    value: "memoryview"


@dataclass(frozen=True)
class Drop:
    """Samples that are not in the profile, for one reason."""

    reason: str
    count: int
    cpu_ns: int


@dataclass(frozen=True)
class FlatRow:
    """A function, or a line of one, whoever called it. Recursion counts once."""

    function: Function
    #: 0 in a function table.
    line: int
    self_time: float
    total_time: float
    self_samples: int
    total_samples: int
