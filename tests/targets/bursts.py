"""Computes in long and in short bursts between sleeps, as servers do: each kind takes half of its CPU time.

    bursts.py SECONDS

Prints the CPU time of each kind in nanoseconds, as JSON.
"""

import json
import sys
import time

LONG, SHORT, SHORT_BURSTS = 6_000_000, 600_000, 10


def compute(nanoseconds: int) -> int:
    start = time.thread_time_ns()
    while time.thread_time_ns() - start < nanoseconds:
        pass
    return time.thread_time_ns() - start


def long_burst() -> int:
    return compute(LONG)


def short_burst() -> int:
    return compute(SHORT)


def main() -> None:
    truth = {"long_burst": 0, "short_burst": 0}
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        truth["long_burst"] += long_burst()
        time.sleep(0.005)
        for _ in range(SHORT_BURSTS):
            truth["short_burst"] += short_burst()
            time.sleep(0.002)
    print(json.dumps(truth))


main()
