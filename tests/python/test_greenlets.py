"""Greenlets: each sample has the stack and the tags of one of them, however fast they switch."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

import harness


@pytest.mark.skipif(importlib.util.find_spec("greenlet") is None, reason="greenlet is not installed")
@pytest.mark.parametrize("engine", ["auto", "reader"])
def test_no_stack_is_of_two_greenlets(tmp_path: pathlib.Path, engine: str) -> None:
    # GIVEN greenlets that take turns WHEN they are recorded
    rate = "1000" if engine == "auto" else "8000"
    recorded = harness.record(tmp_path, harness.TARGETS / "greenlets.py", "1.0",
                              options=["-r", rate, "--engine", engine])
    profile = recorded.profile
    seen = set()
    for stack, tag in zip(harness.stacks(profile), profile.samples.tag):
        parts = [harness.plain_name(frame.function).split("_") for frame in stack.frames]
        own = [part for part in parts if part[0] in ("root", "middle", "leaf")]
        if not own:
            continue
        # THEN each stack is that of one greenlet, callers in order, from its own start
        assert [kind for kind, _ in own] == ["root", "middle", "leaf"][:len(own)], parts
        assert len({number for _, number in own}) == 1 and parts[0] == own[0], parts
        if own[-1][0] == "leaf":
            assert profile.tag_sets[tag]["greenlet"] == own[0][1]
        seen.add(own[0][1])
    assert seen == set("01234")
