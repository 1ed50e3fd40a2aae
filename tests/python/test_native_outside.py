"""Native frames of a process that knows nothing of it: `plimsoll dump --native` and `plimsoll attach --native`."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import platform
import resource
import shutil
import signal
import subprocess
import sys
from typing import Any, Callable, Iterator

import pytest

import harness
import plimsoll
from native_programs import CALLS, CHAIN, assembled, built, known_frames, whole

pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")
Write = Callable[..., pathlib.Path]
Thread = "dict[str, Any]"

#: Begins when it is told to.
ON_COMMAND = """
import sys
print("ready", flush=True)
sys.stdin.readline()
"""

ROUND = """
print("ready", flush=True)
while True:
    main()
"""

WAITS = """
import ctypes, sys, threading
library = ctypes.CDLL({library!r})
def wait():
    library.wait_for_ever()
threading.Thread(target=wait, daemon=True).start()
assert library.start_native() == 0
print(threading.get_native_id(), flush=True)
for line in sys.stdin:
    print(library.times_interrupted(), flush=True)
"""


@contextlib.contextmanager
def running(script: pathlib.Path, *words: str) -> "Iterator[harness.Running]":
    with harness.Running([sys.executable, script, *words]) as process:
        yield process


def dump(pid: int) -> "dict[str, Any]":
    return dict(json.loads(harness.plimsoll_command("dump", str(pid), "--native", "--json").expect().out))


def thread_with(dumped: "dict[str, Any]", function: str) -> "Any":
    found = [thread for thread in dumped["threads"] if any(frame["function"] == function for frame in thread["frames"])]
    return found[0] if found else None


def await_thread_with(pid: int, function: str) -> "dict[str, Any]":
    """A look in which a thread is in a function that it will be in for ever, or comes to again and again."""
    while True:
        thread = thread_with(dump(pid), function)
        if thread is not None:
            return dict(thread)


def calls(frames: "list[dict[str, Any]]", library: str) -> "list[str]":
    """As known_frames of test_native.py, of a dump."""
    names: list[str] = []
    for frame in reversed(frames):
        file = pathlib.Path(frame["file"]).name
        if "kind" not in frame or file == library:
            names.append(frame["function"])
        elif file.startswith("libc.so") and names and names[-1] != "(libc)":
            names.append("(libc)")
    return names


def between(names: "list[str]", first: str, last: str) -> "list[str]":
    return names[names.index(first):names.index(last) + 1]


@pytest.mark.parametrize("flag", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
def test_a_process_that_hangs_in_c(tmp_path: pathlib.Path, program: Write, flag: str) -> None:
    # GIVEN Python that calls C that calls Python, five times over, and hangs there
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c", flag)), milliseconds=10**9)
    with running(program(chain + ROUND)) as process:
        process.line()
        thread = await_thread_with(process.process.pid, "burn")
        # THEN both are there in the order of their calls, from where the process began
        assert between(calls(thread["frames"], "libchain.so"), "<module>", "burn") == CALLS
        assert thread["frames"][-1]["function"] == "_start"
        assert "native_problem" not in thread and "problem" not in thread
        # AND the same when it is stopped, which it stays
        process.process.send_signal(signal.SIGSTOP)
        os.waitpid(process.process.pid, os.WUNTRACED)
        stopped = thread_with(dump(process.process.pid), "burn")
        assert stopped["state"] == "stopped"
        assert between(calls(stopped["frames"], "libchain.so"), "<module>", "burn") == CALLS
        assert os.waitpid(process.process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED) == (0, 0)
        process.await_stop()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the target's code is that of x86-64")
def test_code_that_is_shown_to_debuggers(tmp_path: pathlib.Path) -> None:
    # GIVEN a process that has made code as LLVM's JITs do, and is in what that calls
    made = [str(assembled(tmp_path, "made.s")), str(built(tmp_path, "jit.c"))]
    with running(harness.TARGETS / "described_code.py", *made, "3600") as process:
        process.line()
        frames = await_thread_with(process.process.pid, "burn")["frames"]
    # THEN the code has its name, and is where it was called
    names = [frame["function"] for frame in frames]
    assert names.index("burn") < names.index("made::work(long)") < names.index("main")
    assert names[-1] == "_start"


def test_threads_that_wait_are_not_disturbed(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a thread that waits in a call that any stop would end, and one that knows no Python
    library = built(tmp_path, "chain.c", "-fomit-frame-pointer")
    with running(program(WAITS.format(library=str(library)))) as process:
        process.line()
        pid = process.process.pid
        await_thread_with(pid, "wait")
        for _ in range(5):
            dumped = dump(pid)
        # THEN their native frames are there
        native = thread_with(dumped, "native_wait")
        assert native is not None and not native["python"]
        assert calls(native["frames"], "libchain.so") == ["native_thread", "native_wait", "(libc)"]
        waiting = thread_with(dumped, "wait")
        frames = waiting["frames"]
        names = [frame["function"] for frame in frames]
        assert names.index("epoll_wait") + 1 == names.index("wait_for_ever")
        inner = [name.rpartition(".")[2] for name in calls(frames, "libchain.so")]
        assert inner[inner.index("run"):] == ["run", "wait", "wait_for_ever", "(libc)"]
        # AND all of them, also where frame pointers are needed for that
        assert all("native_problem" not in thread for thread in dumped["threads"])
        # AND nothing has ended their waits
        process.say("how often?")
        assert process.line() == "0"


def test_a_dump_says_how_long_a_thread_was_stopped(tmp_path: pathlib.Path, program: Write) -> None:
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c")), milliseconds=10**9)
    with running(program(chain + ROUND)) as process:
        process.line()
        assert dump(process.process.pid)["longest_stop_ns"] > 0
        text = harness.plimsoll_command("dump", str(process.process.pid), "--native").expect().out
        assert text.splitlines()[-1].startswith("no thread was stopped for longer than ")
        # AND without the option none is, and there are no native frames
        plain = json.loads(harness.plimsoll_command("dump", str(process.process.pid), "--json").expect().out)
        assert "longest_stop_ns" not in plain
        assert all("kind" not in frame for thread in plain["threads"] for frame in thread["frames"])


def attach(process: harness.Running, path: pathlib.Path, **options: Any) -> plimsoll.Profile:
    """Records a program from outside, from its command to begin to its end."""
    with plimsoll.attach(process.process.pid, path, native=True, **options) as recording:
        process.say("go")
        process.process.wait(harness.DEADLINE)
        return recording.wait(harness.DEADLINE)


def test_attach_has_both_kinds_of_frames_in_the_order_of_their_calls(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN Python that calls C that calls Python, five times over
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c", "-fomit-frame-pointer")), milliseconds=100)
    with running(program(ON_COMMAND + chain + "for _ in range(5):\n    main()\n")) as process:
        process.line()
        # WHEN it is recorded from outside
        profile = attach(process, tmp_path / "chain.plim", rate_hz=200)
    # THEN all samples of the computation have exactly this stack
    stacks = [stack for stack in harness.stacks(profile) if any(frame.function.name == "burn" for frame in stack.frames)]
    assert len(stacks) > 20
    for stack in stacks:
        assert between(known_frames(stack, "libchain.so"), "<module>", "burn") == CALLS
    assert whole(stacks) == 1
    # AND `show` has one line where the library was entered
    shown = harness.plimsoll_command("show", tmp_path / "chain.plim").expect().out
    assert "sort_two" in shown and "libpython" not in shown and "_PyEval" not in shown


def test_attach_lets_no_wait_be_broken_off(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a thread that goes in and out of waits which a stop would end
    library = built(tmp_path, "chain.c", "-fomit-frame-pointer")
    script = program(f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n" + ON_COMMAND +
                     "print(library.wait_briefly(200), flush=True)\n")
    with running(script) as process:
        process.line()
        # WHEN it is stopped whenever it is found running
        profile = attach(process, tmp_path / "waits.plim", rate_hz=2000, mode="wall")
        # THEN none of the waits has noticed
        assert process.line() == "0"
    # AND their time has native frames
    waits = [stack for stack in harness.stacks(profile)
             if any(frame.function.name == "epoll_wait" for frame in stack.frames)]
    assert waits
    assert all("wait_briefly" in [frame.function.name for frame in stack.frames] for stack in waits)


def test_threads_can_be_stopped_for_their_python_frames_alone(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that computes
    with running(program(ON_COMMAND + "def compute():\n    sum(i * i for i in range(10_000_000))\ncompute()\n")) as process:
        process.line()
        # WHEN it is recorded with stops
        recorder = harness.Running([harness.binary(), "attach", str(process.process.pid), "--stop", "-r", "200", "-o",
                                    tmp_path / "stopped.plim"])
        with recorder:
            assert recorder.process.stderr is not None
            recorder.process.stderr.readline()
            process.say("go")
            finished = recorder.finish().expect(0)
    # THEN its Python frames are there, and how long it was stopped is told
    profile = plimsoll.Profile.open(tmp_path / "stopped.plim")
    stacks = [[harness.plain_name(frame.function) for frame in stack.frames] for stack in harness.stacks(profile)]
    assert any(names[:2] == ["<module>", "compute"] for names in stacks)
    assert all(frame.function.kind != "native" for stack in harness.stacks(profile) for frame in stack.frames)
    assert "threads were stopped for" in finished.err


CROWDED = """
import os, sys, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(2):  # processes that want the same CPU, until this one ends
    if os.fork() == 0:
        parent = os.getppid()
        while os.getppid() == parent: pass
        os._exit(0)
