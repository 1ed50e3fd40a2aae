"""Forks, execs, children of all kinds, and sudden ends."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import sys
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]

BURN = harness.BURN


def seconds_in(profile: plimsoll.Profile, function: str) -> float:
    return harness.total_seconds(profile).get(function, 0.0)


FORK = BURN + """
def in_child(): burn(0.3)
def in_parent(): burn(0.2)
child = os.fork()
if child == 0:
    in_child()
    sys.exit(0)
in_parent()
os.waitpid(child, 0)
"""


def test_a_forked_child_is_left_alone_by_default(tmp_path: pathlib.Path, program: Write) -> None:
    recorded = harness.record(tmp_path, program(FORK))
    assert seconds_in(recorded.profile, "in_parent") == pytest.approx(0.2, rel=0.1)
    assert seconds_in(recorded.profile, "in_child") == 0
    assert len(harness.profiles_in(tmp_path)) == 1
    # AND what it used is told, and how to have it recorded
    told = next(line for line in recorded.finished.notices if "child processes" in line)
    assert re.search(r"[23]\d\d ms of CPU time", told) and "--children" in told


def test_a_forked_child_goes_on_into_its_own_file(tmp_path: pathlib.Path, program: Write) -> None:
    # WHEN children are followed
    recorded = harness.record(tmp_path, program(FORK), options=["--children"])
    # THEN each process has its file, with its own work and no other's, and the parent's report names the child's
    child = next(profile for profile in harness.profiles_in(tmp_path) if seconds_in(profile, "in_child") > 0)
    assert seconds_in(child, "in_child") == pytest.approx(0.3, rel=0.1)
    assert seconds_in(child, "in_parent") == 0
    assert seconds_in(recorded.profile, "in_parent") == pytest.approx(0.2, rel=0.1)
    assert seconds_in(recorded.profile, "in_child") == 0
    assert child.complete and recorded.profile.complete
    assert any("1 child process has a profile of its own" in line for line in recorded.finished.notices)
    # AND together they are one profile of two processes
    words = ["show", tmp_path / "recorded.plim", "flat", "--children", "--json"]
    shown = json.loads(harness.plimsoll_command(*words).expect(0).out)
    total = {row["function"]: row["total_ns"] / 1e9 for row in shown["flat"]}
    assert total["in_child"] == pytest.approx(0.3, rel=0.1)
    assert total["in_parent"] == pytest.approx(0.2, rel=0.1)
    both = recorded.profile.joined(child)
    assert seconds_in(both, "in_child") == seconds_in(child, "in_child")
    assert both.sampled == pytest.approx(recorded.profile.sampled + child.sampled)
    assert seconds_in(recorded.profile, "in_child") == 0, "joining makes a copy"
    # AND not what is in it already
    with pytest.raises(plimsoll.ProfileError, match="in there already"):
        both.joined(child)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_are_recorded(tmp_path: pathlib.Path, program: Write, method: str) -> None:
    # GIVEN a pool of two workers, started in each of the ways
    script = program(BURN + f"""
import multiprocessing
def task(n):
    burn(0.15)
    return n * n
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with context.Pool(2) as pool:
        print(pool.map(task, range(4)))
        pool.close()
        pool.join()
""")
    # WHEN it runs with --children THEN the work of all tasks is in the children's profiles
    recorded = harness.record(tmp_path, script, options=["--children"])
    assert "[0, 1, 4, 9]" in recorded.finished.out
    children = harness.profiles_in(tmp_path)
    assert sum(seconds_in(profile, "task") for profile in children) == pytest.approx(0.6, rel=0.1)


def test_a_python_subprocess_is_recorded(tmp_path: pathlib.Path, program: Write) -> None:
    child = program(BURN + "def elsewhere(): burn(0.2)\nelsewhere()\n", "child.py")
    script = program(BURN + f"import subprocess\nsubprocess.run([sys.executable, {str(child)!r}], check=True)\n")
    harness.record(tmp_path, script, options=["--children"])
    assert sum(seconds_in(profile, "elsewhere") for profile in harness.profiles_in(tmp_path)) == pytest.approx(0.2, rel=0.1)


def test_exec_keeps_what_was_recorded(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that looks for another one along PATH, where it is not at first, and becomes it
    script = program(BURN + """
