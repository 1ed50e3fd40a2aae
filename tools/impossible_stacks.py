#!/usr/bin/env python3
"""Holds a million sampled stacks of each engine against those that CPython's own tracing knows.

    build/matrix/cp314/bin/python tools/impossible_stacks.py                  with a Python that has plimsoll
    ... tools/impossible_stacks.py --samples 100000 --engines reader

The program is tests/targets/calls.py: alternating callers, generators, coroutines, exceptions, callbacks, recursion.
tests/python/test_calls.py does the same with fewer samples. Exit code 1 if a stack is impossible.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
import harness
from call_rules import CallRules

ENGINES = ("perf", "timer", "reader")
SCENARIOS = 10  # of the program
SAMPLES_OF_A_RUN = 100_000


def record(engine: str, samples: int, rate: int) -> "tuple[int, int, collections.Counter[str]]":
    """Stacks that were checked, those that are impossible, and what was lost, of one run of the program."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-calls-") as directory:
        recorded = harness.record(Path(directory), harness.TARGETS / "calls.py", str(samples / rate / SCENARIOS),
                                  options=["--engine", engine, "-r", str(rate), "--no-sources"])
        checked, impossible = 0, 0
        for facts in recorded.truth["scenarios"]:
            rules = CallRules(recorded.truth["file"], facts)
            ruled, wrong, told = rules.judge(harness.stacks(recorded.profile))
            checked, impossible = checked + ruled, impossible + wrong
            if wrong:
                print(f"    {facts['work']}:\n{told}")
        lost = collections.Counter({drop.reason: drop.count for drop in recorded.profile.drops if drop.count})
    return checked, impossible, lost


def look(engine: str, samples: int, rate: int) -> bool:
    """Records and checks so many; whether all stacks were possible."""
    checked, impossible, lost = 0, 0, collections.Counter[str]()
    while checked < samples:
        more, wrong, missing = record(engine, min(samples, SAMPLES_OF_A_RUN), rate)
        if more == 0:
            print(f"{engine}: no samples")
            return False
        checked, impossible, lost = checked + more, impossible + wrong, lost + missing
    print(f"{sys.version.split()[0]} {engine}: {impossible} impossible stacks among {checked:,}; lost: {dict(lost)}",
          flush=True)
    return impossible == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="A million stacks, held against those that tracing knows.")
    parser.add_argument("--samples", type=int, default=1_000_000, help="of each engine")
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["perf", "reader"])
    options = parser.parse_args()
    good = [look(engine, options.samples, options.rate) for engine in options.engines]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
