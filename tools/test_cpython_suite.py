#!/usr/bin/env python3
"""Runs part of CPython's own test suite plainly and under ``plimsoll run``, and compares the results, test by test.

    python3 tools/test_cpython_suite.py --python build/matrix/cp311/bin/python
    python3 tools/test_cpython_suite.py --python ... --ways wall --modules test_threading test_signal
    python3 tools/test_cpython_suite.py --python ... --ways signals --alloc 32K

The interpreter must have plimsoll and the package `test`. A module with a test whose result differs is run once more
both ways, and counts only if it differs again: some of CPython's tests depend on the machine's mood.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES = """
test_threading test_threading_local test_thread test_signal test_threadsignals test_faulthandler test_asyncio
test_generators test_generator_stop test_coroutines test_asyncgen test_contextlib test_contextlib_async test_context
test_gc test_weakref test_subprocess test_multiprocessing_fork test_concurrent_futures test_socket test_socketserver
test_select test_selectors test_poll test_epoll test_sqlite3 test_json test_re test_decimal test_fractions
test_statistics test_sys test_sys_settrace test_sys_setprofile test_inspect test_traceback test_frame test_code
test_exceptions test_exception_group test_except_star test_with test_yield_from test_pickle test_copy test_collections
test_deque test_dict test_list test_set test_str test_bytes test_io test_os test_time test_timeit test_queue
test_sched test_functools test_itertools test_operator test_typing test_dataclasses test_enum test_fork1 test_wait3
test_wait4 test_posix test_tempfile test_logging test_zlib test_hashlib test_struct test_array test_mmap test_ctypes
test_ssl test_atexit test_runpy test_cmd_line test_import test_importlib test_linecache test_tracemalloc test_cprofile
test_profile
""".split()

# How a module is recorded: by the default engine, by that of machines without perf events, by the other one, and with
# all waits.
WAYS = {"signals": ["--mode", "cpu"], "timer": ["--mode", "cpu", "--engine", "timer"],
        "reader": ["--mode", "cpu", "--engine", "reader"], "wall": ["--mode", "wall"]}

# Tests that do not end by themselves on some machines: a recursion that doubles until an interrupt gets through.
IGNORED = ("test_print_exception_gh_102056",)

# What `python -m unittest -v MODULE` does, without those.
RUNNER = f"""
import sys, unittest
def wanted(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from wanted(one)
        elif not one.id().endswith({IGNORED!r}):
            yield one
suite = unittest.TestSuite(wanted(unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])))
sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
"""

# (Tests of process pools say how long they took before how they ended, and some write lines of their own before that.)
RESULT = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n.*?)? \.\.\. (?:[\d.]+s )*(?:(?!\w+ \([\w.]+\)).*\n)*?"
                    r"(ok|FAIL|ERROR|skipped|expected failure|unexpected success)", re.MULTILINE)


def environment() -> "dict[str, str]":
    """Ours, without the settings of the Python that runs this."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def command(python: Path, words: "list[str]", out: "str | Path", options: "list[str] | None") -> "list[str]":
    """To run Python with these words, recorded into `out`; no `options`: without plimsoll."""
    if options is None:
        return [str(python), *words]
    return [str(python.parent / "plimsoll"), "run", "--python", str(python), "-o", str(out), *options, *words]


class Suite:
    """One interpreter's way to run a module of the suite."""

    def __init__(self, python: Path, timeout: float) -> None:
        self.python = python
        self.timeout = timeout

    def has(self, module: str) -> bool:
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec('test.{module}') is None)"
        return subprocess.run([self.python, "-c", code], check=False).returncode == 0

    def run(self, module: str, options: "list[str] | None") -> "tuple[str, dict[str, str], str]":
        """How the module ended, the result of each test, and the end of the output. No `options`: without plimsoll."""
        words = ["-c", RUNNER, f"test.{module}"]
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "suite.plim")
            try:
                done = subprocess.run(command(self.python, words, out, options), cwd=directory, env=environment(),
                                      stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.timeout,
                                      errors="replace", text=True, check=False)
            except subprocess.TimeoutExpired as late:
                text = late.stdout or b""
                return "timeout", {}, (text.decode(errors="replace") if isinstance(text, bytes) else text)[-2000:]
        results = {f"{case}.{name}": result for name, case, result in RESULT.findall(done.stdout)}
        return f"exit {done.returncode}", results, done.stdout[-2000:]


def differences(plain: "dict[str, str]", recorded: "dict[str, str]") -> "list[str]":
    names = sorted({*plain, *recorded})
    return [f"{name}: {plain.get(name, 'absent')} -> {recorded.get(name, 'absent')}" for name in names
            if plain.get(name) != recorded.get(name)]


def steady_differences(plain: "dict[str, str]", again: "dict[str, str]", recorded: "dict[str, str]") -> "list[str]":
    """Those of tests that have the same result in two plain runs."""
    unsteady = {line.rsplit(": ", 1)[0] for line in differences(plain, again)}
    return [line for line in differences(again, recorded) if line.rsplit(": ", 1)[0] not in unsteady]


def compare(suite: Suite, module: str, plain: "tuple[str, dict[str, str], str]",
            options: "list[str]") -> "tuple[bool, str]":
    plain_end, expected, _ = plain
    end, recorded, tail = suite.run(module, options)
    if plain_end == "timeout" or end == "timeout":
        return plain_end == "timeout", f"not compared: too slow for the timeout (plain: {plain_end}, recorded: {end})"
    found = differences(expected, recorded)
    if found or end != plain_end:
        again_end, again, _ = suite.run(module, None)
        end, recorded, tail = suite.run(module, options)
        found = steady_differences(expected, again, recorded)
        plain_end = plain_end if plain_end == again_end else end  # it does not end the same way by itself
    if not found and end == plain_end:
        return True, f"{len(expected)} tests, {end}"
    return False, "\n    ".join([f"{plain_end} -> {end}", *found[:20], *([] if found else tail.splitlines()[-12:])])


def main() -> int:
    parser = argparse.ArgumentParser(description="CPython's own tests, plainly and recorded.")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with plimsoll in it")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="how to record")
    parser.add_argument("--modules", nargs="+", default=MODULES)
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--native-memory", action="store_true", help="and those of C libraries by malloc")
    parser.add_argument("--alloc", help="sample allocations, too, with this distance: 32K")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one module")
    options = parser.parse_args()
    suite = Suite(options.python.absolute(), options.timeout)
    bad, count = [], 0
    for module in options.modules:
        if not suite.has(module):
            print(f"--    {module}: this Python has no such module", flush=True)
            continue
        count += 1
        plain = suite.run(module, None)
        for way in options.ways:
            began = time.monotonic()
            memory = [f"--alloc={options.alloc}"] if options.alloc else []
            memory += ["--native-memory"] if options.native_memory else []
            good, told = compare(suite, module, plain, [*WAYS[way], "-r", options.rate, *memory])
            bad += [] if good else [f"{module} ({way})"]
            took = time.monotonic() - began
            print(f"{'ok   ' if good else 'DIFF '} {module} {way} {took:.0f} s: {told}", flush=True)
    if count == 0:
        print("this Python has none of these modules: Debian keeps them in libpythonX.Y-testsuite")
        return 2
    print(f"{len(bad)} differ: {' '.join(bad)}" if bad else f"no differences; modules that were run: {count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
