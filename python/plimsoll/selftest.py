"""``plimsoll selftest``: programs whose answer is known, recorded on this machine, and how close the profile came.

Each test has a score and a limit; a machine that is busy, or a virtual one whose host is, may miss a limit by chance:
look at a second run before you worry.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Iterator, Optional

if sys.implementation.name == "pypy":  # which has nothing of what comes now
    sys.exit("plimsoll: PyPy is recorded by its own sampler: there is no self-test of that")

import plimsoll
from plimsoll import _program
from plimsoll.profiles import ACTIVITIES, Profile


@dataclass
class Score:
    """How one test came out. `value` and `limit` are in the unit that `what` names; less is better."""

    what: str
    value: float
    limit: float

    @property
    def is_good(self) -> bool:
        return self.value <= self.limit


def _burn(seconds: float) -> float:
    """Works for so many seconds of its thread's CPU time; how many it were."""
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        sum(range(300))
    return time.thread_time() - began


def _record(work: Callable[[], Any], **options: Any) -> "tuple[Profile, Any]":
    with plimsoll.Profiler(**options) as profiler:
        truth = work()
    assert profiler.profile is not None
    return profiler.profile, truth


def _total(profile: Profile, name: str) -> float:
    return sum(row.total_time for row in profile.flat() if row.function.name.rpartition(".")[2] == name)


# ---- programs whose answer is known ----


def _alpha(seconds: float) -> float:
    return _burn(seconds)


def _beta(seconds: float) -> float:
    return _burn(seconds)


def _gamma(seconds: float) -> float:
    return _burn(seconds)


def _shares() -> "dict[str, float]":
    used = dict.fromkeys(("_alpha", "_beta", "_gamma"), 0.0)
    for _ in range(60):
        used["_alpha"] += _alpha(0.010)
        used["_beta"] += _beta(0.005)
        used["_gamma"] += _gamma(0.0025)
    return used


def _left(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(50):
            _leaf_of_left()


def _right(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(50):
            _leaf_of_right()


def _leaf_of_left() -> None:
    pass


def _leaf_of_right() -> None:
    pass


def _alternate() -> None:
    end = time.thread_time() + 1.5
    while time.thread_time() < end:
        _left(0.0002)
        _right(0.0002)


def _waits() -> "dict[str, float]":
    lock, lives = threading.Lock(), {}
    lock.acquire()

    def live(work: Callable[[], Any]) -> None:
        began = time.monotonic()
        work()
        lives[threading.current_thread().name] = time.monotonic() - began

    readable, writable = os.pipe()
    works = {"sleep": lambda: time.sleep(1.0), "lock": lock.acquire, "io": lambda: os.read(readable, 1)}
    threads = [threading.Thread(target=live, args=(work,), name=name) for name, work in works.items()]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    lock.release()
    os.write(writable, b"x")
    for thread in threads:
        thread.join()
    os.close(readable)
    os.close(writable)
    return lives


# ---- tests ----


def _rate(rate_hz: float) -> "Iterator[Score]":
    profile, used = _record(lambda: _burn(1.5), rate_hz=rate_hz)
    due = rate_hz * profile.sampled_cpu
    yield Score(f"delivered samples at {rate_hz:g} Hz, % off", 100 * abs(len(profile.samples) - due) / due, 2.0)
    yield Score(f"time of the work at {rate_hz:g} Hz, % off", 100 * abs(_total(profile, "_burn") - used) / used,
                100 * 1.5 / math.sqrt(rate_hz) + 1)


def _known_shares() -> "Iterator[Score]":
    profile, used = _record(_shares, rate_hz=1000)
    measured = {name: _total(profile, name) for name in used}
    a, b = sum(measured.values()), sum(used.values())
    distance = sum(abs(measured[name] / a - used[name] / b) for name in used) / 2
    parts = [value / b for value in used.values()]
    floor = sum(math.sqrt(2 * p * (1 - p) / (math.pi * len(profile.samples))) for p in parts) / 2
    yield Score("known shares of CPU time, % of total variation", 100 * distance, 100 * (2.5 * floor + 0.01))


def _impossible_stacks() -> "Iterator[Score]":
    profile, _ = _record(_alternate, rate_hz=4000)
    wrong = 0
    frames: "dict[int, list[str]]" = {}
    for stack in profile.samples.stack:
        if stack not in frames and stack != 0xFFFFFFFF:
            frames[stack] = [frame.function.name for frame in profile.frames_of(stack)]
        names = frames.get(stack, [])
        for leaf, caller in (("_leaf_of_left", "_left"), ("_leaf_of_right", "_right")):
            wrong += leaf in names and caller not in names
        wrong += "_left" in names and "_right" in names
    yield Score(f"impossible stacks among {len(profile.samples)}", wrong, 0)
    lost = sum(drop.count for drop in profile.drops)
    yield Score("stacks that could not be proven, %", 100 * lost / len(profile.samples), 0.5)


def _known_waits() -> "Iterator[Score]":
    profile, lives = _record(_waits, rate_hz=1000, mode="wall")
    samples = profile.samples
    for name, life in lives.items():
        found = sum(weight for weight, thread, activity in zip(samples.weight_ns, samples.thread, samples.activity)
                    if profile.threads[thread].name == name and ACTIVITIES[activity] == name) / 1e9
        yield Score(f"a wait of a second ({name}), % off", 100 * abs(found - life) / life, 3.0)


def _cost() -> "Iterator[Score]":
    def rounds() -> int:
        """Work done in a tenth of a second."""
        count, end = 0, time.perf_counter() + 0.1
        while time.perf_counter() < end:
            sum(range(300))
            count += 1
        return count

    ratios = []
    for _ in range(9):
        plain = rounds()
        recorded = _record(rounds, rate_hz=1000)[1]
        ratios.append(plain / recorded - 1)
    yield Score("slow-down at 1 kHz, % (median of 9)", 100 * statistics.median(ratios), 3.0)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "size.plim")
        profile, _ = _record(lambda: _burn(1.0), path=path, rate_hz=1000, sources=False)
        yield Score("bytes of the file per sample at 1 kHz", os.path.getsize(path) / len(profile.samples), 8.0)


TESTS: "tuple[Callable[[], Iterator[Score]], ...]" = (lambda: _rate(100), lambda: _rate(1000), _known_shares,
                                                       _impossible_stacks, _known_waits, _cost)


def main(arguments: "Optional[list[str]]" = None) -> int:
    parser = argparse.ArgumentParser(prog="plimsoll selftest", description="Record programs whose answer is known.")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    options = parser.parse_args(arguments)
    scores = []
    for test in TESTS:
        for score in test():
            scores.append(score)
            if not options.json:
                verdict = "ok  " if score.is_good else "MISS"
                print(f"{verdict}  {score.value:8.2f}  (limit {score.limit:.2f})  {score.what}", flush=True)
    if options.json:
        print(json.dumps([{**asdict(score), "is_good": score.is_good} for score in scores]))
    missed = sum(not score.is_good for score in scores)
    if missed and not options.json:
        print(f"\n{missed} of {len(scores)} limits missed; a busy machine may be the reason: run it again")
    return 1 if missed else 0


if __name__ == "__main__":
    _program.end_with(main)