def before(): burn(0.3)
before()
os.execvpe("true", ["true"], {**os.environ, "PATH": "/nowhere:/no/such:" + os.environ["PATH"]})
""")
    # WHEN it is recorded THEN `true` lives to its end, whatever tick was under way, and the profile is complete
    recorded = harness.record(tmp_path, script)
    assert seconds_in(recorded.profile, "before") == pytest.approx(0.3, rel=0.1)
    assert recorded.profile.complete
    # AND the report says that there was more
    assert any("what the program became by exec" in line for line in recorded.finished.notices)


def test_all_that_a_child_becomes_by_exec_is_kept(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a child that becomes another program three times, and an older file with its number in the name
    script = program(BURN + f"""
import pathlib
def work(n): burn(0.1)
def went(n): os.execv(sys.executable, [sys.executable, __file__, str(n)])
if len(sys.argv) < 2:
    child = os.fork()
    if child == 0:
        old = pathlib.Path({str(tmp_path)!r}, f"recorded.{{os.getpid()}}-2.plim")
        old.write_text("of an earlier process")
        os.utime(old, (1e9, 1e9))
        went(1)
    os.waitpid(child, 0)
else:
    work(int(sys.argv[1]))
    if int(sys.argv[1]) < 3: went(int(sys.argv[1]) + 1)
""")
    # WHEN it is recorded
    recorded = harness.record(tmp_path, script, options=["--children"])
    # THEN each of them has its file, and together they have the work of all
    assert any("1 child process has a profile of its own" in line for line in recorded.finished.notices)
    words = ["show", tmp_path / "recorded.plim", "flat", "--children", "--json"]
    shown = harness.plimsoll_command(*words).expect(0)
    total = {row["function"]: row["total_ns"] / 1e9 for row in json.loads(shown.out)["flat"]}
    assert total["work"] == pytest.approx(0.3, rel=0.1)
    assert "left out" not in shown.err


def test_other_threads_go_on_while_a_fork_is_prepared(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program whose own hook, after ours, lets another thread run before the fork
    script = program(f"""
import gc, json, os, threading, plimsoll
asked, done = threading.Event(), threading.Event()
def before():
    asked.set()
    waited.append(done.wait(60))
def collect():
    asked.wait()
    gc.collect()
    threading.Thread(target=plimsoll.stats).start()
    done.set()
waited = []
os.register_at_fork(before=before)
plimsoll.start({str(tmp_path / "own.plim")!r}, mode="wall")
threading.Thread(target=collect).start()
# WHEN it forks
child = os.fork()
if child == 0: os._exit(0)
os.waitpid(child, 0)
plimsoll.stop()
print(json.dumps(waited))
""")
    # THEN what that thread does, a collection for one, which becomes a marker, does not wait for the fork
    assert harness.python(script).expect().truth == [True]


def test_a_failed_exec_does_not_end_the_recording(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(BURN + """
try: os.execv("/no/such/program", ["x"])
except FileNotFoundError: pass
def after(): burn(2.0)
after()
""")
    recorded = harness.record(tmp_path, script)
    assert recorded.profile.complete
    assert seconds_in(recorded.profile, "after") > 0.5  # the caller was silenced for a second at most
    assert "by exec" not in recorded.finished.err


@pytest.mark.parametrize("fail", ['os.execv("/no/such/program", ["x"])', 'os.execvp("no-such-program", ["x"])'])
def test_what_comes_right_after_a_failed_exec_is_recorded(tmp_path: pathlib.Path, program: Write, fail: str) -> None:
    # GIVEN a program that ends less than a second after an exec that failed
    script = program(BURN + f"""
