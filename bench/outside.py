"""Profilers that look at a process from outside, side by side, at a program made to mislead them.

    python bench/outside.py [--rounds 5] [--seconds 3] [--rate 1000] [--python PYTHON] [--peers DIRECTORY]

The program calls two chains of functions and a chain of generators in turn, each over within microseconds. A stack that
mixes two chains, or misses a link of one, never was. Each round starts the program anew for each tool, in random order.
Told are, as medians over the rounds:

    work      the program's work per second of wall-clock time, as a part of what it does without a profiler
    cpu       the profiler's own CPU time per sample asked for, in microseconds, start and end included
    taken     samples with a stack, as a part of those asked for (rate x time)
    broken    of these, those that never were, in percent

"none" against itself (A/A) is the resolution of `work`; "sleeper" is a process that wakes as often and does nothing:
the floor of `cpu`. PYTHON is the interpreter that runs the program; DIRECTORY is where py-spy and austin are (pip
install py-spy austin-dist). CPython 3.15's own profiler is compared where PYTHON is 3.15.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKS = 5

TARGET = """
import mmap, sys
def make(name, inner):
    space = {"inner": inner}
    exec(f"def {name}():\\n    return inner()", space)
    return space[name]
def make_source(name, inner):
    space = {"inner": inner}
    exec(f"def {name}():\\n    yield from inner()", space)
    return space[name]
def chain(letter, maker, inner):
    for number in range(LINKS, 0, -1):
        inner = maker(f"{letter}{number}", inner)
    return inner
def leaf():
    return 1
def source():
    yield 1
    yield 2
a, b, c = chain("a", make, leaf), chain("b", make, leaf), chain("c", make_source, source)
file = open(sys.argv[1], "r+b")
counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
def work():
    while True:
        for _ in range(100):
            a(); b()
            for _ in c():
                pass
        counter[0] += 1
print("ready", flush=True)
work()
""".replace("LINKS", str(LINKS))

SLEEPER = """
import sys, time
period, end = 1 / float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    time.sleep(period)
"""


def is_possible(names: "list[str]") -> bool:
    """`names` from the outermost to the innermost."""
    if "work" not in names:
        return False
    inner = names[names.index("work") + 1:]
    if not inner:
        return True
    letter = inner[0][0]
    last = {"a": "leaf", "b": "leaf", "c": "source"}.get(letter, "")
    whole = [f"{letter}{number}" for number in range(1, LINKS + 1)] + [last]
    return inner == whole[:len(inner)]


def read_collapsed(path: Path) -> "collections.Counter[tuple[str, ...]]":
    """Stacks as lines `frame;frame;frame count`; of a frame its function's name only."""
    stacks: "collections.Counter[tuple[str, ...]]" = collections.Counter()
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        frames, _, count = line.rpartition(" ")
        names = []
        for frame in frames.split(";"):
            words = re.findall(r"\b(?:[abc]\d|leaf|source|work)\b", frame)
            names += words[-1:]
        stacks[tuple(names)] += int(count)
    return stacks


