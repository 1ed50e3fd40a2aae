"""`plimsoll attach`: profiles of a process that knows nothing of it, from outside."""

from __future__ import annotations

import collections
import contextlib
import fcntl
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
from typing import Callable, Iterator, Sequence

import pytest

import harness
from call_rules import CallRules, written
from known_shares import assert_shares, worth

import plimsoll


F_GETPIPE_SZ = 1032  # of Linux; fcntl has it from 3.10
pytestmark = pytest.mark.skipif(not harness.may_look_at_others(),
                                reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")


#: Exit codes when the process ends early: it may have used no CPU time that could be seen.
AT_ITS_END = (0, 4)


class Attached:
    """A recording from outside, which has begun. It ends with the process, or when it is told to."""

    def __init__(self, pid: int, path: pathlib.Path, options: Sequence[harness.Word],
                 before: Sequence[harness.Word] = ()) -> None:
        self.path = path
        self._running = harness.Running([*before, harness.binary(), "attach", str(pid), "-o", path, *options])
        self.notice = self._notice()

    def _notice(self) -> str:
        """What it says when it records."""
        assert self._running.process.stderr is not None
        return self._running.process.stderr.readline().decode()

    def hold_report(self) -> None:
        """Lets nothing more be said until somebody reads."""
        assert self._running.process.stderr is not None
        pipe = self._running.process.stderr.fileno()
        writer = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
        os.write(writer, b"x" * fcntl.fcntl(pipe, F_GETPIPE_SZ))
        os.close(writer)

    def wait_until_written(self) -> None:
        """Until the profile is on the disk."""
        deadline = time.monotonic() + harness.DEADLINE
        while not plimsoll.Profile.open(self.path).complete:
            assert time.monotonic() < deadline, "the recording does not end"

    def interrupt(self) -> None:
        self._running.process.send_signal(signal.SIGINT)

    def profile(self, codes: "tuple[int, ...]" = (0,)) -> plimsoll.Profile:
        finished = self._running.finish()
        assert finished.code in codes, finished
        return plimsoll.Profile.open(self.path)


@contextlib.contextmanager
def waiting(*words: harness.Word, env: "dict[str, str | None] | None" = None) -> Iterator[harness.Running]:
    """A program of tests/targets that is there, and waits for a line before it begins."""
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py", *words], env=env) as running:
        assert running.line() == "ready"
        yield running


def record_from_outside(directory: pathlib.Path, *words: harness.Word,
                        options: Sequence[harness.Word] = (),
                        env: "dict[str, str | None] | None" = None) -> harness.Recorded:
    """Records a program from its beginning to its end."""
    with waiting(*words, env=env) as running:
        attached = Attached(running.process.pid, directory / "attached.plim", options)
        running.say("go")
        finished = running.finish().expect(0)
        return harness.Recorded(finished, attached.profile())


# ---- truth ----


def check_calls(recorded: harness.Recorded, least: int) -> None:
    """No stack that never was; at least so many in all scenarios together."""
    met = 0
    for facts in recorded.truth["scenarios"]:
        rules = CallRules(recorded.truth["file"], facts)
        seen = collections.Counter(rules.relevant(harness.stacks(recorded.profile)))
        impossible = {path: rules.violation(path) for path in seen if rules.violation(path)}
        told = "\n".join(f"{seen[path]} times, {why}: {written(path)}" for path, why in impossible.items())
        assert not impossible, f"{facts['work']}: of {sum(seen.values())} samples:\n{told}"
        met += sum(seen.values())
    assert met >= least, "too few samples to tell anything"


def test_every_stack_is_one_that_existed(tmp_path: pathlib.Path) -> None:
    # GIVEN calls of all kinds, over and over, each done in no time; WHEN they are looked at from outside
    recorded = record_from_outside(tmp_path, harness.TARGETS / "calls.py", "0.15", options=["-r", "4000"])
    # THEN tracing has seen every sampled stack, and next to no look came to nothing
    check_calls(recorded, least=300)
    lost = sum(harness.drops(recorded.profile).values())
    assert lost <= 0.01 * len(recorded.profile.samples) + 20


@pytest.mark.slow
def test_no_impossible_stack_in_a_long_recording(tmp_path: pathlib.Path) -> None:
    recorded = record_from_outside(tmp_path, harness.TARGETS / "calls.py", "10", options=["-r", "10000"])
    check_calls(recorded, least=100_000)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="from other CPUs, stacks can be proven from Python 3.11 on")
