"""Allocations, all of them, as sums and one by one: counts and bytes are those of the program, not estimates."""

from __future__ import annotations

import collections
import datetime
import decimal
import gc
import json
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from typing import Any, Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]


Recorded = Callable[[Callable[[], object]], "tuple[plimsoll.Profile, Any]"]


@pytest.fixture(params=["exact", "events"])
def how(request: pytest.FixtureRequest) -> str:
    """What `--alloc` is set to."""
    return str(request.param)


@pytest.fixture
def recorded(tmp_path: pathlib.Path, how: str) -> Recorded:
    """Gives the profile of a call, and what it returned."""
    def record(work: Callable[[], object]) -> "tuple[plimsoll.Profile, Any]":
        gc.collect()
        path = tmp_path / "exact.plim"
        with plimsoll.Profiler(path, alloc_exact=how == "exact", alloc_events=how == "events"):
            result = work()
        return plimsoll.Profile.open(path), result

    return record


def own(profile: Any, view: str, name: str) -> "tuple[float, float]":
    """Blocks and bytes of a function itself, in a view."""
    estimate = profile.memory(view).of(name).own
    assert estimate.low == estimate.bytes == estimate.high
    return estimate.blocks, estimate.bytes


def keep(count: int, size: int) -> "list[bytes]":
    kept = [b""] * count
    for at in range(count):
        kept[at] = bytes(size)
    return kept


BYTES_HEAD = sys.getsizeof(b"")
#: Before a list's items; free-threaded builds keep there how many there is room for.
ITEMS_HEAD = 8 if harness.FREE_THREADED else 0


def test_blocks_and_bytes_are_those_of_the_program(recorded: Recorded) -> None:
    # GIVEN a function that keeps a thousand blocks of 3000 bytes, in a list that is made at once
    profile, kept = recorded(lambda: keep(1000, 3000))
    # THEN what is alive of it is exactly that: the blocks, and the list's items
    alive: "collections.Counter[tuple[str, str]]" = collections.Counter()
    sizes: "collections.Counter[tuple[str, str]]" = collections.Counter()
    for row in profile.allocations:
        if row.freed_ns is None and profile.frames_of(row.stack)[-1].function.name == "keep":
            alive[row.domain, row.type] += row.blocks
            sizes[row.domain, row.type] += row.bytes
    assert (alive["object", "bytes"], sizes["object", "bytes"]) == (1000, 1000 * (3000 + BYTES_HEAD))
    assert (alive["memory", ""], sizes["memory", ""]) == (1, ITEMS_HEAD + 8 * 1000)
    # AND of other objects the list and a few numbers at most, which Python may have had already, or keep for reuse
    assert sum(blocks for (domain, kind), blocks in alive.items() if domain == "object" and kind != "bytes") < 10
    del kept


def test_a_row_of_several_blocks_has_the_size_of_one(recorded: Recorded) -> None:
    profile, kept = recorded(lambda: keep(1000, 3000))
    rows = [row for row in profile.allocations if row.freed_ns is None and row.type == "bytes"
            and profile.frames_of(row.stack)[-1].function.name == "keep"]
    assert sum(row.blocks for row in rows) == 1000
    assert {row.size for row in rows} == {3000 + BYTES_HEAD}
    assert all(row.bytes == row.size * row.blocks for row in rows)
    del kept


class Plain:
    pass


def test_what_lives_is_known_by_its_type(recorded: Recorded) -> None:
    # GIVEN a thousand objects of each of some classes, of which Python keeps few for reuse
    def work() -> "list[Any]":
        return [(str(100 + i), f"{i}\u20ac", b"x" * (1 + i % 50), 2 ** 70 + i, Plain(), bytearray(9), {i, -i}, frozenset((i, -i)),
                 datetime.datetime(1 + i, 1, 1), datetime.datetime(1 + i, 1, 1, tzinfo=datetime.timezone.utc),
                 datetime.time(i % 24), datetime.date(1 + i, 1, 1), datetime.timedelta(i), decimal.Decimal(i) / 7,
                 collections.deque((i,)), collections.OrderedDict()) for i in range(1, 1001)]

    profile, kept = recorded(work)
    # WHEN the living are counted by type
    blocks = {row.name: row.all.blocks for row in profile.memory("live").types if row.is_object}
    # THEN all are there, however short they are
    expected = {"str": 2000, "datetime.datetime": 2000,
                **dict.fromkeys(("bytes", "int", f"{__name__}.Plain", "bytearray", "set", "frozenset", "datetime.time", "datetime.date",
                                 "datetime.timedelta", "decimal.Decimal", "collections.deque",
                                 "collections.OrderedDict"), 1000)}
    assert {name: blocks.get(name) for name, count in expected.items() if blocks.get(name, 0) < 0.9 * count} == {}
    del kept


