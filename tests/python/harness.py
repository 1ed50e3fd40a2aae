"""Runs programs, with and without Plimsoll, and reads what was recorded.

A target is a program of tests/targets whose answer is known: it prints, as one line of JSON at the end of its standard
output, what a profile of it must say (its `truth`).
"""

from __future__ import annotations

import json
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import plimsoll

TARGETS = pathlib.Path(__file__).resolve().parent.parent / "targets"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
#: Whether asyncio's tasks can be found from outside: from 3.14 on CPython tells where they are.
KNOWS_TASKS = sys.version_info >= (3, 14) or not FREE_THREADED
#: PYTHONMALLOC: what Python can allocate with.
MALLOCS = ("mimalloc", "mimalloc_debug") if FREE_THREADED else ("pymalloc", "debug", "malloc")
#: Nothing here takes nearly as long; a program that hangs must not hang the tests.
DEADLINE = 240
NO_STACK = 0xFFFFFFFF
# What programs of signals and of processes begin with: CPU time of the calling thread, and what they import.
BURN = """
import json, os, signal, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
"""
#: Their ticks come late on a busy machine; perf's, and the reader's looks, do not.
TIMER_ENGINES = ("timer", "cpu-timer")
Word = Union[str, "os.PathLike[str]"]


@lru_cache(maxsize=None)
def binary() -> str:
    """The program `plimsoll` that belongs to this interpreter."""
    beside = os.path.join(sysconfig.get_path("scripts"), "plimsoll")
    found = beside if os.access(beside, os.X_OK) else shutil.which("plimsoll")
    assert found, "the program 'plimsoll' is neither beside this Python nor on PATH"
    return found


def environment(changes: Optional[Mapping[str, Optional[str]]] = None) -> dict[str, str]:
    """The environment for a program: ours without what pytest and its callers left in it, with `changes` (None: unset)."""
    result = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PLIMSOLL_"))}
    for name, value in (changes or {}).items():
        result.pop(name, None)
        if value is not None:
            result[name] = value
    return result


@dataclass(frozen=True)
class Finished:
    """A program that has ended."""

    code: int
    out: str
    err: str

    @property
    def notices(self) -> "list[str]":
        """What Plimsoll said on standard error."""
        return [line for line in self.err.splitlines() if line.startswith("plimsoll: ")]

    @property
    def own_err(self) -> str:
        """Standard error without Plimsoll's lines."""
        return "".join(line for line in self.err.splitlines(True) if not line.startswith("plimsoll: "))

    @property
    def truth(self) -> Any:
        """The last line of the output, which targets print as JSON."""
        lines = self.out.strip().splitlines()
        assert lines, f"no output; exit code {self.code}, standard error:\n{self.err}"
        return json.loads(lines[-1])

    def expect(self, code: int = 0) -> "Finished":
        """Itself, if it ended with that exit code."""
        assert self.code == code, f"exit code {self.code}, not {code}; standard error:\n{self.err}"
        return self


