#!/usr/bin/env python3
"""Holds a million sampled stacks of each engine against those that CPython's own tracing knows.

    build/matrix/cp314/bin/python tools/impossible_stacks.py                  with a Python that has plimsoll
    ... tools/impossible_stacks.py --samples 100000 --engines reader
    ... tools/impossible_stacks.py --engines attach --threads 4           from outside, of threads that take turns

The program is tests/targets/calls.py: alternating callers, generators, coroutines, exceptions, callbacks, recursion.
tests/python/test_calls.py and test_attach.py do the same with fewer samples. Exit code 1 if a stack is impossible.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
import harness
import plimsoll
from call_rules import CallRules, cut

ENGINES = ("perf", "timer", "reader", "attach")
SCENARIOS = 11  # of the program
SAMPLES_OF_A_RUN = 100_000


def record(directory: Path, engine: str, seconds: float, rate: int, threads: int) -> harness.Recorded:
    """One run of the program."""
    words = [harness.TARGETS / "calls.py", f"{seconds:g}", str(threads)]
    options = ["-r", str(rate), "--no-sources"]
    if engine != "attach":
        return harness.record(directory, *words, options=["--engine", engine, *options])
    path = directory / "recorded.plim"
    with harness.Running([sys.executable, *words]) as program:
        harness.plimsoll_command("attach", str(program.process.pid), "-o", path, *options).expect()
        finished = program.finish()
    return harness.Recorded(finished, plimsoll.Profile.open(path))


def judge(recorded: harness.Recorded) -> "tuple[int, int, collections.Counter[str]]":
    """Stacks that were checked, those that are impossible, and what was lost."""
    checked, impossible = 0, 0
    for facts in recorded.truth["scenarios"]:
        rules = CallRules(recorded.truth["file"], facts)
        ruled, wrong, told = rules.judge(harness.stacks(recorded.profile))
        checked, impossible = checked + ruled, impossible + wrong
        if wrong:
            print(f"    {facts['work']}:\n{told}")
    shortened = collections.Counter(cut(harness.stacks(recorded.profile)))
    for stack, number in shortened.items():
        print(f"    {number} times cut: {stack}")
    impossible += sum(shortened.values())
    return checked, impossible, collections.Counter({drop.reason: drop.count for drop in recorded.profile.drops
                                                     if drop.count})


def look(engine: str, samples: int, rate: int, threads: int) -> bool:
    """Records and checks so many; whether all stacks were possible."""
    checked, impossible, lost = 0, 0, collections.Counter[str]()
    while checked < samples:
        seconds = min(samples, SAMPLES_OF_A_RUN) / rate / SCENARIOS / threads
        with tempfile.TemporaryDirectory(prefix="plimsoll-calls-") as directory:
            more, wrong, missing = judge(record(Path(directory), engine, seconds, rate, threads))
        if more == 0:
            print(f"{engine}: no samples")
            return False
        checked, impossible, lost = checked + more, impossible + wrong, lost + missing
    failed = 100 * sum(lost.values()) / (checked + sum(lost.values()))
    print(f"{sys.version.split()[0]} {engine}, {threads} threads: {impossible} impossible stacks among {checked:,}; "
          f"lost {failed:.3f} %: {dict(lost)}", flush=True)
    return impossible == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="A million stacks, held against those that tracing knows.")
    parser.add_argument("--samples", type=int, default=1_000_000, help="of each engine")
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["perf", "reader"])
    parser.add_argument("--threads", type=int, default=1, help="that do the same and take turns")
    options = parser.parse_args()
    good = [look(engine, options.samples, options.rate, options.threads) for engine in options.engines]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
