"""Programs in which Python and C call each other in a known way, for the tests of native frames."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

import harness

EXTENSIONS = harness.TARGETS.parent / "native_ext"


def built(directory: pathlib.Path, source: str, *flags: str) -> pathlib.Path:
    """A library of tests/native_ext."""
    compiler = shutil.which("c++" if source.endswith(".cc") else "cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    library = directory / f"lib{pathlib.Path(source).stem}.so"
    # Else the compiler makes copies of functions, with names of their own.
    plain = ["-fno-optimize-sibling-calls", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-partial-inlining"]
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", *plain, *flags, "-o", str(library),
                    str(EXTENSIONS / source)], check=True)
    return library


def assembled(directory: pathlib.Path, source: str) -> pathlib.Path:
    """An object of tests/native_ext."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    target = directory / f"{pathlib.Path(source).stem}.o"
    subprocess.run([compiler, "-c", "-o", str(target), str(EXTENSIONS / source)], check=True)
    return target


#: Python that calls C that calls Python, five times over: by way of qsort, recursion, a frame of varying size and an
#: aligned one; at the end C computes for so many milliseconds. What calls main() follows.
CHAIN = """
import ctypes
library = ctypes.CDLL({library!r})
Callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
library.burn.argtypes = [ctypes.c_long]
library.descend.argtypes = library.with_alloca.argtypes = [ctypes.c_long, Callback]
library.with_aligned.argtypes = library.sort_two.argtypes = [Callback]

def innermost(number):
    library.burn({milliseconds})
    return 1

def aligned(number):
    return library.with_aligned(Callback(innermost))

def varying(number):
    return library.with_alloca(5000, Callback(aligned))

def deep(number):
    return library.descend(3, Callback(varying))

def main():
    library.sort_two(Callback(deep))

"""

#: The frames of main() there, without those of the interpreter and of ctypes, outermost first.
CALLS = ["<module>", "main", "sort_two", "(libc)", "compare", "deep", "descend", "descend", "descend", "descend",
         "varying", "with_alloca", "aligned", "with_aligned", "innermost", "burn"]


def whole(stacks: "list[harness.Stack]") -> float:
    """The part of the stacks that begin where the thread began."""
    begun = [stack for stack in stacks if stack.frames and stack.frames[0].function.name == "_start"]
    return len(begun) / max(len(stacks), 1)


def known_frames(stack: harness.Stack, library: str) -> "list[str]":
    """The program's functions and those of a library, outermost first; of the C library, that it was there."""
    names: list[str] = []
    for frame in stack.frames:
        file = pathlib.Path(frame.function.file).name
        if frame.function.kind == "python" or file == library:
            names.append(harness.plain_name(frame.function) if frame.function.kind == "python" else frame.function.name)
        elif file.startswith("libc.so") and names and names[-1] != "(libc)":
            names.append("(libc)")
    return names
