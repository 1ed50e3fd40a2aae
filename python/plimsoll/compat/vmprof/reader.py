"""Files in vmprof's format as vmprof's Python interface shows them: by the addresses that are in the file.

``plimsoll show`` and :class:`plimsoll.Profile` read these files, too, by the reader in src/formats/vmprof, which makes
functions of addresses; whoever asks for addresses is served here. docs/foreign.md has what both do with odd files. A
file that is cut or damaged is read up to there.
"""

from __future__ import annotations

import datetime
import struct
from array import array
from typing import Any, Iterator, Optional

MARKER_STACKTRACE = b"\x01"
MARKER_VIRTUAL_IP = b"\x02"
MARKER_TRAILER = b"\x03"
MARKER_INTERP_NAME = b"\x04"
MARKER_HEADER = b"\x05"
MARKER_TIME_N_ZONE = b"\x06"
MARKER_META = b"\x07"
MARKER_NATIVE_SYMBOLS = b"\x08"
MARKER_GC_STACKTRACE = b"\x09"
MARKER_OBJ_INFO = b"\x0a"

VERSION_THREAD_ID = 1
VERSION_MEMORY = 3
VERSION_MODE_AWARE = 4
VERSION_DURATION = 5
VERSION_SAMPLE_TIME = 7

PROFILE_MEMORY = 1
PROFILE_LINES = 2
PROFILE_NATIVE = 4
PROFILE_RPYTHON = 8

# Kinds of the entries of PyPy's stacks. Those without a class here are states of the interpreter, not code.
VMPROF_CODE_TAG = 1
VMPROF_JITTED_TAG = 3
VMPROF_ASSEMBLER_TAG = 6
VMPROF_NATIVE_TAG = 7

_DEEPEST = 65536
_TIME_BYTES = 24
_HEADER_WORDS = 5


class AssemblerCode(int):
    """The address of machine code that PyPy's JIT has made: a trace of the jitlog."""


class JittedCode(int):
    """A code object that ran as machine code."""


class NativeCode(int):
    """A function that is not Python's."""


class FileReadError(ValueError):
    """A profile of vmprof's that cannot be read."""


class OtherFormat(FileReadError):
    """The bytes are not a profile of vmprof's."""


class _Cut(Exception):
    """The file ends, or makes no sense, in the middle of a record."""


class LogReaderState:
    """What is in a file."""

    def __init__(self) -> None:
        #: (address, "language:name:line:file"), sorted.
        self.virtual_ips: list[tuple[int, str]] = []
        #: (addresses, outermost first; 1; thread; KiB in use).
        self.profiles: list[tuple[list[int], int, int, int]] = []
        #: The same of allocations, and what became of the objects: files of PyPy's allocation sampling.
        self.gc_profiles: list[tuple[list[int], int, int, int]] = []
        self.gc_obj_info: list[tuple[float, list[int]]] = []
        self.interp_name: Optional[str] = None
        self.start_time: Optional[datetime.datetime] = None
        self.end_time: Optional[datetime.datetime] = None
        self.version = 0
        self.profile_memory = False
        self.profile_lines = False
        self.profile_rpython = False
        self.meta: dict[str, str] = {}
        self.little_endian = True
        #: In microseconds.
        self.period = 0


class Record:
    """One record, with what its kind has of these."""

    __slots__ = ("marker", "begin", "end", "entries", "time", "thread", "memory", "id", "name", "value")

    def __init__(self, marker: bytes, begin: int) -> None:
        self.marker = marker
        self.begin = begin
        self.end = begin
        self.entries: "array[int]" = array("q")
        self.time = 0.0
        self.thread = 0
        self.memory = 0
        self.id = 0
        self.name = b""
        self.value = b""


def _sizes(data: bytes) -> "tuple[int, int]":
    """The sizes of a word and of an address: the second word of a file is 3."""
    if data[:8] == struct.pack("<ii", 0, 3):
        return (4, 8) if data[16:20] == b"\1\0\0\0" else (4, 4)
    if data[:16] == struct.pack("<qq", 0, 3):
        return 8, 8
    if data[:8] == struct.pack(">ii", 0, 3) or data[:16] == struct.pack(">qq", 0, 3):
        raise FileReadError("a vmprof profile of a big-endian machine: only little-endian ones can be read")
    raise OtherFormat(f"not a vmprof profile: it starts with {data[:16]!r}")


