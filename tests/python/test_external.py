"""`plimsoll run --external`: programs that are recorded from outside from their first moments on."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Callable

import pytest

import harness
from known_shares import assert_shares, worth

import plimsoll

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")

Write = Callable[..., pathlib.Path]

CHILDREN = """
import multiprocessing, os, subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))
def started_by_fork():
    burn(0.15)
def started_anew():
    burn(0.15)
def started_by_a_shell():
    burn(0.15)
def in_the_parent():
    burn(0.15)
if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1]]()
        sys.exit()
    forked = multiprocessing.get_context("fork").Process(target=started_by_fork)
    forked.start()
    subprocess.run([sys.executable, __file__, "started_anew"], check=True)
    subprocess.run(["sh", "-c", f"{sys.executable} {__file__} started_by_a_shell; true"], check=True)
    in_the_parent()
    forked.join()
"""


def record(directory: pathlib.Path, *words: harness.Word) -> "tuple[harness.Finished, plimsoll.Profile]":
    path = directory / "external.plim"
    done = harness.plimsoll_command("run", "--external", "-o", path, *words)
    return done, plimsoll.Profile.open(path)


def test_measures_known_shares_without_code_in_the_program(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that says how its CPU time was divided, and what it has imported
    program = tmp_path / "program.py"
    target = str(harness.TARGETS / "shares.py")
    program.write_text("import runpy, sys\nsys.argv = [sys.argv[0], '0.6']\n"
                       f"sys.path.insert(0, {str(harness.TARGETS)!r})\nrunpy.run_path({target!r}, run_name='__main__')\n"
                       "assert 'plimsoll' not in sys.modules\n")
    done, profile = record(tmp_path, program)
    done.expect(0)
    truth = json.loads(done.out)
    times = harness.total_seconds(profile)
    # THEN the profile divides it likewise, and nothing of ours was there
    assert_shares({name: times.get(name, 0.0) for name in truth}, truth, worth(profile.samples.weight_ns), slack=0.02)
    assert profile.complete


@pytest.mark.any_version
def test_the_program_behaves_as_without_us(tmp_path: pathlib.Path) -> None:
    # (It may be over before anybody has looked at it, and have no profile.)
    code = "import sys; print(sys.stdin.read(), sys.argv[1:]); sys.exit(7)"
    done = harness.plimsoll_command("run", "--external", "-o", tmp_path / "a.plim", "-c", code, "a", "b")
    assert done.code == 7 and done.out.split() == ["['a',", "'b']"]


def test_the_end_of_its_time_is_not_taken_for_another_program(tmp_path: pathlib.Path) -> None:
    words = ["-d", "0.3", "-c", "import time\nend = time.time() + 1\nwhile time.time() < end: sum(range(500))"]
    done, profile = record(tmp_path, *words)
    assert "runs another program" not in done.expect(0).err
    assert profile.complete


@pytest.mark.any_version
def test_children_come_into_the_same_profile(tmp_path: pathlib.Path) -> None:
    # GIVEN children by fork, by exec, and by a shell that is no Python
    program = tmp_path / "children.py"
    program.write_text(CHILDREN)
    done, profile = record(tmp_path, "--children", program)
    done.expect(0)
    # THEN each one's work is there
    times = harness.total_seconds(profile)
    for name in ("started_by_fork", "started_anew", "started_by_a_shell", "in_the_parent"):
        assert 0.05 <= times.get(name, 0.0) <= 0.2, times
    pids = {thread.pid for thread in profile.threads}
    assert len(pids) == len(profile.threads) == 4


@pytest.mark.any_version
def test_a_program_that_is_no_python_is_said_to_be_none_and_runs(tmp_path: pathlib.Path) -> None:
    done = harness.plimsoll_command("run", "--external", "-o", tmp_path / "none.plim", "--python", "/bin/echo", "hello")
    done.expect(0)
    assert done.out == "hello\n" and done.err.startswith("plimsoll: ") and not (tmp_path / "none.plim").exists()


@pytest.mark.any_version
@pytest.mark.parametrize("words", [["--alloc"], ["--tasks"], ["--engine", "perf"], ["--max-overhead", "1"]])
def test_what_works_inside_only_is_refused(words: "list[str]", tmp_path: pathlib.Path) -> None:
    done = harness.plimsoll_command("run", "--external", *words, "-c", "print(1)").expect(2)
    assert f"{words[0]} works in the program: it does not go with --external" in done.err and not done.out


def test_child_processes_that_are_not_recorded_are_told_of(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program whose work is done by children, each of which is over before anybody could look, on a busy
    # machine, too
    script = program("""
import os, time
for _ in range(60):
    if os.fork() == 0:
        end = time.process_time() + 0.005
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
""")
    for options, why in (([], "--children records them, too"), (["--children"], "they ended within 50 ms or so")):
        finished = harness.plimsoll_run(script, options=["--external", "-o", tmp_path / f"{len(options)}.plim", *options])
        assert re.search(rf"not in it: child processes, [1-4]\d\d ms of CPU time; {why}", finished.expect(0).err)


def test_threads_that_python_does_not_know_are_told_of(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program of which a thread of a library does most of the work
    library = tmp_path / "busy.so"
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler `cc` here")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", library, harness.TARGETS / "busy_thread.c"],
                   check=True)
    script = program(f"import ctypes\nbusy = ctypes.CDLL({str(library)!r})\nbusy.busy_start(400)\nbusy.busy_join()\n")
    # WHEN it is recorded from outside THEN what is not in the profile is said, and why
    done, profile = record(tmp_path, script)
    told = re.search(r"not in it: (\d+) ms of CPU time of threads that Python does not know", done.expect(0).err)
    assert told and 380 < int(told[1]) < 480, done.err
    assert profile.process_cpu - profile.sampled_cpu > 0.38


def test_a_program_that_becomes_another_one_is_told_of(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that becomes a shell, which waits for a line
    script = program("import os\nsum(range(10**6))\nos.execv('/bin/sh', ['sh', '-c', 'read line; exit 7'])")
    with harness.Running([harness.binary(), "run", "--python", sys.executable, "--external", "-o", tmp_path / "a.plim",
                          script]) as running:
        # WHEN that is said THEN the shell goes on to its end, whose exit code is that of the run
        assert running.process.stderr is not None
        notice = "the program runs another program now: the recording ends there"
        assert any(notice in line.decode() for line in iter(running.process.stderr.readline, b""))
        running.say("go on")
        running.finish().expect(7)
