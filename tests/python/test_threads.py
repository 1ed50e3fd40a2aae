"""All threads, from first to last: short ones, many, nameless ones, and ones that Python does not know."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]

WORK = """
import json, threading, time
def work(milliseconds):
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < milliseconds * 1e6: sum(range(500))
    return time.thread_time_ns() - began
"""


def sampled(profile: plimsoll.Profile, function: str) -> float:
    """CPU nanoseconds in a function and below."""
    return harness.total_seconds(profile).get(function, 0.0) * 1e9


def sampled_by_thread(profile: plimsoll.Profile) -> "dict[str, float]":
    """CPU nanoseconds by the thread's name."""
    result: "dict[str, float]" = {}
    for stack in harness.stacks(profile):
        name = profile.threads[stack.thread].name
        result[name] = result.get(name, 0.0) + stack.weight_ns
    return result


@pytest.mark.parametrize("rate", [1000, 250])
def test_short_threads_get_their_time(tmp_path: pathlib.Path, engine: str, rate: int) -> None:
    # GIVEN threads that live for one to five milliseconds, hardly more than the time between two samples
    if engine == "cpu-timer" and rate > 250:
        pytest.skip("a CPU timer ticks no faster than the scheduler, 250 times a second on many machines")
    count = 300
    recorded = harness.record(tmp_path, harness.TARGETS / "short_threads.py", str(count),
                              options=["--engine", engine, "-r", str(rate)])
    # THEN their time together is right: the first tick of each is credited for the tail of each. What is sampled of one
    # thread is off by half a period at most, as the standard deviation; four of those, of all, are chance.
    chance = 4 * 0.5 * 1e9 / rate * count**0.5
    measured = sampled_by_thread(recorded.profile)["short"]
    if engine in harness.TIMER_ENGINES:
        # On a busy machine whole ticks of a timer come after the thread's end; their time is told of.
        measured += harness.missed_at_the_end(recorded.profile)
    assert measured == pytest.approx(recorded.truth["used"], abs=chance)