def test_from_other_cpus_it_sees_what_lasts(tmp_path: pathlib.Path) -> None:
    # GIVEN functions that last; WHEN they are looked at without taking their CPU
    recorded = record_from_outside(tmp_path, harness.TARGETS / "waits.py", "0.3", options=["--apart", "--mode", "wall"])
    # THEN they are seen
    names = {frame.function.name for stack in harness.stacks(recorded.profile) for frame in stack.frames}
    assert {"sleeping", "locked", "reading", "selecting"} <= names


@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_code_that_comes_and_goes_keeps_its_names(tmp_path: pathlib.Path, mode: str) -> None:
    # GIVEN functions that are made anew all the time, at addresses of others that are gone
    recorded = record_from_outside(tmp_path, harness.TARGETS / "waiting_callers.py", "0.7",
                                   options=["-r", "4000", "--mode", mode])
    checked = 0
    for stack in harness.stacks(recorded.profile):
        frames = stack.in_file("waiting_callers.py") + stack.in_file(">")
        made = [frame for frame in stack.frames if frame.function.file.startswith("<round ")]
        callers = [frame.function.name for frame in frames if frame.function.name.endswith("_caller")]
        if not made or not callers:
            continue
        # THEN each was called by the one that calls it, comes from its own file, and stands on its own lines
        name, _, number = made[0].function.name.partition("_")
        assert callers == [f"{name}_caller"]
        assert made[0].function.file == f"<round {number}>"
        first = int(number) % 100 + (2 if name == "first" else 4)
        assert made[0].line in (first, first + 1)
        checked += 1
    assert mode == "cpu" or checked > 0


