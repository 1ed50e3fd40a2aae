"""`plimsoll doctor` and `plimsoll selftest` on this very machine."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys

import pytest

import harness

pytestmark = pytest.mark.any_version


def test_the_doctor_finds_that_this_machine_can_record() -> None:
    told = json.loads(harness.plimsoll_command("doctor", "--json", "--python", sys.executable).expect().out)
    assert told["findings"][0]["verdict"] == "ok" and "with plimsoll" in told["findings"][0]["what"]
    assert "test recording" in told["findings"][1]["what"]
    text = harness.plimsoll_command("doctor", "--python", sys.executable).expect().out
    assert text.count("\n") >= 8 and "\x1b" not in text


def test_the_doctor_says_how_to_install_the_package(tmp_path: pathlib.Path) -> None:
    # GIVEN an interpreter without plimsoll: this one, isolated from the environment it belongs to
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    wrapper.chmod(0o755)
    done = harness.plimsoll_command("doctor", "--python", str(wrapper), env={"PYTHONPATH": None})
    assert done.code == 1
    assert "missing" in done.out and f"{wrapper} -m pip install plimsoll" in done.out


@pytest.mark.parametrize("greeting", ["hello\\n", "hello"])
def test_an_interpreter_that_prints_when_it_starts_is_no_other(tmp_path: pathlib.Path, greeting: str) -> None:
    # GIVEN an interpreter that says something before all else
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\nprintf '{greeting}'\nexec {sys.executable} \"$@\"\n")
    wrapper.chmod(0o755)
    # THEN the doctor finds that it can record AND it does
    assert "with plimsoll" in harness.plimsoll_command("doctor", "--python", wrapper).expect().out
    path = tmp_path / "app.plim"
    harness.plimsoll_command("run", "-o", path, "--python", wrapper, "-c", "sum(range(5000000))").expect()
    assert path.exists()


def test_an_interpreter_that_does_not_exist_is_an_error() -> None:
    for verb in ("doctor", "selftest"):
        done = harness.plimsoll_command(verb, "--python", "/no/such/python")
        assert done.code == 2 and "/no/such/python" in done.err


@pytest.mark.slow
def test_the_selftest_passes_here() -> None:
    done = harness.plimsoll_command("selftest", "--python", sys.executable, "--json")
    scores = json.loads(done.out)
    assert len(scores) >= 12
    assert [score for score in scores if not score["is_good"]] == []
    assert done.code == 0


def test_ctrl_c_ends_the_selftest_as_it_ends_any_program() -> None:
    with harness.Running([harness.binary(), "selftest", "--python", sys.executable]) as running:
        running.line()  # the first score
        # WHEN Ctrl-C is pressed THEN it ends by that, which is no limit that was missed, and explains nothing
        os.killpg(running.process.pid, signal.SIGINT)
        done = running.finish()
    assert done.code == harness.death_by(signal.SIGINT)
    assert not done.err
