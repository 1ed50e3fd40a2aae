"""Recording on PyPy, with the sampler and the log that are built into it."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from functools import lru_cache
from typing import Any, Callable, Mapping

import pytest

import harness
import plimsoll
from plimsoll.compat import vmprof
from plimsoll.jitlog import Forest

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import sys, threading
def work(n):
    total = 0
    for i in range(n):
        total += len(str(i))
    return total
work(3000000)
print(*sys.argv[1:])
sys.exit(3)
"""


@lru_cache(maxsize=None)
def interpreters() -> "dict[str, str]":
    """The PyPys of this machine, as tools/pythons.py finds them."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "pythons.py", "--json"], stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    return {one["tag"]: one["path"] for one in found if one["tag"].startswith("pypy")}


@pytest.fixture(params=["pypy39", "pypy311"])
def pypy(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> "tuple[str, Mapping[str, str]]":
    """PyPy and an environment in which it finds plimsoll."""
    path = interpreters().get(request.param)
    if path is None:
        pytest.skip(f"{request.param} is not here; tools/pythons.py says where it comes from")
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "plimsoll").symlink_to(pathlib.Path(plimsoll.__file__).parent)
    # By itself PyPy's nursery is as large as half the CPU's cache, which may be more than a program of ours allocates.
    return path, {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1", "PYPY_GC_NURSERY": "1M"}


def record(pypy: "tuple[str, Mapping[str, str]]", path: pathlib.Path, *words: harness.Word,
           options: "list[harness.Word]", code: int = 0, env: "Mapping[str, str]" = {}) -> harness.Finished:  # noqa: B006
    command: "list[harness.Word]" = [harness.binary(), "run", "--python", pypy[0], "-o", path, *options, *words]
    return harness.run(command, env={**pypy[1], **env}).expect(code)


def test_a_program_is_recorded_into_one_file(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that PyPy compiles; WHEN it is recorded with the log of the JIT and the memory in use
    path = tmp_path / "app.plim"
    source = program(PROGRAM)
    done = record(pypy, path, source, "a", "b", options=["--jitlog", "--mem", "-r", "250"], code=3)
    # THEN it runs as by itself, and one file has its samples, what PyPy it was, its memory and its traces
    assert done.out == "a b\n" and done.own_err == ""
    assert sorted(file.name for file in tmp_path.glob("app.plim*")) == ["app.plim"]
    profile = plimsoll.Profile.open(path)
    assert profile.complete and len(profile.samples) > 0
    assert profile.meta["python"].startswith("PyPy ") and profile.meta["implementation"] == "pypy"
    assert profile.meta["argv"].endswith(f"{source} a b") and profile.meta["plimsoll"] == plimsoll.__version__
    assert harness.total_seconds(profile)["work"] > 0
    assert "rss" in profile.counters
    # AND what its collector and its JIT did, when they did it
    spans = [marker for marker in profile.markers if marker.name in ("gc-minor", "jit-tracing")]
    assert {marker.name for marker in spans} == {"gc-minor", "jit-tracing"}
    assert all(0 <= marker.time_ns and marker.time_ns + marker.duration_ns <= profile.duration * 1e9 + 1 for marker in spans)
    log = json.loads(harness.plimsoll_command("jitlog", path, "--json").expect(0).out)
    assert any(trace.get("place", {}).get("function") == "work" for trace in log["traces"])
    # AND the frames that ran as machine code lead to their traces
    forest = Forest.open(path)
    traces = {forest.trace_at(int(frame.trace, 16)) for frame in profile.frames if frame.trace.startswith("0x")}
    assert traces and all(trace is not None and trace.code_start for trace in traces)


LONG_LOOP = """
body = "".join(f"        a = (a * 3 + b + {i}) % 1000003\\n" for i in range(250))
exec(f"def long(n):\\n    a = b = 0\\n    while b < n:\\n        b += 1\\n{body}    return a")
print("ran", long(5000) >= 0)
"""


def test_with_a_log_of_the_jit_a_program_of_one_long_loop_runs_as_without(tmp_path: pathlib.Path, program: Write,
                                                                            pypy: Any) -> None:
    # GIVEN a loop that is too long for PyPy to unroll; WHEN it is the first of a program that is recorded with a log
    done = record(pypy, tmp_path / "app.plim", program(LONG_LOOP), options=["--jitlog"])
    # THEN PyPy does not abort, and the loop is a trace of its own
    assert done.out == "ran True\n"
    loops = {trace.place.function for trace in Forest.open(tmp_path / "app.plim").query("loops") if trace.place}
    assert {"long", "_compile_a_loop"} <= loops


def test_all_time_is_recorded(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that sleeps
    path = tmp_path / "app.plim"
    sleeps = program("import time\ndef wait(): time.sleep(1.2)\nwait()")
    # WHEN all its time is recorded
    record(pypy, path, sleeps, options=["--mode", "wall"])
    # THEN its sleep is (of PyPy's ticks on a busy machine many come as one: a quarter of them at 0.3 s and two suites of
    # tests beside)
    profile = plimsoll.Profile.open(path)
    assert profile.meta["mode"] == "wall" and harness.total_seconds(profile)["wait"] > 0.2


FORKING = """
import gc, os, subprocess, sys
def work():
    gc.collect()
    return sum(len(str(i)) for i in range(4000000))
