"""What is recorded is in the file when SIGTERM ends the program: so end the workers of a multiprocessing.Pool."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[[str], pathlib.Path]


def run(path: pathlib.Path, tmp_path: pathlib.Path, *options: str) -> harness.Finished:
    return harness.plimsoll_run(path, options=["-o", tmp_path / "recorded.plim", *options])


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_program_that_a_signal_ends_has_all_its_samples(tmp_path: pathlib.Path, program: Write, name: str) -> None:
    # GIVEN a program that is ended in the middle of its first second
    path = program(f"""
import os, signal, sys, time
assert signal.getsignal(signal.{name}) == signal.SIG_DFL
def work():
    while time.thread_time() - start < 0.3: sum(range(1000))
start = time.thread_time()
work()
print(time.thread_time() - start, flush=True)
os.kill(os.getpid(), signal.{name})
time.sleep(60)
""")
    # WHEN it is recorded
    finished = run(path, tmp_path)
    # THEN it ends by the signal, and its profile is whole
    assert finished.code in (-getattr(signal, name), 128 + getattr(signal, name)), finished.err
    used = float(finished.out)
    profile = plimsoll.Profile.open(tmp_path / "recorded.plim")
    assert profile.complete and "cut short" not in finished.err
    rows = json.loads(harness.plimsoll_command("show", tmp_path / "recorded.plim", "flat", "--json").expect().out)
    work = next(row for row in rows["flat"] if row["function"] == "work")
    assert work["total_ns"] >= 0.8e9 * used


def test_a_handler_of_the_program_has_the_signal_alone(tmp_path: pathlib.Path, program: Write) -> None:
    path = program("""
import os, signal, sys
def handler(number, frame):
    print("handled")
    sys.exit(5)
signal.signal(signal.SIGTERM, handler)
os.kill(os.getpid(), signal.SIGTERM)
while True: pass
""")
    finished = run(path, tmp_path)
    assert (finished.code, finished.out) == (5, "handled\n")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_handler_that_is_taken_back_before_the_signal_is_raised_again(tmp_path: pathlib.Path, program: Write,
                                                                        name: str) -> None:
    # GIVEN a program that shuts down upon a signal, and ends by it then, as uvicorn does
    path = program(f"""
import os, signal, time
def handler(number, frame): stopping.append(number)
stopping = []
old = signal.signal(signal.{name}, handler)
os.kill(os.getpid(), signal.{name})
while not stopping: pass
start = time.thread_time()
def work():
    while time.thread_time() - start < 0.3: sum(range(1000))
work()
print(signal.signal(signal.{name}, old) is handler, old == signal.getsignal(signal.{name}) == signal.SIG_DFL, flush=True)
signal.raise_signal(signal.{name})
""")
    # WHEN it is recorded
    finished = run(path, tmp_path)
    # THEN it ends by the signal, with all that it did until then in its profile
    assert finished.code in (-getattr(signal, name), 128 + getattr(signal, name)), finished.err
    assert finished.out == "True True\n"
    profile = plimsoll.Profile.open(tmp_path / "recorded.plim")
    assert profile.complete
    assert harness.total_seconds(profile)["work"] >= 0.8 * 0.3


def test_exact_allocations_until_the_signal(tmp_path: pathlib.Path, program: Write) -> None:
    path = program("""
import os, signal
kept = [bytearray(1000) for _ in range(10_000)]
os.kill(os.getpid(), signal.SIGTERM)
""")
    finished = run(path, tmp_path, "--alloc=exact")
    assert finished.code in (-signal.SIGTERM, 128 + signal.SIGTERM)
    harness.plimsoll_command("info", tmp_path / "recorded.plim").expect()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_pool_that_is_left(tmp_path: pathlib.Path, program: Write, method: str) -> None:
    # GIVEN a pool whose workers compute for less than a second, and get SIGTERM then
    path = program(f"""
import multiprocessing, time
def heavy(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds: sum(range(1000))
    return time.thread_time() - start
if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(heavy, [0.05] * 8, 1)))
""")
    # WHEN all are recorded
    finished = run(path, tmp_path, "--children")
    assert finished.code == 0, finished.err
    # THEN what they computed is in their profiles
    rows = json.loads(harness.plimsoll_command("show", tmp_path / "recorded.plim", "flat", "--json", "--children").expect().out)
    heavy = next(row for row in rows["flat"] if row["function"] == "heavy")
    assert heavy["total_ns"] >= 0.8e9 * float(finished.out), finished.err
