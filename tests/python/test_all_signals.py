"""Programs that set what all signals do, or wait for all of them: ticks, which are signals, are none of theirs."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest

import harness

Write = Callable[..., pathlib.Path]

BURN = harness.BURN


@pytest.mark.any_version
@pytest.mark.parametrize("engine", ["perf", "timer"], indirect=True)
@pytest.mark.parametrize("what", ["lambda number, frame: got.append(number)", "signal.SIG_DFL", "signal.SIG_IGN"])
def test_what_is_done_with_all_signals_is_not_done_with_ticks(tmp_path: pathlib.Path, program: Write, engine: str,
                                                              what: str) -> None:
    # GIVEN a program that sets what every signal does, and then sends itself each but those that stop it
    script = program(BURN + f"""
got, sent = [], []
burn(0.2)
for number in signal.valid_signals():
    try: signal.signal(number, {what})
    except (OSError, ValueError): continue
    if callable(signal.getsignal(number)): sent.append(number)
burn(0.3)
assert not got
for number in sent: os.kill(os.getpid(), number)
while len(got) < len(sent): pass
print(json.dumps(sorted(got) == sorted(sent)))
""")
    # WHEN it is recorded THEN it runs as it does alone, and all of it is recorded
    recorded = harness.record(tmp_path, script, options=["--engine", engine])
    assert recorded.truth
    late = harness.missed_at_the_end(recorded.profile) / 1e9 if engine in harness.TIMER_ENGINES else 0
    assert harness.total_seconds(recorded.profile)["burn"] + late == pytest.approx(0.5, rel=0.1)


@pytest.mark.any_version
@pytest.mark.parametrize("engine", ["perf", "timer"], indirect=True)
def test_whoever_waits_for_all_signals_gets_no_ticks(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    # GIVEN a program that blocks all signals, and waits for any of them in each of the three ways
    script = program(BURN + """
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
waits = [signal.sigwait, lambda numbers: signal.sigwaitinfo(numbers).si_signo,
         lambda numbers: signal.sigtimedwait(numbers, 10).si_signo]
got = []
for round in range(6):
    burn(0.05)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    got.append(waits[round % 3](iter(signal.valid_signals())))
# and that polls
burn(0.05)
got.append(signal.sigtimedwait(signal.valid_signals(), 0))
# and one that others send it, though it is one of ours
for number in {signal.SIGTRAP, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)}:
    os.kill(os.getpid(), number)
    if signal.sigwait([number]) != number or signal.sigtimedwait([number], 0): got.append(number)
print(json.dumps([signal.SIGALRM] * 6 + [None] == got))
""")
    # WHEN it is recorded THEN it gets what was sent to it
    assert harness.record(tmp_path, script, options=["--engine", engine]).truth


@pytest.mark.any_version
@pytest.mark.parametrize("engine", ["perf", "timer"], indirect=True)
def test_a_pause_lasts_until_a_signal_of_the_program_comes(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    # GIVEN a program that works before each pause, so that a tick is never far, and alarms that end it
    script = program(BURN + """
got = []
signal.signal(signal.SIGALRM, lambda number, frame: got.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
early = 0
for _ in range(40):
    burn(0.004)
    before = len(got)
    signal.pause()
    early += len(got) == before
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps(early))
""")
    # WHEN it is recorded THEN nothing else ends it
    assert harness.record(tmp_path, script, options=["--engine", engine]).truth == 0


def test_signals_set_between_two_recordings_are_the_program_s(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that sets all signals to their defaults between two recordings by timers
    script = program(BURN + f"""
import plimsoll
for name in ("first", "second"):
    with plimsoll.profile({str(tmp_path)!r} + "/" + name + ".plim", engine="timer") as session: burn(0.2)
    for number in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP}}: signal.signal(number, signal.SIG_DFL)
print(json.dumps(len(session.profile.samples)))
""")
    # THEN the second does not kill it
    assert harness.python(script).expect().truth > 30