def test_types_at_the_peak_are_of_what_lives_on(recorded: Recorded, how: str) -> None:
    # GIVEN objects that live on, a peak, and others that come later
    class Late:
        pass

    def work() -> object:
        kept = [Plain() for _ in range(1000)]
        bytes(10_000_000)
        return kept, [Late() for _ in range(1000)]

    profile, kept = recorded(work)
    # WHEN what was alive at the peak is told by types THEN none is lost, or of what was not there
    peak = profile.memory("peak")
    assert sum(row.all.bytes for row in peak.types) == peak.all.bytes
    types = {row.name.rpartition(".")[2]: row.all.blocks for row in peak.types if row.is_object}
    assert "Late" not in types
    # AND they are known (with sums, where one was taken before the peak)
    if how == "events":
        assert types["Plain"] == 1000
    del kept


def test_all_views_are_sums_of_the_same_blocks(recorded: Recorded) -> None:
    def work() -> "list[bytes]":
        keep(500, 2000)
        return keep(100, 700)

    profile, kept = recorded(work)
    rows = profile.allocations
    for view in ("alloc", "live", "peak", "leaks", "temporary"):
        memory = profile.memory(view)
        # THEN functions and types come to the whole
        assert sum(row.own.bytes for row in memory.rows) == memory.all.bytes
        assert sum(row.own.blocks for row in memory.rows) == memory.all.blocks
        assert sum(row.all.bytes for row in memory.types) == memory.all.bytes
    assert sum(row.bytes for row in rows) == profile.memory("alloc").all.bytes
    assert sum(row.bytes for row in rows if row.freed_ns is None) == profile.memory("live").all.bytes
    # AND at the peak the five hundred were alive
    assert profile.memory("peak").of("keep").own.bytes >= 500 * 2000
    del kept


