"""Greenlets: each sample has the stack and the tags of one of them, however fast they switch."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

has_greenlet = pytest.mark.skipif(importlib.util.find_spec("greenlet") is None, reason="greenlet is not installed")


def greenlets_of(profile: plimsoll.Profile) -> "set[str]":
    """The greenlets that were seen. Each stack must be that of one greenlet, callers in order, from its own start."""
    seen = set()
    for stack in harness.stacks(profile):
        parts = [harness.plain_name(frame.function).split("_") for frame in stack.frames]
        own = [part for part in parts if part[0] in ("root", "middle", "leaf")]
        if not own:
            continue
        assert [kind for kind, _ in own] == ["root", "middle", "leaf"][:len(own)], parts
        assert len({number for _, number in own}) == 1 and parts[0] == own[0], parts
        seen.add(own[0][1])
    return seen


@has_greenlet
@pytest.mark.parametrize("engine", ["auto", "reader"])
def test_no_stack_is_of_two_greenlets(tmp_path: pathlib.Path, engine: str) -> None:
    # GIVEN greenlets that take turns WHEN they are recorded
    rate = "1000" if engine == "auto" else "8000"
    recorded = harness.record(tmp_path, harness.TARGETS / "greenlets.py", "1.0",
                              options=["-r", rate, "--engine", engine])
    profile = recorded.profile
    # THEN all are seen, each by itself
    assert greenlets_of(profile) == set("01234")
    # AND what runs in one has its tag
    for stack, tag in zip(harness.stacks(profile), profile.samples.tag):
        kind, _, number = harness.plain_name(stack.frames[-1].function).partition("_") if stack.frames else ("", "", "")
        if kind == "leaf":
            assert profile.tag_sets[tag]["greenlet"] == number


@has_greenlet
@pytest.mark.skipif(not harness.may_look_at_others(), reason="kernel.yama.ptrace_scope forbids looking at other processes")
@pytest.mark.parametrize("way", ["", "--native"])
def test_from_outside_no_stack_is_of_two_greenlets(tmp_path: pathlib.Path, way: str) -> None:
    # GIVEN greenlets that take turns
    path = tmp_path / "attached.plim"
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py", harness.TARGETS / "greenlets.py",
                          "1.0"]) as running:
        assert running.line() == "ready"
        words = [harness.binary(), "attach", str(running.process.pid), "-o", path, "-r", "2000"]
        # WHEN they are recorded from outside
        with harness.Running([*words, *([way] if way else [])]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            running.say("go")
            running.finish().expect(0)
            attached.finish().expect(0)
    # THEN all are seen, each by itself
    profile = plimsoll.Profile.open(path)
    assert greenlets_of(profile.without_native()) == set("01234")
