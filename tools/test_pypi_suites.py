#!/usr/bin/env python3
"""Runs the test suites of large pure-Python projects from PyPI plainly and under ``plimsoll run``, and compares them.

    python3 tools/test_pypi_suites.py --python build/matrix/cp314/bin/python
    python3 tools/test_pypi_suites.py --python ... --projects networkx --ways reader

The interpreter must have plimsoll. The projects, with their tests, come from their source distributions, and are
installed into a virtual environment of their own in --work. A test whose result differs is told if it differs in a
second run of both ways, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_cpython_suite import WAYS, command, differences, environment, steady_differences

# What to install, and pytest's arguments in the unpacked source distribution.
PROJECTS: "dict[str, tuple[list[str], list[str]]]" = {
    "networkx": (["networkx"], ["--pyargs", "networkx"]),
    "pygments": (["pygments", "wcag-contrast-ratio"], ["tests"]),
    "sqlglot": (["sqlglot", "duckdb", "pandas", "python-dateutil", "pytz"],
                ["tests", "--ignore", "tests/test_sqlglotc.py"]),  # (which builds its C version)
}


class Project:
    """A project with its tests, in an environment that has plimsoll."""

    def __init__(self, name: str, python: Path, work: Path) -> None:
        self.name = name
        self.python = python
        requirements, self.arguments = PROJECTS[name]
        self.libraries = work / name / "libraries"
        self.source = work / name / "source"
        if not self.source.exists():
            self._pip("install", "--target", str(self.libraries), "pytest", *requirements)
            self._unpack(work / name)

    def _pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)

    def _unpack(self, directory: Path) -> None:
        self._pip("download", "--no-deps", "--no-binary", self.name, "--dest", str(directory), self.name)
        (archive,) = directory.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(directory, filter="data")
        (unpacked,) = (one for one in directory.iterdir() if one.is_dir() and one != self.libraries)
        unpacked.rename(self.source)

    def run(self, options: "list[str] | None") -> "tuple[str, dict[str, str], str]":
        """How pytest ended, the result of each test, and what was said. No `options`: without plimsoll."""
        with tempfile.TemporaryDirectory() as directory:
            results = Path(directory) / "results.xml"
            words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:plimsoll", "-W", "ignore",
                     f"--junitxml={results}", *self.arguments]
            done = subprocess.run(command(self.python, words, Path(directory) / "suite.plim", options), cwd=self.source,
                                  env={**environment(), "PYTHONPATH": str(self.libraries)}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", text=True)
            tests = _results(results) if results.exists() else {}
        return f"exit {done.returncode}", tests, "\n    ".join(done.stdout.splitlines()[-6:])


def _results(file: Path) -> "dict[str, str]":
    found = {}
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}.{case.get('name')}"] = min(kinds, default="ok")
    return found


def compare(project: Project, plain: "tuple[str, dict[str, str], str]", options: "list[str]") -> "tuple[bool, str]":
    end, tests, told = project.run(options)
    found = differences(plain[1], tests)
    if found or end != plain[0]:
        again = project.run(None)
        end, tests, told = project.run(options)
        found = steady_differences(plain[1], again[1], tests)
    if not found and end == plain[0]:
        return True, f"{len(tests)} tests, {end}\n    {told}"
    return False, "\n    ".join([f"{plain[0]} -> {end}", *found[:20], told])


def main() -> int:
    parser = argparse.ArgumentParser(description="Test suites of projects from PyPI, plainly and recorded.")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with plimsoll and pip")
    parser.add_argument("--projects", nargs="+", choices=PROJECTS, default=list(PROJECTS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="how to record")
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--work", type=Path, default=Path("build/pypi"), help="where projects are installed")
    options = parser.parse_args()
    bad = []
    for name in options.projects:
        project = Project(name, options.python.absolute(), options.work.absolute())
        began = time.monotonic()
        plain = project.run(None)
        print(f"      {name} plain {time.monotonic() - began:.0f} s: {len(plain[1])} tests, {plain[0]}", flush=True)
        if plain[0] not in ("exit 0", "exit 1"):  # not one test that fails, but no tests
            print(f"    {plain[2]}")
            return 1
        for way in options.ways:
            began = time.monotonic()
            good, told = compare(project, plain, [*WAYS[way], "-r", options.rate])
            bad += [] if good else [f"{name} ({way})"]
            print(f"{'ok   ' if good else 'DIFF '} {name} {way} {time.monotonic() - began:.0f} s: {told}", flush=True)
    print(f"{len(bad)} differ: {' '.join(bad)}" if bad else "no differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