def after(): burn(0.4)
try: {fail}
except FileNotFoundError: pass
after()
""")
    # THEN what it did meanwhile is in its profile, in many samples
    recorded = harness.record(tmp_path, script)
    assert recorded.profile.complete
    assert seconds_in(recorded.profile, "after") == pytest.approx(0.4, rel=0.2)
    assert sum(1 for _ in harness.stacks(recorded.profile)) > 100


UNPREPARED = BURN + """
import ctypes
import plimsoll
def before(): burn(0.2)
def after(): burn(1.5)
before()
child = ctypes.PyDLL(None).fork()
if child == 0:
    {in_child}
os.waitpid(child, 0)
after()
"""


@pytest.mark.parametrize(("options", "in_child"), [
    ([], "os._exit(0)"),
    ([], "ctypes.pythonapi.PyOS_AfterFork_Child(); sys.exit(0)"),
    pytest.param([], "import threading; t = threading.Thread(target=print); t.start(); t.join(); sys.exit(0)",
                 marks=pytest.mark.any_version),
    pytest.param([], "plimsoll.Profiler('child.plim').start().stop(); os._exit(0)", marks=pytest.mark.any_version),
    pytest.param(["--mode=wall"], "os._exit(0)", marks=pytest.mark.any_version),
    (["--alloc=64K"], "os._exit(0)"),
    (["--alloc=exact"], "os._exit(0)"),
])
def test_a_fork_of_c_code_leaves_the_parents_recording_alone(tmp_path: pathlib.Path, program: Write,
                                                             options: "list[str]", in_child: str) -> None:
    # GIVEN a child of which Python was not told before it was made
    script = program(UNPREPARED.format(in_child=in_child))
    # WHEN that ends in one way or another
    recorded = harness.record(tmp_path, script, options=options, cwd=tmp_path)
    # THEN the parent's recording goes on, and is as if there had been none
    assert "Traceback" not in recorded.finished.err and "Exception" not in recorded.finished.err
    assert recorded.profile.complete
    assert seconds_in(recorded.profile, "after") >= 1.2


@pytest.mark.most_versions
@pytest.mark.parametrize("options", [[], ["--alloc=64K", "--native-memory"], ["--alloc=exact"]])
def test_what_stands_for_the_program_s_functions_passes_for_these(tmp_path: pathlib.Path, program: Write,
                                                                  options: "list[str]") -> None:
    # GIVEN a program that asks what its functions are, and whether what it does is audited: without hooks, up to 3.13,
    # nobody looks at an event
    script = program("""
import json, os, posix, sys
try:
    sys.audit(5)
    is_audited = False
except TypeError:
    is_audited = sys.version_info < (3, 14)
print(json.dumps([os.execve in os.supports_fd, os.execv == posix.execv, repr(os.execv), is_audited]))
""")
    # THEN all is as without a recording
    recorded = harness.record(tmp_path, script, options=options)
    assert recorded.truth == [True, True, "<built-in function execv>", False]


@pytest.mark.most_versions
@pytest.mark.parametrize("options", [[], ["--alloc=exact"]])
def test_what_stands_for_the_program_s_functions_has_their_attributes_and_is_no_method(
        tmp_path: pathlib.Path, program: Write, options: "list[str]") -> None:
    # GIVEN a program that says all that there is to say of functions that a recording replaces, and ends by one of them
    # that it keeps in a class
    script = program("""
import _imp, _signal, _thread, copy, inspect, json, os, pickle, posix, signal, weakref
class Daemon:
    leave = os._exit
    replace = os.execv
def said(function):
    for ask in (lambda: [function.__name__, function.__module__, function.__qualname__, function.__doc__],
                lambda: str(inspect.signature(function)), lambda: inspect.isbuiltin(function),
                lambda: pickle.loads(pickle.dumps(function)) is function, lambda: copy.deepcopy(function) is function,
                lambda: weakref.ref(function)() is function):
        try:
            yield ask()
        except (AttributeError, TypeError, ValueError, pickle.PicklingError) as error:
            yield type(error).__name__