def test_measures_known_shares(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that says how its CPU time was divided
    recorded = record_from_outside(tmp_path, harness.TARGETS / "shares.py", "0.8")
    times = harness.total_seconds(recorded.profile)
    # THEN the profile divides it likewise
    measured = {name: times.get(name, 0.0) for name in recorded.truth}
    assert_shares(measured, recorded.truth, worth(recorded.profile.samples.weight_ns), slack=0.02)


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """More processes that compute than there are CPUs."""
    with contextlib.ExitStack() as stack:
        for _ in range((os.cpu_count() or 1) + 1):
            stack.enter_context(harness.Running([sys.executable, "-c", "while True: pass"]))
        yield


@pytest.mark.any_version
@pytest.mark.skipif(not os.path.exists("/proc/self/sched"), reason="the kernel does not tell when a thread was put aside")
def test_what_calls_the_kernel_has_no_more_time_where_others_want_the_cpus(tmp_path: pathlib.Path) -> None:
    # GIVEN a program whose loop asks for the time between pieces of work, which is when the kernel puts it aside
    with busy_machine():
        recorded = record_from_outside(tmp_path, harness.TARGETS / "shares.py", "2", options=["-r", "200"])
    # THEN the loop has next to nothing of its time (a fifth to a third of it when each stack was counted that was found
    # where the thread waited for a CPU)
    times = harness.self_seconds(recorded.profile)
    assert times.get("spend", 0.0) < 0.12 * sum(times.values())
    whole = sum(recorded.truth.values())
    assert harness.total_seconds(recorded.profile)["huge"] / sum(times.values()) == pytest.approx(
        recorded.truth["huge"] / whole, abs=0.12)


@pytest.mark.any_version
@pytest.mark.skipif(harness.kernel_version() < (6, 12), reason="threads choose the length of their turns since Linux 6.12")
@pytest.mark.parametrize("options", [[], ["-r", "200"], ["--stop", "-r", "200"]], ids=" ".join)
def test_short_bursts_count_as_long_ones(tmp_path: pathlib.Path, options: "list[str]") -> None:
    # GIVEN a program that sleeps between bursts of computing, most of them shorter than the time between two looks
    recorded = record_from_outside(tmp_path, harness.TARGETS / "bursts.py", "3", options=options)
    times = harness.total_seconds(recorded.profile)
    # THEN what takes half of its time does so in the profile, whatever its bursts are (of short ones it was an eighth).
    # There are some hundred stacks, and whoever looks may want for a CPU.
    truth, whole = recorded.truth, sum(recorded.truth.values())
    for name in truth:
        assert times.get(name, 0.0) / times["main"] == pytest.approx(truth[name] / whole, abs=0.3)


def test_weights_add_up_to_the_cpu_time(tmp_path: pathlib.Path) -> None:
    recorded = record_from_outside(tmp_path, harness.TARGETS / "shares.py", "0.4")
    profile = recorded.profile
    spent = sum(recorded.truth.values()) / 1e9
    weights = sum(profile.samples.weight_ns)
    # THEN most of what the program says it used is there, and what is there is what its only thread used
    assert 0.9 * spent <= weights / 1e9
    assert weights == pytest.approx(profile.threads[0].cpu_ns, rel=0.01)
    assert profile.process_cpu > 0


def test_mode_wall_tells_waits_apart(tmp_path: pathlib.Path) -> None:
    # GIVEN threads that wait in one way each
    recorded = record_from_outside(tmp_path, harness.TARGETS / "waits.py", "0.9", options=["--mode", "wall"])
    times: "dict[str, collections.Counter[str]]" = collections.defaultdict(collections.Counter)
    for stack in harness.stacks(recorded.profile):
        for frame in stack.in_file("waits.py"):
            times[frame.function.name][stack.activity] += stack.weight_ns
    for name, activity in (("sleeping", "sleep"), ("locked", "lock"), ("reading", "io"), ("selecting", "io")):
        life, most = next((of["life"], of["with_start_and_end"]) for thread, of in recorded.truth.items()
                          if thread.startswith(name))
        # THEN most of each one's time is that wait, from when whoever looks first had a CPU for it, and not more than it
        # lived, but for what passed before a look that came late: that goes to what it finds
        # (Threads have the names that the program gives them, although they are gone within a second.)
        seen = next(thread.end_ns - thread.start_ns for thread in recorded.profile.threads
                    if thread.name.startswith(name))
        assert 0.5 * min(life, seen) <= times[name][activity] <= most * 1.02 + 50e6, times[name]


def test_threads_have_the_names_that_the_program_gives_them(tmp_path: pathlib.Path) -> None:
    # GIVEN threads with names, one of them longer than the kernel's may be
    program = tmp_path / "named.py"
    program.write_text("""
import threading
ends = threading.Event()
for name in ("short", "a name of more than sixteen bytes"):
    threading.Thread(target=ends.wait, name=name).start()
print("begun", flush=True)
input()
ends.set()
""")
    with harness.Running([sys.executable, program]) as running:
        running.line()
        # WHEN the process is recorded
        profile = plimsoll.attach(running.process.pid, mode="wall", duration=0.3).wait()
    # THEN they are those of Python's module threading
    assert {thread.name for thread in profile.threads} == {"MainThread", "short", "a name of more than sixteen bytes"}


@pytest.mark.any_version
def test_threads_do_not_end_for_want_of_files(tmp_path: pathlib.Path, program: Callable[..., pathlib.Path]) -> None:
    # GIVEN more threads than there may be files open, all of which live for as long as any of them works
    threads, files, seconds = 30, 16, 0.12
    code = program("import threading, time\n"
                   f"all_are_there, all_are_done = threading.Barrier({threads}), threading.Barrier({threads})\n"
                   "def work():\n"
                   "    all_are_there.wait()\n"
                   f"    end = time.thread_time() + {seconds}\n"
                   "    while time.thread_time() < end: sum(range(1000))\n"
                   "    all_are_done.wait()\n"
                   f"workers = [threading.Thread(target=work) for _ in range({threads})]\n"
                   "for worker in workers: worker.start()\n"
                   "for worker in workers: worker.join()\n")
    with waiting(code) as running:
        # (which are opened anew at each look: as many looks as with files kept open take longer)
        attached = Attached(running.process.pid, tmp_path / "attached.plim", ["--max-overhead", "100"],
                            before=["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"])
        running.say("go")
        running.finish().expect(0)
        profile = attached.profile()
    # THEN each is one thread, and has been seen at its work to its end
    assert len(profile.threads) == threads + 1
    assert "too many open files" not in harness.drops(profile)
    seen = sum(stack.weight_ns for stack in harness.stacks(profile) if stack.frames[-1].function.name == "work")
    assert seen > 0.6 * threads * seconds * 1e9


@pytest.mark.parametrize("options", [[], ["-r", "200"]], ids=" ".join)
def test_threads_that_live_for_moments_have_all_their_time(tmp_path: pathlib.Path, options: "list[str]") -> None:
    # GIVEN threads that live for 8 ms each, at the place in memory of the one before
    recorded = record_from_outside(tmp_path, harness.TARGETS / "brief_threads.py", "0.008", "150", options=options)
    # THEN their time is in the profile, although nobody sees them begin and end (a tenth to a half of it was), and no
    # more than there is, with what the program uses before and after them
    seen = sum(recorded.profile.samples.weight_ns) / 1e9
    assert recorded.profile.process_cpu < 1.03 * recorded.truth["whole"]
    assert 0.6 * recorded.truth["cpu"] < seen < 1.03 * recorded.profile.process_cpu
    # AND it is divided as theirs, as far as whoever looks has a CPU for it
    times = harness.total_seconds(recorded.profile)
    assert times["first"] / (times["first"] + times["second"]) == pytest.approx(0.5, abs=0.25)


@pytest.mark.most_versions
def test_threads_that_begin_late_are_not_lost(tmp_path: pathlib.Path) -> None:
    # GIVEN threads that live for moments, at the place in memory of the one before, and wait for longer before they
    # begin, as on a busy machine: up to 3.11 such a one's state says for all that time that it is of who made it
    threads, library = 40, tmp_path / "late.so"
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler `cc` here")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, harness.TARGETS / "late_threads.c", "-ldl"],
                   check=True)
    recorded = record_from_outside(tmp_path, harness.TARGETS / "brief_threads.py", "0.008", str(threads),
                                   env={"LD_PRELOAD": str(library)})
    # THEN they are there, with their time (three quarters of both were missing), but for those that came and went while
    # whoever looks waited for a CPU (a quarter, on a machine that takes one away for a tenth of a second at a time)
    profile = recorded.profile
    assert len(profile.threads) > 0.5 * threads
    assert 0.5 * recorded.truth["cpu"] < sum(profile.samples.weight_ns) / 1e9 < 1.03 * profile.process_cpu


