"""`plimsoll dump --tasks`: who awaits whom in a process that knows nothing of it, from outside."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import sys
from typing import Any, Iterator

import pytest

import harness

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")
are_found = pytest.mark.skipif(not harness.KNOWS_TASKS, reason="tasks of free-threaded 3.13 are not known")


@contextlib.contextmanager
def awaiting() -> "Iterator[tuple[harness.Running, dict[str, Any]]]":
    """The target and its truth, once all its tasks are in the await that they say."""
    with harness.Running([sys.executable, harness.TARGETS / "awaiting.py"]) as running:
        yield running, json.loads(running.line())


def drawing_of(pid: int) -> "tuple[str, list[str]]":
    """The lines of tasks, and those of loops."""
    lines = harness.plimsoll_command("dump", str(pid), "--tasks").expect().out.splitlines()
    tasks = [line for line in lines if line.lstrip("│├└─ ").startswith("[task ")]
    return "".join(line + "\n" for line in tasks), [line for line in lines if "event loop in " in line]


def tasks_of(pid: int) -> "dict[str, Any]":
    return dict(json.loads(harness.plimsoll_command("dump", str(pid), "--tasks", "--json").expect().out))


def check_frames(dumped: "dict[str, Any]", truth: "dict[str, Any]") -> None:
    tasks = {task["name"]: task for task in dumped["tasks"]}
    for name, expected in truth["frames"].items():
        assert [[frame["function"], frame["line"]] for frame in tasks[name]["frames"]][-len(expected):] == expected, name


@are_found
def test_draws_who_awaits_whom_down_to_the_lines() -> None:
    # GIVEN tasks that await each other in every way there is, in two event loops
    with awaiting() as (_, truth):
        # WHEN they are looked at as text
        drawing, loops = drawing_of(truth["pid"])
        # THEN the tree is the one that the program has, and a loop says what keeps it from going on
        assert drawing == truth["drawing"]
        main, other = truth["threads"]
        assert loops[0].startswith(f"event loop in thread {main} ") and loops[0].endswith(": runs no task")
        assert loops[1].startswith(f"event loop in thread {other} ") and loops[1].endswith(": runs [task blocks]")
        # and as JSON each task has its coroutines' frames down to what it waits in
        dumped = tasks_of(truth["pid"])
        check_frames(dumped, truth)
        assert dumped["complete"]
        states = {task["name"]: task["state"] for task in dumped["tasks"]}
        assert states.pop("blocks") == "running"
        assert set(states.values()) == {"waiting"}


@are_found
def test_shows_the_tasks_of_a_stopped_process_and_leaves_it_stopped() -> None:
    with awaiting() as (running, truth):
        running.process.send_signal(signal.SIGSTOP)
        os.waitpid(running.process.pid, os.WUNTRACED)
        # WHEN a process that is stopped is looked at THEN its tasks are there
        assert drawing_of(truth["pid"])[0] == truth["drawing"]
        check_frames(tasks_of(truth["pid"]), truth)
        # and it is stopped still
        assert os.waitpid(running.process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED) == (0, 0)


CHANGING = """
import asyncio, sys

async def leaf(): await asyncio.sleep(0)
async def branch(): await asyncio.gather(leaf(), leaf())

async def main():
    print("begun", flush=True)
    loop = asyncio.get_running_loop()
    while True:
        # (asyncio.create_task gives a task its name only after it has been made, up to 3.12.)
        tasks = [loop.create_task(branch(), name="branch") for _ in range(3)]
        for task in tasks:
            await task

asyncio.run(main())
"""


@are_found
def test_never_draws_what_never_was() -> None:
    # GIVEN a program whose tasks come and go as fast as it can make them
    with harness.Running([sys.executable, "-c", CHANGING]) as running:
        running.line()
        met: "set[str]" = set()
        looks = (tasks_of(running.process.pid) for _ in range(100))
        # WHEN it is looked at five times, and until each of its functions has been seen
        for number, dumped in enumerate(looks):
            if number >= 5 and met >= {"main", "branch"}:
                break
            # THEN whatever is shown is one of the things that it does
            tasks = dumped["tasks"]
            for task in tasks:
                functions = [frame["function"] for frame in task["frames"]]
                met.update(functions)
                awaiters = {tasks[number]["name"] for number in task["awaited_by"]}
                if task["name"] == "Task-1":
                    assert not functions or functions[-1] == "main", task
                    assert not awaiters
                elif task["name"] == "branch":
                    assert not functions or functions[-1] == "branch", task
                    assert awaiters <= {"Task-1"}
                else:
                    assert not functions or functions[-1] in {"leaf", "sleep"}, task
                    assert awaiters <= {"branch"}
            assert dumped["unreadable"] == 0
        assert met >= {"main", "branch"}, met


def test_says_that_there_is_no_asyncio() -> None:
    # GIVEN a program that has no use for asyncio
    with harness.Running([sys.executable, "-c", "print('begun', flush=True); input()"]) as running:
        running.line()
        done = harness.plimsoll_command("dump", str(running.process.pid), "--tasks")
    # THEN it says so in one line, or that the version cannot tell
    if not harness.KNOWS_TASKS:
        version = platform.python_version() + ("t" if harness.FREE_THREADED else "")
        assert done.expect(1).notices == [f"plimsoll: the tasks of Python {version} cannot be read from outside: CPython "
                                          "tells where it keeps them since 3.14"]
    else:
        # (Where the module is part of the interpreter, it is always there.)
        says = [line for line in done.expect().out.splitlines() if "no asyncio" in line]
        assert len(says) == 1 and says[0].startswith("Python 3.")