def test_agrees_with_tracemalloc(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN a program that measures with tracemalloc what it keeps of a call, by line, while it is recorded
    path = program(textwrap.dedent("""\
        import json, tracemalloc
        def work():
            kept = [str(i) * 3 for i in range(5000)]
            kept.extend(bytearray(i) for i in range(0, 4000, 7))
            return {"kept": kept}
        tracemalloc.start()
        kept = work()
        blocks = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)]).traces
        inside = [one for one in blocks if 3 <= one.traceback[0].lineno <= 5]
        tracemalloc.stop()
        print(json.dumps([len(inside), sum(one.size for one in inside)]))
    """))
    found = harness.record(tmp_path, path, options=[f"--alloc={how}"])
    profile = found.profile
    # (what tracemalloc itself has of the raw allocator is seen, too: it was there before)
    innermost = [(row, profile.frames_of(row.stack)[-1]) for row in profile.allocations
                 if row.freed_ns is None and row.domain != "raw"]
    live = [row for row, frame in innermost if frame.function.file == str(path) and 3 <= frame.line <= 5]
    # THEN it is the same, to the byte
    assert [sum(row.blocks for row in live), sum(row.bytes for row in live)] == found.truth


def test_a_chain_of_reallocs_counts_each_step(recorded: Recorded) -> None:
    def grow() -> bytearray:
        data = bytearray()
        for _ in range(4):
            more = bytes(1000)  # on a line of its own, by which stacks are told apart
            data.extend(more)
            del more
        return data

    profile, data = recorded(grow)
    assert isinstance(data, bytearray)
    # THEN one buffer is alive, of what the bytearray has, and none of its former ones
    name = next(row.function.name for row in profile.memory("live").rows if row.function.name.endswith("grow"))
    # (and what Python keeps for reuse of the loop, from 3.14 on)
    blocks, size = own(profile, "live", name)
    assert 2 <= blocks <= 4 and 0 <= size - sys.getsizeof(data) < 200
    # AND no former one passes for temporary, as its contents lived on
    assert own(profile, "temporary", name)[1] < 5 * (1000 + BYTES_HEAD)


def test_blocks_that_other_threads_free(recorded: Recorded) -> None:
    box: "list[Any]" = []

    def work() -> None:
        box.append(keep(300, 5000))
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()

    profile, _ = recorded(work)
    live = {row.function.name: row.own.bytes for row in profile.memory("live").rows}
    assert live.get("keep", 0) < 200  # what Python keeps for reuse, from 3.14 on
    assert own(profile, "alloc", "keep")[1] >= 300 * 5000


def test_cycles_are_alive_until_they_are_collected(recorded: Recorded) -> None:
    class Node:
        def __init__(self) -> None:
            self.me, self.data = self, bytes(10_000)

    def work() -> None:
        gc.disable()
        for _ in range(10):
            Node()
        gc.collect()
        gc.enable()

    profile, _ = recorded(work)
    def of_node(view: str) -> float:
        return sum(row.own.bytes for row in profile.memory(view).rows
                   if row.function.name.endswith("__init__") and row.function.file == __file__)

    assert of_node("peak") >= 10 * 10_000
    assert of_node("live") < 1000  # what the class keeps: the names of its attributes


def test_temporary_blocks(recorded: Recorded) -> None:
    def churn() -> None:
        for _ in range(1000):
            bytes(4000)

    profile, _ = recorded(churn)
    name = next(row.function.name for row in profile.memory("temporary").rows if row.function.name.endswith("churn"))
    # (a block whose free was put off for a millisecond, as the CPU was, is none if times are known)
    blocks, size = own(profile, "temporary", name)
    assert blocks >= 950 and size >= 950 * (4000 + BYTES_HEAD)


def test_a_recording_without_memory_for_a_block(recorded: Recorded) -> None:
    def work() -> None:
        with pytest.raises(MemoryError):
            bytes(1 << 60)

    profile, _ = recorded(work)
    assert profile.memory("alloc").all.bytes < 1 << 40


@pytest.mark.parametrize("python_malloc", harness.MALLOCS)
def test_with_other_allocators_below(tmp_path: pathlib.Path, python_malloc: str, how: str) -> None:
    found = harness.record(tmp_path, harness.TARGETS / "allocations.py", "1", options=[f"--alloc={how}"],
                           env={"PYTHONMALLOC": python_malloc})
    live = found.profile.memory("live")
    for function, truth in found.truth.items():
        if truth["live"]:
            assert live.of(function).own.bytes == pytest.approx(truth["live"], rel=0.02)


def test_blocks_outlive_the_recording_and_other_tools_may_come_and_go(recorded: Recorded) -> None:
    kept = []
    for _ in range(3):
        profile, now = recorded(lambda: keep(100, 100))
        kept.append(now)
        tracemalloc.start()
        profile, now = recorded(lambda: keep(100, 100))
        kept.append(now)
        tracemalloc.stop()
        assert own(profile, "live", "keep")[0] in range(101, 105)
    del kept, now
    gc.collect()


def test_a_forked_child_goes_on_with_its_memory(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    path = program(textwrap.dedent("""\
        import json, os
        def keep(count):
            kept = [b""] * count
            for at in range(count):
                kept[at] = bytes(3000)
            return kept
        before = keep(100)
        child = os.fork()
        if child == 0:
            del before
            after = keep(50)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        print(json.dumps(status))
    """))
    found = harness.record(tmp_path, path, options=[f"--alloc={how}", "--children"])
    assert found.truth == 0
    assert found.profile.memory("live").of("keep").own.blocks >= 100


def test_the_file_of_a_killed_program_can_be_read(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    path = program(textwrap.dedent("""\
        import os, signal, sys
        import plimsoll
        def keep():
            return [bytes(1000) for _ in range(1000)]
        plimsoll.Profiler(sys.argv[1], **{"alloc_" + sys.argv[2]: True}).start()
        kept = keep()
        from plimsoll import _recording
        _recording.active().flush()
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    plim = tmp_path / "killed.plim"
    subprocess.run([sys.executable, str(path), str(plim), how], check=False)
    profile = plimsoll.Profile.open(plim)
    assert profile.memory("live").all.bytes >= 1000 * 1000
    assert not profile.complete


IDLE = """\
import sys
import plimsoll
def keep():
    return [bytes(1000) for _ in range(1000)]
plimsoll.Profiler(sys.argv[1], **{"alloc_" + sys.argv[2]: True}).start()
kept = keep()
print("kept")
sys.stdout.flush()
sys.stdin.read()
"""


def test_what_an_idle_program_holds_is_in_the_file_when_it_is_killed(tmp_path: pathlib.Path, program: Write,
                                                                     how: str) -> None:
    # GIVEN a program that has allocated, and waits for somebody
    plim = tmp_path / "killed.plim"
    with harness.Running([sys.executable, program(IDLE), plim, how]) as running:
        running.line()
        # WHEN it is given time, and killed without another allocation
        deadline = time.monotonic() + 60
        while not plim.exists() or plimsoll.Profile.open(plim).memory("live").all.bytes < 1000 * 1000:
            assert time.monotonic() < deadline, "it is never told"
            time.sleep(0.05)
        running.process.kill()
        running.process.wait()
    # THEN it is there, and the views say that the end is not
    assert plimsoll.Profile.open(plim).memory("live").of("keep").total.bytes >= 1000 * 1000
    for view in ("live", "memory"):
        shown = harness.plimsoll_command("show", plim, view).expect(0).out
        assert "exact, but for its last moments: the recording was cut short" in shown
        assert "every allocation was recorded" not in shown


def test_what_an_idle_program_holds_is_in_the_file_when_it_is_terminated(tmp_path: pathlib.Path, program: Write,
                                                                         how: str) -> None:
    # GIVEN a program that waits, as the worker of a multiprocessing.Pool does
    plim = tmp_path / "terminated.plim"
    with harness.Running([sys.executable, program(IDLE), plim, how]) as running:
        running.line()
        running.await_sleep()
        # WHEN it is told to end THEN nothing is lost
        running.process.terminate()
        assert running.process.wait() == -signal.SIGTERM
    assert plimsoll.Profile.open(plim).memory("live").of("keep").total.bytes >= 1000 * 1000


def test_blocks_of_before_an_idle_while_are_of_before_it(recorded: Recorded) -> None:
    # GIVEN blocks that live as long as the program does nothing, and others that come right after
    def work() -> "list[bytes]":
        kept = keep(100, 3000)
        time.sleep(1)
        del kept
        return keep(10, 5000)
    profile, kept = recorded(work)
    # THEN what is told of times knows that they were not there at the same time
    old = [row for row in profile.allocations if row.bytes == row.blocks * (3000 + BYTES_HEAD)]
    new = [row for row in profile.allocations if row.bytes == row.blocks * (5000 + BYTES_HEAD)]
    assert sum(row.blocks for row in old) == 100 and sum(row.blocks for row in new) == 10
    for row in old:
        assert row.time_ns < row.freed_ns <= min(other.time_ns for other in new)
    del kept


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_program_may_limit_its_address_space(tmp_path: pathlib.Path, program: Write, how: str,
                                               is_loaded: bool) -> None:
    # GIVEN a program that has the module which sets limits before the recording, or gets it later
    path = program(f"""\
import sys
if {is_loaded}:
    import resource
import plimsoll
with plimsoll.Profiler(sys.argv[1], **{{sys.argv[2]: 4096 if sys.argv[2] == "alloc_bytes" else True}}):
    import resource
    # WHEN it sets one that is less than what is reserved
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    # THEN it has that for itself, large blocks and small
    kept = [bytes(1 << 20) for _ in range(1000)] + [bytes(100) for _ in range(100_000)]
print("fine")
""")
    for option in (f"alloc_{how}", "alloc_bytes"):
        finished = harness.python(path, tmp_path / "limited.plim", option).expect(0)
        assert finished.out == "fine\n"
        assert plimsoll.Profile.open(tmp_path / "limited.plim").memory("live").all.bytes > 1000 << 20


def test_parts_of_the_time(tmp_path: pathlib.Path, recorded: Recorded) -> None:
    # GIVEN blocks from the beginning, and a time in which nothing happens
    def work() -> "list[bytes]":
        kept = keep(100, 3000)
        time.sleep(0.5)
        return kept
    profile, kept = recorded(work)
    plim = tmp_path / "exact.plim"
    # WHEN memory is asked for the second half of it THEN what was alive in it is shown, in moments of it
    half_ns = max(row.time_ns for row in profile.allocations if row.bytes == row.blocks * (3000 + BYTES_HEAD))
    words = ["--from", f"{half_ns / 1e9:.6f}s", "--limit", "4", "--json"]
    moments = json.loads(harness.plimsoll_command("show", plim, "memory", *words).expect(0).out)["moments"]
    assert len(moments) == 4
    assert all(moment["at_ns"] >= half_ns and moment["alive"]["bytes"] > 100 * 3000 for moment in moments)
    # AND a question that cannot be answered is refused
    for words in (["peak", "--from", "100ms"], ["memory", "--limit", "0"]):
        assert harness.plimsoll_command("show", plim, *words).expect(2).out == ""
    # in Python, too, whichever way it is put
    with pytest.raises(ValueError, match="peak of one process over all its time"):
        profile.filter(start=0.1).memory("peak")
    for view, times in (("peak", {"start": 0.1}), ("alloc", {"end": 0.1}), ("live", {"within": 0.1})):
        with pytest.raises(ValueError, match="is a time for"):
            profile.memory(view, **times)
    assert 0 < profile.filter(function="keep").memory("peak").all.bytes <= profile.memory("peak").all.bytes
    del kept


def test_views_say_exact(tmp_path: pathlib.Path, recorded: Recorded) -> None:
    profile, _ = recorded(lambda: keep(10, 1000))
    assert " blocks\n" in str(profile.memory("alloc")) and " to " not in str(profile.memory("alloc"))
    plim = tmp_path / "exact.plim"
    for view in ("alloc", "live", "peak", "leaks", "temporary", "types"):
        shown = json.loads(harness.plimsoll_command("show", plim, view, "--json").expect(0).out)
        assert shown["confidence"] == "exact" and shown["lost"] == 0
        assert shown["all"]["low"] == shown["all"]["bytes"] == shown["all"]["high"]


def test_views_of_a_time_say_when_sums_were_taken(tmp_path: pathlib.Path, recorded: Recorded, how: str) -> None:
    # GIVEN a program that keeps a block every 10 ms
    def work() -> object:
        kept = []
        for _ in range(60):
            kept.append(bytes(100_000))
            time.sleep(0.01)
        return kept

    profile, kept = recorded(work)
    # WHEN what is alive at a time is shown
    plim = tmp_path / "exact.plim"
    shown = harness.plimsoll_command("show", plim, "live", "--at", "0.4s").expect(0).out
    data = json.loads(harness.plimsoll_command("show", plim, "live", "--at", "0.4s", "--json").expect(0).out)
    if how == "events":
        assert "sums were taken" not in shown and "sums_taken_ns" not in data
        return
    # THEN it is told of when it really is, and that is so
    assert "when sums were taken" in shown
    then = data["sums_taken_ns"] / 1e9
    assert 0.2 < then <= 0.4
    assert data["all"]["bytes"] == profile.memory("live", end=then).all.bytes
    assert profile.memory("live", end=then - 0.001).all.bytes < data["all"]["bytes"]


def test_options_that_exclude_each_other(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="alloc_exact"):
        plimsoll.Profiler(tmp_path / "none.plim", alloc_exact=True, alloc_bytes=4096)


def test_events_tell_how_long_blocks_lived(tmp_path: pathlib.Path) -> None:
    # GIVEN blocks that live for a known while, beside others that are freed at once
    path = tmp_path / "events.plim"
    with plimsoll.Profiler(path, alloc_events=True):
        for _ in range(20_000):
            bytes(700)
        before = time.monotonic()
        kept = keep(100, 2500)
        began = time.monotonic()
        time.sleep(0.25)
        held = time.monotonic() - began
        del kept
        most = time.monotonic() - before
        late = keep(10, 2500)
    profile = plimsoll.Profile.open(path)
    # WHEN their rows are looked at
    lived = [(row.freed_ns - row.time_ns) / 1e9 for row in profile.allocations
             if row.freed_ns is not None and row.bytes == row.blocks * (2500 + BYTES_HEAD)
             for _ in range(int(row.blocks))]
    # THEN each lived that long, to a sixteenth
    assert len(lived) == 100
    assert all(held * 15 / 16 <= one <= most * 17 / 16 for one in lived), (held, most, min(lived), max(lived))
    # AND the many are told to have lived for less than 100 us, but for those that an interruption held up
    shown = json.loads(harness.plimsoll_command("show", path, "temporary", "--within", "100us", "--json").expect(0).out)
    assert shown["all"]["blocks"] >= 19_000
    # AND at the end ten others are alive
    assert own(profile, "live", "keep")[0] in range(10, 15)
    del late


def test_a_file_of_events_grows_with_them_and_little(tmp_path: pathlib.Path) -> None:
    # GIVEN the same work, recorded as sums and as events
    sizes, blocks = {}, {}
    for how in ("alloc_exact", "alloc_events"):
        path = tmp_path / f"{how}.plim"
        options: "dict[str, Any]" = {how: True}
        with plimsoll.Profiler(path, **options):
            for number in range(100_000):
                str(number) * 40
        sizes[how] = path.stat().st_size
        blocks[how] = plimsoll.Profile.open(path).memory("alloc").all.blocks
    # THEN both count the same, and an event, of which a block has two, takes less than two bytes
    assert blocks["alloc_events"] == pytest.approx(blocks["alloc_exact"], rel=0.01)
    assert sizes["alloc_events"] - sizes["alloc_exact"] < 2 * 2 * blocks["alloc_events"]