@pytest.mark.any_version
def test_time_of_threads_that_are_not_met_is_told_of(tmp_path: pathlib.Path, program: Callable[..., pathlib.Path]) -> None:
    # GIVEN a program that computes for a tenth of its time, which few looks meet
    code = program("import time\n"
                   "for _ in range(25):\n"
                   "    end = time.process_time() + 0.01\n"
                   "    while time.process_time() < end: pass\n"
                   "    time.sleep(0.09)\n")
    profile = record_from_outside(tmp_path, code, options=["-r", "1", "-d", "2"]).profile
    # THEN what it has used is in samples, or it is told of as missing (of threads that Python does not know, it was said)
    told = profile.sampled_cpu + sum(drop.cpu_ns for drop in profile.drops) / 1e9
    assert profile.process_cpu > 0.1
    assert 0.9 * profile.process_cpu < told < 1.03 * profile.process_cpu + 0.02


@pytest.mark.any_version
@pytest.mark.skipif(platform.machine() != "x86_64", reason="threads can be stopped on x86-64 only")
def test_threads_that_wait_for_cpus_have_their_time_when_they_are_stopped(
        tmp_path: pathlib.Path, program: Callable[..., pathlib.Path]) -> None:
    # GIVEN threads that compute with and without the lock, and hardly ever have a CPU when they are looked at
    code = program("import hashlib, threading, time\n"
                   "text, end = bytes(10**7), time.monotonic() + 2\n"
                   "def with_lock():\n"
                   "    while time.monotonic() < end: sum(range(1000))\n"
                   "def without_lock():\n"
                   "    while time.monotonic() < end: hashlib.sha256(text)\n"
                   "threads = [threading.Thread(target=function) for function in (with_lock, without_lock)]\n"
                   "for thread in threads: thread.start()\n"
                   "for thread in threads: thread.join()\n")
    with busy_machine():
        profile = record_from_outside(tmp_path, code, options=["--native", "-r", "10"]).profile
    # THEN all time that they used is theirs (of one of them all of it was missing)
    assert 0.9 * profile.process_cpu < profile.sampled_cpu < 1.03 * profile.process_cpu


