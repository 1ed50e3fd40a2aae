"""Runs tests/python on every interpreter of the matrix.

For each interpreter that tools/pythons.py finds: a virtual environment under build/matrix/, `pip install .` into it
(ccache makes all but the first cheap), and pytest. Says which interpreters of the matrix it did not find. Tests marked
any_version run on the newest of them only, and those marked most_versions not on versions between two others that are
like them, unless --all asks for more.

    python3 tools/test_matrix.py            the interpreters that are there
    python3 tools/test_matrix.py --all      all tests on each; fails if one of the matrix is missing
    python3 tools/test_matrix.py --slow     the long tests, too
    python3 tools/test_matrix.py --at-once 1  one interpreter after the other
    python3 tools/test_matrix.py --only cp311 cp313t -- -k fork
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import pythons

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "matrix"
# What tests ask for if it is there, and where it is installed; without it they say that they are skipped.
EXTRAS = {
    "vmprof": ("cp39", "cp310", "cp311"),  # of later versions it has no wheels
    "greenlet": ("cp39", "cp311", "cp314"),
    "numpy": ("cp311", "cp314", "cp313t"),
    "mypy": ("cp312",),
}
# What most_versions tests show of these, they show of the version before or after.
BETWEEN = ("cp310", "cp312", "cp313")
HANG_SECONDS = 300  # for one test: it hangs, however slow the machine


@dataclass
class Outcome:
    """What came of one interpreter."""

    tag: str
    ok: bool
    summary: str
    seconds: float
    failures: str = ""


def environment() -> dict[str, str]:
    """ccache in front of the compiler; nothing of the caller's Python settings."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    variables.setdefault("CCACHE_BASEDIR", str(ROOT))
    # ccache takes c++ and g++ for two compilers; `make test` has used this one.
    variables.setdefault("CXX", "c++")
    # Paths of one build directory must not keep another from using its objects.
    variables.setdefault("CCACHE_NOHASHDIR", "1")
    return variables


def say(text: str) -> None:
    """Prints in one call, so that what two threads print does not mix."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def run(command: list[str], log: Path) -> tuple[bool, str]:
    """Runs a command with its output in a file; whether it succeeded, and the output."""
    with log.open("wb") as output:
        result = subprocess.run(command, cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT)
    return result.returncode == 0, log.read_text(errors="replace")


def prepare(tag: str, interpreter: str) -> tuple[bool, str, Path]:
    """A virtual environment with this checkout and pytest installed."""
    venv = WORK / tag
    python = venv / "bin" / "python"
    if not python.exists():
        ok, output = run([interpreter, "-m", "venv", str(venv)], WORK / f"{tag}.venv.log")
        if not ok:
            return False, f"no virtual environment: {output.strip().splitlines()[-1:]}", python
    for what in (["pytest", "pytest-timeout"], ["."]):
        ok, output = run([str(python), "-m", "pip", "install", "--quiet", *what], WORK / f"{tag}.install.log")
        if not ok:
            return False, f"pip install {what[0]} failed: see {WORK / f'{tag}.install.log'}", python
    for name in (name for name, tags in EXTRAS.items() if tag in tags):
        command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", name]
        run(command, WORK / f"{tag}.{name}.log")
    return True, "", python


def failures_in(output: str) -> str:
    """What pytest says of each test that failed, without its lists of warnings and of skipped tests."""
    inside, lines = False, []
    for line in output.splitlines():
        if heading := re.fullmatch(r"=+ (.+?) =+", line):
            inside = heading[1] in ("FAILURES", "ERRORS")
        elif inside or line.startswith(("FAILED ", "ERROR ")):
            lines.append(line)
    return "\n".join(lines)


def test(tag: str, interpreter: str, arguments: list[str]) -> Outcome:
    """Installs into one interpreter and runs its tests; prints what pytest said in one piece."""
    began = time.monotonic()
    say(f"=== {tag}: {interpreter}")
    ok, reason, python = prepare(tag, interpreter)
    if not ok:
        return Outcome(tag, False, reason, 0)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--timeout", str(HANG_SECONDS), *arguments]
    log = WORK / f"{tag}.test.log"
    say(f"=== {tag}: installed, {time.monotonic() - began:.0f} s; its tests write to {log.relative_to(ROOT)}")
    ok, output = run(command, log)
    closing = next((line.strip("= ") for line in reversed(output.splitlines())
                    if re.search(r"\d+ (passed|failed|error)", line)), "no test ran")
    outcome = Outcome(tag, ok, closing, time.monotonic() - began, failures_in(output))
    say(f"=== {tag}: {outcome.seconds:.0f} s\n{output}")
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the Python tests on every interpreter of the matrix.")
    parser.add_argument("--all", action="store_true", help="all tests on each; fail if one of the matrix is missing")
    parser.add_argument("--slow", action="store_true", help="run the long tests, too")
    parser.add_argument("--only", nargs="+", metavar="TAG", help="for example cp311 cp313t")
    parser.add_argument("--at-once", type=int, default=min(2, os.cpu_count() or 1), metavar="N",
                        help="interpreters at the same time (default: two, if there are two processors)")
    parser.add_argument("arguments", nargs="*", help="for pytest, after --")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    found = {one.tag: one.path for one in pythons.find_interpreters() if one.tag.startswith("cp")}
    missing = [tag for tag in pythons.MATRIX if tag.startswith("cp") and tag not in found]
    chosen = [tag for tag in pythons.MATRIX if tag in found and (not options.only or tag in options.only)]
    if not chosen:
        print("no interpreter of the matrix was found; tools/provide_pythons.sh provides them")
        return 1

    newest = max((tag for tag in chosen if not tag.endswith("t")), key=pythons.MATRIX.index, default=chosen[-1])

    def arguments(tag: str) -> list[str]:
        every = options.all or options.only or tag == newest
        wanted = [] if options.slow else ["not slow"]
        wanted += [] if every else ["not any_version"]
        wanted += ["not most_versions"] if not every and tag in BETWEEN else []
        return ["-m", " and ".join(wanted)] + options.arguments

    # The newest first: it has the most tests, and what comes last should be short.
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        running = {tag: pool.submit(test, tag, found[tag], arguments(tag)) for tag in reversed(chosen)}
    outcomes = [running[tag].result() for tag in chosen]

    print("\n=== summary")
    for outcome in outcomes:
        print(f"{outcome.tag:8} {'ok    ' if outcome.ok else 'FAILED'} {outcome.seconds:6.0f} s  {outcome.summary}")
    if missing:
        print(f"not found: {' '.join(missing)} (tools/provide_pythons.sh provides them)")
    failed = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in failed:  # once more, where a log that is cut in its middle has them
        print(f"\n=== {outcome.tag} failed\n{outcome.failures}")
    return 1 if failed or (options.all and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
