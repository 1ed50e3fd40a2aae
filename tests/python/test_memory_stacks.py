"""Native stacks of allocations: the order of Python's and C's calls, whole stacks, and that nothing of ours is in them."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any, Callable

import pytest

import harness
import plimsoll
from native_programs import CALLS, CHAIN, built, known_frames

Write = Callable[..., pathlib.Path]

pytestmark = pytest.mark.most_versions

BLOCKS, SIZE = 400, 16384
#: As CALLS, where C takes memory at the end.
TAKING = [*CALLS[:-1], "hold"]
SAMPLED, EXACT = "--alloc=64K", "--alloc=exact"
WAYS = pytest.mark.parametrize("way", [SAMPLED, EXACT])


def chain(library: pathlib.Path) -> str:
    program = CHAIN.format(library=str(library), milliseconds=0)
    return program.replace("library.burn(0)", f"library.hold({BLOCKS}, {SIZE})")


def stacks(profile: plimsoll.Profile) -> "list[tuple[Any, harness.Stack]]":
    """The allocations of a profile, with their stacks."""
    known: dict[int, tuple[Any, ...]] = {}
    rows = []
    for row in profile.allocations:
        if row.stack not in known:
            known[row.stack] = tuple(profile.frames_of(row.stack))
        rows.append((row, harness.Stack(row.time_ns, 0, 0, "", known[row.stack])))
    return rows


@WAYS
@pytest.mark.parametrize("flag", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
def test_python_and_c_call_each_other_and_malloc(tmp_path: pathlib.Path, program: Write, way: str, flag: str) -> None:
    # GIVEN Python that calls C that calls Python, five times over, and C at the end that takes memory from malloc
    script = program(chain(built(tmp_path, "chain.c", flag)) + "for _ in range(3):\n    main()\n")
    # WHEN it is recorded
    recorded = harness.record(tmp_path, script, options=[way, "--native-memory", "--native"])
    # THEN all blocks have exactly this stack
    held = [(row, stack) for row, stack in stacks(recorded.profile)
            if row.domain == "malloc" and any(frame.function.name == "hold" for frame in stack.frames)]
    names = [known_frames(stack, "libchain.so") for _, stack in held]
    trimmed = [each[each.index("<module>"):] for each in names]
    assert all(each == TAKING for each in trimmed), next(each for each in trimmed if each != TAKING)
    # AND begin where the thread began, and end where malloc was called: nothing of ours is there
    assert all(stack.frames[0].function.name == "_start" for _, stack in held)
    assert all(stack.frames[-1].function.name == "hold" for _, stack in held)
    # AND are all of them
    if way == EXACT:
        assert sum(row.blocks for row, _ in held) == 3 * BLOCKS
        assert sum(row.bytes for row, _ in held) == 3 * BLOCKS * SIZE
    else:
        assert len(held) > 3 * BLOCKS * SIZE / 65536 / 2


@WAYS
def test_objects_have_native_stacks(tmp_path: pathlib.Path, program: Write, way: str) -> None:
    # GIVEN objects that a callback makes, which C calls
    script = program(f"""
import ctypes
library = ctypes.CDLL({str(built(tmp_path, "chain.c"))!r})
Callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
library.descend.argtypes = [ctypes.c_long, Callback]
kept = []
def make(number):
    kept.append([bytes(200) for _ in range(5000)])
    return 1
def main():
    for _ in range(4):
        library.descend(2, Callback(make))
