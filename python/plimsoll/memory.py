"""What a profile knows of memory: sampled allocations, and what they come to. Sizes are in bytes, as asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from plimsoll.rows import Function


@dataclass(frozen=True)
class Estimate:
    """A sum over sampled blocks. The true number of bytes lies from ``low`` to ``high`` with 95 % confidence. Of a peak
    ``bytes`` are the highest of many estimates, and so rather too high, which ``low`` allows for."""

    bytes: float
    low: float
    high: float
    blocks: float
    samples: int


@dataclass(frozen=True)
class MemoryRow:
    """A function, what was allocated in it, and what it and all that it called allocated."""

    function: Function
    own: Estimate
    total: Estimate


@dataclass(frozen=True)
class Allocation:
    """A sampled block, which stands for so many ``blocks`` like it, of so many ``bytes`` together. In exact recordings
    the blocks of one stack, type and time, which need not be of one size: then ``size`` is their mean, rounded.
    ``freed_ns`` is None if they were alive at the end."""

    time_ns: int
    #: Indices into Profile.threads, and for Profile.frames_of.
    thread: int
    stack: int
    size: int
    blocks: float
    bytes: float
    #: ``object`` (PyObject_Malloc), ``memory`` (PyMem_Malloc: what objects own), ``raw`` (PyMem_RawMalloc), ``malloc``
    #: or ``mmap`` (what others than Python's allocators take from the C library and the kernel).
    domain: str
    freed_ns: Optional[int]
    #: Of the object; empty if it is not known, or the block held no object.
    type: str
    #: Index into Profile.tag_sets; 0xFFFFFFFF without tags.
    tag: int


@dataclass(frozen=True)
class TypeRow:
    """What the blocks of one type of object come to."""

    #: Empty if it is not known, or ``is_object`` is false: memory that objects own, such as a list's items.
    name: str
    is_object: bool
    all: Estimate
    #: Who allocated most of it, and how much.
    mostly: Optional[Function]
    mostly_bytes: float


@dataclass(frozen=True)
class Moment:
    """Memory at one time of a recording."""

    time_ns: int
    #: Resident bytes of the process; 0 if not known.
    rss: int
    alive: Estimate
    #: Since the moment before.
    allocated: Estimate
    #: Who allocated most of what is alive, and how much.
    mostly: Optional[Function]
    mostly_bytes: float
    #: What of ``alive`` is not of Python's allocators.
    alive_native: Estimate


class Memory:
    """A view of a profile's memory: ``all``, ``rows`` by what functions allocated themselves, and ``types``; most
    first."""

    def __init__(self, view: str, report: Any, functions: "list[Function]") -> None:
        distance, at_ns, total, rows, types, lost = report
        self.view = view
        #: Mean bytes between two sample points; 0 in exact recordings.
        self.distance: int = distance
        #: The time that it is of, in nanoseconds since the start: the peak, the end, or the one asked for.
        self.at_ns: int = at_ns
        #: Allocations, or samples of them, that were lost: all sums are without them.
        self.lost: int = lost
        self.all = Estimate(*total)
        self.rows = [MemoryRow(functions[function], Estimate(*own), Estimate(*through))
                     for function, own, through in rows]
        self.types = [TypeRow(name, is_object, Estimate(*of_type), function_of(functions, mostly), mostly_bytes)
                      for name, is_object, of_type, mostly, mostly_bytes in types]

    def of(self, function: str) -> MemoryRow:
        """The row of the function with this name. KeyError if no sample is of it."""
        for row in self.rows:
            if row.function.name == function:
                return row
        raise KeyError(function)

    def of_type(self, name: str) -> TypeRow:
        """The row of the type with this name. KeyError if no sample is of it."""
        for row in self.types:
            if row.name == name:
                return row
        raise KeyError(name)

    def __str__(self) -> str:
        known = f" ({self.all.low / 1e6:.3f} to {self.all.high / 1e6:.3f}), {self.all.samples} samples"
        lines = [f"{self.all.bytes / 1e6:.3f} MB" + (known if self.distance else f", {self.all.samples} blocks")]
        for row in self.rows[:30]:
            lines.append(f"{row.own.bytes / 1e6:10.3f} MB  {row.total.bytes / 1e6:10.3f} MB  {row.function}")
        return "\n".join(lines)


def function_of(functions: "list[Function]", number: Optional[int]) -> Optional[Function]:
    return None if number is None else functions[number]


def moment(functions: "list[Function]", row: Any) -> Moment:
    time_ns, rss, alive, allocated, mostly, mostly_bytes, alive_native = row
    return Moment(time_ns, rss, Estimate(*alive), Estimate(*allocated), function_of(functions, mostly), mostly_bytes,
                  Estimate(*alive_native))
