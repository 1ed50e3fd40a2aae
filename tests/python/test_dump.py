"""`plimsoll dump`: the stacks of a process that knows nothing of it, from outside."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator

import pytest

import harness
import native_programs

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")

BAD_INPUT = 5
NO_PERMISSION = 3


@contextlib.contextmanager
def known_stacks(*words: harness.Word) -> "Iterator[tuple[harness.Running, dict[str, Any]]]":
    """The target, started as `words`, and its truth, once all its threads stand where they say."""
    with harness.Running([*(words or [sys.executable]), harness.TARGETS / "known_stacks.py"]) as running:
        yield running, json.loads(running.line())


def dump(pid: int) -> "dict[str, Any]":
    return dict(json.loads(harness.plimsoll_command("dump", str(pid), "--json").expect().out))


def check(dumped: "dict[str, Any]", truth: "dict[str, Any]", is_stopped: bool = False) -> None:
    threads = {str(thread["tid"]): thread for thread in dumped["threads"]}
    assert dumped["pid"] == truth["pid"]
    assert dumped["python"].rstrip("t") == truth["version"]
    for tid, expected in truth["stacks"].items():
        thread = threads[tid]
        # Up to 3.10 the frames of a thread that runs may be of two moments, and it says so.
        is_unsure = expected["state"] == "running" and sys.version_info < (3, 11)
        assert is_stopped or is_unsure or "problem" not in thread
        assert thread["name"] == expected["name"]
        frames = [[frame["function"], frame["line"]] for frame in thread["frames"]]
        assert frames[:len(expected["frames"])] == expected["frames"]
        assert frames[-1][0].rpartition(".")[2] == ("<module>" if tid == str(truth["pid"]) else "_bootstrap")
        # (The thread that runs may have to wait for the lock of the interpreter, while the one that announced ends.)
        if is_stopped or expected["state"] != "running":
            assert thread["state"] == ("stopped" if is_stopped else expected["state"])


def test_shows_where_every_thread_stands() -> None:
    # GIVEN a program that waits for a lock, for a pipe in a generator, and that runs; and a deep recursion
    with known_stacks() as (_, truth):
        # WHEN it is looked at THEN all of it is there, line by line
        check(dump(truth["pid"]), truth)


def test_shows_a_stopped_process_and_leaves_it_stopped() -> None:
    with known_stacks() as (running, truth):
        # GIVEN a process that is stopped
        running.process.send_signal(signal.SIGSTOP)
        os.waitpid(running.process.pid, os.WUNTRACED)
        # WHEN it is looked at THEN its stacks are there
        check(dump(truth["pid"]), truth, is_stopped=True)
        # and it is stopped still: it does not end although its input does
        assert os.waitpid(running.process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED) == (0, 0)


def test_the_process_goes_on_as_if_nothing_had_been() -> None:
    with known_stacks() as (running, truth):
        dump(truth["pid"])
        # WHEN it has been looked at THEN it ends as it would have
        running.finish().expect(0)


def test_shows_source_lines_and_who_holds_the_lock() -> None:
    with known_stacks() as (_, truth):
        # WHEN it is looked at as text
        texts = (harness.plimsoll_command("dump", str(truth["pid"])).expect().out for _ in range(100))
        # (between two turns nobody has the lock: then it is looked at once more)
        text = next((text for text in texts if harness.FREE_THREADED or "holds the GIL" in text), "")
    # THEN the lines of the source stand below their frames, without their indentation
    lines = [line.strip() for line in text.splitlines()]
    assert "never.acquire()" in lines
    assert "for step in steps:" in lines
    # and the lock of the interpreter is with a thread that runs, if there is such a lock
    holders = [line for line in lines if line.endswith("holds the GIL")]
    assert len(holders) == (0 if harness.FREE_THREADED else 1)
    assert all(": running" in line for line in holders)


def test_finds_an_interpreter_of_any_name(tmp_path: pathlib.Path) -> None:
    # GIVEN an interpreter whose program has another name
    program = tmp_path / "cobra"
    program.symlink_to(os.path.realpath(sys.executable))
    with known_stacks("env", f"PYTHONHOME={sys.base_prefix}", program) as (_, truth):
        # THEN it is known by what it is
        check(dump(truth["pid"]), truth)


def test_finds_an_interpreter_whose_file_is_gone(tmp_path: pathlib.Path) -> None:
    # GIVEN an interpreter that was deleted, as an upgrade does, while it runs
    program = tmp_path / "python"
    shutil.copy(os.path.realpath(sys.executable), program)
    with known_stacks("env", f"PYTHONHOME={sys.base_prefix}", program) as (_, truth):
        program.unlink()
        # THEN it is found
        check(dump(truth["pid"]), truth)


MANY_FUNCTIONS = """
import sys, threading
sys.setrecursionlimit(50_000)
DEEP, stand = 9_900, threading.Barrier(24)
def first_of(number):
    names = {"stand": lambda: (stand.wait(), threading.Event().wait())}
    text = "".join(f"def f{i}(): f{i + 1}()\\n" for i in range(DEEP)) + f"def f{DEEP}(): stand()\\n"
    exec(compile(text, f"many{number}.py", "exec"), names)
    return names["f0"]
