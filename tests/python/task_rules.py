"""What must hold of the stacks of asyncio tasks that were recorded with those who await them."""

from __future__ import annotations

import asyncio
import collections
from typing import Any

import harness
import plimsoll


def is_task(name: str) -> bool:
    return name.startswith("[task ") or name == "[several tasks]"


def check_awaited(profile: plimsoll.Profile, truth: "dict[str, Any]") -> "collections.Counter[str]":
    """How often each function of tests/targets/awaited.py was met. Each stack with tasks is wholly one that the target
    says, with the event loop's frames only around the first step of an eager task; the others are wholly the event
    loop's, and of those in a step not more than could not be read."""
    found: "collections.Counter[str]" = collections.Counter()
    without = 0
    for stack in harness.stacks(profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        has_tasks = any(map(is_task, names))
        if has_tasks and "run_forever" in names:  # an eager task has just been begun
            assert names[list(map(is_task, names)).index(True) - 1] == "hurries", names
        for function, expected in truth.items():
            if function not in names:
                continue
            above = list(zip(names, (frame.line for frame in stack.frames)))[:names.index(function)]
            if not expected:
                assert not has_tasks, names
            elif has_tasks:
                assert any(is_that(above, one) for one in expected), (above, expected)
            else:
                without += 1
                continue
            found[function] += 1
    assert without <= int(profile.meta["task_stacks_unreadable"])
    assert int(profile.meta["task_stacks"]) > 0
    return found


def is_that(above: "list[tuple[str, int]]", expected: "list[list[Any]]") -> bool:
    return len(above) == len(expected) and all(
        name == wanted and at in (line, 0)
        for (name, line), (wanted, at) in zip(above, expected))


def check_eager(profile: plimsoll.Profile, truth: "list[str]") -> None:
    """What tests/targets/eager.py computes stands below those who call it, whole."""
    found = 0
    for stack in harness.stacks(profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        if "burn" not in names:
            continue
        assert names[0] == "<module>" and "run_forever" in names, names
        assert list(dict.fromkeys(name for name in names if name in truth)) == truth, names
        found += 1
    assert found > 100


#: By the letter in the name of a task of tests/targets/task_churn.py: how the one that made it awaits it.
WAYS = {"a": ["by_await"], "s": ["by_shield"], "t": ["by_gather"], "g": ["by_group", "__aexit__"],
        "n": ["by_generator", "results"], "w": ["by_wait", "wait", "_wait"], "l": ["by_time", "wait_for"]}
if hasattr(getattr(asyncio, "TaskGroup", None), "_aexit"):
    WAYS["g"].append("_aexit")


def check_churn(profile: plimsoll.Profile) -> int:
    """How many stacks of tests/targets/task_churn.py have tasks; each of them must be possible."""
    found = without = 0
    for stack in harness.stacks(profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        if not any(map(is_task, names)):
            without += "node" in names
            continue
        found += 1
        labels = [place for place, name in enumerate(names) if is_task(name)]
        tasks = [names[place][len("[task "):-1] for place in labels]
        assert labels[0] == 0 and ":" not in tasks[0], names
        for i in range(1, len(labels)):
            outer, way = tasks[i].rsplit(":", 1)
            expected = ["main"] if outer == "r" else []
            assert outer == tasks[i - 1], names
            assert names[labels[i - 1] + 1:labels[i]] == [*expected, "node", *WAYS[way[0]]], names
        inside = names[labels[-1] + 1:]
        assert inside[0] == ("main" if tasks[-1] == "r" else "node"), names
        # (A coroutine that is being made is a frame for a moment.)
        assert inside[:-1].count("node") <= 1, names
    assert without <= int(profile.meta["task_stacks_unreadable"])
    return found
