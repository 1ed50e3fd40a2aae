"""A program under `plimsoll run` behaves as under plain python."""

from __future__ import annotations

import pathlib
import sys
from typing import Any, Callable

import pytest

import harness

Write = Callable[..., pathlib.Path]

TELL = """
import json, os, sys
def plain(value):
    return str(value) if value is not None else None
names = sorted(name for name in vars() if name.startswith("__"))
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": plain(vars().get("__file__")), "names": names,
    "package": plain(vars().get("__package__")), "spec": plain(vars().get("__spec__") and __spec__.name),
    "environment": {k: v for k, v in os.environ.items() if k not in ("_", "LC_CTYPE")},
    "stdin": sys.stdin.read() if not sys.stdin.isatty() else "", "flags": str(sys.flags),
    "modules": sorted(name for name in sys.modules if "plimsoll" in name and not name.startswith("plimsoll")),
}))
"""


def both(tmp_path: pathlib.Path, *words: Any, **more: Any) -> "tuple[harness.Finished, harness.Finished]":
    """The same command under python and under plimsoll run."""
    plain = harness.python(*words, **more)
    recorded = harness.plimsoll_run(*words, options=["-o", tmp_path / "out.plim"], **more)
    assert recorded.code == plain.code, recorded.err
    return plain, recorded


def assert_same_facts(plain: harness.Finished, recorded: harness.Finished) -> None:
    assert recorded.truth == plain.truth


