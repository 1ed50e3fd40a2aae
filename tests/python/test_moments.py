"""Moments at which a process changes while something else acts on it: signals, forks, execs, and the recording itself."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest

import harness

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]

BURN = harness.BURN


@pytest.mark.any_version
@pytest.mark.parametrize("options", [(), ("-r", "5000", "--engine", "reader")], ids=["ticks", "reader"])
def test_alarms_that_raise_come_out_of_forks(tmp_path: pathlib.Path, program: Write, options: "tuple[str, ...]") -> None:
    # GIVEN a program that limits the time of forks by an alarm, whose handler raises
    script = program(BURN + """
import warnings
warnings.simplefilter("ignore")
class Alarm(Exception): pass
def alarm(*_):
    global fired
    fired += 1
    raise Alarm
def fork(delay):
    global raised
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
    except Alarm: raised += 1
    finally: signal.setitimer(signal.ITIMER_REAL, 0)
fired = raised = 0
signal.signal(signal.SIGALRM, alarm)
for i in range(300):
    try: fork(1e-5 + 2e-5 * (i % 150))
    except Alarm: raised += 1
def last(): burn(0.2)
last()
print(fired - raised)
""")
    # WHEN it is recorded THEN it goes on, every alarm is raised in its own code, and all is recorded to the end
    recorded = harness.record(tmp_path, script, options=options)
    assert recorded.finished.out == "0\n" and recorded.finished.own_err == ""
    assert harness.total_seconds(recorded.profile)["last"] == pytest.approx(0.2, rel=0.1)
    assert recorded.profile.complete


@pytest.mark.any_version
@pytest.mark.parametrize("engine", ["auto", "perf", "timer", "cpu-timer", "reader"])
def test_no_tick_waits_for_the_next_program_to_let_it_in(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    # GIVEN a program that computes with all signals blocked, has one of others waiting, and becomes another program
    # that takes signals again
    after = program("""
import signal
waiting = signal.sigpending()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
print([signal.Signals(number).name for number in waiting])
""", "after.py")
    script = program(BURN + f"""
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
burn(0.1)
os.kill(os.getpid(), signal.SIGUSR1)
os.execv(sys.executable, [sys.executable, {str(after)!r}])
""")
    # WHEN it is recorded THEN nothing of ours ends that one
    recorded = harness.record(tmp_path, script, options=["--engine", engine])
    assert recorded.finished.out == "['SIGUSR1']\n"


@pytest.mark.any_version
def test_a_thread_calls_exec_while_another_ends_the_recording(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that execs itself many times, at different moments while another thread of it stops a recording
    script = program(BURN + f"""
import plimsoll
count = int(sys.argv[1])
def become():
    ready.set()
    until = time.monotonic() + 0.0005 * (count % 12)
    while time.monotonic() < until: sum(range(50))
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(count - 1)])
ready = threading.Event()
if count:
    profiler = plimsoll.Profiler({str(tmp_path / "own.plim")!r}, rate_hz=20000).start()
    burn(0.01)
    threading.Thread(target=become).start()
    ready.wait()
    profiler.stop()
    time.sleep(30)
print("done")
""")
    # WHEN it runs THEN no tick is left for the next program to die of
    assert harness.python(script, "24").expect().out == "done\n"
