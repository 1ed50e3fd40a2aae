"""Names for the machine code that PyPy's sampler has met, which only this process can tell: it writes addresses."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Iterator, Optional

_HEADER_BYTES = 5 * 8
_STACK, _NAME, _TRAILER, _HEADER, _START, _META, _NATIVE_NAME = 1, 2, 3, 5, 6, 7, 8
_TIME_BYTES = 24
_HAS_MEMORY = 1  # a flag of the header
_HAS_TIMES = 7  # from this version on
_NATIVE = 7  # the kind of an entry


class _Place(ctypes.Structure):
    """dladdr's Dl_info."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("start", ctypes.c_void_p)]


def names_in(descriptor: int) -> "dict[int, str]":
    """The name of each native function in a profile of this process, as vmprof writes names. A function without one
    is called after its library, and where in it it begins."""
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Place)]
    names = {}
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        for address in sorted({entry for entries in _stacks(data) for entry in entries}):
            name = _name_of(address & ~1, dladdr)  # they are marked by being odd
            if name is not None:
                names[address] = name
    return names


def _name_of(address: int, dladdr: "ctypes._CFuncPtr") -> Optional[str]:  # type: ignore[name-defined]
    place = _Place()
    if not dladdr(address, ctypes.byref(place)) or not place.file:
        return None
    file = os.fsdecode(place.file)
    # Its nearest exported neighbour is not its name.
    if place.name and place.start == address:
        return f"n:{os.fsdecode(place.name)}:0:{file}"
    return f"n:{os.path.basename(file)}+{address - (place.base or 0):#x}:0:{file}"


def _stacks(data: mmap.mmap) -> "Iterator[set[int]]":
    """The native functions of each stack."""
    at, version, flags = _HEADER_BYTES, 0, 0
    number = struct.Struct("<q").unpack_from
    while at < len(data):
        marker = data[at]
        at += 1
        if marker == _STACK:
            depth = number(data, at + 8)[0]
            entries = struct.unpack_from(f"<{depth}q", data, at + 16)
            at += 16 + 8 * (depth + 1 + (flags & _HAS_MEMORY) + (version >= _HAS_TIMES))
            yield {value for kind, value in zip(entries[::2], entries[1::2]) if kind == _NATIVE}
        elif marker in (_NAME, _NATIVE_NAME):
            at += 16 + number(data, at + 8)[0]
        elif marker == _META:
            at += 8 + number(data, at)[0]
            at += 8 + number(data, at)[0]
        elif marker == _HEADER:
            version, flags = data[at + 1], data[at + 2]
            at += 4 + data[at + 3]
        elif marker == _START:
            at += _TIME_BYTES
        else:
            return
