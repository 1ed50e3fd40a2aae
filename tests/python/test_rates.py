"""As many samples as were asked for, and CPU time as the kernel counts it."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

#: Works until the process has used so many seconds of CPU time, with those of our threads, and tells its own, the time
#: that a hypervisor took from the machine, and how often another program took the CPU. (The loop does not read the
#: thread's clock, which would end its time slices: docs/recording.md, Engines.)
PROGRAM = """
import json, resource, sys, time
def stolen():
    with open("/proc/stat") as file: return int(file.readline().split()[8]) / 100
def preempted():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(2000))
preempted_before, stolen_before, cpu_before = preempted(), stolen(), time.thread_time()
work(float(sys.argv[1]))
print(json.dumps({"cpu": time.thread_time() - cpu_before, "stolen": stolen() - stolen_before,
                  "preempted": preempted() - preempted_before}))
"""


CALLS = """
    def leaf(x): return x + 1
    while time.thread_time() < end:
        for i in range(1000): leaf(i)
"""


def check_rate(recorded: harness.Recorded, rate: int) -> None:
    profile, truth = recorded.profile, recorded.truth
    count = sum(row.total_samples for row in profile.flat() if row.function.name == "work")
    # One tick more or less at each end, and ticks that the hypervisor has swallowed with the time it took. (A tick that
    # falls due while the kernel changes programs is late, and the next ones with it.)
    allowed = 0.01 * truth["cpu"] * rate + 2 + truth["stolen"] * rate + 0.1 * truth["preempted"]
    assert abs(count - truth["cpu"] * rate) <= allowed, (count, truth)


def test_delivered_samples_at_1000_hz(tmp_path: pathlib.Path, program: Write, perf: str) -> None:
    # GIVEN 1.5 seconds of CPU time THEN there are 1500 samples, within one percent
    recorded = harness.record(tmp_path, program(PROGRAM), "1.5", options=["-r", "1000", "--engine", perf])
    check_rate(recorded, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("rate, seconds", [(100, 12.0), (1000, 6.0), (4000, 3.0)])
def test_delivered_samples(tmp_path: pathlib.Path, program: Write, perf: str, rate: int, seconds: float) -> None:
    recorded = harness.record(tmp_path, program(PROGRAM), str(seconds), options=["-r", str(rate), "--engine", perf])
    check_rate(recorded, rate)


def test_delivered_samples_of_the_timer_engine(tmp_path: pathlib.Path, program: Write) -> None:
    recorded = harness.record(tmp_path, program(PROGRAM), "1.5", options=["-r", "1000", "--engine", "timer"])
    count, truth = sum(row.total_samples for row in recorded.profile.flat() if row.function.name == "work"), recorded.truth
    # What runs out while another program has the CPU comes late, and the next ones with it.
    allowed = (0.05 + truth["stolen"]) * 1000 * truth["cpu"] + 0.2 * truth["preempted"]
    assert abs(count - 1000 * truth["cpu"]) <= allowed, (count, truth)


def test_recorded_time_is_the_processs(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    # GIVEN a program; WHEN it is recorded by any engine THEN its samples stand for all of its time
    recorded = harness.record(tmp_path, program(PROGRAM), "1.0", options=["--engine", engine])
    profile, truth = recorded.profile, recorded.truth
    # The last period may be open: a timer's is long where many programs share a CPU. But most of the time is not of it.
    open_at_the_end = harness.missed_at_the_end(profile) / 1e9 if "timer" in engine else 0
    assert profile.sampled_cpu >= 0.6 * profile.process_cpu
    assert profile.sampled_cpu + open_at_the_end == pytest.approx(profile.process_cpu, rel=0.01, abs=0.012)
    # and what it says of the process is what the process says, but for our own threads; the rest is Python's start and
    # end
    assert truth["cpu"] * 0.97 <= profile.process_cpu <= truth["cpu"] + 0.3
    # A sample stands for the time since the one before, which may have been another function's: on a busy machine the
    # reader comes late.
    late = [weight for weight in profile.samples.weight_ns if weight > 3e9 / float(profile.meta["rate_hz"])]
    coarse = 2 * max(profile.samples.weight_ns) / 1e9 + sum(late) / 1e9
    assert harness.total_seconds(profile)["work"] == pytest.approx(truth["cpu"], abs=0.02 * truth["cpu"] + coarse)


def test_delivered_samples_of_the_reader(tmp_path: pathlib.Path, program: Write, perf: str) -> None:
    # GIVEN a rate that is the reader's, and a program that it can read, and one that calls all the time
    for body in ("    while time.thread_time() < end:\n        for i in range(20000): pass\n", CALLS):
        script = program("import json, time\nend = time.thread_time() + 1.0\ndef work():\n" + body + "work()\n")
        recorded = harness.plimsoll_run(script, options=["-r", "5000", "-o", tmp_path / "out.plim"])
        recorded.expect()
        profile = plimsoll.Profile.open(tmp_path / "out.plim")
        # THEN there are as many samples as were asked for, however they were taken (fewer where looks come late, on a busy
        # machine), and they stand for all of the time
        assert profile.meta["engine"] == "reader"
        assert 0.8 * 5000 <= len(profile.samples) <= 1.05 * 5000 + 100
        assert harness.total_seconds(profile)["work"] == pytest.approx(1.0, rel=0.02)


def test_weights_are_the_time_between_samples(tmp_path: pathlib.Path, program: Write, perf: str) -> None:
    # GIVEN one thread that is never at rest; THEN no sample stands for more than passed since the one before
    recorded = harness.record(tmp_path, program(PROGRAM), "0.5", options=["--engine", perf])
    before = 0
    for stack in harness.stacks(recorded.profile):
        assert 0 <= stack.weight_ns <= stack.time_ns - before + 1_000_000
        before = stack.time_ns


def test_the_engine_that_is_asked_for_is_used_and_named(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    from conftest import ENGINE_TEXTS

    recorded = harness.record(tmp_path, program("sum(range(100000))\n"), options=["--engine", engine])
    assert recorded.profile.meta["engine"] == ENGINE_TEXTS[engine]


BUDGET = """
import json, resource, time
def stolen():
    with open("/proc/stat") as file: return int(file.readline().split()[8]) / 100
