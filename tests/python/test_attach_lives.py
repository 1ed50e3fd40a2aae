"""`attach`, `dump` and `top` at every moment of a process's life, and without leave to look at it."""

from __future__ import annotations

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Sequence

import pytest

import harness
import plimsoll

pytestmark = [pytest.mark.most_versions,
              pytest.mark.skipif(not harness.may_look_at_others(),
                                 reason="kernel.yama.ptrace_scope forbids looking at other processes; root may")]

FINE, FAILED, NO_PERMISSION, NO_SAMPLES, BAD_INPUT = 0, 1, 3, 4, 5
SAYS_WHY = {FAILED: ("is not CPython", "the first thread of process"), NO_SAMPLES: ("no samples",),
            BAD_INPUT: ("has ended", "there is no process", "has become another program")}


def looks(pid: int, directory: pathlib.Path) -> "list[Sequence[harness.Word]]":
    """The ways to look at a process from outside."""
    return [("attach", str(pid), "-d", "200ms", "-o", directory / f"{pid}.plim"),
            ("attach", str(pid), "-d", "200ms", "--mode", "wall", "--children", "-o", directory / f"{pid}.wall.plim"),
            ("dump", str(pid)), ("dump", str(pid), "--locals"), ("top", str(pid), "--once", "-w", "1s")]


def test_ends_well_whatever_the_process_is_at(tmp_path: pathlib.Path) -> None:
    # GIVEN processes that start, import, fork, are finalised, become other programs and die, one after another
    generations = 30
    outcomes: "dict[int, int]" = {}
    with harness.Running([sys.executable, harness.TARGETS / "lives.py", str(generations)]) as running:
        for number in range(generations):
            pid = int(running.line())
            ways = looks(pid, tmp_path)
            # WHEN each is looked at, at another moment of its life
            time.sleep(number % 12 * 0.01)
            for way in [ways[number % len(ways)], ways[(number + 2) % len(ways)]]:
                done = harness.plimsoll_command(*way)
                outcomes[done.code] = outcomes.get(done.code, 0) + 1
                # THEN it ends, with what it has, or says why it has nothing
                assert done.code in (FINE, *SAYS_WHY), (way, done)
                assert done.code == FINE or any(why in done.err for why in SAYS_WHY[done.code]), (way, done)
        # AND the processes have noticed nothing of it
        running.finish().expect(0)
    assert set(outcomes) > {FINE}, outcomes
    # AND each profile that there is can be read
    for path in tmp_path.glob("*.plim"):
        assert plimsoll.Profile.open(path).complete, path


def test_a_process_that_was_just_started_may_be_on_its_way_to_python(tmp_path: pathlib.Path) -> None:
    # GIVEN a process that a shell has begun, and that is no Python yet
    program = tmp_path / "waits.py"
    program.write_text("import sys\nfor line in sys.stdin: pass\n")
    with harness.Running(["sh", "-c", 'read line; exec "$@"', "sh", sys.executable, program]) as started:
        # WHEN it is to be looked at
        with harness.Running([harness.binary(), "dump", str(started.process.pid)]) as looking:
            # (Said when it has seen that: it sleeps, or has ended.)
            status = pathlib.Path(f"/proc/{looking.process.pid}/status")
            while looking.process.poll() is None and "State:\tS" not in status.read_text():
                pass
            started.say("go")
            done = looking.finish()
        # THEN that waits until it is one
        assert "is not CPython" not in done.err and done.code in (FINE, *SAYS_WHY)
        started.finish().expect(0)


def test_a_stopped_process_is_looked_at_and_stays_stopped(tmp_path: pathlib.Path) -> None:
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py"]) as running:
        running.line()
        # GIVEN a process that has been stopped
        os.kill(running.process.pid, signal.SIGSTOP)
        os.waitpid(running.process.pid, os.WUNTRACED)
        for way in looks(running.process.pid, tmp_path):
            # WHEN it is looked at THEN that works
            harness.plimsoll_command(*way).expect(FINE)
        # AND it is stopped still
        running.await_stop()
    profile = plimsoll.Profile.open(tmp_path / f"{running.process.pid}.wall.plim")
    assert sum(profile.samples.weight_ns) >= 50_000_000


