"""`plimsoll attach --alloc`: the allocations of a process that runs already, recorded by itself from then on."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Iterator

import pytest

import harness
import plimsoll
from test_memory import near

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")
can_run_code = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python runs no code for others before 3.14")

PROGRAM = """
import os, sys, threading, time
def early(): return [bytearray(3_000) for _ in range(1000)]
def late(): return [bytearray(5_000) for _ in range(2000)]
def passing():
    for _ in range(2000): bytearray(4_000)
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.002)
kept = early()
print("ready", flush=True)
wait_for("go")
kept.append(late())
passing()
print("done", flush=True)
wait_for("end")
assert len(kept) == 1001
"""


class Target:
    """A process that goes on when it is told to."""

    def __init__(self, directory: pathlib.Path, program: str = PROGRAM) -> None:
        self.directory = directory
        self.process = subprocess.Popen([sys.executable, "-c", program], cwd=directory, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.hear("ready")

    def hear(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == word + "\n"

    def tell(self, name: str) -> None:
        (self.directory / name).touch()

    def end(self) -> None:
        """It ends as it would without us, and has said nothing of ours."""
        for name in ("go", "end"):
            self.tell(name)
        _, errors = self.process.communicate(timeout=harness.DEADLINE)
        assert (self.process.returncode, errors) == (0, "")


@pytest.fixture
def target(tmp_path: pathlib.Path) -> "Iterator[Target]":
    started = Target(tmp_path)
    yield started
    started.process.kill()
    started.process.communicate()


@can_run_code
@pytest.mark.parametrize("native_memory", [False, True])
def test_what_is_allocated_while_it_is_attached(target: Target, tmp_path: pathlib.Path, native_memory: bool) -> None:
    # GIVEN a process that has allocated much before
    # WHEN its allocations are recorded for a while
    with plimsoll.attach(target.process.pid, tmp_path / "a.plim", alloc_bytes=4096, native_memory=native_memory) as recording:
        target.tell("go")
        target.hear("done")
    # THEN what it allocated meanwhile is there, by function, and what of that lives on
    profile = recording.profile
    assert profile.complete
    allocated, live = profile.memory("alloc"), profile.memory("live")
    assert near(allocated.of("late").own, 2000 * bytearray(5_000).__sizeof__())
    assert near(allocated.of("passing").own, 2000 * bytearray(4_000).__sizeof__())
    assert near(live.of("late").own, 2000 * bytearray(5_000).__sizeof__())
    names = {row.function.name: row.own.bytes for row in live.rows}
    assert "early" not in names and names.get("passing", 0) < 100_000
    # and it can be attached to again
    again = plimsoll.attach(target.process.pid, alloc_bytes=4096, duration=0.05).wait()
    assert again.complete and "late" not in {row.function.name for row in again.memory("alloc").rows}
    target.end()


@can_run_code
def test_a_process_that_ends_has_a_whole_profile(target: Target, tmp_path: pathlib.Path) -> None:
    recording = plimsoll.attach(target.process.pid, tmp_path / "a.plim", alloc_bytes=4096)
    target.tell("go")
    target.hear("done")
    target.end()
    profile = recording.wait(harness.DEADLINE)
    assert profile.complete and near(profile.memory("live").of("late").own, 2000 * bytearray(5_000).__sizeof__())


@can_run_code
@pytest.mark.parametrize("killed", ["the command", "what it has started"])
def test_a_recording_ends_if_the_profiler_is_killed(target: Target, tmp_path: pathlib.Path, killed: str) -> None:
    # GIVEN a process whose allocations are recorded
    path = tmp_path / "a.plim"
    attaching = subprocess.Popen([harness.binary(), "attach", str(target.process.pid), "--alloc", "-o", path],
                                 stderr=subprocess.PIPE, text=True)
    assert attaching.stderr is not None and "from inside" in attaching.stderr.readline()
    child = int(pathlib.Path(f"/proc/{attaching.pid}/task/{attaching.pid}/children").read_text())
    pipe = next(os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")
                if os.readlink(f"/proc/{child}/fd/{fd}").endswith("/answers"))
    # WHEN the profiler is killed, or what works for it
    os.kill(attaching.pid if killed == "the command" else child, signal.SIGKILL)
    attaching.communicate(timeout=harness.DEADLINE)
    # THEN the recording ends (which it did with the process only), and is whole; no file of it is left
    end = time.monotonic() + harness.DEADLINE
    while not plimsoll.Profile.open(path).complete or os.path.exists(os.path.dirname(pipe)):
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.01)
    # and the process can be recorded again
    assert plimsoll.attach(target.process.pid, alloc_bytes=4096, duration=0.05).wait().complete
    target.end()


@can_run_code
def test_one_that_is_in_c_code_is_waited_for(tmp_path: pathlib.Path) -> None:
    # GIVEN a process whose main thread waits in C
    target = Target(tmp_path, "import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
                    "for _ in range(1000): bytes(2000)\n")
    attaching = subprocess.Popen([harness.binary(), "attach", str(target.process.pid), "--alloc", "-o", tmp_path / "a.plim"],
                                 stderr=subprocess.PIPE, text=True)
    # WHEN nothing comes of it THEN it says what it waits for, and can be told to give up
    assert attaching.stderr is not None and "runs Python code, not C" in attaching.stderr.readline()
    attaching.send_signal(signal.SIGTERM)
    assert "given up" in attaching.communicate(timeout=harness.DEADLINE)[1]
    assert attaching.returncode == 1
    # and the process goes on as it would, not recorded
    target.end()
    assert not (tmp_path / "a.plim").exists()


@pytest.mark.parametrize("last", ["recording process 1", "it has ended"])
def test_attaching_in_a_program_waits_like_the_command(tmp_path: pathlib.Path, monkeypatch: "pytest.MonkeyPatch",
                                                       last: str) -> None:
    # GIVEN a command that says what it waits for before it records, or gives up
    command = tmp_path / "plimsoll"
    command.write_text(f"#!/bin/sh\necho 'plimsoll: waiting until it runs Python code' >&2\n"
                       f"echo 'plimsoll: {last}' >&2\nexit 5\n")
    command.chmod(0o700)
    monkeypatch.setattr("plimsoll._program.find", lambda: str(command))
    # WHEN / THEN
    if last.startswith("recording"):
        assert plimsoll.attach(1, tmp_path / "a.plim", alloc_bytes=4096).pid == 1
    else:
        with pytest.raises(plimsoll.UnsupportedError, match="waiting until it runs Python code\nit has ended"):
            plimsoll.attach(1, tmp_path / "a.plim", alloc_bytes=4096)


@can_run_code
def test_what_does_not_work_is_said(target: Target, tmp_path: pathlib.Path) -> None:
    pid = str(target.process.pid)
    refused = harness.plimsoll_command("attach", pid, "--alloc", "-o", tmp_path / "none" / "a.plim")
    assert refused.code == 1 and "No such file or directory" in refused.err
    first = plimsoll.attach(target.process.pid, tmp_path / "a.plim", alloc_bytes=4096)
    second = harness.plimsoll_command("attach", pid, "--alloc", "-o", tmp_path / "b.plim")
    assert second.code == 1 and "a recording is active already" in second.err
    # and the first goes on
    target.tell("go")
    target.hear("done")
    assert near(first.stop().memory("live").of("late").own, 2000 * bytearray(5_000).__sizeof__())
    target.end()


def test_a_program_that_ends_by_sigpipe_does_not_if_nobody_hears_its_answer(tmp_path: pathlib.Path) -> None:
    # GIVEN a process with the default for SIGPIPE, which is asked to do something
    pipe = tmp_path / "answers"
    os.mkfifo(pipe)
    program = ("import os, signal, sys\nfrom plimsoll import _inside\n"
               "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
               "listener = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)\n"
               # WHEN whoever listens goes while it does it
               "_inside._answer(sys.argv[1], lambda: os.close(listener), 'done')\n")
    # THEN it lives on
    assert subprocess.run([sys.executable, "-c", program, pipe], timeout=harness.DEADLINE).returncode == 0


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python runs code for others")
def test_older_versions_say_what_to_do_instead(target: Target, tmp_path: pathlib.Path) -> None:
    refused = harness.plimsoll_command("attach", str(target.process.pid), "--alloc", "-o", tmp_path / "a.plim")
    assert refused.code == 1 and "plimsoll run --alloc" in refused.err
    with pytest.raises(plimsoll.UnsupportedError, match="3.14"):
        plimsoll.attach(target.process.pid, alloc_bytes=4096)
    target.end()


def test_options_that_do_not_go_together() -> None:
    for option in ("--tasks", "--children", "--apart", "--stop"):
        refused = harness.plimsoll_command("attach", str(os.getpid()), "--alloc", option)
        assert refused.code == 2 and "leave --children" in refused.err
    refused = harness.plimsoll_command("attach", str(os.getpid()), "--alloc=1")
    assert refused.code == 2 and "64 bytes" in refused.err
    with pytest.raises(ValueError, match="needs alloc_bytes"):
        plimsoll.attach(os.getpid(), native_memory=True)
