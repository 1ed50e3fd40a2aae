"""Code objects that are made and dropped by the thousand never get a wrong name, however their addresses are reused."""

from __future__ import annotations

import pathlib
import re

import pytest

import harness

pytestmark = pytest.mark.most_versions

ROUND = re.compile(r"(outer|middle|inner)_(\d+)")


def check_churn(recorded: harness.Recorded, least: int) -> None:
    rounds, newest = set(), 0
    for stack in harness.stacks(recorded.profile):
        generated = [frame for frame in stack.frames if frame.function.file.startswith("<round ")]
        if not generated:
            continue
        # all of a stack is of one round: its names, its file and its place in the file
        numbers = {int(match[2]) for frame in generated for match in ROUND.finditer(frame.function.name)}
        files = {frame.function.file for frame in generated}
        assert len(files) == 1, [str(frame) for frame in stack.frames]
        number = int(re.findall(r"\d+", files.pop())[0])
        assert numbers <= {number}, [str(frame) for frame in stack.frames]
        first_lines = {"inner": 2, "middle": 4, "outer": 6}
        for frame in generated:
            match = ROUND.match(frame.function.name)
            offset = frame.line - number % 100
            if match and "<" not in frame.function.name:
                assert frame.function.first_line == number % 100 + first_lines[match[1]]
                assert offset in (first_lines[match[1]], first_lines[match[1]] + 1)
        # who calls whom follows from the names
        kinds = [match[1] for frame in generated if (match := ROUND.match(frame.function.name))
                 and "<" not in frame.function.name]
        assert kinds == ["outer", "middle", "inner"][:len(kinds)]
        # and rounds follow one another
        assert number >= newest, "a round came back"
        newest = number
        rounds.add(number)
    assert len(rounds) >= least, "too few rounds were met"
    assert newest < recorded.truth["rounds"]


def test_code_objects_of_a_moment_keep_their_names(tmp_path: pathlib.Path) -> None:
    # GIVEN functions that live for a fraction of a millisecond, at addresses that others had just before
    recorded = harness.record(tmp_path, harness.TARGETS / "churn.py", "1.0", options=["-r", "4000"])
    truth = recorded.truth
    assert truth["rounds"] > 1.2 * truth["addresses"], "no address was used again: the test tests nothing"
    # THEN every stack is of one round, and rounds are in order
    check_churn(recorded, least=100)
    assert harness.drops(recorded.profile) == {}


def test_safe_mode_keeps_only_what_was_known_before(tmp_path: pathlib.Path) -> None:
    recorded = harness.record(tmp_path, harness.TARGETS / "churn.py", "1.0", options=["-r", "4000", "--safe-mode"])
    # what is hardly ever met twice is hardly ever known before: such stacks are dropped, and counted; the rest is right
    check_churn(recorded, least=0)
    assert harness.drops(recorded.profile)["code object not known"] > 100
    assert recorded.profile.meta["trust"] == "known"
    # but what lives on is in the profile
    assert any(function.name == "drive" for function in recorded.profile.functions)


@pytest.mark.slow
def test_names_are_right_in_a_long_churn(tmp_path: pathlib.Path, engine: str) -> None:
    recorded = harness.record(tmp_path, harness.TARGETS / "churn.py", "10.0", options=["-r", "4000", "--engine", engine])
    check_churn(recorded, least=100)
