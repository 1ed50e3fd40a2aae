"""Free-threaded builds: threads that allocate at the same time, and what cannot be recorded there."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest

import harness
import plimsoll
from test_memory import near

pytestmark = pytest.mark.skipif(not harness.FREE_THREADED, reason="this build has a GIL: test_memory.py tests what it can")


def test_they_say_that_they_cannot_record_all(tmp_path: pathlib.Path) -> None:
    with pytest.raises(plimsoll.UnsupportedError, match="free-threaded.*--alloc"):
        plimsoll.Profiler(alloc_exact=True).start()
    # and nothing is left behind that would keep the next recording from starting
    with plimsoll.Profiler():
        pass
    finished = harness.plimsoll_run("-c", "print('fine')", options=["--alloc=exact", "-o", tmp_path / "a.plim"]).expect(0)
    assert finished.out == "fine\n" and "free-threaded" in finished.err


def test_threads_allocate_at_the_same_time(tmp_path: pathlib.Path, program: Callable[..., pathlib.Path]) -> None:
    # GIVEN threads that allocate and free without waiting for each other, and free what another thread has allocated,
    # while the collector runs
    path = program("""
import gc, itertools, sys, threading
class Node:
    __slots__ = ("payload",)
def fill(node):
    node.payload = bytearray(1000)
    return node
def keep():
    return [fill(Node()) for _ in itertools.repeat(None, 3000)]
def churn():
    for _ in itertools.repeat(None, 20_000): bytearray(500)
def give(): return bytearray(2000)
def hand_over():
    handed.extend([give() for _ in itertools.repeat(None, 2000)])
def take_over():
    start.wait()
    while len(handed) > 0 or any(thread.is_alive() for thread in threads[:-1]):
        try:
            handed.pop()
        except IndexError:
            gc.collect()
def work(index):
    start.wait()
    kept[index] = keep()
    churn()
    hand_over()
kept, handed, start = [None] * 4, [], threading.Barrier(5)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)] + [threading.Thread(target=take_over)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print([len(nodes) for nodes in kept] + [sys.getsizeof(Node()), sys.getsizeof([None] * 3000)])
""")
    recorded = harness.record(tmp_path, path, options=["--alloc=4K"])
    assert recorded.truth[:4] == [3000] * 4
    node, nodes = recorded.truth[4:]
    # THEN each function has what its threads allocated, in sum, and what of it lives on
    allocated, live = recorded.profile.memory("alloc"), recorded.profile.memory("live")
    assert near(allocated.of("churn").own, 4 * 20_000 * (bytearray(500).__sizeof__()))
    assert near(allocated.of("give").own, 4 * 2000 * bytearray(2000).__sizeof__())
    alive = {row.function.name: row.own.bytes for row in live.rows}
    assert alive.get("give", 0) < 0.05 * allocated.of("give").own.bytes
    assert near(live.of("fill").own, 4 * 3000 * bytearray(1000).__sizeof__())
    assert near(live.of("keep").own, 4 * (3000 * node + nodes))
    # and the objects' types are known, those of the collector, too
    types = {row.name: row.all for row in live.types if row.is_object}
    assert types["Node"].samples > 0 and near(types["Node"], 4 * 3000 * node)