def run(words: Sequence[Word], *, stdin: "Union[str, bytes]" = "", env: Optional[Mapping[str, Optional[str]]] = None,
        cwd: Optional[Word] = None, **options: Any) -> Finished:
    """Runs a program to its end."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([os.fspath(word) for word in words], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(env), cwd=cwd, timeout=DEADLINE, **options)
    return Finished(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def python(*words: Word, **options: Any) -> Finished:
    """Runs `python words...` without Plimsoll."""
    return run([sys.executable, *words], **options)


def plimsoll_run(*words: Word, options: Sequence[Word] = (), **more: Any) -> Finished:
    """Runs `plimsoll run options... words...` with this interpreter."""
    return run([binary(), "run", "--python", sys.executable, *options, *words], **more)


def plimsoll_command(*words: Word, **more: Any) -> Finished:
    """Runs `plimsoll words...`."""
    return run([binary(), *words], **more)


class Running:
    """A program that talks to the test by lines while it runs. For `with`: what still runs at the end is killed."""

    def __init__(self, words: Sequence[Word], *, env: Optional[Mapping[str, Optional[str]]] = None, **options: Any) -> None:
        # Ctrl-C counts even if the tests run in the background of a shell, which ignores it for its jobs; and a group of
        # its own lets __exit__ end the program's children, too.
        self.process = subprocess.Popen([os.fspath(word) for word in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env),
                                        start_new_session=True,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def line(self) -> str:
        """The next line that the program prints; waits for it."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline().decode()
        assert text, f"the program has ended: {self.process.stderr and self.process.stderr.read().decode()}"
        return text.rstrip("\n")

    def await_sleep(self) -> None:
        """Waits until its main thread waits for something."""
        self._await_state("S", "the program never sleeps")

    def await_stop(self) -> None:
        """Waits until its main thread is stopped. One that was stopped and looked at has a way to go to its stop again,
        within the kernel, for which it needs a CPU."""
        self._await_state("T", "the program runs on")

    def _await_state(self, state: str, failure: str) -> None:
        stat = pathlib.Path("/proc") / str(self.process.pid) / "stat"
        end = time.monotonic() + DEADLINE
        while stat.read_text().rpartition(") ")[2][0] != state:
            assert time.monotonic() < end, failure
            time.sleep(0.001)

    def say(self, text: str) -> None:
        """Sends the program a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def finish(self) -> Finished:
        """Waits for the program's end."""
        out, err = self.process.communicate(timeout=DEADLINE)
        return Finished(self.process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


@dataclass(frozen=True)
class Recorded:
    """A finished program and its profile."""

    finished: Finished
    profile: plimsoll.Profile

    @property
    def truth(self) -> Any:
        return self.finished.truth


def record(directory: pathlib.Path, *words: Word, options: Sequence[Word] = (), code: int = 0, **more: Any) -> Recorded:
    """Records a program with `plimsoll run`, and checks its exit code."""
    path = directory / "recorded.plim"
    finished = plimsoll_run(*words, options=["-o", path, *options], **more).expect(code)
    assert path.exists(), finished.err
    return Recorded(finished, plimsoll.Profile.open(path))


def profiles_in(directory: pathlib.Path) -> "list[plimsoll.Profile]":
    """All profiles of a directory, by name."""
    return [plimsoll.Profile.open(path) for path in sorted(directory.glob("*.plim"))]


@dataclass(frozen=True)
class Stack:
    """One sample: its frames, outermost first."""

    time_ns: int
    thread: int
    weight_ns: int
    activity: str
    frames: "tuple[Any, ...]"

    def in_file(self, name: str) -> "tuple[Any, ...]":
        """The frames of one file."""
        return tuple(frame for frame in self.frames if frame.function.file.endswith(name))


def kernel_version() -> "tuple[int, ...]":
    """Of the running kernel: (6, 12)."""
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def stacks(profile: plimsoll.Profile) -> Iterator[Stack]:
    """The samples of a profile, one by one."""
    known: dict[int, tuple[Any, ...]] = {}
    samples = profile.samples
    rows = zip(samples.time_ns, samples.thread, samples.stack, samples.weight_ns, samples.activity)
    for time_ns, thread, stack, weight_ns, activity in rows:
        if stack not in known:
            known[stack] = () if stack == NO_STACK else tuple(profile.frames_of(stack))
        yield Stack(time_ns, thread, weight_ns, plimsoll.profiles.ACTIVITIES[activity], known[stack])


def plain_name(function: Any) -> str:
    """A function's name without its class and enclosing functions, which only 3.11 and later know."""
    return str(function.name).rpartition(".")[2]


def self_seconds(profile: plimsoll.Profile) -> "dict[str, float]":
    """CPU seconds by innermost function."""
    return _seconds(profile, "self_time")


def missed_at_the_end(profile: plimsoll.Profile) -> int:
    """CPU nanoseconds of threads that ended before a sample could stand for them."""
    return sum(drop.cpu_ns for drop in profile.drops if drop.reason == "end of thread")


def total_seconds(profile: plimsoll.Profile) -> "dict[str, float]":
    """CPU seconds in a function or anything it called."""
    return _seconds(profile, "total_time")


def _seconds(profile: plimsoll.Profile, column: str) -> "dict[str, float]":
    result: dict[str, float] = {}
    for row in profile.flat():
        name = plain_name(row.function)
        result[name] = result.get(name, 0.0) + getattr(row, column)
    return result


def drops(profile: plimsoll.Profile) -> "dict[str, int]":
    """How many samples were lost, by reason, without the unavoidable: the rest at the end of threads, looks of the
    reader that came to nothing, whose time goes to the next sample (test_calls.py says how many there may be), a few
    on the way into Python in 3.11 and 3.12: they link an entry from C before they fill it in, and for ten instructions
    nothing proves what is around it, the less so if what is left there is a generator's frame; and fewer that came
    while the handler of the one before met an unreadable page: the kernel gives a pending trap before the fault, though
    it is blocked."""
    unavoidable = ("end of thread", "thread ran on")
    counts = {drop.reason: drop.count for drop in profile.drops if drop.reason not in unavoidable}
    allowed = 5 + 0.003 * len(profile.samples) if sys.version_info[:2] in ((3, 11), (3, 12)) else 0
    entering = ("entering Python", "frame without caller")
    if sum(counts.get(reason, 0) for reason in entering) <= allowed:
        counts = {reason: count for reason, count in counts.items() if reason not in entering}
    if counts.get("handler re-entered", 0) <= 1 + 0.0003 * len(profile.samples):
        counts.pop("handler re-entered", None)
    return counts


def burn(seconds: float) -> None:
    """Uses so much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def burn_in_zlib(seconds: float) -> None:
    """Uses so much CPU time of this thread, nearly all of it in machine code of zlib."""
    text = bytes(range(256)) * 100
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        zlib.compress(text)


def may_look_at_others() -> bool:
    """Whether a program may read the memory of another one of the same user that it has not started (Ubuntu forbids it)."""
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or not scope.exists() or scope.read_text().strip() == "0"


def death_by(number: "signal.Signals") -> int:
    """The exit code by which subprocess tells of a death by a signal."""
    return -int(number)