if len(sys.argv) == 1:
    pid = os.fork()
    if pid == 0: work(); sys.exit(0)
    os.waitpid(pid, 0)
    print(os.environ.get("PYPYLOG"), flush=True)
    sys.exit(subprocess.call([sys.executable, __file__, "child"]))
work()
print(os.environ.get("PYPYLOG"))
"""


def test_child_processes_that_start_anew_have_files_of_their_own(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that forks a child, and starts another
    done = record(pypy, tmp_path / "app.plim", program(FORKING), options=["--children", "--jitlog"])
    # THEN the one that was started has a profile, with what its collector did, and the one that was forked has left its
    # parent's alone
    child, = tmp_path.glob("app.*.plim")
    assert "1 child process has a profile of its own" in done.err
    profile = plimsoll.Profile.open(child)
    assert harness.total_seconds(profile)["work"] > 0
    assert "gc-collect-step" in {marker.name for marker in profile.markers}
    assert profile.meta["times"] != "assumed: samples are spread evenly"
    parent = plimsoll.Profile.open(tmp_path / "app.plim")
    assert parent.complete and "work" not in harness.total_seconds(parent)
    assert "gc-collect-step" not in {marker.name for marker in parent.markers}
    # AND is shown with its parent
    shown = harness.plimsoll_command("show", "--children", tmp_path / "app.plim", "flat").expect(0)
    assert shown.own_err == "" and "work" in shown.out
    # and no other file is left
    assert sorted(file.name for file in tmp_path.glob("app.*")) == sorted(["app.plim", child.name])


BECOMING = """
import os, sys
def work():
    return sum(len(str(i)) for i in range(3000000))
work()
try:
    os.execvp("no-such-program-anywhere", ["none"])
except FileNotFoundError:
    work()
after = "import signal; print(sum(len(str(i)) for i in range(6000000)), *map(signal.getsignal, (signal.SIGPROF, signal.SIGALRM)))"
os.execv(sys.executable, [sys.executable, "-c", after])
"""


@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_a_program_that_becomes_another_one_runs_on(tmp_path: pathlib.Path, program: Write, pypy: Any, mode: str) -> None:
    # GIVEN a program that calls exec, first in vain, and computes then for many times as long as a tick
    done = record(pypy, tmp_path / "app.plim", program(BECOMING), options=["--mode", mode])
    # THEN the sampler's signal does not kill what it has become, and what came before is a whole profile
    assert done.out.startswith("40888890 ") and done.out.count("SIG_DFL") + done.out.count(" 0") == 2 and done.own_err == ""
    profile = plimsoll.Profile.open(tmp_path / "app.plim")
    assert profile.complete and harness.total_seconds(profile)["work"] > 0
    assert profile.meta["argv"].endswith("program.py")


ALARMED = """
import signal, sys
def work(): return sum(len(str(i)) for i in range(3000000))
work()
calls = []
signal.signal(getattr(signal, sys.argv[1]), lambda *_: calls.append(1))
work()
print(len(calls), flush=True)
signal.signal(getattr(signal, sys.argv[1]), signal.SIG_DFL)
signal.setitimer(getattr(signal, sys.argv[2]), 0.01)
while True: work()
"""


@pytest.mark.parametrize("mode, number, timer", [("cpu", "SIGPROF", "ITIMER_PROF"), ("wall", "SIGALRM", "ITIMER_REAL")])
def test_a_program_has_the_signal_of_the_sampler_for_itself(tmp_path: pathlib.Path, program: Write, pypy: Any, mode: str,
                                                            number: str, timer: str) -> None:
    # GIVEN a program with a handler of the signal that PyPy's sampler takes for its ticks, and a timer of its own in the end
    done = record(pypy, tmp_path / "app.plim", program(ALARMED), number, timer, options=["--mode", mode],
                  code=harness.death_by(getattr(signal, number)))
    # THEN no tick of ours calls that handler, its own timer ends it, and what came before is recorded, which is said
    assert done.out == "0\n"
    assert f"the program uses {number}, and so does PyPy's sampler: what follows is not recorded" in done.err
    profile = plimsoll.Profile.open(tmp_path / "app.plim")
    assert profile.complete and harness.total_seconds(profile)["work"] > 0


def test_child_processes_that_are_not_recorded_see_nothing_of_it(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that forks and starts child processes WHEN it is recorded alone THEN PyPy's log is its own: it is on
    # nobody's stderr, and in nobody's environment
    done = record(pypy, tmp_path / "app.plim", program(FORKING), options=[])
    assert done.out == "None\nNone\n" and done.own_err == ""
    assert [file.name for file in tmp_path.glob("app.*")] == ["app.plim"]


CLOSING = """
import os, sys
def work():
    return sum(len(str(i)) for i in range(3000000))
