"""Asyncio's tasks, told apart by name, and by those that await them or else by those that made them."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import pathlib
import sys
from typing import Any, Callable

import pytest

import harness
import plimsoll
import task_rules
from plimsoll import _tasks

SOURCE = "tasks.py"
TELLS = sys.version_info >= (3, 14) or not harness.FREE_THREADED  # where tasks are, or it is known


@pytest.mark.skipif(not TELLS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
@pytest.mark.parametrize("options", [["-r", "2000", "--engine", "timer"], ["--engine", "reader", "-r", "4000"],
                                     ["--mode", "wall", "-r", "2000"], ["--native", "-r", "2000"]], ids=" ".join)
def test_what_runs_is_below_the_tasks_that_await_it(tmp_path: pathlib.Path, options: "list[str]") -> None:
    # GIVEN tasks that work in turn, awaited in every way there is, and callbacks WHEN they are recorded from within
    recorded = harness.record(tmp_path, harness.TARGETS / "awaited.py", options=["--tasks", *options])
    profile = recorded.profile.without_native() if "--native" in options else recorded.profile
    # THEN each function is below those who await its task, and in no other way
    found = task_rules.check_awaited(profile, recorded.truth)
    waits = {"in_wait"} if "wall" not in options else set()
    assert set(found) >= {*recorded.truth} - waits, found
    # and tasks on the stacks need no asking, nor does it change them
    shown = harness.plimsoll_command("show", tmp_path / "recorded.plim", *(["--no-native"] if waits else [])).expect()
    assert "[task foster]" in shown.out
    assert list(profile.with_tasks().samples.stack) == list(profile.samples.stack)


@pytest.mark.skipif(not TELLS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
@pytest.mark.parametrize("engine", ["timer", "reader"])
def test_no_chain_of_tasks_is_impossible(tmp_path: pathlib.Path, engine: str) -> None:
    # GIVEN thousands of tasks a second WHEN they are recorded THEN each chain is one that there was
    recorded = harness.record(tmp_path, harness.TARGETS / "task_churn.py", "1.5",
                              options=["--tasks", "-r", "5000", "--engine", engine])
    assert recorded.truth["made"] > 1000
    assert task_rules.check_churn(recorded.profile) > 100


@pytest.mark.skipif(not TELLS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
@pytest.mark.parametrize("options", [["--engine", "timer"], ["--engine", "reader"], ["--native"]], ids=" ".join)
def test_who_calls_the_first_step_of_an_eager_task_is_above_it(tmp_path: pathlib.Path, options: "list[str]") -> None:
    recorded = harness.record(tmp_path, harness.TARGETS / "eager.py", options=["--tasks", "-r", "1000", *options])
    profile = recorded.profile.without_native() if "--native" in options else recorded.profile
    task_rules.check_eager(profile, recorded.truth)


@pytest.mark.slow
@pytest.mark.skipif(not TELLS, reason="CPython 3.13t neither says where its tasks are, nor is it known")
@pytest.mark.parametrize("engine", ["timer", "reader"])
def test_no_chain_of_a_hundred_thousand_is_impossible(tmp_path: pathlib.Path, engine: str) -> None:
    recorded = harness.record(tmp_path, harness.TARGETS / "task_churn.py", "15",
                              options=["--tasks", "-r", "20000", "--engine", engine])
    print(recorded.truth, recorded.profile.meta, harness.drops(recorded.profile))
    assert task_rules.check_churn(recorded.profile) > 100_000


@pytest.mark.skipif(TELLS, reason="there it is by who awaits them")
@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_each_function_is_below_its_own_tasks(tmp_path: pathlib.Path, mode: str) -> None:
    # GIVEN tasks that take turns WHEN they are recorded
    recorded = harness.record(tmp_path, harness.TARGETS / SOURCE, "0.5",
                              options=["--tasks", "-r", "5000", "--mode", mode])
    # THEN with the tasks in place of the event loop, each function is below its task and those that made it
    found: "collections.Counter[str]" = collections.Counter()
    for stack in harness.stacks(recorded.profile.with_tasks()):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        for function, tasks in recorded.truth.items():
            if function in names:
                assert [name for name in names if name.startswith("[task ")] == tasks, names
                assert not tasks or "_run" not in names, names
                assert tasks or names[0] == "<module>", names
                found[function] += 1
    assert set(found) == set(recorded.truth), found
    # and they can be selected
    assert len(recorded.profile.filter(tag="task=child of second").samples) >= found["in_child"]
    shown = harness.plimsoll_command("show", tmp_path / "recorded.plim", "--tasks").expect()
    assert "[task second]" in shown.out
    folded = harness.plimsoll_command("convert", tmp_path / "recorded.plim", "--tasks", "-f", "collapsed", "-o", "-")
    assert any(line.startswith("[task main];[task first];each") or "[task main];[task first]" in line
               for line in folded.expect().out.splitlines())


def task_now() -> "str | None":
    for variable, value in contextvars.copy_context().items():
        if variable.name == "plimsoll.tags" and value is not None:
            return repr(value)
    return None


@pytest.fixture
def watched() -> Any:
    undo = _tasks.install()
    yield
    for each in reversed(undo):
        each()


def test_names_and_contexts(watched: None) -> None:
    async def child() -> "str | None":
        return task_now()

    async def main() -> "list[str | None]":
        results = [await asyncio.create_task(child(), name="a / b"), await asyncio.ensure_future(child()),
                   await asyncio.wait_for(child(), 10)]
        loop = asyncio.get_running_loop()
        results.append(await loop.create_task(child(), name="direct"))
        if sys.version_info >= (3, 11):
            async with asyncio.TaskGroup() as group:
                grouped = group.create_task(child(), name="grouped")
            results.append(grouped.result())
            results.append(await loop.create_task(child(), name="own", context=contextvars.Context()))
            # A context that is in use keeps its tags.
            results.append(await loop.create_task(child(), name="same", context=current))
        return results

    async def start() -> "list[str | None]":
        global current
        current = contextvars.copy_context()
        return await current.run(asyncio.create_task, main(), name="main")

    found = asyncio.run(start())
    qualified = "test_names_and_contexts.<locals>"
    prefix = f"{qualified}.start / main / "
    expected = [f"<tags task=a/b task_path={prefix}a/b>", f"<tags task={qualified}.child task_path={prefix}{qualified}.child>"]
    assert found[:2] == expected
    assert found[3] == f"<tags task=direct task_path={prefix}direct>"
    if sys.version_info >= (3, 11):
        assert found[4:6] == [f"<tags task=grouped task_path={prefix}grouped>", "<tags task=own task_path=own>"]


def test_tasks_that_begin_at_once_have_their_own_tags(watched: None) -> None:
    if not hasattr(asyncio, "eager_task_factory"):
        pytest.skip("eager tasks came with Python 3.12")

    async def child() -> "str | None":
        return task_now()

    async def main() -> "list[str | None]":
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return [await asyncio.create_task(child(), name="eager"), task_now()]

    eager, own = asyncio.run(main())
    assert eager is not None and "task=eager" in eager
    assert own is not None and "task=eager" not in own


def test_paths_stay_short() -> None:
    path: "tuple[str, ...]" = ()
    for number in range(100):
        path = _tasks.path_below(path, f"t{number}")
    assert path == ("t0", "...", "t94", "t95", "t96", "t97", "t98", "t99")
    assert _tasks.path_below(path, "t99") == path


def test_nothing_is_left_behind() -> None:
    before = (asyncio.create_task, asyncio.BaseEventLoop.create_task, asyncio.tasks.create_task)
    with plimsoll.profile(tasks=True):
        assert asyncio.create_task is not before[0]
    assert (asyncio.create_task, asyncio.BaseEventLoop.create_task, asyncio.tasks.create_task) == before


def test_a_task_may_begin_its_own_recording() -> None:
    # GIVEN an event loop that runs WHEN a task begins and ends a recording
    async def main() -> None:
        before = (asyncio.get_running_loop(), asyncio.current_task())
        with plimsoll.profile(tasks=True):
            # THEN it is the one that runs, as before
            assert (asyncio.get_running_loop(), asyncio.current_task()) == before
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {before[1]}

    asyncio.run(main())


def test_the_program_hears_nothing_of_it(tmp_path: pathlib.Path, program: "Callable[[str], pathlib.Path]") -> None:
    # GIVEN a program that makes errors of warnings, and asyncio's own checks WHEN its tasks are recorded
    source = program("import asyncio, gc\nasync def main():\n    print(len(asyncio.all_tasks()))\nasyncio.run(main())\n"
                     "gc.collect()\n")
    recorded = harness.record(tmp_path, source, options=["--tasks"],
                              env={"PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": "1"})
    # THEN there is nothing of what the recording has tried at its start, and it has found what it looked for
    assert recorded.finished.out == "1\n"
    assert recorded.finished.own_err == ""
    assert ("task_stacks" in recorded.profile.meta) == TELLS
    assert "tasks" not in recorded.profile.meta
