"""A program that comes to its limit of memory, and goes on, does so under the profiler, too."""

from __future__ import annotations

import pathlib
import resource
from typing import Callable

import harness
import pytest

# It fills what memory there is, at several depths, with objects and with code that dies.
PROGRAM = """
code = compile("[n for n in range(9)]", "made.py", "eval")
rounds = 0
def fill(depth):
    global rounds
    if depth:
        return fill(depth - 1)
    kept = []
    try:
        while True:
            kept.append([bytearray(2000) for _ in range(50)])
            eval(code.replace(co_name="made"))
    except MemoryError:
        kept.clear()
        rounds += 1
for depth in range(3):
    fill(depth)
print(rounds)
"""


@pytest.mark.most_versions
@pytest.mark.parametrize("options", [[], ["--native"], ["--mode=wall"], ["--alloc=4K"], ["--alloc=4K", "--native-memory"],
                                     ["--alloc=exact"], ["--alloc=events"], ["--alloc=exact", "--native-memory"]],
                         ids=lambda options: " ".join(options) or "plain")
@pytest.mark.parametrize("megabytes", [100, pytest.param(160, marks=pytest.mark.any_version)])
def test_a_program_without_memory_goes_on(tmp_path: pathlib.Path, program: Callable[[str], pathlib.Path],
                                          options: list[str], megabytes: int) -> None:
    # GIVEN a program that lives with what memory it may have
    path = program(PROGRAM)
    bytes_of = megabytes << 20

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (bytes_of, bytes_of))
    if harness.python(path, preexec_fn=limit).out.strip() != "3":
        pytest.skip("this build of Python needs more than that")
    # WHEN it is recorded
    finished = harness.plimsoll_run(path, options=["-o", tmp_path / "recorded.plim", "-r", "1000", *options],
                                    preexec_fn=limit)
    # THEN it ends as it would without us; and what was recorded can be read, or there is nothing
    assert finished.expect(0).out.strip() == "3"
    if "runs unprofiled" not in finished.err:
        harness.plimsoll_command("info", tmp_path / "recorded.plim").expect(0)


# It takes snapshots with less and less of what it holds, from nothing given back to all; and then with memory.
SNAPSHOTS = """
import resource, sys
import plimsoll.heap
kept = []
try:
    while True: kept.append([bytearray(2000) for _ in range(50)])
except MemoryError: pass
def take(how):
    try:
        taken = how(sys.argv[1])
        if how is plimsoll.heap.fork_snapshot: taken.wait()
        return True
    except (MemoryError, OSError): return False
def take_both(): return take(plimsoll.heap.snapshot), take(plimsoll.heap.fork_snapshot)
for given_back in [0] + [1] * 30 + [20] * 10 + [len(kept)]:
    if given_back: del kept[-given_back:]
    take_both()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("ends", *take_both())
"""


@pytest.mark.most_versions
def test_snapshots_without_memory_are_errors(tmp_path: pathlib.Path, program: Callable[[str], pathlib.Path]) -> None:
    # GIVEN a program that has reached its limit of memory
    bytes_of = 160 << 20

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (bytes_of, resource.RLIM_INFINITY))
    # WHEN it takes snapshots THEN each is there, or an error; no copy of the program goes on, and the program does, and
    # can take others as soon as there is memory
    finished = harness.python(program(SNAPSHOTS), tmp_path / "taken.heap", preexec_fn=limit)
    assert finished.expect(0).out.split() == ["ends", "True", "True"]
