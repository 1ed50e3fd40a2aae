"""bench/workload.py: one measured run. Prints JSON: iterations per second of the main thread's own CPU time.

Usage: workload.py TOOL RATE CPU_SECONDS FLOOR_LIBRARY; TOOL is one of TOOLS below. Tools that look from outside are
started by the workload itself, and are given half a second to attach.
"""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
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


# Each tool is a context manager: samples, as far as it tells, are put into the list that it gives.


@contextlib.contextmanager
def none(rate, library):
    yield []


@contextlib.contextmanager
def plimsoll(rate, library, **options):
    import plimsoll

    counts = []
    with plimsoll.profile(rate_hz=rate, **options) as session:
        yield counts
    counts.append(session.statistics.samples)


def plimsoll_wall(rate, library):
    return plimsoll(rate, library, mode="wall")


@contextlib.contextmanager
def floor(rate, library):
    """The same ticks with an empty handler."""
    ticks = ctypes.CDLL(library)
    if ticks.floor_start(ctypes.c_long(int(rate))) != 0:
        sys.exit("perf events are not allowed here: no floor")
    counts = []
    yield counts
    counts.append(ticks.floor_stop())


@contextlib.contextmanager
def pyinstrument(rate, library):
    from pyinstrument import Profiler

    with Profiler(interval=1 / rate):
        yield []


@contextlib.contextmanager
def vmprof(rate, library):
    import vmprof

    with tempfile.NamedTemporaryFile(suffix=".vmprof") as file:
        vmprof.enable(file.fileno(), period=1 / rate)
        try:
            yield []
        finally:
            vmprof.disable()


@contextlib.contextmanager
def spprof(rate, library):
    """Installed from its source, as it is in no package index; its samples are at most CONFIG_HZ a second."""
    import spprof

    counts = []
    spprof.start(interval_ms=max(1, round(1000 / rate)))
    try:
        yield counts
    finally:
        counts.append(len(spprof.stop().samples))


@contextlib.contextmanager
def attached(command):
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere) as tool:
        time.sleep(0.5)
        if tool.poll() is not None:
            sys.exit(f"{command[0]} did not attach")
        try:
            yield []
        finally:
            tool.terminate()


def beside_python(name):
    return os.path.join(os.path.dirname(sys.executable), name)


def py_spy(rate, library):
    return attached([beside_python("py-spy"), "record", "--nonblocking", "--format", "raw", "-o", os.devnull, "-r",
                     str(int(rate)), "-p", str(os.getpid())])


def py_spy_blocking(rate, library):
    return attached([beside_python("py-spy"), "record", "--format", "raw", "-o", os.devnull, "-r", str(int(rate)), "-p",
                     str(os.getpid())])


def austin(rate, library):
    return attached([beside_python("austin"), "-i", str(int(1e6 / rate)), "-o", os.devnull, "-p", str(os.getpid())])


def profiling_sampling(rate, library):
    """CPython 3.15's own."""
    return attached([sys.executable, "-m", "profiling.sampling", "attach", "-r", str(int(rate)), "-d", "3600",
                     "--collapsed", "-o", os.devnull, str(os.getpid())])


def plimsoll_ticks(rate, library):
    return plimsoll(rate, library, engine="perf")


TOOLS = {tool.__name__.replace("_", "-"): tool for tool in (none, plimsoll, plimsoll_ticks, plimsoll_wall, floor,
                                                            pyinstrument, vmprof, spprof, py_spy, py_spy_blocking,
                                                            austin, profiling_sampling)}


def main():
    tool, rate, seconds, library = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    with TOOLS[tool](rate, library) as counts:
        speed = work(seconds)
    print(json.dumps({"speed": speed, "samples": sum(counts) if counts else None}))


if __name__ == "__main__":
    main()
