"""What vmprof would have written: a profile of this version of the format, changed to what was asked of vmprof."""

from __future__ import annotations

import struct

from plimsoll.compat.vmprof.reader import (MARKER_HEADER, MARKER_STACKTRACE, PROFILE_LINES, PROFILE_MEMORY, LogReader,
                                           Record)

_FLAGS_AT = 3  # in a header: behind its marker and the version


class Wish:
    """What a file is to hold of what was recorded."""

    def __init__(self, *, lines: bool = True, memory: bool = True) -> None:
        self.lines = lines
        self.memory = memory


def rewrite(data: bytes, wish: Wish) -> bytes:
    """A file as Plimsoll writes it (version 6, 64 bits) without the lines or the memory if they are not wanted."""
    reader = LogReader(data)
    drops_lines, drops_memory = False, False
    parts: list[bytes] = []
    copied = 0
    known: dict[bytes, bytes] = {}  # a stack occurs again and again
    for record in reader.records():
        if record.marker == MARKER_HEADER:
            drops_lines = reader.state.profile_lines and not wish.lines
            drops_memory = reader.state.profile_memory and not wish.memory
            if not (drops_lines or drops_memory):
                return data
            flags = data[record.begin + _FLAGS_AT]
            flags &= ~((PROFILE_LINES if drops_lines else 0) | (PROFILE_MEMORY if drops_memory else 0))
            parts += data[copied:record.begin + _FLAGS_AT], bytes([flags])
            copied = record.begin + _FLAGS_AT + 1
        elif record.marker == MARKER_STACKTRACE:
            key = record.entries.tobytes()
            if key not in known:
                known[key] = _stack(record, drops_lines)
            parts += data[copied:record.begin], known[key], struct.pack("<q", record.thread)
            if reader.state.profile_memory and not drops_memory:
                parts.append(struct.pack("<q", record.memory))
            copied = record.end
    parts.append(data[copied:])
    return b"".join(parts)


def _stack(record: Record, drops_lines: bool) -> bytes:
    entries = record.entries[1::2] if drops_lines else record.entries
    return MARKER_STACKTRACE + struct.pack("<qq", 1, len(entries)) + entries.tobytes()
