"""`plimsoll diff` on recordings of real programs: a change is found, and chance is not one."""

from __future__ import annotations

import json
import pathlib
from typing import Callable

import pytest

import harness

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

PROGRAM = """
import time
def loading():
    end = time.thread_time() + 0.4
    while time.thread_time() < end: sum(range(500))
def parsing():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end: sum(range(500))
loading()
parsing()
"""


def test_a_change_is_found_and_the_rest_is_not(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program, once more, and slower in one of its functions, which has also moved
    paths = []
    for name, text in (("first", "SECONDS = 0.4\n" + PROGRAM), ("again", "SECONDS = 0.4\n" + PROGRAM),
                       ("slower", "\n\nSECONDS = 0.8\n" + PROGRAM)):
        (tmp_path / name).mkdir()
        recorded = harness.record(tmp_path / name, program(text), options=["-r", "500"])
        assert recorded.profile.complete
        paths.append(tmp_path / name / "recorded.plim")
    # WHEN equal runs are compared THEN there is no regression
    same = harness.plimsoll_command("diff", paths[0], paths[1], "--fail-over", "5").expect()
    assert "nothing has changed beyond chance" in same.out
    # and where there is one, it is named, and nothing else
    worse = harness.plimsoll_command("diff", paths[0], paths[2], "--fail-over", "5")
    assert worse.code == 1 and "grown by" in worse.err
    assert "parsing" in worse.out and "loading" not in worse.out
    told = json.loads(harness.plimsoll_command("diff", paths[0], paths[2], "--json").expect().out)
    changed = {row["function"] for row in told["flat"] if row["self"]["beyond_chance"]}
    assert changed == {"parsing"}
