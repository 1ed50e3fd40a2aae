"""spprof's Python interface: plimsoll.compat.spprof."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
import sys
import threading
from typing import Any, Iterator

import pytest

import harness
import plimsoll
from plimsoll.compat import spprof

pytestmark = pytest.mark.any_version


def heavy() -> None:
    harness.burn(0.12)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    if spprof.is_active():
        spprof.stop()


@pytest.fixture(scope="module")
def recorded() -> spprof.Profile:
    """heavy() in this thread and in another, which does not register."""
    spprof.start(interval_ms=1)
    thread = threading.Thread(target=heavy, name="other thread")
    thread.start()
    heavy()
    thread.join()
    return spprof.stop()


def seconds(profile: spprof.Profile, thread: str, function: str) -> float:
    return sum(sample.weight_ns for sample in profile.samples if sample.thread_name == thread
               and any(frame.function_name.endswith(function) for frame in sample.frames)) / 1e9


def test_all_threads_are_there_by_name_and_line(recorded: spprof.Profile) -> None:
    for thread in ("MainThread", "other thread"):
        assert seconds(recorded, thread, "heavy") == pytest.approx(0.12, rel=0.2)
    # innermost first, at the lines that ran
    sample = next(sample for sample in recorded.samples if sample.frames and "burn" in sample.frames[0].function_name)
    inner, outer = sample.frames[:2]
    first = harness.burn.__code__.co_firstlineno
    assert first < inner.lineno <= first + 4 and (inner.filename, outer.filename) == (harness.__file__, __file__)
    assert outer == spprof.Frame("heavy", __file__, heavy.__code__.co_firstlineno + 1)


def test_a_profile_knows_its_numbers(recorded: spprof.Profile) -> None:
    assert recorded.sample_count == len(recorded.samples) > 0 and recorded.interval_ms == 1
    assert recorded.total_duration_ms > 100 and recorded.effective_rate_hz > 0
    assert recorded.python_version.count(".") == 2 and recorded.platform.startswith("Linux-")
    assert recorded.recording is not None and recorded.recording.complete
    assert recorded.dropped_count == sum(drop.count for drop in recorded.recording.drops)


def test_aggregation_keeps_samples_and_time(recorded: spprof.Profile) -> None:
    together = recorded.aggregate()
    assert together.total_samples == sum(stack.count for stack in together.stacks) == recorded.sample_count
    assert sum(stack.weight_ns for stack in together.stacks) == pytest.approx(
        sum(sample.weight_ns or 1_000_000 for sample in recorded.samples))
    assert together.unique_stack_count < recorded.sample_count
    assert together.compression_ratio == recorded.sample_count / together.unique_stack_count
    assert 0 < together.memory_reduction_pct < 100
    assert together.to_collapsed() == recorded.to_collapsed()


# ---- formats ----

MAIN, WORK = spprof.Frame("main", "app.py", 1), spprof.Frame("work", "app.py", 5)
MEMCPY = spprof.Frame("memcpy", "libc.so", 0, is_native=True)


def drawn(*samples: spprof.Sample) -> spprof.Profile:
    begin = datetime.datetime(2026, 1, 1)
    return spprof.Profile(begin, begin + datetime.timedelta(seconds=2), 10, list(samples), 3, "3.13.0", "Linux")


TWO = drawn(spprof.Sample(0, 7, "main", [WORK, MAIN]), spprof.Sample(10, 7, "main", [WORK, MAIN], 12_000_000),
            spprof.Sample(20, 8, None, [MEMCPY, MAIN]), spprof.Sample(30, 8, None, []))


def test_collapsed_stacks_begin_at_the_root() -> None:
    assert TWO.to_collapsed() == "main (app.py:1);[native] memcpy 1\nmain (app.py:1);work (app.py:5) 2"


def test_speedscope_has_a_profile_for_each_thread() -> None:
    document = TWO.to_speedscope()
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    main, other = document["profiles"]
    assert [[frames[index] for index in sample] for sample in main["samples"]] == [["main", "work"]] * 2
    assert main["weights"] == [10_000_000, 12_000_000] and main["endValue"] == 22_000_000
    assert (main["name"], other["name"]) == ("main", "Thread-8")


def test_speedscope_documents_are_read_again(tmp_path: pathlib.Path) -> None:
    for one in (TWO, TWO.aggregate()):
        one.save(tmp_path / "app.json")
        assert plimsoll.Profile.open(tmp_path / "app.json").sampled == pytest.approx(0.042)
    TWO.save(str(tmp_path / "app.txt"), format="collapsed")
    assert (tmp_path / "app.txt").read_text() == TWO.to_collapsed()
    with pytest.raises(ValueError, match="Unknown format: xml"):
        TWO.save(tmp_path / "app.xml", format="xml")


def test_a_profile_of_nothing() -> None:
    nothing = drawn()
    assert nothing.to_collapsed() == "" and nothing.to_speedscope()["profiles"] == []
    assert (nothing.aggregate().compression_ratio, nothing.aggregate().memory_reduction_pct) == (1.0, 0.0)
    assert TWO.effective_rate_hz == 2.0 and TWO.total_duration_ms == 2000


# ---- starting and stopping ----


def test_one_recording_at_a_time() -> None:
    assert not spprof.is_active() and spprof.stats() is None
    with pytest.raises(RuntimeError, match="Profiler not running"):
        spprof.stop()
    spprof.start()
    with pytest.raises(RuntimeError, match="Profiler already running"):
        spprof.start()
    assert spprof.is_active()
    spprof.stop()
    with plimsoll.profile(), pytest.raises(RuntimeError, match="active already"):
        spprof.start()


@pytest.mark.parametrize("interval", [0, -1, 1001])
def test_an_interval_has_bounds(interval: int) -> None:
    with pytest.raises(ValueError, match="interval_ms must be"):
        spprof.start(interval_ms=interval)
    assert not spprof.is_active()


def test_statistics_while_it_runs() -> None:
    spprof.start(interval_ms=1)
    heavy()
    now = spprof.stats()
    spprof.stop()
    assert now is not None and now.duration_ms > 100 and now.overhead_estimate_pct > 0
    assert now.collected_samples > 0 and now.dropped_samples < now.collected_samples


def test_blocks_and_functions(tmp_path: pathlib.Path) -> None:
    with spprof.Profiler(interval_ms=1, output_path=tmp_path / "new" / "block.json") as profiler:
        assert profiler.profile is None
        heavy()
    assert profiler.profile is not None and profiler.profile.sample_count > 0
    assert json.loads((tmp_path / "new" / "block.json").read_text())["profiles"]

    @spprof.profile(interval_ms=1, output_path=str(tmp_path / "function.json"))
    def work(value: Any) -> Any:
        """Words."""
        heavy()
        return value

    assert work(5) == 5 and (work.__name__, work.__doc__) == ("work", "Words.")
    assert "work" in (tmp_path / "function.json").read_text()


def test_a_path_that_cannot_be_written_is_told_at_the_start() -> None:
    with pytest.raises(PermissionError, match="Cannot write to /proc/nowhere/x.json"):
        spprof.start(output_path="/proc/nowhere/x.json")
    assert not spprof.is_active()


def test_a_profile_is_saved_where_the_program_was_when_it_began(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    # GIVEN a recording into a relative path, whose program goes to another directory
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    spprof.start(output_path="x.json")
    monkeypatch.chdir(tmp_path / "elsewhere")
    # WHEN it ends THEN the profile is where it was to be
    spprof.stop()
    assert json.loads((tmp_path / "x.json").read_text())["name"] == "spprof profile"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_limit_that_makes_no_sense_is_no_recording_of_somebody_else() -> None:
    with pytest.raises(ValueError, match="memory_mb"):
        spprof.start(memory_limit_mb=10**6)
    assert not spprof.is_active()
    with plimsoll.profile(), pytest.raises(RuntimeError, match="active already"):
        spprof.start()


def test_a_recording_that_cannot_begin_leaves_no_file(tmp_path: pathlib.Path) -> None:
    # GIVEN a profile of before, and a name that is free
    before = tmp_path / "before.json"
    before.write_text("{}")
    # WHEN a recording that is to be saved there cannot begin
    for path in (before, tmp_path / "new.json"):
        with pytest.raises(ValueError, match="memory_mb"):
            spprof.start(output_path=path, memory_limit_mb=10**6)
        with plimsoll.profile(), pytest.raises(RuntimeError, match="active already"):
            spprof.start(output_path=path)
    # THEN there is what there was
    assert list(tmp_path.iterdir()) == [before] and before.read_text() == "{}"


def test_threads_may_register() -> None:
    assert spprof.register_thread() and spprof.unregister_thread()
    with spprof.ThreadProfiler() as profiler:
        assert isinstance(profiler, spprof.ThreadProfiler)


@pytest.mark.skipif(platform.machine() == "x86_64", reason="native frames are recorded on x86-64")
def test_native_frames_are_refused_where_they_cannot_be_recorded() -> None:
    spprof.set_native_unwinding(False)
    for call in (lambda: spprof.set_native_unwinding(True), spprof.capture_native_stack):
        with pytest.raises(RuntimeError, match="Native unwinding not available: native frames .* x86-64"):
            call()
    assert not spprof.native_unwinding_enabled()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="native frames are recorded on x86-64")
def test_native_frames_are_recorded_when_asked_for() -> None:
    assert spprof.native_unwinding_available()
    # GIVEN a recording without native frames, and one with them
    def recorded() -> "set[bool]":
        with spprof.Profiler(interval_ms=1) as profiler:
            harness.burn_in_zlib(0.1)
        assert profiler.profile is not None
        return {frame.is_native for sample in profiler.profile.samples for frame in sample.frames}

    assert recorded() == {False}
    spprof.set_native_unwinding(True)
    try:
        assert spprof.native_unwinding_enabled() and recorded() == {False, True}
    finally:
        spprof.set_native_unwinding(False)


@pytest.mark.skipif(not spprof.native_unwinding_available(), reason="native frames are recorded on x86-64")
def test_the_native_stack_of_now() -> None:
    stack = spprof.capture_native_stack()
    assert os.path.samefile(stack[-1].filename, os.path.realpath(sys.executable))  # where the process began
    main = [frame for frame in stack if frame.symbol in ("Py_BytesMain", "Py_RunMain")]
    assert main and all(frame.resolved and 0 < frame.offset < 100_000 for frame in main)
    assert all("_core" not in frame.filename for frame in stack)
