"""Deep recursion is as deep as it is; what is deeper than the limit is cut at the outer end, and says so."""

from __future__ import annotations

import collections
import pathlib

import pytest

import harness

DEEP = harness.TARGETS / "deep.py"
CUT = "[stack too deep: outer frames missing]"


def depths(recorded: harness.Recorded) -> "collections.Counter[int]":
    """How often there were so many frames of `down` on a stack with `bottom`, all in their places."""
    seen: "collections.Counter[int]" = collections.Counter()
    for stack in harness.stacks(recorded.profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        if "bottom" not in names:
            continue
        count = names.count("down")
        assert names[-1] == "bottom" and set(names[-1 - count:-1]) == {"down"}
        calling = {frame.line for frame in stack.frames[-1 - count:-2]}
        assert len(calling) == 1, "all but the last call from the same line"
        seen[count] += 1
    assert sum(seen.values()) > 50, "too few samples to tell anything"
    return seen


@pytest.mark.parametrize("depth", [900, 2000])
def test_deep_recursion_is_seen_whole(tmp_path: pathlib.Path, depth: int) -> None:
    # GIVEN a recursion of known depth, within the limit
    recorded = harness.record(tmp_path, DEEP, str(depth), "0.3")
    # THEN every stack has every frame of it
    assert set(depths(recorded)) == {depth}
    assert not any(stack.frames[0].function.name == CUT for stack in harness.stacks(recorded.profile))
    assert harness.drops(recorded.profile) == {}


def test_ten_thousand_calls_deep(tmp_path: pathlib.Path) -> None:
    # A stack of this depth takes a quarter of a megabyte of the ring: at 1000 a second, 60 ms without a CPU for the
    # drain thread are enough to fill it.
    options = ["--max-depth", "11000", "--rate", "250"]
    recorded = harness.record(tmp_path, DEEP, "10000", "0.5", options=options)
    assert set(depths(recorded)) == {10_000}
    assert harness.drops(recorded.profile) == {}


@pytest.mark.parametrize("limit", [5, 300])
def test_a_stack_deeper_than_the_limit_says_so(tmp_path: pathlib.Path, limit: int) -> None:
    # WHEN fewer frames are kept than there are
    recorded = harness.record(tmp_path, DEEP, "3000", "0.3", options=["--max-depth", str(limit)])

    # THEN the innermost ones are there, below a root that tells of the missing ones
    assert set(depths(recorded)) == {limit - 1}
    for stack in harness.stacks(recorded.profile):
        if stack.frames[-1].function.name == "bottom":
            assert stack.frames[0].function.name == CUT
            assert stack.frames[0].function.kind == "synthetic"
            assert len(stack.frames) == limit + 1