def test_a_process_that_ends_before_it_has_done_anything_has_no_samples(tmp_path: pathlib.Path) -> None:
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py"]) as running:
        running.line()
        # GIVEN a stopped process, which uses no CPU time
        os.kill(running.process.pid, signal.SIGSTOP)
        os.waitpid(running.process.pid, os.WUNTRACED)
        path = tmp_path / "attached.plim"
        with harness.Running([harness.binary(), "attach", str(running.process.pid), "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            # WHEN it is killed while it is recorded
            running.process.kill()
            # THEN the exit code says that there is nothing
            assert "there are no samples" in attached.finish().expect(NO_SAMPLES).err
    assert len(plimsoll.Profile.open(path).samples) == 0


def test_of_a_zombie_it_says_that_it_has_ended(tmp_path: pathlib.Path) -> None:
    # GIVEN a process that has ended, whose parent has not asked for it yet
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for way in looks(process.pid, tmp_path):
            done = harness.plimsoll_command(*way).expect(BAD_INPUT)
            assert f"process {process.pid} has ended" in done.err


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give capabilities up")
@pytest.mark.any_version
def test_root_without_the_capability_is_told_which_one_it_is(tmp_path: pathlib.Path) -> None:
    # GIVEN a process of somebody else's, and root in a container that has not got CAP_SYS_PTRACE; its mappings may be
    # read (with CAP_PERFMON), but not which files these are
    nobody = pwd.getpwnam("nobody")
    with subprocess.Popen(["sleep", "60"], cwd="/", user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[]) as process:
        try:
            done = harness.run(["setpriv", "--bounding-set=-sys_ptrace", harness.binary(), "dump", str(process.pid)])
        finally:
            process.kill()
    # THEN it says that, and not that the process is no Python
    assert done.code == NO_PERMISSION, done
    assert "--cap-add SYS_PTRACE" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.any_version
def test_without_leave_it_says_what_gives_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a process of root's, and somebody who is not root
    nobody = pwd.getpwnam("nobody")
    place = pathlib.Path("/var/tmp") / f"plimsoll-nobody-{os.getpid()}"
    place.mkdir()
    try:
        binary = shutil.copy(harness.binary(), place / "plimsoll")
        place.chmod(0o755)
        with harness.Running([sys.executable, harness.TARGETS / "on_command.py"]) as running:
            running.line()
            for way in looks(running.process.pid, tmp_path):
                # WHEN they look at it
                done = harness.run([binary, *way[:2]], cwd="/", user=nobody.pw_uid, group=nobody.pw_gid,
                                   extra_groups=[])
                # THEN they are told what is missing, and what to do
                assert done.code == NO_PERMISSION, done
                assert f"no permission to look into process {running.process.pid}: " in done.err
                assert "put sudo before the command" in done.err or "--cap-add SYS_PTRACE" in done.err
    finally:
        shutil.rmtree(place)


NAMES_FILES = """
import os, sys, time
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
body = "def work(end):\\n    while time.monotonic() < end: pass\\n"
works = []
for name in sys.argv[1:]:
    space = {"time": time}
    exec(compile(body, name, "exec"), space)
    works.append(space["work"])
print("ready", flush=True)
while True:
    for work in works:
        work(time.monotonic() + 0.01)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read what somebody else may not")
@pytest.mark.any_version
def test_what_a_process_names_as_its_source_is_read_only_if_it_may_read_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a process of somebody else's that says its functions are from a file of its own, and from a secret of root's
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        secret, public = place / "secret", place / "public.py"
        for path, mode in ((secret, 0o600), (public, 0o644)):
            path.write_text("root's\n")
            path.chmod(mode)
        with harness.Running([sys.executable, "-c", NAMES_FILES, secret, public]) as running:
            running.line()
            # WHEN root records it
            path = tmp_path / "named.plim"
            harness.plimsoll_command("attach", str(running.process.pid), "-d", "500ms", "-o", path).expect(0)
            shown = harness.plimsoll_command("dump", str(running.process.pid)).expect(0)
    # THEN the secret is in nothing that root gets, though the function is
    profile = plimsoll.Profile.open(path)
    assert {row.function.file for row in profile.flat()} >= {str(secret), str(public)}
    assert profile.sources == {str(public): "root's\n"}
    assert "work" in shown.out


QUEUES = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def ready_ns():
    with open(f"/proc/self/task/{os.getpid()}/schedstat") as file:
        return int(file.read().split()[1])
print("ready", flush=True)
sys.stdin.readline()
before = ready_ns()
parent = os.getpid()
others = []
for _ in range(2):
    others.append(os.fork())
    if others[-1] == 0:
        while os.getppid() == parent: pass
        os._exit(0)
while ready_ns() < before + 300_000_000: sum(range(10_000))
for other in others:
    os.kill(other, 9)
    os.waitpid(other, 0)
print(ready_ns() - before, flush=True)
sys.stdin.readline()
"""


def await_sleeps(pid: int, times: int) -> None:
    """Until a process has gone to sleep so often."""
    def slept() -> int:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "status").read_text().rpartition("\nvoluntary_ctxt_switches:\t")[2].split()[0])
                   for task in tasks)

    begin = slept()
    while slept() < begin + times:
        pass


def test_a_thread_that_is_met_in_waits_only_has_its_time_in_the_queue(tmp_path: pathlib.Path) -> None:
    # GIVEN a process that waits, and is recorded
    path = tmp_path / "queues.plim"
    with harness.Running([sys.executable, "-c", QUEUES]) as running:
        running.line()
        with harness.Running([harness.binary(), "attach", str(running.process.pid), "--mode", "wall", "-r", "200",
                              "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            await_sleeps(attached.process.pid, 10)
            # WHEN nobody looks while it computes, for which it must wait for a CPU again and again
            os.kill(attached.process.pid, signal.SIGSTOP)
            attached.await_stop()
            running.say("go")
            ready_ns = int(running.line())
            running.await_sleep()
            os.kill(attached.process.pid, signal.SIGCONT)
            await_sleeps(attached.process.pid, 10)
            os.kill(attached.process.pid, signal.SIGINT)
            attached.finish().expect(FINE)
    # THEN that it stood in the queue is told all the same
    told_ns = sum(stack.weight_ns for stack in harness.stacks(plimsoll.Profile.open(path)) if stack.activity == "ready")
    assert 0.9 * ready_ns <= told_ns <= 1.5 * ready_ns
