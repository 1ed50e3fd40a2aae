"""What a recording costs besides its ticks: importing, starting, stopping, memory, bytes of the file, and reading it.

Usage: costs.py [--only import start memory file show]    with a Python that has plimsoll: .venv/bin/python

import  a fresh interpreter each time; wall-clock and CPU time; the floor is the same of a module with nothing in it
start   Profiler.start(), and stop() after half a million samples, in a fresh interpreter each time
memory  the most that a program with 50 threads had resident, recorded and not
file    bytes of the file for a sample, at 1 kHz and 100 Hz, of programs with few and with ever new stacks, with
        timestamps and lines; with and without what does not grow with time (22 minutes)
show    `plimsoll show tree` of 10 million samples, 10 frames deep, of 20,000 different stacks
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plimsoll

PLIMSOLL = Path(sys.executable).parent / "plimsoll"

IMPORT = """
import sys, time
sys.path.insert(0, sys.argv[1])
cpu, wall = time.process_time(), time.perf_counter()
import {module}
print((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)
"""

START_AND_STOP = """
import sys, time, plimsoll
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
profiler = plimsoll.Profiler(sys.argv[1], rate_hz=10000, engine="perf")
began = time.perf_counter()
profiler.start()
started = time.perf_counter()
busy(50)
ending = time.perf_counter()
profiler.stop()
print((started - began) * 1e3, (time.perf_counter() - ending) * 1e3, profiler.statistics.samples)
"""

THREADS = """
import threading, time
def nest(depth, end):
    if depth: return nest(depth - 1, end)
    while time.perf_counter() < end: sum(range(500))
end = time.perf_counter() + 8
threads = [threading.Thread(target=nest, args=(number % 40, end)) for number in range(49)]
for thread in threads: thread.start()
nest(0, end)
for thread in threads: thread.join()
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""

# What is recorded into a file, from few stacks to ever new ones. Each comes to its end after so much CPU time.
FILE_PROGRAMS = {
    "json": """
import json, sys, time
end = time.process_time() + float(sys.argv[1])
rows = [{"id": i, "name": f"name {i}", "points": [i, i / 3, None], "more": {"b": "x" * (i % 40)}} for i in range(500)]
while time.process_time() < end:
    json.loads("".join(json.JSONEncoder(indent=1).iterencode(rows)))
""",
    "difflib": """
import difflib, os, sys, time
end = time.process_time() + float(sys.argv[1])
lines = open(os.__file__, encoding="utf-8").read().splitlines()[:400]
while time.process_time() < end:
    for step in range(3, 20):
        list(difflib.unified_diff(lines, [line.upper() if i % step == 0 else line for i, line in enumerate(lines)]))
        list(difflib.ndiff(lines[:60], lines[step:60 + step]))
""",
    "tokenize": """
import io, os, re, sys, textwrap, time, tokenize
end = time.process_time() + float(sys.argv[1])
text = open(os.__file__, encoding="utf-8").read()
while time.process_time() < end:
    words = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    textwrap.wrap(re.sub(r"(\\w+)-(\\w+)", r"\\2 \\1", " ".join(words)), 80)
""",
    "ast": """
import ast, os, sys, sysconfig, time
end = time.process_time() + float(sys.argv[1])
library = sysconfig.get_path("stdlib")
while True:
    for name in sorted(os.listdir(library)):
        path = os.path.join(library, name)
        if name.endswith(".py") and os.path.isfile(path):  # some are links to nowhere
            ast.unparse(ast.parse(open(path, encoding="utf-8").read()))
        if time.process_time() > end: sys.exit()
""",
}


def python(code: str, *arguments: str) -> "list[float]":
    """The numbers that a fresh interpreter prints last."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in done.stdout.split()]


def time_of(*command: "str | Path") -> "list[float]":
    """Wall-clock and CPU seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return [ended - began, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime]


def medians(rows: "list[list[float]]") -> "list[float]":
    return [statistics.median(column) for column in zip(*rows)]


def show_import(directory: Path) -> None:
    (directory / "empty_module.py").write_text("")
    for module in ("plimsoll", "plimsoll.profiler, plimsoll._core", "empty_module"):
        wall, cpu = medians([python(IMPORT.format(module=module), str(directory)) for _ in range(21)])
        print(f"import {module}: {wall:.1f} ms, {cpu:.1f} ms of CPU time")


def show_start(directory: Path) -> None:
    start, stop, samples = medians([python(START_AND_STOP, str(directory / "start.plim")) for _ in range(3)])
    print(f"start: {start:.1f} ms; stop: {stop:.1f} ms after {samples:,.0f} samples, "
          f"{stop / samples * 1e6:.1f} ms a million")


def show_memory(directory: Path) -> None:
    program = directory / "threads.py"
    program.write_text(THREADS)

    def most(*command: "str | Path") -> float:
        done = subprocess.run([*command, program], check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout) / 1024

    out = directory / "threads.plim"
    plain, recorded = medians([[most(sys.executable), most(PLIMSOLL, "run", "-q", "-o", out)] for _ in range(3)])
    print(f"memory, 50 threads at 1 kHz: {plain:.1f} MB plain, {recorded:.1f} MB recorded, "
          f"{recorded - plain:.1f} MB more")


def show_file(directory: Path) -> None:
    def size_and_samples(rate: int, program: Path, seconds: int) -> "tuple[int, int]":
        out = directory / f"{program.stem}-{seconds}.plim"
        subprocess.run([PLIMSOLL, "run", "-q", "--no-sources", "-r", str(rate), "-o", out, program, str(seconds)],
                       check=True)
        told = subprocess.run([PLIMSOLL, "info", "--json", out], check=True, stdout=subprocess.PIPE).stdout
        return out.stat().st_size, json.loads(told)["session"]["samples"]

    for name, code in FILE_PROGRAMS.items():
        program = directory / f"{name}_program.py"  # not the name of the module that it imports
        program.write_text(code)
        for rate, seconds in ((1000, (20, 60)), (100, (60, 180))):
            (size, samples), (more_size, more_samples) = [size_and_samples(rate, program, length) for length in seconds]
            later = (more_size - size) / (more_samples - samples)
            print(f"file of {name} at {rate} Hz: {more_size / more_samples:.2f} bytes a sample of {more_samples:,}, "
                  f"{later:.2f} of those after the first {samples:,}", flush=True)


def draw_samples(path: Path, count: int) -> None:
    """A file of vmprof's, version 6, 64 bit."""
    chance = random.Random(2005)
    names = [b"\2" + struct.pack("<qq", 16 * number + 7, len(text)) + text for number in range(2000)
             for text in [b"py:function_%d:%d:/app/module_%d.py" % (number, number % 90 + 1, number % 40)]]
    stacks = [b"\1" + struct.pack("<qq11q", 1, 10, *(16 * chance.randrange(2000) + 7 for _ in range(10)), 7)
              for _ in range(20_000)]
    with open(path, "wb") as file:
        file.write(struct.pack("<5q", 0, 3, 0, 1000, 0) + b"\5" + struct.pack(">h", 6) + b"\0\7cpython")
        file.write(b"\6" + struct.pack("<qq8x", 1_700_000_000, 0))
        for _ in range(count // 100_000):
            file.write(b"".join(chance.choices(stacks, k=100_000)))
        file.write(b"".join(names) + b"\3" + struct.pack("<qq8x", 1_700_010_000, 0))


def show_show(directory: Path) -> None:
    vmprof, plim = directory / "big.vmprof", directory / "big.plim"
    draw_samples(vmprof, 10_000_000)
    plimsoll.Profile.open(vmprof).save(plim)
    vmprof.unlink()
    for view in ("tree", "flat"):
        wall, cpu = medians([time_of(PLIMSOLL, "show", plim, view) for _ in range(5)])
        print(f"show {view} of 10 million samples ({plim.stat().st_size / 1e6:.0f} MB): {wall:.2f} s, "
              f"{cpu:.2f} s of CPU time")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a recording costs besides its ticks.")
    parts = {"import": show_import, "start": show_start, "memory": show_memory, "file": show_file, "show": show_show}
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}")
    for name in options.only:
        with tempfile.TemporaryDirectory(prefix="plimsoll-costs-") as directory:
            parts[name](Path(directory))


if __name__ == "__main__":
    main()
