"""Wall-clock mode: what threads wait for, for how long, and on which stack."""

from __future__ import annotations

import collections
import pathlib
import re
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]


def time_by_activity(profile: plimsoll.Profile) -> "dict[str, collections.Counter[str]]":
    """Nanoseconds of each thread, by the first word of its name."""
    result: "dict[str, collections.Counter[str]]" = collections.defaultdict(collections.Counter)
    for stack in harness.stacks(profile):
        result[profile.threads[stack.thread].name][stack.activity] += stack.weight_ns
    return result


def within(told: float, least: float, most: float, *, rel: float = 0.0, abs: float = 0.0) -> bool:
    """Whether what is told is no less than the least, and no more than the most, but for the tolerance."""
    return least - max(rel * least, abs) <= told <= most + max(rel * most, abs)


@pytest.mark.parametrize("rate", [100, 1000])
def test_what_threads_wait_for(tmp_path: pathlib.Path, rate: int) -> None:
    # GIVEN threads that wait in one way each; WHEN all their time is recorded
    recorded = harness.record(tmp_path, harness.TARGETS / "waits.py", "1.2",
                              options=["--mode", "wall", "-r", str(rate)])
    times = time_by_activity(recorded.profile)
    for name, activity in (("sleeping 0", "sleep"), ("locked 1", "lock"), ("reading 2", "io"), ("selecting 3", "io")):
        # THEN it is that wait, but for when it waits for a CPU, and together it is the thread's life
        life, most = recorded.truth[name]["life"], recorded.truth[name]["with_start_and_end"]
        assert within(times[name][activity], life - times[name]["ready"], life,
                      rel=0.03, abs=30e6 + 1.5e9 / rate), times[name]
        assert within(sum(times[name].values()), life, most, rel=0.03, abs=30e6 + 1.5e9 / rate), times[name]
    # (who naps half a millisecond at a time sleeps most of it, or, on a busy machine, waits for a CPU)
    napping, life = times["napping 4"], recorded.truth["napping 4"]["life"]
    assert napping["sleep"] + napping["ready"] >= 0.5 * life, napping
    assert napping["lock"] + napping["io"] <= 0.03 * life, napping
    # and it is on the line that waits
    for stack in harness.stacks(recorded.profile):
        if stack.activity in ("sleep", "lock", "io") and stack.weight_ns > 50_000_000:
            line = stack.frames[-1]
            if line.function.file.endswith("waits.py"):
                text = (harness.TARGETS / "waits.py").read_text().splitlines()[line.line - 1]
                assert text.endswith(f"# {stack.activity}") or "join" in text or "time.sleep(SECONDS)" in text, text
    assert harness.drops(recorded.profile) == {}


def test_a_thread_s_time_adds_up_to_its_life(tmp_path: pathlib.Path) -> None:
    # GIVEN a thread that sleeps and wakes two thousand times a second
    recorded = harness.record(tmp_path, harness.TARGETS / "waits.py", "1.5", options=["--mode", "wall"])
    times = time_by_activity(recorded.profile)
    for name, truth in recorded.truth.items():
        assert within(sum(times[name].values()), truth["life"], truth["with_start_and_end"],
                      rel=0.02, abs=30e6), (name, times[name], truth)
        assert times[name]["running"] == pytest.approx(truth["cpu"], abs=0.02 * truth["life"]), (name, times[name])


def test_waiting_for_the_gil_is_told_apart(tmp_path: pathlib.Path) -> None:
    if harness.FREE_THREADED:
        pytest.skip("this build has no GIL to wait for")
    # GIVEN two threads that compute in Python; only one can run at a time
    recorded = harness.record(tmp_path, harness.TARGETS / "waits.py", "1.0", "compute", options=["--mode", "wall"])
    times = time_by_activity(recorded.profile)
    for name in ("computing 0", "computing 1"):
        truth = recorded.truth[name]
        waited, most = (truth[time] - truth["cpu"] for time in ("life", "with_start_and_end"))
        # THEN what a thread did not run, it waited for the GIL, or for a CPU
        assert within(times[name]["gil"] + times[name]["ready"], waited, most, abs=0.1 * truth["life"]), times[name]
        assert times[name]["gil"] > 0.3 * (waited - times[name]["ready"]), times[name]
        assert times[name]["lock"] + times[name]["io"] + times[name]["sleep"] < 0.03 * truth["life"], times[name]


def test_stacks_of_waits_never_mix(tmp_path: pathlib.Path) -> None:
    # GIVEN short waits below callers that alternate, and live but once
    recorded = harness.record(tmp_path, harness.TARGETS / "waiting_callers.py", "1.5",
                              options=["--mode", "wall", "-r", "4000"])
    waits = 0
    for stack in harness.stacks(recorded.profile):
        names = [frame.function.name for frame in stack.frames]
        generated = [re.fullmatch(r"(first|second)_(\d+)", name) for name in names]
        for at, match in enumerate(generated):
            if match is None:
                continue
            frame = stack.frames[at]
            # THEN each is below its own caller, in its own file, and on its own line
            assert names[at - 1] == f"{match[1]}_caller", names
            assert frame.function.file == f"<round {match[2]}>", names
            offset = {"first": 2, "second": 4}[match[1]]
            assert frame.function.first_line == int(match[2]) % 100 + offset
            assert frame.line in (frame.function.first_line, frame.function.first_line + 1)
            waits += stack.activity == "sleep"
    assert waits > 500
    assert harness.drops(recorded.profile) == {}


