"""bench/workload.py: one measured run. Prints JSON: iterations per second of the main thread's own CPU time.

Usage: workload.py TOOL RATE CPU_SECONDS FLOOR_LIBRARY; TOOL is none, floor, plimsoll, or pyinstrument.
"""

import ctypes
import json
import sys
import time


def leaf(n):
    total = 0
    for i in range(n):
        total += i & 3
    return total


def nest(depth, n):
    return leaf(n) if depth == 0 else nest(depth - 1, n)


def work(seconds):
    """Iterations per CPU second of this thread, 20 frames deep."""
    count = 0
    start = time.thread_time_ns()
    while (now := time.thread_time_ns()) - start < seconds * 1e9:
        for _ in range(20):
            nest(20, 200)
        count += 20
    return count / ((now - start) / 1e9)


def main():
    tool, rate, seconds, library = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    samples = 0
    if tool == "plimsoll":
        import plimsoll

        with plimsoll.profile(rate_hz=rate) as session:
            speed = work(seconds)
        samples = session.statistics.samples
    elif tool == "floor":
        floor = ctypes.CDLL(library)
        if floor.floor_start(ctypes.c_long(int(rate))) != 0:
            sys.exit("perf events are not allowed here: no floor")
        speed = work(seconds)
        samples = floor.floor_stop()
    elif tool == "pyinstrument":
        from pyinstrument import Profiler

        with Profiler(interval=1 / rate):
            speed = work(seconds)
    else:
        speed = work(seconds)
    print(json.dumps({"speed": speed, "samples": samples}))


if __name__ == "__main__":
    main()
