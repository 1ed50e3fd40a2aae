"""What recording allocations costs: programs that do little else, plainly and recorded, in turn.

    python bench/allocations.py [--rounds 9] [--native] [--memray]      with an interpreter that has plimsoll

Each round runs each way of each program once, in a random order; what is compared is process CPU time, as the program
itself measures it, of a way with plain Python in the same round; told is the median. Ticks of CPU time come once a
second here, so that what is seen is the cost of allocations alone. With --threads 2 two threads do the same at once.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile

PROGRAMS = {
    "tree": """
class Node:
    __slots__ = ("left", "right")
    def __init__(self, left, right):
        self.left = left; self.right = right
def make(depth):
    return Node(None, None) if depth == 0 else Node(make(depth - 1), make(depth - 1))
def run():
    keep = make(14)
    for depth in range(4, 15, 2):
        for _ in range(1 << (14 - depth)):
            make(depth)
""",
    "json": """
import json
RECORD = {"id": 1, "name": "somebody", "tags": ["a", "b", "c"], "at": {"x": 1.5, "y": 2.5}, "ok": True, "n": None}
DATA = [dict(RECORD, id=i, name="name %d" % i) for i in range(300)]
def run():
    for _ in range(150):
        json.loads(json.dumps(DATA))
""",
    "tuples": """
def run():
    for _ in range(25):
        rows = [(i, i * 2, str(i)) for i in range(20000)]
        index = {row[2]: row for row in rows}
        rows.sort(key=lambda row: -row[0])
""",
    "calls": """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def run():
    fib(27)
""",
}
TIMED = """
import gc, threading, time
run()
gc.collect()
others = [threading.Thread(target=run) for _ in range(%d)]
began = time.process_time()
for other in others: other.start()
run()
for other in others: other.join()
print(time.process_time() - began)
"""


def recorded(directory: str) -> "list[str]":
    """The command that records a program's allocations, up to what is said of these; ticks come once a second."""
    return [os.path.join(sysconfig.get_path("scripts"), "plimsoll"), "run", "--python", sys.executable, "-r", "1", "-o",
            os.path.join(directory, "bench.plim")]


def ways(directory: str, distances: "list[str]", native: bool, memray: bool) -> "dict[str, list[str]]":
    """The command of each way to run a program, up to the program."""
    python = sys.executable
    plimsoll = recorded(directory)
    found = {"plain": [python], "again": [python], "ticks only": plimsoll}
    for distance in distances:
        found[f"--alloc={distance}"] = [*plimsoll, f"--alloc={distance}"]
    for way in ("exact", "events"):
        found[f"--alloc={way}"] = [*plimsoll, f"--alloc={way}"]
        if native:
            found[f"--alloc={way} --native"] = [*plimsoll, f"--alloc={way}", "--native"]
    if memray:
        run = [python, "-m", "memray", "run", "-q", "-f", "-o", os.path.join(directory, "bench.memray")]
        found["memray"] = run
        found["memray, Python's allocators"] = [*run, "--trace-python-allocators"]
        if native:
            found["memray, likewise, --native"] = [*run, "--trace-python-allocators", "--native"]
    return found


def measure(rounds: int, distances: "list[str]", native: bool, memray: bool, threads: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        commands = ways(directory, distances, native, memray)
        times: "dict[tuple[str, str], list[float]]" = {}
        for _ in range(rounds):
            order = [(program, way) for program in PROGRAMS for way in commands]
            random.shuffle(order)
            for program, way in order:
                path = os.path.join(directory, f"bench_{program}.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(PROGRAMS[program] + TIMED % (threads - 1))
                done = subprocess.run([*commands[way], path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      check=True)
                times.setdefault((program, way), []).append(float(done.stdout.split()[-1]))
        print(f"{sys.version.split()[0]}, {rounds} rounds, {threads} threads: CPU time as a multiple of plain Python's")
        print(f"{'':28}" + "".join(f"{program:>10}" for program in PROGRAMS))
        for way in commands:
            ratios = [statistics.median(a / b for a, b in zip(times[program, way], times[program, "plain"]))
                      for program in PROGRAMS]
            print(f"{way:28}" + "".join(f"{ratio:10.3f}" for ratio in ratios))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--distances", nargs="*", default=["4G", "512K", "128K", "32K"])
    parser.add_argument("--native", action="store_true", help="and with the stacks of machine code")
    parser.add_argument("--memray", action="store_true", help="and under memray, if that is installed")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    measure(options.rounds, options.distances, options.native, options.memray, options.threads)