main()
""")
    recorded = harness.record(tmp_path, script, options=["--alloc=8K" if way == SAMPLED else way, "--native"])
    made = [(row, stack) for row, stack in stacks(recorded.profile)
            if any(frame.function.kind == "python" and harness.plain_name(frame.function) == "make"
                   for frame in stack.frames)]
    assert made
    # THEN they are where they were made, between C and what of Python itself makes objects
    for _, stack in made:
        names = known_frames(stack, "libchain.so")
        at = names.index("make")
        assert names[at - 4:at] == ["main", "descend", "descend", "descend"]
        assert not any("/_core." in frame.function.file for frame in stack.frames)
    inside = [row for row, stack in made if stack.frames[-1].function.kind != "python"]
    assert sum(row.bytes for row in inside) > 0.9 * sum(row.bytes for row, _ in made)


@WAYS
def test_threads_of_c_have_their_stacks(tmp_path: pathlib.Path, program: Write, way: str) -> None:
    # GIVEN threads that know nothing of Python WHEN they take memory
    library = built(tmp_path, "allocate.c")
    script = program(f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
library.in_threads.argtypes = [ctypes.c_long] * 3
library.in_threads(4, 500, 8192)
""")
    recorded = harness.record(tmp_path, script, options=[way, "--native-memory", "--native"])
    # THEN it is known what in them did
    kept = [(row, stack) for row, stack in stacks(recorded.profile)
            if row.domain == "malloc" and stack.frames[-1].function.name == "keep"]
    assert kept
    for _, stack in kept:
        assert known_frames(stack, "liballocate.so")[-2:] == ["work", "keep"]
        assert not any(frame.function.kind == "python" for frame in stack.frames)


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="NumPy is not installed")
@WAYS
def test_arrays_have_native_stacks(tmp_path: pathlib.Path, program: Write, way: str) -> None:
    script = program("""
import numpy
def main():
    return [numpy.zeros(100_000) for _ in range(50)]
kept = main()
""")
    recorded = harness.record(tmp_path, script, options=[way, "--native-memory", "--native"])
    arrays = [(row, stack) for row, stack in stacks(recorded.profile) if row.size >= 800_000]
    assert arrays
    for _, stack in arrays:
        files = [pathlib.Path(frame.function.file).name for frame in stack.frames]
        assert any("_multiarray_umath" in file for file in files)
        assert any(frame.function.kind == "python" and harness.plain_name(frame.function) == "main"
                   for frame in stack.frames)


def test_without_the_option_stacks_are_of_python_alone(tmp_path: pathlib.Path, program: Write) -> None:
    script = program("kept = [bytes(1000) for _ in range(10000)]\n")
    recorded = harness.record(tmp_path, script, options=["--alloc=8K"])
    assert recorded.profile.allocations
    assert all(frame.function.kind != "native" for _, stack in stacks(recorded.profile) for frame in stack.frames)


def test_one_place_that_calls_directly_and_through_c_in_turn(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a line that calls a function, at times as it is, at times by C that calls it; likewise one further in
    script = program(f"""
import ctypes, functools
library = ctypes.CDLL({str(built(tmp_path, "chain.c"))!r})
Callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
library.descend.argtypes = [ctypes.c_long, Callback]
kept = []
def inner(_=0):
    kept.append(bytearray(3000))
    return 0
def middle(_=0):
    chosen()
    return 0
def by_c(call):
    return functools.partial(library.descend, 0, Callback(call))
inners = [inner, by_c(inner)]
middles = [middle, by_c(middle)]
def main():
    global chosen
    for i in range(400):
        outer, chosen = middles[i % 2], inners[i // 2 % 2]
        outer()
main()
""")
    # WHEN every block is recorded with its stack
    recorded = harness.record(tmp_path, script, options=[EXACT, "--native"])
    # THEN each of the four ways has a quarter of them, and C stands where it was, not where it was before
    found: dict[str, int] = {}
    for row, stack in stacks(recorded.profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        if "inner" not in names or not 3000 < row.size < 3100:
            continue
        main, middle, inner = (names.index(name) for name in ("main", "middle", "inner"))
        way = "".join("C" if "descend" in part else "-" for part in (names[main:middle], names[middle:inner]))
        found[way] = found.get(way, 0) + row.blocks
    assert found == {"--": 100, "-C": 100, "C-": 100, "CC": 100}, found