functions = (os._exit, posix._exit, os.execv, posix.execv, os.execve, _thread.start_new_thread, _signal.signal,
             signal.pause, signal.sigwaitinfo, _imp.create_dynamic)
print(json.dumps([list(said(one)) for one in functions]), Daemon().replace is os.execv, flush=True)
Daemon().leave(7)
""")
    plain = harness.python(script).expect(7)
    # THEN it is as without a recording, to the exit code
    recorded = harness.plimsoll_run(script, options=[*options, "-o", tmp_path / "out.plim"])
    assert recorded.expect(7).out == plain.out and recorded.own_err == plain.err


@pytest.mark.any_version
def test_exec_in_a_storm_of_ticks_never_dies_of_the_signal(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that execs itself many times while it is ticked 20,000 times a second
    script = program(BURN + """
count = int(sys.argv[1])
burn(0.02)
if count: os.execv(sys.executable, [sys.executable, sys.argv[0], str(count - 1)])
print("done")
""")
    finished = harness.plimsoll_run(script, "20", options=["--children", "-r", "20000", "-o", tmp_path / "out.plim"])
    assert finished.expect().out == "done\n"


def test_exec_in_c_code_is_safe_with_a_timer(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that becomes another one many times, without a word to Python
    script = program(BURN + """
import ctypes
count = int(sys.argv[1])
burn(0.02)
words = [os.fsencode(word) for word in (sys.executable, sys.argv[0], str(count - 1))]
if count: ctypes.CDLL(None).execv(words[0], (ctypes.c_char_p * 4)(*words, None))
print("done")
""")
    options = ["--children", "--engine", "timer", "-o", tmp_path / "out.plim"]
    assert harness.plimsoll_run(script, "8", options=options).expect().out == "done\n"


def test_what_may_have_been_a_tick_at_an_exec_is_told(tmp_path: pathlib.Path, program: Write) -> None:
    script = program("import os, signal; os.kill(os.getpid(), signal.SIGTRAP)")
    finished = harness.plimsoll_run(script, options=["-o", tmp_path / "out.plim"])
    assert finished.code in (-signal.SIGTRAP, 128 + signal.SIGTRAP)
    assert "--engine timer" in finished.err


def test_a_child_that_soon_is_another_program_leaves_no_profile_of_its_own(tmp_path: pathlib.Path,
                                                                             program: Write) -> None:
    # GIVEN children in which subprocess calls a function before they become other programs, one of them a Python
    script = program(BURN + """
import subprocess
def prepare(): os.umask(0o77)
def fail(): raise ValueError
for command in (["/bin/true"], [sys.executable, "-c", "sum(range(3000000))"]):
    subprocess.run(command, preexec_fn=prepare, check=True)
for command, function in ((["/nonexistent"], prepare), (["/bin/true"], fail)):
    try: subprocess.run(command, preexec_fn=function)
    except (OSError, subprocess.SubprocessError): pass
