#!/usr/bin/env python3
"""`make check`: the rules that a machine can hold a change against. Prints what exceeds a budget, fails on hard limits.

    tools/check.py                      everything
    tools/check.py --only layers sizes  some of it; the first six look at the source only and take a second
    tools/check.py --fix                lets clang-format write first
    tools/check.py --update-golden      records the instruction counts of today
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_signal_safety
from checks import budgets, build, clang, golden, layers, mutable_state, python_code
from checks.report import ROOT, Context, Report

TARGETS = ["plimsoll", "_core", "tick_golden"]


def check_signals(context: Context) -> Report:
    """Nothing that a signal handler can reach is unsafe there."""
    report = Report()
    files = [str(build.extension(context)), str(context.build / "src" / "plimsoll")]
    told = []
    for handler, found in check_signal_safety.check(files).items():
        told.append(f"{handler}: {found.reached} functions, {len(found.external)} of other libraries")
        for problem in found.problems:
            report.fail(f"{handler}: {problem}")
    report.summary = "; ".join(told)
    return report


# Name, check, and whether it needs the build.
CHECKS = {
    "layers": (layers.check_layers, False),
    "sizes": (budgets.check_sizes, False),
    "versions": (budgets.check_version_tests, False),
    "comments": (budgets.check_type_comments, False),
    "format": (clang.check_format, False),
    "python": (python_code.check_python, False),
    "fuzzers": (clang.check_fuzzers, False),
    "globals": (mutable_state.check_mutable_state, True),
    "signals": (check_signals, True),
    "golden": (golden.check_golden, True),
    "tidy": (clang.check_tidy, True),
}


def show(name: str, report: Report, seconds: float) -> None:
    """One line for the check, and one for each thing it found."""
    state = "FAIL" if report.failures else "warn" if report.warnings else "ok"
    print(f"{state:4}  {name:9} {seconds:5.0f} s  {report.summary}", flush=True)
    for text in report.failures:
        print(f"        fail  {text}")
    for text in report.warnings:
        print(f"        warn  {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold the tree against the project's rules.")
    parser.add_argument("--only", nargs="+", choices=CHECKS, metavar="CHECK", help=" ".join(CHECKS))
    parser.add_argument("--fix", action="store_true", help="format the sources first")
    parser.add_argument("--update-golden", action="store_true", help="record the instruction counts of today")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "check", help="default: build/check")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    context = Context(build=options.build_dir.resolve(), jobs=options.jobs, fix=options.fix)
    chosen = options.only or (["golden"] if options.update_golden else list(CHECKS))
    failed = []
    is_built = False
    for name in chosen:
        check, needs_build = CHECKS[name]
        began = time.monotonic()
        if needs_build and not is_built:
            try:
                build.build(context, TARGETS)
            except build.BuildError as error:
                print(f"{error}\nFAIL  build")
                return 1
            is_built = True
        if name == "golden" and options.update_golden:
            golden.update(context)
        report = check(context)
        show(name, report, time.monotonic() - began)
        if report.failures:
            failed.append(name)
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed" + (f": {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