def test_names_that_are_no_c_strings_are_kept(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN threads with a NUL and with a lone surrogate in their names, which end before the recording does
    script = program(WORK + "for name in ('\\0nul', 'a\\ud800b'):\n"
                     "    thread = threading.Thread(target=work, args=(20,), name=name)\n"
                     "    thread.start()\n    thread.join()\n")
    names = {thread.name for thread in harness.record(tmp_path, script).profile.threads}
    # THEN they are called so, and not after the process
    assert names == {"MainThread", "\0nul", "a?b"}


def test_a_thousand_threads_at_once(tmp_path: pathlib.Path) -> None:
    # GIVEN a thousand threads that live at the same time; WHEN they are recorded
    recorded = harness.record(tmp_path, harness.TARGETS / "many_threads.py", "1000", "1.0")
    # THEN all are known by name, and their time is right: that of their work, and what of their ends can be sampled.
    # (Chance is half a period a thread at most: half a percent of all.)
    workers = {thread.name for thread in recorded.profile.threads if thread.name.startswith("worker ")}
    assert workers == {f"worker {number}" for number in range(1000)}
    measured = sum(cpu_ns for name, cpu_ns in sampled_by_thread(recorded.profile).items() if name in workers)
    assert 0.985 * recorded.truth["used"] < measured < 1.015 * recorded.truth["used_in_all"]
    assert harness.drops(recorded.profile) == {}


@pytest.mark.any_version
def test_more_threads_than_descriptors(tmp_path: pathlib.Path) -> None:
    # GIVEN more threads than the program may have files open; THEN they are sampled all the same, by timers
    recorded = harness.record(tmp_path, harness.TARGETS / "many_threads.py", "300", "4.0", "256")
    measured = sum(cpu_ns for name, cpu_ns in sampled_by_thread(recorded.profile).items() if name.startswith("worker "))
    assert recorded.truth["threads"] == 300
    # but a timer comes late, or not at all in a life of a few milliseconds, the more so on a busy machine; that time
    # is told of
    assert measured > 0.5 * recorded.truth["used"]
    assert measured + harness.missed_at_the_end(recorded.profile) == pytest.approx(recorded.truth["used"], rel=0.05)
    assert harness.drops(recorded.profile) == {}


def test_threads_older_than_the_recording(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN threads that run already when recording starts, and one that has been renamed
    out = tmp_path / "own.plim"
    script = program(WORK + f"""
import plimsoll
go, used = threading.Event(), {{}}
def body(name):
    go.wait()
    used[name] = work(150)
threads = [threading.Thread(target=body, args=(str(i),), name="older " + str(i)) for i in range(3)]
for thread in threads: thread.start()
threads[2].name = "renamed"
plimsoll.start({str(out)!r})
go.set()
for thread in threads: thread.join()
plimsoll.stop()
print(json.dumps(used))
""")
    truth = harness.python(script).expect().truth
    # THEN each has its time under its name
    measured = sampled_by_thread(plimsoll.Profile.open(out))
    for name, used in (("older 0", truth["0"]), ("older 1", truth["1"]), ("renamed", truth["2"])):
        assert measured[name] == pytest.approx(used, rel=0.05), measured


def test_threads_of_every_origin(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a raw thread, a pool, a timer, and a daemon thread that is alive when the program ends
    script = program(WORK + """
import _thread, concurrent.futures, os
used, done = {}, threading.Lock()
def raw():
    used["raw"] = work(100)
    done.release()
done.acquire(); _thread.start_new_thread(raw, ()); done.acquire()
def pooled(): return work(100)
with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
    used["pooled"] = pool.submit(pooled).result()
def timed(): used["timed"] = work(100)
timer = threading.Timer(0, timed); timer.start(); timer.join()
ready = threading.Event()
def daemonic():
    used["daemonic"] = work(100)
    ready.set()
    while True: work(5)
threading.Thread(target=daemonic, daemon=True, name="daemon").start()
ready.wait()
print(json.dumps(used))
""")
    # THEN each has its time, and the end of the interpreter under the daemon's feet harms nobody
    recorded = harness.record(tmp_path, script)
    measured = harness.total_seconds(recorded.profile)
    for name in ("raw", "pooled", "timed"):
        assert measured[name] * 1e9 == pytest.approx(recorded.truth[name], rel=0.05), name
    assert measured["daemonic"] * 1e9 >= 0.9 * recorded.truth["daemonic"]
    names = {thread.name for thread in recorded.profile.threads}
    assert {"MainThread", "pool_0", "daemon"} <= names
    assert [thread.name for thread in recorded.profile.threads if thread.is_main] == ["MainThread"]
    assert recorded.profile.complete and recorded.finished.own_err == ""


def test_threads_in_c_code_without_the_gil(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN two threads that hash big buffers at the same time, without the GIL
    script = program("""
import hashlib, json, threading, time
BUFFER = bytes(4 << 20)
used = {}
def hashing(name):
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < 3e8:
        hashlib.sha256(BUFFER)
    used[name] = time.thread_time_ns() - began
threads = [threading.Thread(target=hashing, args=(name,), name=name) for name in ("first", "second")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(used))
""")
    recorded = harness.record(tmp_path, script)
    # THEN each is sampled where it is, also while the other one has the GIL
    measured = sampled_by_thread(recorded.profile)
    for name, used in recorded.truth.items():
        assert measured[name] == pytest.approx(used, rel=0.05)
    hot = {row.line for row in recorded.profile.lines() if row.function.name == "hashing" and row.self_time > 0.05}
    assert hot == {8}


def test_a_thread_that_python_does_not_know(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a thread made and run by C code alone
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler `cc` here")
    library = tmp_path / "busy.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", str(library),
                    str(harness.TARGETS / "busy_thread.c")], check=True)
    script = program(WORK + f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
library.busy_join.restype = ctypes.c_int64
assert library.busy_start(800) == 0
mine = work(200)
print(json.dumps({{"native": library.busy_join(), "mine": mine}}))
""")
    # THEN it is found while it runs, and its time is on a stack that says what it is
    recorded = harness.record(tmp_path, script)
    native = sum(stack.weight_ns for stack in harness.stacks(recorded.profile)
                 if [frame.function.name for frame in stack.frames] == ["[native thread]"])
    found_late = 200e6  # threads are looked for ten times a second
    assert recorded.truth["native"] - found_late <= native <= recorded.truth["native"] * 1.02
    assert sampled(recorded.profile, "work") == pytest.approx(recorded.truth["mine"], rel=0.05)


@pytest.mark.skipif(not harness.FREE_THREADED, reason="this build has a GIL")
def test_threads_that_are_truly_parallel(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a free-threaded build, and two threads that call each other's functions at the same time
    script = program(WORK + """
import sys
assert not sys._is_gil_enabled()
def left(): return work(300)
def right(): return work(300)
used = {}
def body(function): used[function.__name__] = function()
threads = [threading.Thread(target=body, args=(function,)) for function in (left, right)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not sys._is_gil_enabled()
print(json.dumps(used))
""")
    recorded = harness.record(tmp_path, script, options=["-r", "4000"])
    measured = harness.total_seconds(recorded.profile)
    for name, used in recorded.truth.items():
        assert measured[name] * 1e9 == pytest.approx(used, rel=0.05)
    for stack in harness.stacks(recorded.profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        assert not ("left" in names and "right" in names)
    assert harness.drops(recorded.profile) == {}
