"""What `plimsoll run` leaves behind: the file that was asked for, no other one, and a report of this run alone."""

from __future__ import annotations

import pathlib
import sys
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

WORK = """
import subprocess, sys, time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
"""
PROGRAM = WORK + "work(0.1)\n"


def files_in(directory: pathlib.Path) -> "list[str]":
    return sorted(path.name for path in directory.iterdir())


def test_another_format_leaves_recordings_of_similar_names_alone(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a recording
    harness.plimsoll_run(program(PROGRAM, "app.py"), options=["-o", "app.plim"], cwd=tmp_path).expect()
    before = (tmp_path / "app.plim").read_bytes()
    # WHEN the program is recorded in another format, under a name that differs in its ending THEN both are there
    harness.plimsoll_run("app.py", options=["-f", "collapsed", "-o", "app"], cwd=tmp_path).expect()
    assert files_in(tmp_path) == ["app", "app.plim", "app.py"]
    assert (tmp_path / "app.plim").read_bytes() == before
    assert "work" in (tmp_path / "app").read_text()


def test_the_format_follows_from_the_name_and_the_name_from_the_format(tmp_path: pathlib.Path, program: Write) -> None:
    program(PROGRAM, "app.py")
    harness.plimsoll_run("app.py", options=["-o", "out.speedscope.json"], cwd=tmp_path).expect()
    assert (tmp_path / "out.speedscope.json").read_text().startswith('{"$schema":"https://www.speedscope.app')
    harness.plimsoll_run("app.py", options=["-f", "pprof"], cwd=tmp_path).expect()
    (named,) = [name for name in files_in(tmp_path) if name.startswith("app-")]
    assert named.endswith(".pb.gz")
    assert plimsoll.Profile.open(tmp_path / named).sampled > 0.05
    refused = harness.plimsoll_run("app.py", options=["-o", "out.json"], cwd=tmp_path).expect(2)
    assert "-f speedscope" in refused.err


def test_child_processes_are_in_a_profile_of_another_format(tmp_path: pathlib.Path, program: Write) -> None:
    child = program(WORK + "def in_child(): work(0.2)\nin_child()\n", "child.py")
    script = program(WORK + f"work(0.1)\nsubprocess.run([sys.executable, {str(child)!r}])\n", "app.py")
    out = tmp_path / "out"
    out.mkdir()
    harness.plimsoll_run(script, options=["--children", "-f", "collapsed", "-o", out / "all"]).expect()
    assert files_in(out) == ["all"]
    assert "in_child" in (out / "all").read_text()


@pytest.mark.parametrize("words", [["-m"], ["--engine", "reader", "--mode", "gil", "-c", "pass"]])
def test_an_old_file_is_not_this_run_s_recording(tmp_path: pathlib.Path, program: Write, words: "list[str]") -> None:
    # GIVEN a recording, WHEN nothing is recorded under its name THEN nothing of it is reported
    harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / "old.plim"]).expect()
    told = harness.plimsoll_run(*words, options=["-o", tmp_path / "old.plim"])
    assert "nothing was recorded" in told.err
    assert "samples" not in told.err and "wrote" not in told.err


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_would_not_record_is_not_started(tmp_path: pathlib.Path, program: Write, option: str) -> None:
    script = program("print('ran')\n")
    told = harness.run([harness.binary(), "run", "-o", tmp_path / "o.plim", sys.executable, option, script]).expect(2)
    assert option in told.err and "--external" in told.err and told.out == ""


def test_the_program_is_not_overwritten(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(PROGRAM)
    assert "is the program itself" in harness.plimsoll_run(script, options=["-o", script]).expect(2).err
    assert script.read_text() == PROGRAM


@pytest.mark.parametrize("option", ["--max-depth", "--memory-limit"])
@pytest.mark.parametrize("value", ["-3", "0", "999999999"])
def test_numbers_that_make_no_sense_are_refused(tmp_path: pathlib.Path, program: Write, option: str, value: str) -> None:
    told = harness.plimsoll_run(program(PROGRAM), options=[option, value, "-o", tmp_path / "o.plim"]).expect(2)
    assert option in told.err and "65536" in told.err


def test_another_format_has_the_longest_name_that_there_is(tmp_path: pathlib.Path, program: Write) -> None:
    name = "n" * (255 - len(".speedscope.json")) + ".speedscope.json"
    harness.plimsoll_run(program(PROGRAM), options=["-o", tmp_path / name]).expect()
    assert files_in(tmp_path) == sorted([name, *(each for each in files_in(tmp_path) if each.endswith(".py"))])


@pytest.mark.parametrize("outside", [[], ["--external"]])
@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "0"])
def test_a_duration_that_makes_no_sense_is_refused_before_the_program_starts(
        tmp_path: pathlib.Path, program: Write, value: str, outside: "list[str]") -> None:
    path = tmp_path / "o.plim"
    told = harness.plimsoll_run(program("print('started')"), options=[*outside, "-d", value, "-o", path]).expect(2)
    assert "the duration must be" in told.err and "started" not in told.out and not path.exists()


@pytest.mark.parametrize("recorded", [0, 1])
def test_children_that_did_not_record_are_told_of(tmp_path: pathlib.Path, program: Write, recorded: int) -> None:
    # GIVEN child processes of which one ignores PYTHONPATH
    child = str(program(WORK + "work(0.5)\n", "child.py"))
    script = program(WORK + f"subprocess.run([sys.executable, '-I', {child!r}])\n"
                     f"if {recorded}: subprocess.run([sys.executable, {child!r}])\n")
    # WHEN children are recorded THEN the report says what is missing, and does not advise what was done
    notices = harness.plimsoll_run(script, options=["--children", "-o", tmp_path / "o.plim"]).expect().notices
    (told,) = [line for line in notices if "not in it: child processes" in line]
    assert "did not record" in told and "--children" not in told
    assert any("has a profile of its own" in line for line in notices) == bool(recorded)


def test_what_a_child_used_beside_its_recording_is_no_other_child_s(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a child process that records, and of which much is not in the profile, as what the recorder takes is not
    child = str(program(WORK + "import plimsoll\nplimsoll.pause()\nwork(0.6)\nplimsoll.resume()\n", "child.py"))
    script = program(WORK + f"subprocess.run([sys.executable, {child!r}])\n")
    # WHEN children are recorded THEN nobody is said not to have recorded
    notices = harness.plimsoll_run(script, options=["--children", "-o", tmp_path / "o.plim"]).expect().notices
    assert any("has a profile of its own" in line for line in notices)
    assert not any("did not record" in line for line in notices), notices


def test_a_recording_that_goes_nowhere_is_said_to_be_there(tmp_path: pathlib.Path, program: Write) -> None:
    told = harness.plimsoll_run(program(PROGRAM, "app.py"), options=["-o", "/dev/null"]).expect()
    assert "wrote /dev/null, which cannot be read back" in told.err and "cannot read" not in told.err