lives = {}
def compute():
    begin = time.monotonic_ns()
    while time.monotonic_ns() < begin + 1_500_000_000: pass
    lives[threading.get_native_id()] = time.monotonic_ns() - begin
""" + ON_COMMAND + """
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*[f"{tid}={life}" for tid, life in lives.items()], flush=True)
"""


def test_threads_that_queue_for_a_cpu_to_stop_on_lose_no_time(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN threads that compute in turn, and must wait for their CPU, which others want, too
    with running(program(CROWDED)) as process:
        process.line()
        # WHEN all their time is recorded with stops
        recorder = harness.Running([harness.binary(), "attach", str(process.process.pid), "--stop", "--mode", "wall",
                                    "-o", tmp_path / "crowded.plim"])
        with recorder:
            assert recorder.process.stderr is not None
            recorder.process.stderr.readline()
            process.say("go")
            lives = {int(tid): int(life) for tid, life in (word.split("=") for word in process.line().split())}
            recorder.finish().expect(0)
    # THEN each has the time that it has lived, but for what it stood still for us, which the queue is no part of
    profile = plimsoll.Profile.open(tmp_path / "crowded.plim")
    told = dict.fromkeys(lives, 0)
    for thread, weight_ns in zip(profile.samples.thread, profile.samples.weight_ns):
        if profile.threads[thread].os_tid in told:
            told[profile.threads[thread].os_tid] += weight_ns
    assert len(lives) == 3
    for tid, life_ns in lives.items():
        assert 0.93 * life_ns <= told[tid] <= 1.05 * life_ns


def trace(pid: int) -> bool:
    """Becomes the tracer of a process, as a debugger does; False if that is not allowed."""
    seize = 0x4206
    return int(ctypes.CDLL(None).ptrace(seize, ctypes.c_long(pid), None, None)) == 0


def test_a_process_that_is_traced_already(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a process with a debugger
    with running(program(ON_COMMAND)) as process:
        process.line()
        pid = process.process.pid
        if not trace(pid):
            pytest.skip("ptrace is not allowed here")
        # WHEN it is to be recorded THEN it says what is the matter
        words = ["attach", str(pid), "--native", "-d", "1", "-o", tmp_path / "none.plim"]
        refused = harness.plimsoll_command(*words).expect(3)
        assert "is traced by another program" in refused.err
        # AND a dump has its Python frames, and as much of the others as can be had without a stop
        thread = thread_with(dump(pid), "<module>")
        assert "read" in [frame["function"] for frame in thread["frames"]]


@pytest.mark.any_version
def test_native_frames_are_not_seen_from_afar() -> None:
    refused = harness.plimsoll_command("attach", str(os.getpid()), "--native", "--apart").expect(2)
    assert "leave --apart out" in refused.err


def left_core(running: harness.Running, directory: pathlib.Path) -> pathlib.Path:
    """The core file that the kernel leaves of a program in its current directory."""
    resource.prlimit(running.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    running.process.send_signal(signal.SIGABRT)
    running.process.wait()
    core, = directory.glob("core*")
    return core


def leaves_core_files_here() -> bool:
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    return "/" not in pattern and not pattern.startswith("|") and not harness.FREE_THREADED


@pytest.mark.skipif(not leaves_core_files_here(), reason="core files go elsewhere, or are of gigabytes")
def test_a_core_file_has_native_frames(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN Python that calls C that calls Python, five times over, and a thread that knows no Python
    library = built(tmp_path, "chain.c", "-fomit-frame-pointer")
    chain = CHAIN.format(library=str(library), milliseconds=10**9)
    script = program(chain + "assert library.start_native() == 0\n" + ROUND)
    with harness.Running([sys.executable, script], cwd=tmp_path) as process:
        process.line()
        await_thread_with(process.process.pid, "burn")
        # WHEN it ends, and leaves a core file
        core = left_core(process, tmp_path)
    dumped = json.loads(harness.plimsoll_command("dump", "--core", core, "--native", "--json").expect().out)
    # THEN both kinds of frames are there in the order of their calls, from where the process began
    thread = thread_with(dumped, "burn")
    assert between(calls(thread["frames"], "libchain.so"), "<module>", "burn") == CALLS
    assert thread["frames"][-1]["function"] == "_start"
    assert "native_problem" not in thread and "problem" not in thread
    native = thread_with(dumped, "native_wait")
    assert calls(native["frames"], "libchain.so") == ["native_thread", "native_wait", "(libc)"]
    # AND when a library is another one by now, what can be told without it
    library.unlink()
    built(tmp_path, "chain.c", "-O0")
    dumped = json.loads(harness.plimsoll_command("dump", "--core", core, "--native", "--json").expect().out)
    thread = thread_with(dumped, "innermost")
    names = [frame["function"] for frame in thread["frames"]]
    native_names = names[:names.index("innermost")]  # it was in the library, or in what that calls
    assert native_names and set(native_names) <= {"machine code of no file", "clock_gettime"}
    assert thread["native_problem"]
    # AND without the option there is none
    plain = json.loads(harness.plimsoll_command("dump", "--core", core, "--json").expect().out)
    assert all("kind" not in frame for thread in plain["threads"] for frame in thread["frames"])


@pytest.mark.skipif(harness.FREE_THREADED or not shutil.which("gcore"), reason="there is no gcore, or it takes a minute")
def test_a_core_file_without_the_code_has_native_frames(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a core file by gcore, which leaves out what was never written to: the code, and that it was code
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c", "-fomit-frame-pointer")), milliseconds=10**9)
    with harness.Running([sys.executable, program(chain + ROUND)], cwd=tmp_path) as process:
        process.line()
        await_thread_with(process.process.pid, "burn")
        subprocess.run(["gcore", "-o", tmp_path / "core", str(process.process.pid)], check=True, capture_output=True)
    core, = tmp_path.glob("core.*")
    dumped = json.loads(harness.plimsoll_command("dump", "--core", core, "--native", "--json").expect().out)
    # THEN the files say what is code
    thread = thread_with(dumped, "burn")
    assert between(calls(thread["frames"], "libchain.so"), "<module>", "burn") == CALLS
    assert thread["frames"][-1]["function"] == "_start"


def test_a_program_is_recorded_from_outside_from_its_start(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN Python that calls C that calls Python, five times over
    chain = CHAIN.format(library=str(built(tmp_path, "chain.c", "-fomit-frame-pointer")), milliseconds=150)
    path = tmp_path / "external.plim"
    harness.plimsoll_command("run", "--external", "--native", "-r", "200", "-o", path,
                             program(chain + "for _ in range(5):\n    main()\n")).expect()
    # THEN all samples of the computation have exactly this stack
    stacks = [stack for stack in harness.stacks(plimsoll.Profile.open(path))
              if any(frame.function.name == "burn" for frame in stack.frames)]
    assert len(stacks) > 20
    # (Of a library that has just been loaded the tables may not be known yet: then what they would tell is missing.)
    known = ["<module>", "main", "deep", "varying", "aligned", "innermost", "burn"]
    for stack in stacks:
        names = between(known_frames(stack, "libchain.so"), "<module>", "burn")
        assert names == (CALLS if whole([stack]) else known)
    assert whole(stacks) > 0.9
