"""`plimsoll attach --tasks`: what runs in an asyncio task, below the tasks that await it."""

from __future__ import annotations

import collections
import pathlib
import platform
import sys
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")

PROGRAM = """
import asyncio, sys, time

def burn():
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass

def in_group(): burn()
def in_lonely(): burn()
def in_shared(): burn()
def in_unnamed(): burn()
def in_callback(): burn()

async def turns(work):
    for _ in range(3):  # until all who await it do
        await asyncio.sleep(0)
    for _ in range(100):
        work()
        await asyncio.sleep(0)

async def group():
    async with asyncio.TaskGroup() as members:
        members.create_task(turns(in_group), name="member")

async def unnamed():
    await turns(in_unnamed)

async def waits_for(task):
    await task

def call_again(turns_left):
    in_callback()
    if turns_left:
        asyncio.get_running_loop().call_soon(call_again, turns_left - 1)

async def main():
    asyncio.current_task().set_name("main / 1")
    lonely = asyncio.create_task(turns(in_lonely), name="lonely")
    shared = asyncio.create_task(turns(in_shared), name="shared")
    asyncio.get_running_loop().call_soon(call_again, 100)
    await asyncio.gather(group(), unnamed(), waits_for(shared), waits_for(shared))
    await lonely

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""
#: By the function that works: what stands above it, from the root on.
MAIN = ["[task main / 1]", "main"]
EXPECTED = {
    "in_group": [*MAIN, "[task group]", "group", "__aexit__", "_aexit", "[task member]", "turns"],
    "in_unnamed": [*MAIN, "[task unnamed]", "unnamed", "turns"],
    "in_shared": ["[several tasks]", "[task shared]", "turns"],
    "in_lonely": ["[task lonely]", "turns"],
}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="CPython tells where its tasks are since 3.14")
def test_what_runs_is_below_the_tasks_that_await_it(tmp_path: pathlib.Path,
                                                    program: "Callable[..., pathlib.Path]") -> None:
    # GIVEN tasks that work in turn, awaited by one, by two, and by nobody; and callbacks, which are no tasks
    path = tmp_path / "attached.plim"
    with harness.Running([sys.executable, program(PROGRAM)]) as running:
        assert running.line().strip() == "ready"
        pid = str(running.process.pid)
        with harness.Running([harness.binary(), "attach", pid, "--tasks", "-r", "5000", "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            # WHEN they are recorded from outside, to their end
            running.say("go\n")
            running.process.wait()
            attached.process.wait()
    profile = plimsoll.Profile.open(path)
    # THEN each stack is wholly that of a task and those that await it, or wholly that of the event loop
    found: "collections.Counter[str]" = collections.Counter()
    for stack in harness.stacks(profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        has_tasks = any(name.startswith("[task") or name == "[several tasks]" for name in names)
        assert not (has_tasks and "run_forever" in names), names
        for function, above in EXPECTED.items():
            if function in names and has_tasks:
                expected = above
                # (main awaits the lonely one when it has nothing else to wait for.)
                if function == "in_lonely" and names[0] == MAIN[0]:
                    expected = [*MAIN, *above]
                assert names[:names.index(function)] == expected, names
                found[function] += 1
        if "in_callback" in names:
            assert not has_tasks, names
            found["in_callback"] += 1
    assert set(found) == {*EXPECTED, "in_callback"}, found
    assert int(profile.meta["task_stacks"]) > 0


def test_says_what_it_cannot() -> None:
    with harness.Running([sys.executable, "-c", "print('begun', flush=True); input()"]) as running:
        running.line()
        pid = str(running.process.pid)
        # WHEN tasks are asked for from other CPUs THEN it says that this does not go together
        apart = harness.plimsoll_command("attach", pid, "--tasks", "--apart").expect(2)
        assert apart.notices[0].startswith("plimsoll: --tasks takes looks from the process's own CPUs")
        # and of a version that does not tell where they are, that it does not
        if sys.version_info < (3, 14):
            version = platform.python_version() + ("t" if harness.FREE_THREADED else "")
            refused = harness.plimsoll_command("attach", pid, "--tasks").expect(1)
            assert refused.notices[0].startswith(f"plimsoll: the tasks of Python {version} cannot be read")