os.closerange(3, int(sys.argv[1]))
own = open(sys.argv[2], "wb", buffering=0)
own.write(b"mine")
work()
pid = os.fork()
if pid == 0:
    own.write(b" and the child's")
    os._exit(0)
print(own.fileno(), os.waitpid(pid, 0)[1])
work()
"""


def test_a_program_that_closes_what_it_did_not_open_has_its_files_for_itself(tmp_path: pathlib.Path, program: Write,
                                                                            pypy: Any) -> None:
    # GIVEN a program that closes all low descriptors, as daemons do, and so gets their numbers for a file of its own
    source, own = program(CLOSING), tmp_path / "own"
    done = record(pypy, tmp_path / "app.plim", source, "256", own, options=["--jitlog"])
    # THEN nothing of ours is in that file, a forked child has it, too, and the recording is whole
    assert done.out == "3 0\n" and done.own_err == ""
    assert own.read_bytes() == b"mine and the child's"
    profile = plimsoll.Profile.open(tmp_path / "app.plim")
    assert profile.complete and harness.total_seconds(profile)["work"] > 0
    assert "gc-minor" in {marker.name for marker in profile.markers}
    # AND if it closes all that there are, it runs as by itself, and the end of the recording is told of
    done = record(pypy, tmp_path / "app.plim", source, "1100", own, options=[])
    assert done.out == "3 0\n" and "has closed the file of its recording" in done.err and done.own_err == ""
    assert own.read_bytes() == b"mine and the child's"


def test_a_forked_child_of_a_program_that_cannot_be_recorded_says_nothing(tmp_path: pathlib.Path, program: Write,
                                                                         pypy: Any) -> None:
    # GIVEN a mode that PyPy does not have WHEN the program forks THEN PyPy's log is not on the child's stderr
    done = record(pypy, tmp_path / "app.plim", program(FORKING), options=["--mode", "gil"])
    assert done.out == "None\nNone\n" and done.own_err == "" and list(tmp_path.glob("app.*")) == []


def test_samples_and_what_the_collector_did_are_on_one_time_axis(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that computes, waits longer than any scheduler lets it wait, and computes again
    source = program("import gc, time\n"
                     "def use():\n    end = time.process_time() + 0.1\n"
                     "    while time.process_time() < end: [str(i) for i in range(1000)]\n"
                     "def before(): use()\ndef after(): use(); gc.collect()\n"
                     "before()\nprint(time.time())\ntime.sleep(2)\nafter()\n")
    # WHEN it is recorded by its CPU time, which does not go on meanwhile
    done = record(pypy, tmp_path / "app.plim", source, options=["--mem"])
    profile = plimsoll.Profile.open(tmp_path / "app.plim")
    session = json.loads(harness.plimsoll_command("info", "--json", tmp_path / "app.plim").expect(0).out)["session"]
    waits_ns = int((float(done.out) + 1) * 1e9) - session["start_realtime_ns"]
    # THEN what came before the wait is before it, and what came after is after it
    before, after = (list(profile.filter(function=name).samples.time_ns) for name in ("before", "after"))
    assert before and after and before == sorted(before) and after == sorted(after)
    # Those of PyPy 7.3 have no times: they are spread evenly, so a few may be on the other side.
    astray = 0 if session["meta"]["weights"].startswith("measured: the time") else max(3, len(before + after) // 20)
    assert sum(time_ns >= waits_ns for time_ns in before) <= astray
    assert sum(time_ns <= waits_ns for time_ns in after) <= astray
    rss = list(profile.counters["rss"].time_ns)
    assert rss == sorted(rss) and rss[0] < waits_ns < rss[-1]
    # AND all samples together stand for the CPU time that was used
    assert profile.sampled >= 0.15
    # AND the sources are there
    assert profile.sources[str(source)] == source.read_text()


def test_a_program_that_is_killed_leaves_what_was_sampled(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    source = program(PROGRAM.replace("sys.exit(3)", "import os; os.kill(os.getpid(), 9)"))
    record(pypy, tmp_path / "app.plim", source, options=[], code=harness.death_by(9))
    profile = plimsoll.Profile.open(tmp_path / "app.plim")
    assert not profile.complete and profile.meta["argv"].endswith(str(source)) and profile.meta["python"].startswith("PyPy ")


def test_what_pypy_cannot_do_is_said(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    source = program("print('ran')")
    done = record(pypy, tmp_path / "app.plim", source, options=["--mode", "gil"])
    assert done.out == "ran\n" and "PyPy records CPU time or all time" in done.err
    done = record(pypy, tmp_path / "app.plim", source, options=["--tasks", "--engine", "perf", "--max-depth", "9"])
    assert done.out == "ran\n" and "on PyPy there is no --engine, --tasks, --max-depth" in done.err
    done = record(pypy, tmp_path / "app.plim", source, options=["--alloc"])
    assert done.out == "ran\n" and "this PyPy cannot sample allocations: there is no --alloc" in done.err


def test_the_doctor_knows_that_pypy_can_be_recorded(pypy: Any) -> None:
    # GIVEN PyPy, which has no extension module of ours WHEN the doctor is asked THEN its own sampler records it
    path = f"{os.path.dirname(harness.binary())}:{os.environ['PATH']}"
    done = harness.plimsoll_command("doctor", "--python", pypy[0], env=pypy[1]).expect(0)
    assert "PyPy's own sampler" in done.out and "missing" not in done.out
    # AND the self-test says in words that it is not for PyPy
    done = harness.run([pypy[0], "-m", "plimsoll.selftest"], env={**pypy[1], "PATH": path}).expect(1)
    assert done.err == "plimsoll: PyPy is recorded by its own sampler: there is no self-test of that\n"


def test_allocations_are_sampled_where_pypy_can(tmp_path: pathlib.Path) -> None:
    # GIVEN the sampler of a PyPy that samples allocations, with its own function for it
    text = """