burn(0.1)
""")
    # WHEN they are recorded, too
    harness.plimsoll_run(script, options=["--children", "-o", tmp_path / "out.plim"]).expect()
    # THEN the Python alone has a profile, and all that there is is complete
    files = [plimsoll.Profile.open(path) for path in tmp_path.glob("*.plim")]
    assert sorted("-c" in profile.meta["argv"] for profile in files) == [False, True]
    assert all(profile.complete for profile in files)


def test_os_exit_completes_the_profile(tmp_path: pathlib.Path, program: Write) -> None:
    recorded = harness.record(tmp_path, program(BURN + "def work(): burn(0.2)\nwork()\nos._exit(4)\n"), code=4)
    assert recorded.profile.complete
    assert seconds_in(recorded.profile, "work") == pytest.approx(0.2, rel=0.1)


@pytest.mark.any_version
def test_what_kill_9_leaves_is_readable(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that works three CPU seconds, says so, and goes on
    script = program(BURN + "def work():\n burn(3.0)\n print(os.getpid(), flush=True)\n burn(60)\nwork()\n")
    out = tmp_path / "out.plim"
    with harness.Running([harness.binary(), "run", "--python", sys.executable, "-o", str(out), str(script)]) as running:
        pid = int(running.line())
        # WHEN it is killed THEN `plimsoll run` dies of the same signal after its report
        os.kill(pid, signal.SIGKILL)
        finished = running.finish()
    assert finished.code == harness.death_by(signal.SIGKILL)
    assert any("cut short" in line for line in finished.notices)
    # and the file holds everything but the last second or so
    profile = plimsoll.Profile.open(out)
    assert not profile.complete
    assert seconds_in(profile, "work") > 1.5


@pytest.mark.any_version
def test_what_kill_9_leaves_has_the_names_of_threads(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN threads with names, that work for two seconds of the day and more
    script = program(BURN + "import threading\ndef work():\n burn(60)\n"
                     "for i in range(5): threading.Thread(target=work, name=f'worker {i}', daemon=True).start()\n"
                     "time.sleep(2.5)\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    out = tmp_path / "out.plim"
    with harness.Running([harness.binary(), "run", "--python", sys.executable, "-o", str(out), str(script)]) as running:
        pid = int(running.line())
        # WHEN the program is killed
        os.kill(pid, signal.SIGKILL)
        running.finish()
    # THEN they are called so in what it leaves, and not after the process, as the kernel has it
    names = {thread.name for thread in plimsoll.Profile.open(out).threads}
    assert names == {"MainThread", *(f"worker {i}" for i in range(5))}


@pytest.mark.any_version
def test_the_file_is_readable_at_any_moment(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that writes a byte into the profile's life every now and then
    script = program(BURN + "def work():\n for i in range(5):\n  burn(0.5)\n  print(i, flush=True)\nwork()\n")
    out = tmp_path / "out.plim"
    counts = []
    with harness.Running([harness.binary(), "run", "--python", sys.executable, "-o", str(out), str(script)]) as running:
        for _ in range(5):
            running.line()
            # WHEN it is read while it grows THEN it always is a profile, with ever more in it
            profile = plimsoll.Profile.open(out)
            assert not profile.complete or len(counts) == 4
            counts.append(len(profile.samples))
        running.finish()
    assert counts == sorted(counts) and counts[-1] > counts[0]
    assert plimsoll.Profile.open(out).complete


@pytest.mark.any_version
def test_a_program_that_closes_all_descriptors_loses_neither_profile_nor_files(tmp_path: pathlib.Path,
                                                                                program: Write) -> None:
    # GIVEN a daemon-like program: it closes everything, then opens hundreds of files of its own
    mine = tmp_path / "mine"
    mine.mkdir()
    script = program(BURN + f"""
os.closerange(3, 4096)
files = [open({str(mine)!r} + "/%d" % i, "w") for i in range(700)]
def work(): burn(1.5)
work()
for file in files: file.write("mine"); file.close()
""")
    # WHEN it is recorded THEN the profile goes on in its own file, and the program's files hold the program's bytes
    recorded = harness.record(tmp_path, script)
    assert all(path.read_text() == "mine" for path in mine.iterdir())
    assert recorded.profile.complete
    assert sum(1 for _ in mine.iterdir()) == 700


@pytest.mark.any_version
def test_a_program_that_blocks_all_signals_survives_and_is_told_of(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(BURN + """
import signal, threading
def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    burn(1.5)
thread = threading.Thread(target=deaf); thread.start(); thread.join()
print("alive")
""")
    recorded = harness.record(tmp_path, script)
    assert recorded.finished.out == "alive\n"
    lost = {drop.reason: drop.cpu_ns / 1e9 for drop in recorded.profile.drops}
    assert lost.get("thread blocks the signal", 0) > 0.5


def test_faulthandler_and_profiler_get_along(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program with faulthandler that crashes after a while
    script = program(BURN + "import ctypes, faulthandler\nfaulthandler.enable()\nburn(1.3)\nctypes.string_at(8)\n")
    # WHEN it crashes THEN it does so in its own way
    out = tmp_path / "out.plim"
    finished = harness.plimsoll_run(script, options=["-o", out])
    assert finished.code == harness.death_by(signal.SIGSEGV)
    assert finished.err.count("Fatal Python error: Segmentation fault") == 1
    assert len(plimsoll.Profile.open(out).samples) > 100


@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_a_reader_survives_handlers_that_come_before_its_own(tmp_path: pathlib.Path, program: Write,
                                                             mode: str) -> None:
    # GIVEN a program that sets faulthandler up again and again, as test runners do, and whose stacks come and go, so that
    # much of what is read of them is gone
    script = program("""