def test_no_wait_is_interrupted(tmp_path: pathlib.Path, program: Write, perf: str) -> None:
    # GIVEN C code that waits, and does not expect EINTR, thousands of times
    script = program("""
import ctypes, json, threading, time
libc = ctypes.CDLL(None, use_errno=True)
interrupted = []
def wait(call):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if call() != 0: interrupted.append(ctypes.get_errno())
threads = [threading.Thread(target=wait, args=(call,)) for call in
           (lambda: libc.poll(None, 0, 1), lambda: libc.usleep(300), lambda: libc.usleep(20000))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(interrupted))
""")
    # WHEN its waits are recorded THEN it never sees one
    recorded = harness.record(tmp_path, script, options=["--mode", "wall", "-r", "1000"])
    assert recorded.truth == []
    assert sum(times["sleep"] for times in time_by_activity(recorded.profile).values()) > 1_500_000_000


def test_threads_older_than_the_recording_wait_too(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a thread that has waited since before the recording began, and never ran in it; and a pause
    out = tmp_path / "own.plim"
    script = program(f"""
import plimsoll, threading, time
done = threading.Event()
def old(): done.wait()
thread = threading.Thread(target=old, name="old")
thread.start()
time.sleep(0.1)
def passed(call, *arguments, **options):
    began = time.monotonic_ns()
    call(*arguments, **options)
    return time.monotonic_ns() - began
around = passed(plimsoll.start, {str(out)!r}, mode="wall", rate_hz=200)
slept = passed(time.sleep, 0.4)
around += passed(plimsoll.pause)
time.sleep(0.3)
around += passed(plimsoll.resume)
slept += passed(time.sleep, 0.4)
around += passed(plimsoll.stop)
done.set()
print([slept, around])
""")
    slept, around = harness.python(script).expect().truth
    # THEN its wait is in the profile, without the pause
    times = time_by_activity(plimsoll.Profile.open(out))
    assert 0.9 * slept <= times["old"]["lock"] <= slept + around
    assert 0.9 * slept <= times["MainThread"]["sleep"] + times["MainThread"]["ready"]
    assert times["MainThread"]["sleep"] <= slept + around


@pytest.mark.parametrize("rate, names", [(20, ["waits", "naps"]), (1000, ["waits", "naps", "MainThread"])])
def test_short_pauses_neither_take_nor_give_time(tmp_path: pathlib.Path, program: Write, rate: int,
                                                 names: "list[str]") -> None:
    # GIVEN a thread that waits, and one that waits for moments, while another one pauses and resumes again and again,
    # also between two looks
    out = tmp_path / "own.plim"
    script = program(f"""
import plimsoll, threading, time
done = threading.Event()
def nap():
    while not done.wait(0.001): pass
threading.Thread(target=done.wait, name="waits").start()
threading.Thread(target=nap, name="naps").start()
least = most = 0
asked = time.monotonic_ns()
plimsoll.start({str(out)!r}, mode="wall", rate_hz={rate})
began = time.monotonic_ns()
for _ in range(20):
    time.sleep(0.02)
    least += time.monotonic_ns() - began
    plimsoll.pause()
    most += time.monotonic_ns() - asked
    time.sleep(0.02)
    asked = time.monotonic_ns()
    plimsoll.resume()
    began = time.monotonic_ns()
plimsoll.stop()
most += time.monotonic_ns() - asked
done.set()
print([least, most])
""")
    least, most = harness.python(script).expect().truth
    # THEN they have the time outside of the pauses, which begin and end while they are asked for. (What the one that
    # naps computes meanwhile is less than a period at 20 Hz, and a sample of it stands for a whole one.)
    times = time_by_activity(plimsoll.Profile.open(out))
    for name in names:
        in_doubt_ns = 1e9 / rate if name == "naps" else 0
        assert 0.9 * least - in_doubt_ns < sum(times[name].values()) < 1.05 * most + in_doubt_ns


def test_time_with_the_gil(tmp_path: pathlib.Path, program: Write) -> None:
    if harness.FREE_THREADED:
        pytest.skip("this build has no GIL to hold")
    # GIVEN a thread that hashes without the GIL, and one that computes with it
    script = program("""
import hashlib, json, threading, time
buffer, used = bytes(1 << 20), {}
def hashing():
    while time.thread_time() < 0.4: hashlib.sha256(buffer)
    used["hashing"] = time.thread_time_ns()
def computing():
    while time.thread_time() < 0.4: sum(range(500))
    used["computing"] = time.thread_time_ns()
threads = [threading.Thread(target=body) for body in (hashing, computing)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(used))
""")
    recorded = harness.record(tmp_path, script, options=["--mode", "gil"])
    # THEN only what holds it counts
    measured = harness.total_seconds(recorded.profile)
    assert measured["computing"] * 1e9 == pytest.approx(recorded.truth["computing"], rel=0.05)
    assert measured.get("hashing", 0) < 0.05


def test_activities_are_asked_for(tmp_path: pathlib.Path) -> None:
    # GIVEN a recording of waits; WHEN some are asked for THEN only they are shown
    recorded = harness.record(tmp_path, harness.TARGETS / "waits.py", "0.5", options=["--mode", "wall"])
    kept = recorded.profile.filter(activity=["io", "lock"])
    assert {stack.activity for stack in harness.stacks(kept)} == {"io", "lock"}
    assert recorded.profile.filter(activity="running").sampled == pytest.approx(recorded.profile.sampled_cpu)
    with pytest.raises(ValueError, match="no activity"):
        recorded.profile.filter(activity="dreaming")
    shown = harness.plimsoll_command("show", tmp_path / "recorded.plim", "--activity", "io", "threads").expect()
    assert "reading" in shown.out and "sleeping" not in shown.out
    wrong = harness.plimsoll_command("show", tmp_path / "recorded.plim", "--activity", "dreaming")
    assert wrong.code == 2 and "dreaming" in wrong.err