class LogReader:
    """Goes through the records of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._word, self._address = _sizes(data)
        self.state = LogReaderState()
        self._at = _HEADER_WORDS * self._word
        self._has_header = False
        self._has_time_before: Optional[bool] = None  # of version 7, which has two layouts
        if len(data) >= self._at:
            self.state.period = int.from_bytes(data[3 * self._word:4 * self._word], "little", signed=True)

    def records(self) -> Iterator[Record]:
        """The records up to the trailer, the end of the file, or damage. Headers are in ``state`` already."""
        while self._at < len(self._data):
            record = Record(self._data[self._at:self._at + 1], self._at)
            self._at += 1
            try:
                self._payload(record)
            except _Cut:
                return
            record.end = self._at
            yield record
            if record.marker == MARKER_TRAILER:
                return

    # ---- numbers and texts ----

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise _Cut
        self._at += size
        return self._data[self._at - size:self._at]

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little", signed=True)

    def _text(self) -> bytes:
        return self._take(self._number(self._word))

    # ---- payloads ----

    def _payload(self, record: Record) -> None:
        marker = record.marker
        if marker in (MARKER_STACKTRACE, MARKER_GC_STACKTRACE):
            self._stack(record)
        elif marker == MARKER_OBJ_INFO:
            self._stack_start(record)
            self._entries(record)
        elif marker in (MARKER_VIRTUAL_IP, MARKER_NATIVE_SYMBOLS):
            record.id, record.name = self._number(self._address), self._text()
        elif marker == MARKER_META:
            record.name, record.value = self._text(), self._text()
        elif marker == MARKER_TIME_N_ZONE:
            self.state.start_time = self._time()
        elif marker == MARKER_TRAILER:
            if self.state.version >= VERSION_DURATION:
                self.state.end_time = self._time()
        elif marker in (MARKER_HEADER, MARKER_INTERP_NAME) and not self._has_header:
            self._header(marker == MARKER_INTERP_NAME)
        else:
            raise _Cut

    def _header(self, is_version_0: bool) -> None:
        state = self.state
        if not is_version_0:
            state.version = int.from_bytes(self._take(2), "big", signed=True)
        flags = self._take(1)[0] if state.version >= VERSION_MODE_AWARE else 0
        state.interp_name = self._take(self._take(1)[0]).decode("utf-8", "replace")
        state.profile_memory = bool(flags & PROFILE_MEMORY) or state.version == VERSION_MEMORY
        state.profile_rpython = bool(flags & PROFILE_RPYTHON) or (state.interp_name == "pypy" and not is_version_0)
        state.profile_lines = bool(flags & PROFILE_LINES) and not state.profile_rpython
        self._has_header = True

    def _time(self) -> Optional[datetime.datetime]:
        seconds, micros = struct.unpack_from("<qq", self._take(_TIME_BYTES))
        try:
            return datetime.datetime.fromtimestamp(seconds) + datetime.timedelta(microseconds=micros)
        except (OverflowError, ValueError, OSError):
            return None

    def _stack_start(self, record: Record) -> None:
        """The count or, in one layout of version 7, the time in its place."""
        if self._has_time_before is None:
            first = self._data[self._at:self._at + self._word]
            self._has_time_before = (self.state.version >= VERSION_SAMPLE_TIME
                                     and int.from_bytes(first, "little") != 1)
        if self._has_time_before:
            record.time, = struct.unpack("<d", self._take(8))
        elif self._number(self._word) < 1:
            raise _Cut

    def _entries(self, record: Record) -> None:
        depth = self._number(self._word)
        if not 0 <= depth <= _DEEPEST:
            raise _Cut
        record.entries = array("q" if self._address == 8 else "i")
        record.entries.frombytes(self._take(depth * self._address))

    def _stack(self, record: Record) -> None:
        self._stack_start(record)
        self._entries(record)
        state = self.state
        if state.version >= VERSION_THREAD_ID:
            record.thread = self._number(self._address)
        if state.profile_memory:
            record.memory = self._number(self._address)
        if state.version >= VERSION_SAMPLE_TIME and not self._has_time_before:
            record.time = self._number(8) / 1e9
        # Writers on macOS add a memory word that they have not announced; no record begins with a 0.
        elif not state.profile_memory and self._data[self._at:self._at + 1] == b"\0":
            self._at += self._address


def _tagged(entries: "array[int]") -> "list[int]":
    """PyPy's pairs of kind and value, as code."""
    classes = {VMPROF_CODE_TAG: int, VMPROF_JITTED_TAG: JittedCode, VMPROF_ASSEMBLER_TAG: AssemblerCode,
               VMPROF_NATIVE_TAG: NativeCode}
    return [classes[kind](value) for kind, value in zip(entries[::2], entries[1::2]) if kind in classes]


def _code(entry: int) -> int:
    return NativeCode(entry) if entry > 0 and entry & 1 else entry


def _trace(entries: "array[int]", state: LogReaderState) -> "list[int]":
    """The addresses of a stack, outermost first; with lines, each followed by its line as a negative number."""
    if state.profile_rpython:
        trace = _tagged(entries)
    elif state.profile_lines:
        trace = [_code(entry) if index % 2 else -entry for index, entry in enumerate(entries)]
    else:
        trace = [_code(entry) for entry in entries]
    trace.reverse()
    return trace


def _add(record: Record, state: LogReaderState, traces: "dict[bytes, list[int]]") -> None:
    if record.marker in (MARKER_STACKTRACE, MARKER_GC_STACKTRACE):
        key = record.entries.tobytes()
        if key not in traces:
            traces[key] = _trace(record.entries, state)
        kind = state.profiles if record.marker == MARKER_STACKTRACE else state.gc_profiles
        kind.append((list(traces[key]), 1, record.thread, record.memory))
    elif record.marker in (MARKER_VIRTUAL_IP, MARKER_NATIVE_SYMBOLS):
        state.virtual_ips.append((record.id, record.name.decode("utf-8", "replace")))
    elif record.marker == MARKER_META:
        state.meta.setdefault(record.name.decode("utf-8", "replace"), record.value.decode("utf-8", "replace"))
    elif record.marker == MARKER_OBJ_INFO:
        state.gc_obj_info.append((record.time, list(reversed(record.entries))))


def _keep_named(state: LogReaderState) -> None:
    """Stacks of version 0 are of the machine, with addresses of Python's code among others: those have names."""
    names = {address for address, _ in state.virtual_ips}
    state.profiles = [([entry for entry in trace if entry in names], count, thread, memory)
                      for trace, count, thread, memory in state.profiles]


def read(data: Any) -> LogReaderState:
    """All of a file that is not compressed. FileReadError if it is none of vmprof's."""
    reader = LogReader(bytes(data))
    traces: dict[bytes, list[int]] = {}
    for record in reader.records():
        _add(record, reader.state, traces)
    reader.state.virtual_ips.sort()
    if reader.state.version == 0:
        _keep_named(reader.state)
    return reader.state