import faulthandler
def down(n):
    return 0 if n == 0 else down(n - 1)
for _ in range(20):
    faulthandler.disable()
    faulthandler.enable()
    for _ in range(400):
        down(400)
print("alive")
""")
    # WHEN a thread of ours reads them THEN its faults stay its own
    recorded = harness.record(tmp_path, script, options=["--engine", "reader", "-r", "10000", "--mode", mode])
    assert recorded.finished.out == "alive\n"


def test_a_crash_without_faulthandler_is_a_plain_crash(tmp_path: pathlib.Path, program: Write) -> None:
    finished = harness.plimsoll_run(program("import ctypes\nctypes.string_at(8)\n"), options=["-o", tmp_path / "o.plim"])
    assert finished.code == harness.death_by(signal.SIGSEGV)
    assert finished.own_err == ""


def test_faulthandler_that_was_disabled_leaves_a_plain_crash(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that has switched faulthandler on for a while, in which ours came to stand in front of it
    script = program(BURN + "import ctypes, faulthandler\n"
                     "faulthandler.enable()\nburn(1.3)\nfaulthandler.disable()\nctypes.string_at(8)\n")
    # WHEN it crashes THEN it dies, and faulthandler says nothing
    finished = harness.plimsoll_run(script, options=["-o", tmp_path / "o.plim"])
    assert finished.code == harness.death_by(signal.SIGSEGV)
    assert finished.own_err == ""


def test_a_crash_that_a_program_sends_itself(tmp_path: pathlib.Path, program: Write) -> None:
    script = program("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nprint('not reached')\n")
    finished = harness.plimsoll_run(script, options=["-o", tmp_path / "o.plim"])
    assert finished.code == harness.death_by(signal.SIGSEGV)
    assert finished.out == ""


OS_EXIT_ANYWAY = """
import os, sys, threading
from plimsoll import _recording
if os.fork() == 0:  # a child that did nothing, and whose file is gone
    for name in os.listdir(%(directory)r):
        if name.endswith(".plim") and str(os.getpid()) in name: os.unlink(os.path.join(%(directory)r, name))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]) if hasattr(os, "waitstatus_to_exitcode") else os.wait()[1] >> 8)
sys.stdout.flush()
class Interrupted:
    def stop(self): raise KeyboardInterrupt
    def __getattr__(self, name): return getattr(recording, name)
recording, _recording._active.recording = _recording._active.recording, Interrupted()
try:
    os._exit(5)
finally:
    print("not reached", flush=True)
"""


def test_os_exit_ends_the_process_whatever_happens_to_the_profile(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(OS_EXIT_ANYWAY % {"directory": str(tmp_path)})
    finished = harness.plimsoll_run(script, options=["--children", "-o", tmp_path / "o.plim"])
    assert finished.code == 5 and finished.out == "7\n"


@pytest.mark.parametrize("path", ["api.plim", None])
def test_a_child_ends_the_recording_that_follows_its_parent_s(tmp_path: pathlib.Path, program: Write,
                                                              path: "str | None") -> None:
    # GIVEN a program that records itself, and children, of which one has a child
    script = program(BURN + f"""