@pytest.mark.any_version
def test_nobody_has_more_time_than_passes_where_others_want_the_cpus(tmp_path: pathlib.Path) -> None:
    # GIVEN a thread that waits again and again for another one, on a machine where all wait for CPUs, and so do we
    with busy_machine():
        recorded = record_from_outside(tmp_path, harness.TARGETS / "brief_threads.py", "0.008", "60",
                                       options=["--mode", "wall", "-r", "200"])
    profile = recorded.profile
    main = next(index for index, thread in enumerate(profile.threads) if thread.is_main)
    life = profile.threads[main].end_ns - profile.threads[main].start_ns
    # THEN its waits and its work are no more than its life (a tenth to a third more it was), and most of it: all but what
    # it waited for, unseen, before a look that came late and did not find it waiting any more
    told = sum(weight for thread, weight in zip(profile.samples.thread, profile.samples.weight_ns) if thread == main)
    assert 0.6 * life < told < 1.01 * life + 20e6


def test_a_thread_that_is_being_made_is_not_taken_for_its_maker(tmp_path: pathlib.Path) -> None:
    # GIVEN a thread that makes others all the time (whose states are said to be of their maker for a moment)
    program = tmp_path / "makes.py"
    program.write_text("""
import os, threading, time
def napping():
    time.sleep(0.002)
for _ in range(300):
    thread = threading.Thread(target=napping)
    thread.start()
    thread.join()
""")
    # WHEN it is recorded with its waits
    profile = record_from_outside(tmp_path, program, options=["--mode", "wall", "-r", "4000"]).profile
    # THEN nothing that another thread did is the maker's
    makers = {number for number, thread in enumerate(profile.threads) if thread.os_tid == thread.pid}
    names = [(stack.thread, [frame.function.name for frame in stack.frames]) for stack in harness.stacks(profile)]
    assert any("napping" in frames for _, frames in names)
    assert not any("napping" in frames for thread, frames in names if thread in makers)


# ---- the ends of recordings ----


def test_what_is_recorded_is_a_profile_for_every_command(tmp_path: pathlib.Path) -> None:
    recorded = record_from_outside(tmp_path, harness.TARGETS / "shares.py", "0.2")
    assert recorded.profile.complete
    path = tmp_path / "attached.plim"
    for words in (["show", path], ["show", path, "lines"], ["info", path], ["diff", path, path],
                  ["convert", path, "-o", tmp_path / "out.speedscope.json"]):
        harness.plimsoll_command(*words).expect(0)


def test_ends_well_when_the_process_is_killed(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "1000") as running:
        attached = Attached(running.process.pid, tmp_path / "killed.plim", [])
        running.say("go")
        # WHEN the process dies THEN the profile is complete
        running.process.kill()
        running.process.wait()
        assert attached.profile(AT_ITS_END).complete


def test_samples_of_a_killed_process_are_no_more_than_it_used(tmp_path: pathlib.Path) -> None:
    for attempt in range(3):
        with waiting(harness.TARGETS / "shares.py", "1000") as running:
            path = tmp_path / f"killed{attempt}.plim"
            attached = Attached(running.process.pid, path, [])
            running.say("go")
            # WHEN a process that computes dies a while after its clock was read last
            time.sleep(0.33 + 0.02 * attempt)
            running.process.kill()
            running.process.wait()
            profile = attached.profile(AT_ITS_END)
        # THEN what it used is not less than what the samples stand for
        assert profile.sampled_cpu <= profile.process_cpu
        covered = json.loads(harness.plimsoll_command("info", path, "--json").expect().out)["covered_percent"]
        assert 0 < covered <= 100