for number in range(23): threading.Thread(target=first_of(number), daemon=True).start()
stand.wait()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="calls take C's stack, too, before 3.11")
def test_shows_more_functions_than_it_keeps_in_mind() -> None:
    # GIVEN stacks of 228,000 functions
    with harness.Running([sys.executable, "-c", MANY_FUNCTIONS]) as running:
        assert running.line() == "ready"
        # WHEN / THEN each is there
        threads = dump(running.process.pid)["threads"]
        assert sum(len(thread["frames"]) > 9_900 for thread in threads) == 23
        assert not any("problem" in thread for thread in threads)


FORKED_BY_C = """
import ctypes, os, sys
if ctypes.PyDLL(None).fork() == 0:
    def in_child():
        print(os.getpid(), flush=True)
        sys.stdin.read()
    in_child()
    os._exit(0)
os.wait()
"""


@pytest.mark.any_version
def test_knows_the_thread_of_a_process_that_c_code_has_forked() -> None:
    # GIVEN a process whose interpreter has not been told that it was forked
    with harness.Running([sys.executable, "-c", FORKED_BY_C]) as running:
        child = int(running.line())
        # WHEN it is looked at THEN its thread runs what it runs
        thread, = dump(child)["threads"]
    assert [frame["function"] for frame in thread["frames"]] == ["in_child", "<module>"]
    assert "problem" not in thread and thread["tid"] == child


WITHOUT_ITS_FIRST_THREAD = """
import ctypes, sys, threading
threading.Thread(target=lambda: (print(threading.get_native_id(), flush=True), sys.stdin.read())).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_says_how_a_process_without_its_first_thread_is_looked_at() -> None:
    # GIVEN a process whose first thread has ended, while another goes on
    with harness.Running([sys.executable, "-c", WITHOUT_ITS_FIRST_THREAD]) as running:
        thread = running.line()
        pid = running.process.pid
        while pathlib.Path(f"/proc/{pid}/maps").read_text():
            time.sleep(0.01)
        # WHEN it is looked at THEN it is said which number to give
        done = harness.plimsoll_command("dump", str(pid)).expect(1)
        assert f"give {thread} instead" in done.err
        # and that one shows it
        assert any("<lambda>" in [frame["function"] for frame in each["frames"]]
                   for each in dump(int(thread))["threads"])


@pytest.mark.parametrize("words", [[], pytest.param(["--native"], marks=pytest.mark.skipif(
    platform.machine() != "x86_64", reason="native frames can be looked at on x86-64 only, so far"))])
def test_a_thread_does_what_it_does_at_the_moment_of_its_stack(words: "list[str]", tmp_path: pathlib.Path) -> None:
    # GIVEN a thread that runs when the threads are listed, and sleeps when its stack is read
    preloaded = {"LD_PRELOAD": str(native_programs.built(tmp_path, "after_list.c"))}
    with harness.Running([sys.executable, harness.TARGETS / "sleeps_when_told.py"]) as running:
        running.line()
        done = harness.plimsoll_command("dump", str(running.process.pid), "--json", *words, env=preloaded).expect()
    thread, = json.loads(done.out)["threads"]
    # THEN it is said to sleep
    assert [frame["function"] for frame in thread["frames"] if frame.get("kind") != "native"] == ["nap", "spin", "<module>"]
    assert (thread["state"], thread["holds_gil"]) == ("sleep", False)


@pytest.mark.any_version
def test_says_that_there_is_no_such_process() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    # WHEN a process that has ended is looked at
    done = harness.plimsoll_command("dump", str(ended.pid)).expect(BAD_INPUT)
    # THEN it says so
    assert done.notices == [f"plimsoll: there is no process {ended.pid}"]


@pytest.mark.any_version
def test_says_that_it_is_no_python() -> None:
    with harness.Running(["cat"]) as running:
        running.say("are you there?")
        running.line()
        done = harness.plimsoll_command("dump", str(running.process.pid)).expect(1)
    assert "is not CPython: it runs /" in done.err


@pytest.mark.any_version
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without permission")
def test_says_who_may_look() -> None:
    # GIVEN a process of root's, and a command that somebody else gives
    def become_nobody() -> None:
        os.setgid(65534)
        os.setuid(65534)

    # (This build may lie where nobody else can read; a copy does not.)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        copy = shutil.copy(harness.binary(), directory)
        done = harness.run([copy, "dump", str(os.getpid())], cwd="/", preexec_fn=become_nobody).expect(NO_PERMISSION)
    # THEN it says what to do
    assert "it belongs to another user: put sudo before the command" in done.err or "--cap-add SYS_PTRACE" in done.err


