"""Benchmarks, side by side: how much slower does a program run while it is profiled?

Each round runs every tool once, in random order, as a process of its own; the unit of truth is the target's work per
second of its own CPU time, which another job on the machine disturbs least. Reported are the median over rounds of the
ratio to the plain run of the same round, and a bootstrap confidence interval; "none" against itself (A/A) is the
resolution of the measurement, and "floor" the cost of the same ticks with an empty handler.

Usage: run.py [--rounds N] [--seconds S] [--python PYTHON]    needs plimsoll installed in .venv (make demo does it),
and of the peers those that are to be compared with: pip install py-spy austin-dist pyinstrument vmprof scalene, and
spprof from its source (up to CPython 3.13). austin-dist 3.7.0 is the last one for glibc before 2.38.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "bench"
BUILD = ROOT / "build" / "bench"


# Tools that want to start the program themselves.
UNDER = {"scalene": ["-m", "scalene", "run", "--cpu-only", "-o", "/dev/null"]}


def build_floor() -> Path:
    """The library with the empty handler."""
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "floor.so"
    subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library, HERE / "floor.c"], check=True)
    return library


def measure(python: str, tool: str, rate: float, seconds: float, library: Path) -> dict[str, float]:
    """One run of one tool."""
    under = UNDER.get(tool, [])
    command = [python, *under, str(HERE / "workload.py"), "none" if under else tool, str(rate), str(seconds),
               str(library)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return {}
    # Some tools print, too.
    line = next((line for line in result.stdout.splitlines() if line.startswith('{"speed"')), "{}")
    answer: dict[str, float] = json.loads(line)
    return answer


def interval(values: list[float], draws: int = 2000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(draws * 0.025)], medians[int(draws * 0.975)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Slow-down of a profiled program, interleaved and paired.")
    parser.add_argument("--only", nargs="+", metavar="TOOL", help="for example floor plimsoll")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of a run")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    options = parser.parse_args()
    library = build_floor()
    cases = [("none", 0.0)] + [(tool, rate) for rate in (100.0, 1000.0) for tool in ("floor", "plimsoll")]
    cases += [(tool, 1000.0) for tool in ("plimsoll-wall", "pyinstrument", "vmprof", "spprof", "py-spy",
                                          "py-spy-blocking", "austin", "profiling-sampling", "scalene")]
    cases += [(tool, 10000.0) for tool in ("floor", "plimsoll", "plimsoll-ticks", "plimsoll-wall", "py-spy", "austin",
                                           "profiling-sampling")]
    cases = [case for case in cases if options.only is None or case[0] in ("none", *options.only)]
    ratios: dict[tuple[str, float], list[float]] = {case: [] for case in cases}
    samples: dict[tuple[str, float], list[float | None]] = {case: [] for case in cases}
    for number in range(options.rounds):
        plain = measure(options.python, "none", 0, options.seconds, library)["speed"]
        for case in random.sample(cases, len(cases)):
            answer = measure(options.python, *case, options.seconds, library)
            if answer:
                ratios[case].append(plain / answer["speed"])
                samples[case].append(answer["samples"])
        print(f"\rround {number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{'tool':14} {'Hz':>6}  {'slow-down':>10}  {'95 % interval':>20}  {'samples per CPU second':>22}")
    for case, values in ratios.items():
        if not values:
            print(f"{case[0]:14} {case[1]:6.0f}  not installed, or not allowed here")
            continue
        low, high = interval(values)
        told = [count for count in samples[case] if count is not None]
        rate = f"{statistics.median(told) / options.seconds:.1f}" if told else "not told"
        print(f"{case[0]:14} {case[1]:6.0f}  {100 * (statistics.median(values) - 1):+9.2f} %"
              f"  {100 * (low - 1):+8.2f} .. {100 * (high - 1):+6.2f} %  {rate:>22}")


if __name__ == "__main__":
    main()
