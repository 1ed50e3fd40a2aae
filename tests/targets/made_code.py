"""Makes machine code at run time that calls it back, and says its name as JITs do: in perf's map, or in a jitdump.

    python made_code.py map|dump SECONDS

The code, x86-64: a frame of eight bytes, a call, the frame taken down, a return.
"""

import ctypes
import mmap
import os
import struct
import sys
import time

CODE = bytes.fromhex("4883ec08" "ffd7" "4883c408" "c3")
Callback = ctypes.CFUNCTYPE(None)


def say_in_map(start, name):
    with open(f"/tmp/perf-{os.getpid()}.map", "w") as file:
        file.write(f"{start:x} {len(CODE):x} {name}\n")


def say_in_dump(start, name):
    path = f"jit-{os.getpid()}.dump"
    record = struct.pack("<IIQQQQ", os.getpid(), os.getpid(), start, start, len(CODE), 1) + name.encode() + b"\0" + CODE
    with open(path, "w+b") as file:
        file.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), 0, 0))
        file.write(struct.pack("<IIQ", 0, 16 + len(record), 0) + record)
        file.flush()
        # By this, perf finds it.
        return mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def burn():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        sum(range(1000))


def main():
    memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                       mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(CODE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    kept = {"map": say_in_map, "dump": say_in_dump}[sys.argv[1]](start, "made at run time")
    try:
        ctypes.CFUNCTYPE(None, Callback)(start)(Callback(burn))
    finally:
        if kept is None:
            os.unlink(f"/tmp/perf-{os.getpid()}.map")


main()