def test_ends_well_when_the_process_becomes_another_program(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "becomes.py"
    program.write_text("import os, sys\nos.execvp('cat', ['cat'])\n")
    with waiting(program) as running:
        attached = Attached(running.process.pid, tmp_path / "exec.plim", [])
        # WHEN it calls exec THEN the recording is over, although the process is not
        running.say("go")
        assert attached.profile(AT_ITS_END).complete
        assert running.process.poll() is None


def test_ctrl_c_ends_the_recording_and_not_the_process(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "0.1") as running:
        attached = Attached(running.process.pid, tmp_path / "interrupted.plim", [])
        attached.interrupt()
        assert attached.profile().complete
        # THEN the process goes on
        running.say("go")
        running.finish().expect(0)


def test_ends_after_its_time(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        assert Attached(running.process.pid, tmp_path / "short.plim", ["-d", "50ms"]).profile().complete


@pytest.mark.any_version
@pytest.mark.parametrize("words, complaint", [
    (["1", "-r", "0"], "a rate of 0 Hz is not possible"),
    (["1", "--mode", "fast"], "no mode 'fast': choose cpu, wall or gil"),
    (["1", "-d", "-1"], "--duration"),
    (["-r", "100"], "PID is required"),
])
def test_says_what_is_wrong_with_its_options(words: "list[str]", complaint: str) -> None:
    assert complaint in harness.plimsoll_command("attach", *words).expect(2).err


@pytest.mark.any_version
@pytest.mark.skipif(not harness.FREE_THREADED, reason="a Python with a lock")
def test_says_that_where_there_is_no_lock_nobody_has_it(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "0.1") as running:
        words = ["attach", str(running.process.pid), "--mode", "gil", "-o", tmp_path / "none.plim"]
        done = harness.plimsoll_command(*words).expect(1)
    assert "choose cpu or wall" in done.err
    assert not (tmp_path / "none.plim").exists()


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="a Python that can be recorded from other CPUs")
def test_says_which_pythons_it_cannot_record_from_other_cpus(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "0.1") as running:
        words = ["attach", str(running.process.pid), "--apart", "-o", tmp_path / "none.plim"]
        done = harness.plimsoll_command(*words).expect(1)
    assert "leave --apart out" in done.err
    assert not (tmp_path / "none.plim").exists()


def test_a_late_ctrl_c_does_not_take_the_report_away(tmp_path: pathlib.Path) -> None:
    # GIVEN a recording that has ended, and cannot report before somebody reads
    path = tmp_path / "attached.plim"
    with waiting(harness.TARGETS / "shares.py", "0.1") as running:
        attached = Attached(running.process.pid, path, [])
        attached.hold_report()
        running.say("go")
        running.finish().expect(0)
        attached.wait_until_written()
        # WHEN somebody presses Ctrl-C at that moment
        attached.interrupt()
        # THEN it ends as it would have
        assert attached.profile().complete


# ---- from Python ----


def test_python_records_another_process(tmp_path: pathlib.Path) -> None:
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        # GIVEN a recording without a file
        with plimsoll.attach(running.process.pid) as recording:
            assert recording.is_active and recording.pid == running.process.pid
            # WHEN the program does its work and ends
            running.say("go")
            truth = json.loads(running.finish().expect(0).out)
        # THEN the profile is there, and is the same when asked for again
        assert not recording.is_active
        assert recording.profile is recording.stop()
        assert set(harness.total_seconds(recording.profile)) >= set(truth)


@pytest.mark.any_version
def test_python_records_for_a_while_into_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "while.plim"
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        profile = plimsoll.attach(running.process.pid, path, rate_hz=100, mode="wall", duration=0.05).wait(60)
    assert profile.complete and path.exists()


@pytest.mark.any_version
def test_python_says_why_it_cannot(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProcessLookupError, match="there is no process 2147483647"):
        plimsoll.attach(2147483647)
    with pytest.raises(ValueError, match="no mode 'fast'"):
        plimsoll.attach(1, mode="fast")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other, pytest.raises(plimsoll.UnsupportedError):
        plimsoll.attach(other.pid)


@pytest.mark.any_version
def test_a_recording_that_nobody_wants_leaves_nothing_behind(tmp_path: pathlib.Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        recording = plimsoll.attach(running.process.pid)
        assert len(list(tmp_path.iterdir())) == 1
        del recording
        assert not list(tmp_path.iterdir())


@pytest.mark.any_version
def test_a_forked_child_has_no_part_in_the_recording(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that attaches to another, and has a child that ends in the meantime
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        told = harness.python("-c", f"""
import os, sys, plimsoll
recording = plimsoll.attach({running.process.pid}, mode="wall", rate_hz=100)
child = os.fork()
if child == 0: sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(recording.is_active, recording.stop().complete)
""").expect(0)
    # THEN the parent has its profile
    assert told.out == "True True\n"


@pytest.mark.any_version
def test_a_recording_into_a_file_goes_on_whether_or_not_anybody_keeps_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that attaches to another, keeps nothing, and ends after a while
    path = tmp_path / "kept.plim"
    with waiting(harness.TARGETS / "shares.py", "1") as running:
        harness.python("-c", f"""
import plimsoll
plimsoll.attach({running.process.pid}, {str(path)!r}, mode="wall", rate_hz=100)
while plimsoll.Profile.open({str(path)!r}).samples.time_ns[-1:].tolist() < [50_000_000]: pass
""").expect(0)
        # THEN the profile is whole when it has ended
        assert plimsoll.Profile.open(path).complete
