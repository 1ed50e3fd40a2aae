"""Instruction counts of the fast paths, held against the numbers in bench/instructions.golden.

Counted by callgrind, so that neither a busy machine nor a fast one changes them: what N repeats take more than none,
divided by N. The number depends on the compiler, so the file names the one it was made with.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

from checks.report import ROOT, Context, Report, run

GOLDEN = Path("bench/instructions.golden")
TOLERANCE_PERCENT = 2.0
REPEATS = 2000
# Each is an argument of the executable tick_golden (src/capture/tick_golden.cc).
CASES = ("walk", "tick", "tasks")

HEAD = """\
# Instructions per repeat of the fast paths; see tools/checks/golden.py. Written by `tools/check.py --update-golden`.
# Explain a change in the commit that makes it.
"""


def machine() -> str:
    """What the numbers depend on: architecture and compiler."""
    version = run(["g++", "-dumpversion"]).stdout.strip()
    return f"{platform.machine()} g++-{version}"


def instructions(executable: Path, case: str, repeats: int) -> int:
    """Instructions of a whole run."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(executable), case, str(repeats)]
    result = run(command)
    counted = re.search(r"Collected : (\d+)", result.stdout)
    if result.returncode != 0 or counted is None:
        raise RuntimeError(f"{' '.join(command)}: {(result.stdout.strip().splitlines() or ['no output'])[-1]}")
    return int(counted[1])


def measure(executable: Path) -> dict[str, float]:
    """Instructions per repeat for each case."""
    return {case: (instructions(executable, case, REPEATS) - instructions(executable, case, 0)) / REPEATS
            for case in CASES}


def recorded() -> tuple[str, dict[str, float]]:
    """The machine and the numbers in the golden file."""
    made_with, numbers = "", {}
    for line in (ROOT / GOLDEN).read_text().splitlines() if (ROOT / GOLDEN).exists() else []:
        words = line.split()
        if words[:1] == ["machine"]:
            made_with = " ".join(words[1:])
        elif len(words) == 2:
            numbers[words[0]] = float(words[1])
    return made_with, numbers


def update(context: Context) -> None:
    """Writes the golden file anew."""
    rows = "".join(f"{case} {count:.1f}\n" for case, count in measure(context.build / "src" / "tick_golden").items())
    (ROOT / GOLDEN).parent.mkdir(exist_ok=True)
    (ROOT / GOLDEN).write_text(f"{HEAD}machine {machine()}\n{rows}")


def check_golden(context: Context) -> Report:
    report = Report()
    made_with, golden = recorded()
    if made_with != machine():
        report.warn(f"not compared: {GOLDEN} was made with {made_with or 'nothing'}, this is {machine()}")
        return report
    told = []
    for case, count in measure(context.build / "src" / "tick_golden").items():
        if case not in golden:
            report.fail(f"{GOLDEN} has no number for {case}")
            continue
        change = 100 * (count / golden[case] - 1)
        told.append(f"{case} {count:.1f} ({change:+.1f} %)")
        text = f"{case} takes {count:.1f} instructions, not {golden[case]:.1f} ({change:+.1f} %)"
        if change > TOLERANCE_PERCENT:
            report.fail(text)
        elif change < -TOLERANCE_PERCENT:
            report.warn(f"{text}: better, so record it with tools/check.py --update-golden")
    report.summary = "instructions: " + ", ".join(told)
    return report
