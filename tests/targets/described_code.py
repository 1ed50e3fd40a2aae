"""Makes machine code at run time that calls it back, and shows it to debuggers as LLVM's JITs do: by GDB's JIT interface.

    python described_code.py OBJECT LIBRARY SECONDS

OBJECT is what an assembler made of native_ext/made.s; LIBRARY, of native_ext/jit.c, has the descriptor.
"""

import ctypes
import mmap
import struct
import sys
import time

Callback = ctypes.CFUNCTYPE(None)
SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr


class Entry(ctypes.Structure):
    _fields_ = [("next", ctypes.c_uint64), ("previous", ctypes.c_uint64), ("image", ctypes.c_void_p),
                ("size", ctypes.c_uint64)]


class Descriptor(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("action", ctypes.c_uint32), ("relevant", ctypes.c_void_p),
                ("first", ctypes.c_void_p)]


def loaded(image):
    """Puts .text and .eh_frame of an object into memory, and says in its section headers where. That, and the memory."""
    start, = struct.unpack_from("<Q", image, 40)
    count, texts = struct.unpack_from("<HH", image, 60)
    sections = [SECTION.unpack_from(image, start + SECTION.size * i) for i in range(count)]
    name_of = lambda section: image[sections[texts][4] + section[0]:].split(b"\0")[0].decode()
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                       mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    places = {".text": 0, ".eh_frame": mmap.PAGESIZE}
    for number, section in enumerate(sections):
        place = places.get(name_of(section))
        if place is None:
            continue
        memory[place:place + section[5]] = image[section[4]:section[4] + section[5]]
        struct.pack_into("<Q", image, start + SECTION.size * number + 16, base + place)
    for section in sections:
        if name_of(section) == ".rela.eh_frame":  # R_X86_64_PC32 of .text
            for at in range(section[4], section[4] + section[5], 24):
                offset, _, addend = struct.unpack_from("<QQq", image, at)
                struct.pack_into("<i", memory, mmap.PAGESIZE + offset, addend - mmap.PAGESIZE - offset)
    return base, memory


def burn():
    end = time.monotonic() + float(sys.argv[3])
    print("burning", flush=True)
    while time.monotonic() < end:
        sum(range(1000))


def main():
    with open(sys.argv[1], "rb") as file:
        image = bytearray(file.read())
    start, memory = loaded(image)
    kept = (ctypes.c_char * len(image)).from_buffer(image)
    entry = Entry(0, 0, ctypes.addressof(kept), len(image))
    descriptor = Descriptor.in_dll(ctypes.CDLL(sys.argv[2]), "__jit_debug_descriptor")
    descriptor.first = descriptor.relevant = ctypes.addressof(entry)
    ctypes.CFUNCTYPE(None, Callback)(start)(Callback(burn))
    del memory  # not before


main()
