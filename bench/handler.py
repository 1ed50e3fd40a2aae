"""What the handler of a tick takes, by the depth of the stack: from the histogram that it fills while a program runs.

Usage: handler.py [--rate HZ] [--seconds S] [--depths N ...]    with a Python that has plimsoll: .venv/bin/python

The program computes at the bottom of so many frames. Told are the median over all ticks, what 99 of 100 did not exceed,
and the line through the medians: nanoseconds of a tick, and of a frame. "Clocks" is the floor: reading the thread's CPU
clock and the time of day once, which no tick can do without (bench/floor.c). Its buckets are an eighth wide.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time

import plimsoll
from run import build_floor


def leaf(seconds: float) -> int:
    """Computes without calling anything for so much CPU time of this thread."""
    total = 0
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for i in range(2000):
            total += i & 3
    return total


def nest(depth: int, seconds: float) -> int:
    return leaf(seconds) if depth == 0 else nest(depth - 1, seconds)


def measure(depth: int, rate: float, seconds: float, engine: str) -> plimsoll.Statistics:
    sys.setrecursionlimit(max(1000, 2 * depth + 200))
    # (A limit that is never reached: it makes the handler measure itself.)
    with plimsoll.profile(rate_hz=rate, engine=engine, max_overhead=0.9, sources=False) as session:
        nest(depth, seconds)
    return session.statistics


def main() -> None:
    parser = argparse.ArgumentParser(description="What a tick's handler takes, by the depth of the stack.")
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=2, help="CPU seconds for each depth and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 10, 20, 50, 100, 200, 400])
    parser.add_argument("--engine", default="auto", choices=["auto", "perf", "cpu-timer", "timer"])
    options = parser.parse_args()
    floor = ctypes.CDLL(str(build_floor()))
    medians: dict[int, list[float]] = {depth: [] for depth in options.depths}
    longest: dict[int, list[float]] = {depth: [] for depth in options.depths}
    clocks = []
    engine = ""
    for _ in range(options.rounds):
        clocks.append(floor.floor_clocks_ns())
        for depth in options.depths:
            found = measure(depth, options.rate, options.seconds, options.engine)
            medians[depth].append(found.tick_median * 1e9)
            longest[depth].append(found.tick_p99 * 1e9)
            engine = found.engine
    print(f"{sys.version.split()[0]}, {engine}, {options.rate:.0f} Hz; clocks: {statistics.median(clocks):.0f} ns")
    print(f"{'frames':>8} {'median':>10} {'99 of 100':>12}")
    for depth in options.depths:
        print(f"{depth:8} {statistics.median(medians[depth]):7.0f} ns {statistics.median(longest[depth]):9.0f} ns")
    line = statistics.linear_regression(options.depths, [statistics.median(medians[d]) for d in options.depths])
    print(f"a tick: {line.intercept:.0f} ns and {line.slope:.1f} ns a frame; "
          f"{line.intercept - statistics.median(clocks):.0f} ns and {line.slope:.1f} ns a frame above the clocks")


if __name__ == "__main__":
    main()
