"""`plimsoll attach --tasks`: what runs in an asyncio task, below the tasks that await it."""

from __future__ import annotations

import json
import pathlib
import platform
import sys

import pytest

import harness
import plimsoll
import task_rules

KNOWS = sys.version_info >= (3, 14) or not harness.FREE_THREADED
pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")


@pytest.mark.skipif(not KNOWS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
def test_what_runs_is_below_the_tasks_that_await_it(tmp_path: pathlib.Path) -> None:
    # GIVEN tasks that work in turn, awaited in every way there is; and callbacks, which are no tasks
    path = tmp_path / "attached.plim"
    with harness.Running([sys.executable, harness.TARGETS / "awaited.py", "waits"]) as running:
        truth = json.loads(running.line())
        pid = str(running.process.pid)
        with harness.Running([harness.binary(), "attach", pid, "--tasks", "-r", "5000", "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            # WHEN they are recorded from outside, to their end
            running.say("go\n")
            running.process.wait()
            attached.process.wait()
    # THEN each function that has used CPU time is below those who await its task
    found = task_rules.check_awaited(plimsoll.Profile.open(path), truth)
    assert set(found) >= {*truth} - {"in_wait"}, found


@pytest.mark.skipif(not KNOWS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_who_calls_the_first_step_of_an_eager_task_is_above_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "attached.plim"
    with harness.Running([sys.executable, harness.TARGETS / "eager.py", "waits"]) as running:
        truth = json.loads(running.line())
        pid = str(running.process.pid)
        with harness.Running([harness.binary(), "attach", pid, "--tasks", "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            running.say("go\n")
            running.process.wait()
            attached.process.wait()
    task_rules.check_eager(plimsoll.Profile.open(path), truth)


@pytest.mark.skipif(not KNOWS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
def test_top_shows_what_runs_below_the_tasks_that_await_it() -> None:
    # GIVEN tasks that work in turn, awaited in every way there is
    with harness.Running([sys.executable, harness.TARGETS / "awaited.py", "waits"]) as running:
        truth = json.loads(running.line())
        pid = str(running.process.pid)
        with harness.Running([harness.binary(), "top", pid, "--tasks", "--json", "-w", "3s", "-r", "2000"]) as top:
            running.say("go\n")
            finished = top.finish().expect(0)
    # THEN the tasks are among the callers
    functions = {row["function"]: row for row in json.loads(finished.out)["functions"]}
    tasks = {name for name in functions if name.startswith("[task ")}
    assert tasks and all(functions[name]["self_ns"] == 0 for name in tasks), functions
    assert truth


def test_says_what_it_cannot() -> None:
    with harness.Running([sys.executable, "-c", "print('begun', flush=True); input()"]) as running:
        running.line()
        pid = str(running.process.pid)
        # WHEN tasks are asked for from other CPUs THEN it says that this does not go together
        apart = harness.plimsoll_command("attach", pid, "--tasks", "--apart").expect(2)
        assert apart.notices[0].startswith("plimsoll: --tasks takes looks from the process's own CPUs")
        top = harness.plimsoll_command("top", pid, "--tasks", "--apart").expect(2)
        assert top.notices[0].startswith("plimsoll: --tasks takes looks from the process's own CPUs")
        # and of a version of which it is not known where they are, that it is not
        if not KNOWS:
            version = platform.python_version() + "t"
            refused = harness.plimsoll_command("attach", pid, "--tasks").expect(1)
            assert refused.notices[0].startswith(f"plimsoll: the tasks of Python {version} cannot be read")
