"""What commands are given to read, and to tell of: pipes, odd names, hostile words, numbers that are none."""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

PROGRAM = """
import time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
work(0.1)
"""


@pytest.fixture
def recording(tmp_path: pathlib.Path, program: Write) -> pathlib.Path:
    path = tmp_path / "app.plim"
    harness.plimsoll_run(program(PROGRAM, "app.py"), options=["-o", path]).expect()
    return path


def test_a_pipe_with_a_name_is_read_as_standard_input_is(tmp_path: pathlib.Path, recording: pathlib.Path) -> None:
    # GIVEN a pipe into which somebody writes a profile
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(recording.read_bytes()))
    writer.start()
    # WHEN it is shown THEN it is as the file is
    shown = harness.plimsoll_command("show", pipe, "flat").expect().out
    writer.join()
    assert shown == harness.plimsoll_command("show", recording, "flat").expect().out
    # AND so is what a shell puts in the place of a name
    words = ["bash", "-c", f"{harness.binary()} show <(cat {recording}) flat"]
    assert subprocess.run(words, stdout=subprocess.PIPE, env=harness.environment()).stdout.decode() == shown


def test_notices_do_not_drive_the_terminal(tmp_path: pathlib.Path) -> None:
    told = harness.plimsoll_command("show", "no\x1b[2Jfile").expect(5)
    assert "\x1b" not in told.err and "\u241b[2Jfile" in told.err


@pytest.mark.parametrize("command", ["dump", "attach", "heap take", "top"])
@pytest.mark.parametrize("word", ["0", "12x"])
def test_a_word_that_is_no_process_is_called_so(command: str, word: str) -> None:
    told = harness.plimsoll_command(*command.split(), word)
    assert told.code == 2
    assert "no process id" in told.err or "no file" in told.err or "no command" in told.err
    assert len(told.err) < 300


def test_collapsed_stacks_with_senseless_numbers_are_refused(tmp_path: pathlib.Path) -> None:
    for text in ("main;f 5\nmain;g -3\n", "main;f 9000000000000000000\nmain;g 9000000000000000000\n"):
        (tmp_path / "stacks.txt").write_text(text)
        harness.plimsoll_command("show", tmp_path / "stacks.txt").expect(5)


def test_allocations_that_were_not_recorded_are_not_written(tmp_path: pathlib.Path, recording: pathlib.Path) -> None:
    out = tmp_path / "out"
    told = harness.plimsoll_command("convert", recording, "-f", "pprof-heap", "-o", out).expect(4)
    assert "--alloc" in told.err and not out.exists()
    told = harness.plimsoll_run("app.py", options=["-f", "pprof-heap", "-o", out], cwd=tmp_path).expect(2)
    assert "--alloc" in told.err and not out.exists()


def test_names_that_are_no_utf8_are_recorded(tmp_path: pathlib.Path) -> None:
    # GIVEN a program in a directory whose name is no UTF-8
    directory = os.fsencode(tmp_path) + b"/d\xff"
    os.mkdir(directory)
    with open(directory + b"/app.py", "w") as file:
        file.write(PROGRAM)
    # WHEN it is recorded there THEN the profile is there, and can be looked at
    for words in ([b"app.py"], [b"-m", b"app"], [directory + b"/app.py"]):
        out = directory + b"/o" + str(len(words)).encode() + b".plim"
        done = harness.plimsoll_run(*words, options=[b"-o", out], cwd=directory)  # type: ignore[list-item]
        assert done.code == 0 and "samples" in done.err and "unprofiled" not in done.err, done.err
        profile = plimsoll.Profile.open(os.fsdecode(out))
        assert harness.total_seconds(profile)["work"] == pytest.approx(0.1, rel=0.3)
        assert profile.meta["directory"].startswith(str(tmp_path)) and profile.sources is not None
        profile.save(os.fsdecode(out + b".copy.plim"))
        shown = harness.plimsoll_command("show", os.fsdecode(out), "lines").expect().out
        assert "work" in shown


def test_options_that_make_no_sense_are_called_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="rate_hz must be a number, not 'a'"):
        plimsoll.Profiler(rate_hz="a").start()  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="max_depth must be an integer"):
        plimsoll.Profiler(max_depth=1.5).start()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_depth is from 1 to 65536, not -1"):
        plimsoll.Profiler(max_depth=-1).start()
    with pytest.raises(ValueError, match="memory_mb is from 1"):
        plimsoll.Profiler(memory_mb=0).start()
    # and bytes are a name
    with plimsoll.Profiler(os.fsencode(tmp_path) + b"/o.plim"):  # type: ignore[arg-type]
        pass
    assert (tmp_path / "o.plim").exists()


@pytest.mark.parametrize("name", ["my app.plim", "a'b;c.plim", "-x.plim"])
def test_the_advice_can_be_typed(tmp_path: pathlib.Path, program: Write, name: str) -> None:
    # GIVEN a recording whose name a shell, or the command, would take for something else
    told = harness.plimsoll_run(program(PROGRAM, "app.py"), options=["-o" + name], cwd=tmp_path).expect().err
    # WHEN what is said to be next is typed THEN it is shown
    advice = told.rpartition("next: plimsoll ")[2].strip()
    shown = harness.run(["sh", "-c", f"{harness.binary()} {advice} flat"], cwd=tmp_path).expect()
    assert "work" in shown.out


def test_a_recording_does_not_go_to_standard_output(tmp_path: pathlib.Path, program: Write) -> None:
    # WHEN - is asked for, which elsewhere is standard output THEN that is said before the program starts
    told = harness.plimsoll_run(program("print('started')", "app.py"), options=["-o", "-"], cwd=tmp_path).expect(2)
    assert "standard output" in told.err and not told.out
    for words in (["attach", str(os.getpid())], ["heap", str(os.getpid())]):
        assert "standard output" in harness.plimsoll_command(*words, "-o", "-", cwd=tmp_path).expect(2).err
    assert not (tmp_path / "-").exists()


def test_how_the_distance_of_samples_is_written_is_told(tmp_path: pathlib.Path) -> None:
    told = harness.plimsoll_run("64K", "app.py", options=["--alloc"], cwd=tmp_path).expect(2)
    assert "--alloc=64K" in told.err
    # and what is wrong with a number, and which option of several is meant
    assert '--limit: "x"' in harness.plimsoll_command("show", "app.plim", "--limit", "x").expect(2).err
    assert '"--native"?' in harness.plimsoll_run("app.py", options=["--nativ"]).expect(2).err
    assert "1 to 1000000000" in harness.plimsoll_command("heap", "1", "-o", "h", "--max-copy", "0").expect(2).err