import plimsoll
profiler = plimsoll.start({path!r}, after_fork="follow")
def names(profile): return {{function.name.rpartition(".")[2] for function in profile.functions}}
def in_child(): burn(0.1)
def in_grandchild(): burn(0.1)
def in_parent(): burn(0.1)
if os.fork() == 0:
    if os.fork() == 0:
        in_grandchild()
        assert plimsoll.is_active() and profiler.is_active
        assert "in_grandchild" in names(plimsoll.stop()) and not plimsoll.is_active()
        os._exit(0)
    in_child()
    # WHEN it stops what was started THEN it has its own profile, and no other's
    assert profiler.statistics.samples > 0
    found = names(profiler.stop())
    assert "in_child" in found and "in_grandchild" not in found, found
    os._exit(os.wait()[1] != 0)
in_parent()
assert os.wait()[1] == 0
found = names(plimsoll.stop())
assert "in_parent" in found and "in_child" not in found, found
print("fine")
""")
    finished = harness.python(script, cwd=tmp_path)
    assert (finished.code, finished.out) == (0, "fine\n"), finished.err
    assert len(list(tmp_path.glob("*.plim"))) == (3 if path else 0)


def test_what_the_program_puts_in_the_place_of_functions_stays(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that replaces functions, as gevent does, while it is recorded
    script = program("""
import _thread, asyncio, threading, plimsoll
originals = _thread.start_new_thread, asyncio.create_task
with plimsoll.profile(tasks=True):
    def start(*arguments, under=_thread.start_new_thread): return under(*arguments)
    def create(*arguments, under=asyncio.create_task, **options): return under(*arguments, **options)
    _thread.start_new_thread, asyncio.create_task = start, create
    original = threading._start_new_thread if hasattr(threading, "_start_new_thread") else None
# WHEN the recording has ended THEN they are still there, and work, and what was not replaced is what it was
assert _thread.start_new_thread is start and asyncio.create_task is create
done = _thread.allocate_lock()
done.acquire()
start(done.release, ())
done.acquire()
async def main(): return await asyncio.create_task(asyncio.sleep(0, "slept"))
assert asyncio.run(main()) == "slept"
assert asyncio.tasks.create_task is originals[1]
print("fine")
""")
    finished = harness.python(script)
    assert (finished.code, finished.out) == (0, "fine\n"), finished.err


def test_what_is_wrapped_can_be_pickled(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that hands os._exit to a worker, as tests of process pools do
    script = program("import os, pickle\nassert pickle.loads(pickle.dumps(os._exit)) is os._exit\nprint('done')\n")
    assert harness.record(tmp_path, script).finished.out == "done\n"


@pytest.mark.any_version
def test_duration_ends_the_recording_not_the_program(tmp_path: pathlib.Path, program: Write) -> None:
    recorded = harness.record(tmp_path, program(BURN + "def work(): burn(1.5)\nwork()\nprint('to the end')\n"),
                              options=["-d", "0.5"])
    assert recorded.finished.out == "to the end\n"
    assert recorded.profile.complete
    assert 0.4 < recorded.profile.duration < 1.0


@pytest.mark.parametrize("alloc", ["no", "exact", "events"])
def test_a_recording_that_has_ended_by_itself_takes_no_more_memory(tmp_path: pathlib.Path, program: Write,
                                                                   alloc: str) -> None:
    # GIVEN a program that makes and drops functions, and collects garbage
    script = program("""\
import gc, sys, types
import plimsoll
CODE = (lambda: bytearray(300)).__code__
def churn(times):
    for i in range(times):
        types.FunctionType(CODE.replace(co_name=f"f{i}"), globals())()
        if i % int(sys.argv[2]) == 0:
            gc.collect(0)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
while not plimsoll.Profile.open(sys.argv[1]).complete:
    churn(1000)
before = resident()
churn(30_000)
print(resident() - before)
""")
    options = ["-d", "0.3", *([] if alloc == "no" else [f"--alloc={alloc}"])]
    # WHEN it goes on after the end of its recording THEN nothing is kept of that
    # (without a GIL each collection is one of all objects)
    between = "100" if harness.FREE_THREADED else "1"
    recorded = harness.record(tmp_path, script, tmp_path / "recorded.plim", between, options=options)
    assert int(recorded.finished.out) < 4 << 20