import sys, types
calls = []
sampler = types.SimpleNamespace(
    enable_allocation_triggered=lambda *words: calls.append(words[1:]), enable=lambda *words: calls.append("enable"),
    disable=lambda: None, VMProfError=Exception)
sys.modules["_vmprof"] = sampler
from plimsoll import _pypy
_pypy.start(sys.argv[1], {"alloc_bytes": "4096", "rate_hz": "500", "rss_interval_s": "0.01"}, "")
print(calls)
"""
    # WHEN a recording with --alloc=4096 starts THEN it is called: distance, period, native, memory
    done = harness.run([sys.executable, "-c", text, tmp_path / "app.plim"]).expect(0)
    assert done.out == "[(4096, 0.002, False, True)]\n"
    # AND a mode that this function does not have is missed in words
    done = harness.run([sys.executable, "-c", text.replace('"rate_hz"', '"mode": "wall", "rate_hz"'), tmp_path / "b.plim"])
    assert "with --alloc PyPy records CPU time" in done.expect(0).err


def test_a_disk_that_is_nearly_full_is_left_alone(tmp_path: pathlib.Path) -> None:
    # GIVEN PyPy's sampler, which hangs when it finds no room for what it writes, and a disk with 1 MiB of it
    text = """
import os, sys, types
sys.modules["_vmprof"] = types.SimpleNamespace(enable=lambda *words: print("enabled"), disable=lambda: None, VMProfError=Exception)
os.statvfs = lambda place: types.SimpleNamespace(f_blocks=1 << 20, f_bavail=int(sys.argv[2]), f_frsize=4096)
from plimsoll import _pypy
try:
    _pypy.start(sys.argv[1], {}, "")