class Tools:
    """How each tool is called: the command that records process PID into FILE, and FILE's stacks."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.rate, self.seconds = options.rate, options.seconds
        self.python, self.peers = options.python, Path(options.peers or Path(options.python).parent)
        self.plimsoll = options.plimsoll

    def command(self, tool: str, pid: int, out: Path) -> "list[str]":
        rate, seconds = f"{self.rate:g}", f"{self.seconds:g}"
        if tool == "sleeper":
            return [sys.executable, "-c", SLEEPER, rate, seconds]
        if tool.startswith("plimsoll"):
            apart = ["--apart"] if tool == "plimsoll --apart" else []
            return [self.plimsoll, "attach", str(pid), "-r", rate, "-d", seconds, "-o", str(out), *apart]
        if tool.startswith("py-spy"):
            blocking = ["--nonblocking"] if tool == "py-spy --nonblocking" else []
            return [str(self.peers / "py-spy"), "record", "-p", str(pid), "-r", rate, "-d", str(round(self.seconds)),
                    "-f", "raw", "-o", str(out), *blocking]
        if tool == "austin":
            return [str(self.peers / "austin"), "-i", str(round(1e6 / self.rate)), "-x", seconds, "-o", str(out), "-p",
                    str(pid)]
        blocking = ["--blocking"] if tool == "profiling.sampling --blocking" else []
        return [self.python, "-m", "profiling.sampling", "attach", "-r", rate, "-d", seconds, "--collapsed", "-o",
                str(out), *blocking, str(pid)]

    def stacks(self, tool: str, out: Path) -> "collections.Counter[tuple[str, ...]]":
        if tool in ("none", "sleeper"):
            return collections.Counter()
        if tool.startswith("plimsoll"):
            profile = json.loads(subprocess.run([self.plimsoll, "info", "--json", out], check=True,
                                                capture_output=True).stdout)
            subprocess.run([self.plimsoll, "convert", out, "-f", "collapsed", "-o", f"{out}.txt"], check=True,
                           capture_output=True)
            stacks = read_collapsed(Path(f"{out}.txt"))
            # Weights become samples.
            share = profile["session"]["samples"] / max(sum(stacks.values()), 1)
            return collections.Counter({stack: weight * share for stack, weight in stacks.items()})
        return read_collapsed(out)


class Target:
    """The program, while it runs."""

    def __init__(self, python: str, shared: Path) -> None:
        shared.write_bytes(bytes(8))
        self._shared = shared
        self.process = subprocess.Popen([python, "-c", TARGET, shared], stdout=subprocess.PIPE)
        assert self.process.stdout is not None and self.process.stdout.readline() == b"ready\n"

    def work_per_second(self, seconds: float) -> float:
        before, start = self._count(), time.monotonic()
        time.sleep(seconds)
        return (self._count() - before) / (time.monotonic() - start)

    def _count(self) -> int:
        return int.from_bytes(self._shared.read_bytes(), "little")

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def measure(tools: Tools, tool: str, directory: Path) -> "dict[str, float]":
    """One run of one tool; empty if it is not there."""
    out = directory / "out"
    out.unlink(missing_ok=True)
    with Target(tools.python, directory / "counter") as target:
        if tool == "none":
            return {"work": target.work_per_second(tools.seconds)}
        try:
            profiler = subprocess.Popen(tools.command(tool, target.process.pid, out), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return {}
        # Measured while it looks, not while it starts and ends.
        time.sleep(tools.seconds * 0.2)
        work = target.work_per_second(tools.seconds * 0.6)
        _, status, used = os.wait4(profiler.pid, 0)
        profiler.returncode = os.waitstatus_to_exitcode(status)
        if profiler.returncode != 0:
            return {}
    asked = tools.rate * tools.seconds
    answer = {"work": work, "cpu": 1e6 * (used.ru_utime + used.ru_stime) / asked}
    if tool == "sleeper":
        return answer
    stacks = tools.stacks(tool, out)
    total = sum(stacks.values())
    broken = sum(number for names, number in stacks.items() if not is_possible(list(names)))
    return {**answer, "taken": total / asked, "broken": broken / total if total else 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--plimsoll", default=str(ROOT / ".venv" / "bin" / "plimsoll"))
    parser.add_argument("--only", nargs="+", metavar="TOOL", help="for example plimsoll py-spy")
    parser.add_argument("--peers", help="the directory of py-spy and austin; by default that of PYTHON")
    options = parser.parse_args()
    tools = Tools(options)
    names = ["none", "A/A", "sleeper", "plimsoll", "plimsoll --apart", "py-spy", "py-spy --nonblocking", "austin",
             "profiling.sampling", "profiling.sampling --blocking"]
    names = [name for name in names if options.only is None or name in ("none", *options.only)]
    found: "dict[str, list[dict[str, float]]]" = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.rounds):
            plain = measure(tools, "none", Path(directory))["work"]
            for name in random.sample(names[1:], len(names) - 1):
                answer = measure(tools, "none" if name == "A/A" else name, Path(directory))
                if answer:
                    found[name].append({**answer, "work": answer["work"] / plain})
            print(f"\rround {number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{options.rate:g} Hz\n{'tool':30} {'work':>8} {'cpu':>10} {'taken':>9} {'broken':>10}")
    for name in names[1:]:
        rows = found[name]
        if not rows:
            print(f"{name:30} not installed, or it cannot record this Python")
            continue
        middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        cells = [f"{100 * middle['work']:6.1f} %"]
        cells.append(f"{middle['cpu']:7.1f} us" if "cpu" in middle else "")
        cells.append(f"{100 * middle['taken']:7.1f} %" if "taken" in middle else "")
        cells.append(f"{100 * middle['broken']:8.3f} %" if "broken" in middle else "")
        print(f"{name:30} {cells[0]:>8} {cells[1]:>10} {cells[2]:>9} {cells[3]:>10}")


if __name__ == "__main__":
    main()