def preempted():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
def work():
    end = time.thread_time() + 2.5
    while time.thread_time() < end: sum(range(500))
preempted_before, stolen_before = preempted(), stolen()
work()
print(json.dumps({"stolen": stolen() - stolen_before, "preempted": preempted() - preempted_before}))
"""


def test_the_rate_keeps_to_a_budget(tmp_path: pathlib.Path, program: Write, perf: str) -> None:
    # GIVEN a rate that costs several percent, and a budget of one
    recorded = harness.record(tmp_path, program(BUDGET), options=["-r", "20000", "--engine", perf, "--max-overhead", "1"])
    profile, truth = recorded.profile, recorded.truth
    # THEN the rate goes down to what that allows, a tick costing 1 to 150 us (on a virtual machine that shares its CPUs)
    late = [stack for stack in harness.stacks(profile) if stack.time_ns > 0.6 * profile.duration * 1e9]
    rate = len(late) / (sum(stack.weight_ns for stack in late) / 1e9)
    is_quiet = truth["preempted"] <= 20 and truth["stolen"] <= 0.02
    assert 50 <= rate <= 8000, truth
    # and weights stay right: the last sample may be of another function, and what is after it is of none
    coarse = (max(stack.weight_ns for stack in late) + harness.missed_at_the_end(profile)) / 1e9
    assert harness.total_seconds(profile)["work"] == pytest.approx(2.5, rel=0.02, abs=0 if is_quiet else 0.05 + coarse)
    # AND a budget that makes no sense is refused
    for percent in ("0", "101", "much"):
        assert harness.plimsoll_run(program("1"), options=["--max-overhead", percent]).code == 2


def test_ticks_are_timed_when_there_is_a_budget(perf: str) -> None:
    # GIVEN a recording with a budget, which measures its ticks, and one without
    def statistics(**options: float) -> plimsoll.Statistics:
        with plimsoll.profile(rate_hz=1000, engine=perf, **options) as session:  # type: ignore[arg-type]
            harness.burn(0.2)
        return session.statistics

    # THEN the one knows what they took, at least the reading of a clock, and the other does not
    timed, plain = statistics(max_overhead=0.9), statistics()
    assert 20e-9 < timed.tick_median <= timed.tick_p99 < 1
    assert plain.tick_median == plain.tick_p99 == 0