except OSError as error:
    print(error)
os._exit(0)
"""
    # WHEN a recording starts THEN it does not, and says why; and it does if there is room
    done = harness.run([sys.executable, "-u", "-c", text, tmp_path / "app.plim", "256"]).expect(0)
    assert done.out.startswith(f"less than 16 MiB are free in {tmp_path}") and list(tmp_path.iterdir()) == []
    assert harness.run([sys.executable, "-u", "-c", text, tmp_path / "app.plim", "8192"]).expect(0).out == "enabled\n"


def test_native_functions_have_names(tmp_path: pathlib.Path, program: Write, pypy: Any) -> None:
    # GIVEN a program that computes in a library of C, on a machine with the library that unwinds for PyPy
    source = program("import hashlib\ndata = bytes(1000000)\n"
                     "def digest(): return [hashlib.sha256(data).digest() for _ in range(100)]\ndigest()")
    done = record(pypy, tmp_path / "app.plim", source, options=["--native"])
    if "could not load libunwind" in done.err:
        pytest.skip("PyPy finds no libunwind.so here; package libunwind-dev has it")
    # THEN its functions are there, by their names or by where they are in their libraries
    functions = [function for function in plimsoll.Profile.open(tmp_path / "app.plim").functions if function.kind == "native"]
    assert functions and all(function.file.startswith("/") for function in functions)
    assert any("libcrypto" in function.file for function in functions)
    assert not any(function.name.startswith("0x") for function in functions)


def test_a_log_of_the_jit_needs_one(tmp_path: pathlib.Path, program: Write) -> None:
    done = harness.plimsoll_run(program("print('ran')"), options=["-o", tmp_path / "app.plim", "--jitlog"]).expect(0)
    assert done.out == "ran\n" and "--jitlog is for PyPy" in done.err
    done = harness.plimsoll_command("jitlog", tmp_path / "app.plim").expect(5)
    assert "the profile has no jitlog" in done.err


def test_the_pure_python_half_imports(pypy: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a profile; WHEN PyPy reads it through vmprof's interface
    (tmp_path / "app.collapsed").write_text("main;work 5000\n")
    text = ("import sys, plimsoll, plimsoll.upload, plimsoll.vmprof.__main__, plimsoll.vmprof.show\n"
            "from plimsoll.compat import vmprof\nprint(len(vmprof.read_profile(sys.argv[1]).profiles))")
    path = f"{os.path.dirname(harness.binary())}:{os.environ['PATH']}"
    done = harness.run([pypy[0], "-c", text, tmp_path / "app.collapsed"], env={**pypy[1], "PATH": path}).expect(0)
    samples = len(vmprof.read_profile(tmp_path / "app.collapsed").profiles)
    assert done.out == f"{samples}\n"


def test_vmprofs_interface_records_with_pypys_own(pypy: Any, tmp_path: pathlib.Path, program: Write) -> None:
    text = ("import sys\nfrom plimsoll.compat import install_as_vmprof\ninstall_as_vmprof()\nimport vmprof\n"
            "def work(): return sum(len(str(i)) for i in range(3000000))\n"
            "with vmprof.Profiler().measure(sys.argv[1]): work()\n"
            "assert not vmprof.is_enabled()\n"
            "print(vmprof.stop_sampling())\nvmprof.start_sampling()\n")
    harness.run([pypy[0], program(text), tmp_path / "app.prof"], env=pypy[1]).expect(0)
    stats = vmprof.read_profile(tmp_path / "app.prof")
    assert stats.interp == "pypy" and any(":work:" in name for name, _ in stats.top_profile())


def test_vmprofs_command_line(pypy: Any, tmp_path: pathlib.Path, program: Write) -> None:
    path = f"{os.path.dirname(harness.binary())}:{os.environ['PATH']}"
    done = harness.run([pypy[0], "-m", "plimsoll.vmprof", "--jitlog", "-o", tmp_path / "app.prof", program(PROGRAM), "x"],
                       env={**pypy[1], "PATH": path}).expect(3)
    assert done.out == "x\n"
    assert any(":work:" in name for name, _ in vmprof.read_profile(tmp_path / "app.prof").top_profile())
    assert "work" in harness.plimsoll_command("jitlog", tmp_path / "app.prof.jit").expect(0).out