def test_a_script_sees_the_same_world(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that tells argv, sys.path, __main__'s attributes, its environment and standard input
    script = program(TELL)
    # WHEN it runs plainly and recorded THEN it tells the same
    assert_same_facts(*both(tmp_path, script, "-r", "5", "--", "x y", stdin="some input"))


def test_a_module_sees_the_same_world(tmp_path: pathlib.Path, program: Write) -> None:
    program(TELL, "pack/__main__.py")
    program("", "pack/__init__.py")
    assert_same_facts(*both(tmp_path, "-m", "pack", "-m", "x", cwd=tmp_path))


def test_a_command_sees_the_same_world(tmp_path: pathlib.Path) -> None:
    assert_same_facts(*both(tmp_path, "-c", TELL, "a", "-c", cwd=tmp_path))


def test_an_interpreter_before_the_program_is_the_one_that_runs_it(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a command line as it is typed without us, with options of the interpreter's
    words = [sys.executable, "-X", "dev", program(TELL), "a", "-X"]
    # WHEN `plimsoll run` is put before it THEN the program sees the same world
    plain = harness.run(words)
    recorded = harness.plimsoll_command("run", "-o", tmp_path / "out.plim", *words)
    assert_same_facts(plain.expect(0), recorded.expect(0))


def test_a_command_on_the_path_is_run_as_the_script_that_it_is(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a script that its directory on PATH makes a command, as pip installs them
    script = program(f"#!{sys.executable} -u\n{TELL}", "bin/tell")
    script.chmod(0o700)
    more = {"env": {"PATH": f"{script.parent}:/usr/bin:/bin"}, "cwd": tmp_path}
    # WHEN it is called by its name THEN it sees the same world
    plain = harness.run(["tell", "a", "-u"], **more)
    recorded = harness.plimsoll_command("run", "-o", tmp_path / "out.plim", "tell", "a", "-u", **more)
    assert_same_facts(plain.expect(0), recorded.expect(0))


def test_what_is_no_program_is_not_recorded(tmp_path: pathlib.Path) -> None:
    for word, problem in (("nothing.py", "there is no file 'nothing.py'"), ("/bin/sh", "machine code")):
        finished = harness.plimsoll_run(word, cwd=tmp_path)
        assert finished.code == 2 and problem in finished.err
        assert not list(tmp_path.iterdir())


def test_a_program_from_standard_input_sees_the_same_world(tmp_path: pathlib.Path) -> None:
    assert_same_facts(*both(tmp_path, "-", "a", stdin=TELL, cwd=tmp_path))


def test_the_users_own_sitecustomize_still_runs(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a sitecustomize of the user's on PYTHONPATH
    program("import builtins\nbuiltins.marked = 'by the user'\n", "site/sitecustomize.py")
    script = program(TELL + "print(marked)\nimport sitecustomize\nprint(sitecustomize.__file__)\n")
    # WHEN the program runs THEN it has run, and PYTHONPATH is the user's
    old = harness.environment().get("PYTHONPATH")
    path = str(tmp_path / "site") + (f":{old}" if old else "")
    plain, recorded = both(tmp_path, script, env={"PYTHONPATH": path})
    assert recorded.out == plain.out
    assert "by the user" in recorded.out


@pytest.mark.parametrize("end", ["sys.exit(0)", "sys.exit(7)", "sys.exit('words')", "sys.exit(None)", "raise SystemExit(300)",
                                 "raise KeyError('x')", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 2)",
                                 "os.abort()", "os._exit(9)", "raise KeyboardInterrupt", "1/0", "def f(: pass"])
def test_every_end_is_the_programs_own(tmp_path: pathlib.Path, program: Write, end: str) -> None:
    # GIVEN a program that ends in some way, inside a few calls
    body = end if end.startswith("def") else f"def inner():\n    {end}\ndef outer():\n    inner()\nouter()\n"
    script = program(f"import os, sys\n{body}\n")
    # WHEN it runs plainly and recorded
    plain, recorded = both(tmp_path, script)
    # THEN exit code or signal, output and traceback are the same, byte for byte
    assert recorded.out == plain.out
    assert recorded.own_err == plain.err


def test_a_traceback_through_a_thread_shows_nothing_of_ours(tmp_path: pathlib.Path, program: Write) -> None:
    script = program("import threading, traceback\n"
                     "def fail(): raise ValueError('in a thread')\n"
                     "thread = threading.Thread(target=fail, name='failing'); thread.start(); thread.join()\n"
                     "def show(): traceback.print_stack()\n"
                     "thread = threading.Thread(target=show); thread.start(); thread.join()\n")
    plain, recorded = both(tmp_path, script)
    assert recorded.own_err == plain.err
    assert "ValueError: in a thread" in recorded.err


def test_keyboard_interrupt_reaches_the_program_and_the_profile_is_kept(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that is busy, and a terminal's Ctrl-C, which goes to the whole process group
    script = program("import os\nprint('ready', flush=True)\nwhile True: sum(range(1000))\n")
    out = tmp_path / "out.plim"
    words = [harness.binary(), "run", "--python", sys.executable, "-o", str(out), str(script)]
    with harness.Running(words) as running:
        assert running.line() == "ready"
        # WHEN it is pressed
        import os
        import signal

        os.killpg(running.process.pid, signal.SIGINT)
        finished = running.finish()
    # THEN the program dies of it with its traceback, and so does `plimsoll run`, after it has reported
    assert finished.code == harness.death_by(signal.SIGINT)
    assert "KeyboardInterrupt" in finished.own_err and "_boot" not in finished.err
    import plimsoll

    assert plimsoll.Profile.open(out).complete


def test_signals_of_the_programs_own_are_undisturbed(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program with an interval timer on each of the three clocks, and sleeps that must not be cut short
    script = program("""
import ctypes, signal, time
hits = {}
for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF):
    signal.signal(number, lambda n, f: hits.__setitem__(n, hits.get(n, 0) + 1))
for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
    signal.setitimer(which, 0.01, 0.01)
start = time.thread_time()
while time.thread_time() - start < 0.3: sum(range(1000))
for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
    signal.setitimer(which, 0)
libc = ctypes.CDLL(None)
left = [libc.usleep(20000) for _ in range(10)]
print(all(hits.get(n, 0) >= 5 for n in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)), sum(left))
""")
    # WHEN it is recorded THEN all of its signals arrive, and no C call is interrupted
    finished = harness.plimsoll_run(script, options=["-o", tmp_path / "out.plim", "--engine", "cpu-timer"])
    assert finished.expect().out.split() == ["True", "0"]


def test_stop_puts_everything_back(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that records itself
    script = program(f"""
import _thread, gc, json, os, threading
import plimsoll
def state():
    return [repr(x) for x in (_thread.start_new_thread, threading._start_new_thread if hasattr(threading, "_start_new_thread")
            else threading._start_joinable_thread, gc.callbacks)]
before = state()
with plimsoll.profile({str(tmp_path / "own.plim")!r}):
    during = state()
print(json.dumps([before, during, state()]))
""")
    # WHEN it has stopped THEN threading and gc are as they were before
    before, during, after = harness.python(script).expect().truth
    assert after == before
    assert during[2] != before[2]


def test_one_recording_at_a_time(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(f"""
import json, plimsoll
with plimsoll.profile({str(tmp_path / "a.plim")!r}):
    try: plimsoll.start({str(tmp_path / "b.plim")!r})
    except ValueError as error: print(json.dumps(str(error)))
""")
    assert "active already" in harness.python(script).expect().truth
    assert not (tmp_path / "b.plim").exists()


def test_an_exception_in_a_raw_thread_is_told_of_as_without_us(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a thread that _thread has started, which raises, and a hook that is told
    script = program("""
import _thread, sys, threading
told = threading.Lock(); told.acquire()
def hook(unraisable):
    print(unraisable.exc_type.__name__, unraisable.err_msg, getattr(unraisable.object, "__name__", unraisable.object))
    told.release()
sys.unraisablehook = hook
class Body:
    __name__ = "body"
    def __repr__(self): return "<the body>"
    def __call__(self): raise LookupError("in a thread")
_thread.start_new_thread(Body(), ())
told.acquire()
""")
    # THEN the hook is told of the program's own callable
    plain, recorded = both(tmp_path, script)
    assert "LookupError" in plain.out and recorded.out == plain.out
