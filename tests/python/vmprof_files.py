"""Draws files in vmprof's format, record by record."""

from __future__ import annotations

import struct
from typing import Sequence

LINES, MEMORY, TAGGED = 2, 1, 8


class Drawing:
    """A file: its header is drawn by the constructor, records by the methods, bytes(drawing) is all of it."""

    def __init__(self, version: int = 6, flags: int = 0, *, word: int = 8, address: int = 8, period_us: int = 1000,
                 interpreter: bytes = b"cpython") -> None:
        self.version = version
        self._word, self._address = word, address
        self._parts = [self.words(0, 3, 0, period_us, 1 if word == 4 and address == 8 else 0)]
        if version == 0:
            self._parts.append(b"\4" + bytes([len(interpreter)]) + interpreter)
        else:
            self._parts.append(b"\5" + struct.pack(">h", version) + (bytes([flags]) if version >= 4 else b"") +
                               bytes([len(interpreter)]) + interpreter)
        self._has_memory = version == 3 or (version >= 4 and bool(flags & MEMORY))

    def words(self, *values: int) -> bytes:
        return b"".join(value.to_bytes(self._word, "little", signed=True) for value in values)

    def _addresses(self, values: Sequence[int]) -> bytes:
        return b"".join(value.to_bytes(self._address, "little", signed=True) for value in values)

    def raw(self, data: bytes) -> "Drawing":
        self._parts.append(data)
        return self

    def start(self, seconds: int, micros: int = 0) -> "Drawing":
        return self.raw(b"\6" + struct.pack("<qq8x", seconds, micros))

    def meta(self, name: bytes, value: bytes) -> "Drawing":
        return self.raw(b"\7" + self.words(len(name)) + name + self.words(len(value)) + value)

    def name(self, address: int, text: str, marker: bytes = b"\2") -> "Drawing":
        data = text.encode()
        return self.raw(marker + self._addresses([address]) + self.words(len(data)) + data)

    def stack(self, *entries: int, thread: int = 7, memory: int = 0, at: "float | None" = None,
              marker: bytes = b"\1") -> "Drawing":
        """Entries as in the file: innermost first."""
        first = self.words(1) if at is None else struct.pack("<d", at)
        rest = [thread] if self.version >= 1 else []
        rest += [memory] if self._has_memory else []
        return self.raw(marker + first + self.words(len(entries)) + self._addresses([*entries, *rest]))

    def end(self, seconds: int = 0, micros: int = 0) -> "Drawing":
        return self.raw(b"\3" + (struct.pack("<qq8x", seconds, micros) if self.version >= 5 else b""))

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)
