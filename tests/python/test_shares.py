"""Known shares of CPU time come out right, for functions, for lines, and for C code that has let go of the GIL."""

from __future__ import annotations

import pathlib

import pytest

import harness
from known_shares import assert_shares, chance, distance, floor, worth

pytestmark = pytest.mark.most_versions


def measured_in(recorded: harness.Recorded, names: "list[str]", inside: str) -> "dict[str, float]":
    """CPU nanoseconds of the functions `names`, where they were called from `inside`."""
    found = dict.fromkeys(names, 0.0)
    for stack in harness.stacks(recorded.profile):
        called = [harness.plain_name(frame.function) for frame in stack.frames]
        if inside in called:
            for name in set(called) & set(names):
                found[name] += stack.weight_ns
    return found


def check_functions(directory: pathlib.Path, engine: str, rate: int, seconds: float) -> None:
    recorded = harness.record(directory, harness.TARGETS / "shares.py", str(seconds),
                              options=["--engine", engine, "-r", str(rate)])
    truth = recorded.truth
    measured = measured_in(recorded, list(truth), "main")
    assert_shares(measured, truth, worth(recorded.profile.samples.weight_ns))
    # and not only the shares: the time itself; the first sample and the one after the last may be of other functions
    at_the_ends = 2 * max(recorded.profile.samples.weight_ns)
    assert sum(measured.values()) == pytest.approx(sum(truth.values()), abs=0.04 * sum(truth.values()) + at_the_ends)


def test_functions_get_their_share_of_the_time(tmp_path: pathlib.Path, engine: str) -> None:
    # GIVEN a program that knows by its CPU clock what each of its functions took
    # WHEN it is recorded THEN the profile says the same, as well as so many samples can
    check_functions(tmp_path, engine, rate=1000, seconds=1.2)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [100, 997, 4000])
def test_functions_get_their_share_in_a_long_recording(tmp_path: pathlib.Path, engine: str, rate: int) -> None:
    check_functions(tmp_path, engine, rate, seconds=6.0)


# (Each line takes several scheduler ticks: to read a thread's clock may end its time slice. Then it is not on its CPU
# at the next tick, which is when CPU timers run out: lines between two readings within a tick were hardly ever seen.)
LINES_PROGRAM = """
import json, sys, time

def work(n):
    return sum(range(n))

def hot(rounds, n):
    clock, spent = time.thread_time_ns, {}
    for _ in range(rounds):
        a = clock()
        work(n)
        b = clock()
        sum(range(4 * n))
        c = clock()
        sorted(range(2 * n),
               key=lambda i: -i)
        d = clock()
        [i * i for i in range(n)]
        e = clock()
        for line, time_ns in ((11, b - a), (13, c - b), (15, d - c), (18, e - d)):
            spent[line] = spent.get(line, 0) + time_ns
    return spent

print(json.dumps(hot(6, 400000)))
"""


def test_lines_get_their_share_of_the_time(tmp_path: pathlib.Path, program, engine: str) -> None:
    # GIVEN a function that times its lines; WHEN it is recorded
    recorded = harness.record(tmp_path, program(LINES_PROGRAM), options=["--engine", engine])

    # THEN its lines, each with what was called from it, have the time that was measured. A call over two lines is
    # wherever its parts are.
    truth = {int(line): float(time_ns) for line, time_ns in recorded.truth.items()}
    measured = dict.fromkeys(truth, 0.0)
    for stack in harness.stacks(recorded.profile):
        for frame in stack.frames:
            line = 15 if frame.line == 16 else frame.line
            if frame.function.name == "hot" and line in measured:
                measured[line] += stack.weight_ns
    as_names = [{str(line): weight for line, weight in side.items()} for side in (measured, truth)]
    assert_shares(as_names[0], as_names[1], worth(recorded.profile.samples.weight_ns))


C_PROGRAM = """
import hashlib, json, time, zlib

BUFFER = bytes(range(256)) * 131072  # so that each call takes several scheduler ticks: see above

def hashing(clock):
    began = clock()
    hashlib.sha256(BUFFER).digest()
    return clock() - began

def packing(clock):
    began = clock()
    zlib.compress(BUFFER, 6)
    return clock() - began

def counting(clock):
    began = clock()
    BUFFER.count(b"nothing")
    return clock() - began

spent = dict(hashing=0, packing=0, counting=0)
while sum(spent.values()) < 1.0e9:
    spent["hashing"] += hashing(time.thread_time_ns)
    spent["packing"] += packing(time.thread_time_ns)
    for _ in range(3):
        spent["counting"] += counting(time.thread_time_ns)
print(json.dumps(spent))
"""


def test_c_code_without_the_gil_belongs_to_the_line_that_called_it(tmp_path: pathlib.Path, program, engine: str) -> None:
    # GIVEN hashlib and zlib at work on a big buffer, for which they release the GIL; WHEN they are recorded
    recorded = harness.record(tmp_path, program(C_PROGRAM), options=["--engine", engine])

    # THEN the time is right, and on the very line of the call
    measured = {name: harness.self_seconds(recorded.profile)[name] for name in recorded.truth}
    assert_shares(measured, recorded.truth, worth(recorded.profile.samples.weight_ns))
    assert sum(measured.values()) * 1e9 == pytest.approx(sum(recorded.truth.values()), rel=0.03)
    for row in recorded.profile.lines():
        if row.function.name in measured and row.self_time > 0.01:
            assert row.line == row.function.first_line + 2, row


def test_the_yardstick_itself() -> None:
    # GIVEN two distributions, one twice as heavy; THEN what counts is their shares
    assert distance({"a": 1, "b": 3}, {"a": 2, "b": 6}) == 0
    assert distance({"a": 1}, {"b": 1}) == 1
    # and more samples allow less distance
    assert floor({"a": 1, "b": 1}, 100) == pytest.approx(0.0399, abs=0.0001)
    assert floor({"a": 1, "b": 1}, 400) == pytest.approx(0.0199, abs=0.0001)
    # and chance goes beyond what is to be expected, but not far
    assert floor({"a": 1, "b": 3}, 400) < chance({"a": 1, "b": 3}, 400) < 5 * floor({"a": 1, "b": 3}, 400)
