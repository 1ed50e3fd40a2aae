"""`plimsoll dump --locals` and `plimsoll dump --core`: variables of programs that know their own, and processes that have ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
from typing import Any, Iterator, Union

import pytest

import harness

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")

USAGE = 2
BAD_INPUT = 5
UNSUPPORTED = 1


@contextlib.contextmanager
def known_locals(target: str = "known_locals.py",
                 **options: Any) -> "Iterator[tuple[harness.Running, dict[str, Any]]]":
    with harness.Running([sys.executable, harness.TARGETS / target], **options) as running:
        truth = json.loads(running.line())
        running.await_sleep()
        yield running, truth


def dump(*words: "Union[harness.Word, int]") -> "dict[str, Any]":
    command = [str(word) if isinstance(word, int) else word for word in words]
    return dict(json.loads(harness.plimsoll_command("dump", *command, "--json").expect().out))


def thread_of(dumped: "dict[str, Any]", tid: int) -> "dict[str, Any]":
    return next(thread for thread in dumped["threads"] if thread["tid"] == tid)


def check(dumped: "dict[str, Any]", truth: "dict[str, Any]") -> None:
    """Each variable is there, once, and says what it should."""
    thread = thread_of(dumped, truth["pid"])
    assert "problem" not in thread and "locals_problem" not in thread
    frames = {frame["function"]: frame.get("locals", []) for frame in thread["frames"]}
    for function, expected in truth["functions"].items():
        told = {variable["name"]: variable["value"] for variable in frames[function]}
        assert {name: told.get(name) for name, _ in expected} == dict(expected)
        assert len(told) == len(frames[function])
    assert "unset" not in {variable["name"] for variable in frames["called"]}


def test_variables_say_what_repr_says() -> None:
    # GIVEN a program with values of every kind WHEN it is looked at THEN each is as it should be
    with known_locals() as (_, truth):
        dumped = dump(truth["pid"], "--locals")
    check(dumped, truth)
    # AND arguments come first, also one that a function inside uses
    called = next(frame for frame in thread_of(dumped, truth["pid"])["frames"] if frame["function"] == "called")
    arguments = [variable["argument"] for variable in called["locals"]]
    assert arguments == sorted(arguments, reverse=True)
    assert [variable["name"] for variable in called["locals"]][:5] == ["argument", "second", "keyword", "rest", "more"]
    assert sum(arguments) == 5
    assert {variable["name"]: variable["type"] for variable in called["locals"]}["rest"] == "tuple"


def test_variables_of_a_stopped_process() -> None:
    with known_locals() as (running, truth):
        # GIVEN a process that is stopped
        running.process.send_signal(signal.SIGSTOP)
        os.waitpid(running.process.pid, os.WUNTRACED)
        # THEN its variables are there
        check(dump(truth["pid"], "--locals"), truth)


def test_variables_beside_native_frames() -> None:
    with known_locals() as (_, truth):
        check(dump(truth["pid"], "--locals", "--native"), truth)


def test_variables_are_shown_on_request_only() -> None:
    with known_locals() as (_, truth):
        # WHEN they are not asked for THEN nothing is said of them
        assert all("locals" not in frame for thread in dump(truth["pid"])["threads"] for frame in thread["frames"])
        # WHEN they are THEN the text has them below their frames, as much of them as is asked for
        text = harness.plimsoll_command("dump", str(truth["pid"]), "--locals", "--items", "2", "--chars", "30",
                                        "--depth", "1").expect().out
    lines = [line.strip() for line in text.splitlines()]
    assert "argument = 'a'" in lines
    assert "many = [0, 1, ... 98 more]" in lines
    assert "long = '" + "x" * 30 + "'... 970 more" in lines
    assert "deep = [[...]]" in lines


def test_variables_that_change_are_of_one_moment() -> None:
    # GIVEN a thread that counts, and sets one variable to twice the other just afterwards
    with known_locals("counting.py") as (_, truth):
        looks = (thread_of(dump(truth["pid"], "--locals"), truth["tid"]) for _ in range(100))
        # WHEN it is looked at ten times, and until it has been read
        told = list(itertools.islice(looks, 10))
        while not any("locals" in frame for thread in told for frame in thread["frames"]):
            told.append(next(looks))
    for thread in told:
        frame, = [frame for frame in thread["frames"] if frame["function"] == "count"] or [None]
        if frame is None or "locals" not in frame:
            # THEN it is said why there are none
            assert "problem" in thread or "locals_problem" in thread
            continue
        values = {variable["name"]: variable["value"] for variable in frame["locals"]}
        # OR they are as they were between two steps
        assert 2 * int(values["number"]) - int(values["twice"]) in (0, 2)


@pytest.mark.any_version
def test_says_what_goes_together() -> None:
    for words, told in [((), "plimsoll dump PID, or"), (("1234", "--core", "core"), "Leave one of them out"),
                        (("1234", "--items", "3"), "--locals"), (("1234", "--exe", "python"), "--core"),
                        (("1234", "--locals", "--tasks"), "--tasks"), (("1234", "--locals", "--depth", "x"), "--depth")]:
        finished = harness.plimsoll_command("dump", *words)
        assert finished.code == USAGE and told in finished.err


def leaves_core_files_here() -> bool:
    if harness.FREE_THREADED:
        return False  # of gigabytes, as their allocator maps whole segments
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    return "/" not in pattern and not pattern.startswith("|")


def kernel_core(running: "harness.Running", directory: pathlib.Path) -> pathlib.Path:
    """The core file that the kernel leaves of it in its current directory."""
    resource.prlimit(running.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    running.process.send_signal(signal.SIGABRT)
    running.process.wait()
    core, = directory.glob("core*")
    return core


def gcore(running: "harness.Running", directory: pathlib.Path) -> pathlib.Path:
    """The core file that gdb writes of it, which goes on."""
    done = subprocess.run(["gcore", "-o", directory / "gcore", str(running.process.pid)], check=True, capture_output=True)
    failed = re.findall(rb"Memory read failed for corefile section, (\d+) bytes", done.stderr + done.stdout)
    if any(int(size) >= 1 << 20 for size in failed):  # (smaller ones are not memory of the program's)
        pytest.skip("this gdb cannot read the stacks of threads: their guard pages are a part of them")
    core, = directory.glob("gcore*")
    return core


cores = pytest.mark.parametrize("take", [
    pytest.param(kernel_core, marks=pytest.mark.skipif(not leaves_core_files_here(),
                                                       reason="core files go elsewhere, or are of gigabytes")),
    pytest.param(gcore, marks=pytest.mark.skipif(harness.FREE_THREADED or not shutil.which("gcore"),
                                                 reason="there is no gcore, or it takes a minute")),
])


@cores
def test_a_core_file_says_what_the_process_said(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a process that was looked at, and then left a core file
    with known_locals(cwd=tmp_path) as (running, truth):
        before = dump(truth["pid"], "--locals")
        core = take(running, tmp_path)
    # WHEN that is looked at
    after = dump("--core", core, "--locals")
    # THEN it has the same frames, lines, sources and variables
    check(after, truth)
    assert thread_of(after, truth["pid"])["frames"] == thread_of(before, truth["pid"])["frames"]
    assert (after["pid"], after["python"]) == (before["pid"], before["python"])
    # AND the thread's own name, and how it ended
    assert thread_of(after, truth["pid"])["name"] == "MainThread"
    assert thread_of(after, truth["pid"]).get("signal") == (signal.SIGABRT if take is kernel_core else None)
    text = harness.plimsoll_command("dump", "--core", core).expect().out
    assert text.startswith(f"core file of process {truth['pid']}: ")
    assert f'thread {truth["pid"]} "MainThread"' in text


@cores
def test_a_core_file_has_all_threads(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a program with several threads
    with known_locals("known_stacks.py", cwd=tmp_path) as (running, truth):
        core = take(running, tmp_path)
    # THEN each stands where it stood; one that runs may have gone on
    threads = {str(thread["tid"]): thread for thread in dump("--core", core)["threads"]}
    for tid, expected in truth["stacks"].items():
        if expected["state"] != "running":
            frames = [[frame["function"], frame["line"]] for frame in threads[tid]["frames"]]
            assert frames[:len(expected["frames"])] == expected["frames"]


@cores
@pytest.mark.skipif(not harness.KNOWS_TASKS, reason="tasks of free-threaded 3.13 are not known")
def test_a_core_file_has_the_tasks(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a process whose asyncio tasks await each other in every way there is, and which left a core file
    with known_locals("awaiting.py", cwd=tmp_path) as (running, truth):
        core = take(running, tmp_path)
    # WHEN its tasks are looked at
    text = harness.plimsoll_command("dump", "--core", core, "--tasks").expect().out
    # THEN the tree is the one that the process had
    lines = [line for line in text.splitlines() if line.lstrip("│├└─ ").startswith("[task ")]
    assert "".join(line + "\n" for line in lines) == truth["drawing"]
    assert text.startswith(f"core file of process {truth['pid']}: ")
    # AND each task has its coroutines' frames down to what it waits in, all of one moment
    told = dump("--core", core, "--tasks")
    tasks = {task["name"]: task for task in told["tasks"]}
    for name, expected in truth["frames"].items():
        assert [[frame["function"], frame["line"]] for frame in tasks[name]["frames"]][-len(expected):] == expected
    assert told["complete"]
    main, other = truth["threads"]
    assert [loop["tid"] for loop in told["loops"]] == [main, other]


@cores
@pytest.mark.skipif(harness.KNOWS_TASKS, reason="its tasks can be read")
def test_says_of_which_core_files_the_tasks_cannot_be_read(take: Any, tmp_path: pathlib.Path) -> None:
    with known_locals(cwd=tmp_path) as (running, _):
        core = take(running, tmp_path)
    refused = harness.plimsoll_command("dump", "--core", core, "--tasks").expect(UNSUPPORTED)
    assert refused.notices[0].startswith("plimsoll: the tasks of Python 3.")


@pytest.mark.skipif(not leaves_core_files_here(), reason="core files go elsewhere, or are of gigabytes")
def test_says_what_is_wrong_with_a_core_file(tmp_path: pathlib.Path) -> None:
    # GIVEN a core file of an interpreter whose file is then moved
    program = tmp_path / "bin" / "cobra"
    program.parent.mkdir()
    shutil.copy(os.path.realpath(sys.executable), program)
    words = ["env", f"PYTHONHOME={sys.base_prefix}", program, harness.TARGETS / "known_locals.py"]
    with harness.Running(words, cwd=tmp_path) as running:
        truth = json.loads(running.line())
        core = kernel_core(running, tmp_path)
    moved = program.rename(tmp_path / "moved")
    if dump_fails(core, UNSUPPORTED, "--exe PYTHON says where it is"):
        # THEN it is said, and --exe helps
        check(dump("--core", core, "--exe", moved, "--locals"), truth)
        # AND a file of that name that is another program is not taken for it
        dump_fails(core, BAD_INPUT, "is not the file that ran", "--exe", other_build(moved, tmp_path / "other"))
    # AND what is cut, or missing, or no core file
    cut = tmp_path / "cut"
    cut.write_bytes(core.read_bytes()[:1024])
    dump_fails(cut, BAD_INPUT, "is cut short", "--exe", moved)
    dump_fails(core, BAD_INPUT, "there is no file", "--exe", tmp_path / "nowhere")
    dump_fails(tmp_path / "nothing", BAD_INPUT, "nothing")
    dump_fails(moved, BAD_INPUT, "is a program or a library, not a core file")
    dump_fails(pathlib.Path(__file__), BAD_INPUT, "is not a core file")


def dump_fails(core: pathlib.Path, code: int, told: str, *words: "harness.Word") -> bool:
    """Whether it fails in these words; an interpreter that is in a library of its own needs no program."""
    finished = harness.plimsoll_command("dump", "--core", core, *words)
    if finished.code == 0 and code == UNSUPPORTED:
        return False
    assert finished.code == code and told in finished.err, finished.err
    return True


def other_build(program: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    """A copy whose header says that it has other sections."""
    image = bytearray(program.read_bytes())
    image[40] ^= 8
    path.write_bytes(image)
    return path


@pytest.mark.skipif(not leaves_core_files_here(), reason="core files go elsewhere, or are of gigabytes")
@pytest.mark.any_version
def test_says_that_a_core_file_is_of_no_python(tmp_path: pathlib.Path) -> None:
    with harness.Running(["cat"], cwd=tmp_path) as running:
        running.say("are you there?")
        running.line()
        core = kernel_core(running, tmp_path)
    dump_fails(core, UNSUPPORTED, "is not of CPython: its program is /")
