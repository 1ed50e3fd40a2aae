"""Native frames: the order of Python's and C's calls, whole stacks, names, and what cannot be recorded."""

from __future__ import annotations

import os
import pathlib
import platform
import sys
from typing import Callable

import pytest

import harness
import plimsoll
from native_programs import CALLS, CHAIN, assembled, built, known_frames, whole

Write = Callable[..., pathlib.Path]

@pytest.mark.parametrize("flag", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
def test_python_and_c_call_each_other(tmp_path: pathlib.Path, program: Write, flag: str) -> None:
    # GIVEN Python that calls C that calls Python, five times over: by way of qsort, recursion, a frame of varying size
    # and an aligned one
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c", flag)), milliseconds=100)
    script = program(chain + "for _ in range(4):\n    main()\n")
    # WHEN it is recorded
    recorded = harness.record(tmp_path, script, options=["--native"])
    # THEN all samples of the computation have exactly this stack
    stacks = [stack for stack in harness.stacks(recorded.profile)
              if any(frame.function.name == "burn" for frame in stack.frames)]
    burning = [known_frames(stack, "libchain.so") for stack in stacks]
    # (burn asks for the time, in the C library; the first "(libc)" is what called main().)
    trimmed = [names[names.index("<module>"):names.index("burn") + 1] for names in burning]
    assert len(trimmed) > 200
    assert all(names == CALLS for names in trimmed), next(names for names in trimmed if names != CALLS)
    assert whole(stacks) >= 0.999


def test_exceptions_that_pass_through_frames(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN C++ that computes while an exception passes, then calls back, and that throws over and over
    library = built(tmp_path, "thrown.cc")
    script = program(f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
Callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
library.sail.argtypes = [Callback]
def rescued(number):
    return sum(range(1000000))
def main():
    for _ in range(5):
        library.sail(Callback(rescued))
    library.storm(20000)
main()
""")
    recorded = harness.record(tmp_path, script, options=["--native"])
    inside = [stack for stack in harness.stacks(recorded.profile)
              if any(harness.plain_name(frame.function) == "main" and frame.function.kind == "python" for frame in stack.frames)]
    stacks = [known_frames(stack, "libthrown.so") for stack in inside]
    # THEN the destructor that runs while the exception passes is where it is, between its cause and its effect
    passing = [names for names in stacks if "ship::Guard::~Guard()" in names and "sail" in names]
    assert len(passing) > 100
    rescue = next(name for name in passing[0] if name.startswith("long ship::rescue"))
    assert all(names[names.index("main"):names.index("main") + 3] == ["main", "sail", rescue] for names in passing)
    # AND so is the callback, and what the runtime does itself is unwound, too
    assert any("rescued" in names and names.index("rescued") > names.index("sail") for names in stacks)
    assert sum("storm" in names for names in stacks) > 20
    assert whole(inside) >= 0.99


RECURSION = """
import ctypes
library = ctypes.CDLL({library!r})
Callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
library.descend.argtypes = [ctypes.c_long, Callback]
def numbers(depth):
    yield from () if depth == 0 else numbers(depth - 1)
    yield sum(range(300))
def again(depth):
    for _ in range(200):
        list(numbers(6))
    return library.descend(1, Callback(lambda _: again(depth - 1))) if depth else 0
def main():
    for _ in range(30):
        again(4)
main()
"""


def test_calls_that_have_just_begun_shift_no_other(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN generators in each other and recursion through C: much of the time functions are being entered or left
    library = built(tmp_path, "chain.c")
    recorded = harness.record(tmp_path, program(RECURSION.format(library=str(library))), options=["--native", "-r", "5000"])
    stacks = [stack for stack in harness.stacks(recorded.profile)
              if any(harness.plain_name(frame.function) == "again" for frame in stack.frames)]
    assert len(stacks) > 500
    for stack in stacks:
        if all(frame.function.kind == "python" for frame in stack.frames[:-1]):
            continue  # what could not be told apart has no native frames but perhaps the innermost; see below
        names = known_frames(stack, "libchain.so")
        depth = names.count("again")
        # THEN each entry through C stands where it was made: two calls of descend, the lambda and the next round
        inner = [name for name in names[names.index("again"):] if name in ("again", "descend", "<lambda>")]
        entries = ["descend", "descend", "<lambda>", "again"]
        expected = ["again"] + entries * (depth - 1)
        assert inner[:len(expected)] == expected, names
        assert inner[len(expected):] == entries[:len(inner) - len(expected)], names
    # AND hardly any has lost its native frames
    assert whole(stacks) >= 0.99


LIBRARIES = """
import hashlib, time, zlib
data = bytes(range(256)) * 4000
def digest():
    return hashlib.sha256(data).digest()
def pack():
    return zlib.compress(data, 6)
end = time.thread_time() + 1.5
while time.thread_time() < end:
    digest()
    pack()
"""


def test_stacks_in_libraries_are_whole(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that spends its time in OpenSSL and zlib
    recorded = harness.record(tmp_path, program(LIBRARIES), options=["--native"])
    # THEN at least 999 of 1000 stacks are whole
    working = [stack for stack in harness.stacks(recorded.profile)
               if any(harness.plain_name(frame.function) in ("digest", "pack") for frame in stack.frames)]
    assert len(working) > 1000
    assert whole(working) >= 0.999
    # AND Python's function comes before the library's
    for function, library in (("digest", "crypto"), ("pack", "libz")):
        inside = [stack for stack in harness.stacks(recorded.profile)
                  if any(harness.plain_name(frame.function) == function for frame in stack.frames)]
        native = [stack for stack in inside if library in stack.frames[-1].function.file]
        assert len(native) > 0.5 * len(inside)
    # AND `show` has one line for each library that was entered
    shown = harness.plimsoll_command("show", tmp_path / "recorded.plim").expect().out
    assert "libcrypto.so" in shown and "libpython" not in shown
    every = harness.plimsoll_command("show", tmp_path / "recorded.plim", "--native", "--no-fold").expect().out
    assert len(every.splitlines()) > len(shown.splitlines())
    none = harness.plimsoll_command("show", tmp_path / "recorded.plim", "--no-native").expect().out
    assert "libcrypto" not in none and "digest" in none


def expect_made_code(profile: plimsoll.Profile, name: str) -> None:
    """Code that was made at run time is where main() called it and it called burn(), with nothing missing around it."""
    stacks = [stack for stack in harness.stacks(profile) if any(frame.function.name == "burn" for frame in stack.frames)]
    # (But for the moment until its memory and its table have been noticed, which are looked for ten times a second.)
    stacks = [stack for stack in stacks if stack.time_ns > stacks[0].time_ns + 200_000_000]
    named = [stack for stack in stacks if any(frame.function.name == name for frame in stack.frames)]
    assert len(named) > max(100, 0.9 * len(stacks))
    for stack in named:
        names = [frame.function.name for frame in stack.frames]
        made = names.index(name)
        assert names.index("main") < made < names.index("burn")
        assert stack.frames[made].function.file == "[jit]"
    assert whole(named) >= 0.99


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the target's code is that of x86-64")
@pytest.mark.parametrize("where", ["map", "dump"])
def test_code_that_is_made_at_run_time_has_its_name_and_its_callers(tmp_path: pathlib.Path, where: str) -> None:
    # GIVEN a program that makes machine code without an unwind table, which calls it back, and tells its name
    recorded = harness.record(tmp_path, harness.TARGETS / "made_code.py", where, "1.0", options=["--native"], cwd=tmp_path)
    # WHEN it is recorded THEN the code has its name and its callers
    expect_made_code(recorded.profile, "made at run time")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the target's code is that of x86-64")
def test_code_that_is_shown_to_debuggers_has_its_name_and_its_callers(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that makes code as LLVM's JITs do, which computes on after a call
    made = [str(assembled(tmp_path, "made.s")), str(built(tmp_path, "jit.c"))]
    recorded = harness.record(tmp_path, harness.TARGETS / "described_code.py", *made, "1.0", options=["--native"])
    # WHEN it is recorded THEN the code has its name and its callers
    expect_made_code(recorded.profile, "made::work(long)")


@pytest.mark.skipif(sys.version_info < (3, 12) or harness.FREE_THREADED, reason="CPython has trampolines for perf since 3.12")
def test_trampolines_for_perf_are_no_frames(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a Python that calls each of its functions through machine code of its own
    script = program("""
import sys
assert sys.is_stack_trampoline_active()
def inner():
    return sum(sorted(range(30000, 0, -1)))
def outer():
    for _ in range(600): inner()
outer()
""")
    recorded = harness.record(tmp_path, script, options=["--native"], env={**os.environ, "PYTHONPERFSUPPORT": "1"})
    # THEN stacks are whole, and have its functions once
    inside = [stack for stack in harness.stacks(recorded.profile)
              if any(frame.function.name == "inner" for frame in stack.frames)]
    assert len(inside) > 100
    for stack in inside:
        names = [frame.function.name for frame in stack.frames]
        assert names.count("inner") == names.count("outer") == 1
        assert not any(name.startswith(("py::", "machine code")) for name in names)
    assert whole(inside) >= 0.99


def test_without_the_option_there_is_no_native_frame(tmp_path: pathlib.Path, program: Write) -> None:
    recorded = harness.record(tmp_path, program("for _ in range(2000): sum(range(10000))"))
    assert len(recorded.profile.samples) > 0
    assert all(frame.function.kind != "native" for stack in harness.stacks(recorded.profile) for frame in stack.frames)
    assert "native" not in recorded.profile.meta


@pytest.mark.any_version
def test_the_reader_records_none() -> None:
    refused = harness.plimsoll_run("-c", "pass", options=["--native", "--engine", "reader"])
    assert refused.code == 2
    assert "each thread's own ticks" in refused.err
    with pytest.raises(ValueError, match="engine reader knows neither native frames.*choose another one"):
        plimsoll.Profiler(native=True, engine="reader").start()
