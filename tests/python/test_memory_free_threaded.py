"""Free-threaded builds: threads that allocate at the same time, sampled and recorded one and all."""

from __future__ import annotations

import gc
import itertools
import pathlib
import threading
from typing import Any, Callable

import pytest

import harness
import plimsoll
from test_memory import near

Write = Callable[..., pathlib.Path]

pytestmark = pytest.mark.skipif(not harness.FREE_THREADED, reason="this build has a GIL: test_memory.py tests what it can")


def test_threads_allocate_at_the_same_time(tmp_path: pathlib.Path, program: Write) -> None:
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
    while any(thread.is_alive() for thread in threads[:-1]) or len(handed) > 0:  # in this order
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
    assert types["__main__.Node"].samples > 0 and near(types["__main__.Node"], 4 * 3000 * node)


#: Before what is in a bytes object.
HEAD = bytes().__sizeof__()
HOW = pytest.mark.parametrize("how", ["exact", "events"])


def own(profile: plimsoll.Profile, view: str, name: str) -> "tuple[float, float]":
    """Blocks and bytes of a function itself, in a view; none if it is not in it."""
    found = [row.own for row in profile.memory(view).rows if row.function.name == name]
    return sum(each.blocks for each in found), sum(each.bytes for each in found)


@HOW
def test_blocks_of_threads_are_counted_to_the_last(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN threads that allocate at the same time: blocks that they keep, that they free at once, and that another
    # thread frees, while the collector stops them now and then
    path = program("""
import gc, itertools, json, sys, threading
BYTES, ARRAY = b"x", bytearray(b"x")  # whose multiples are made without a tuple of arguments
def keep(): return BYTES * 3000
def churn(): return BYTES * 700
def give(): return BYTES * 2000
def tiny(): return ARRAY * 3
def work(index):
    start.wait()
    for _ in itertools.repeat(None, 2000):
        kept[index].append(keep())
        handed[index].append(give())
        churn(); churn(); churn(); tiny()
    done[index] = True
def take_over():
    start.wait()
    while not all(done) or any(handed):
        for given in handed:
            if given: given.pop()
        gc.collect(0)
kept, handed, done, start = [[], [], [], []], [[], [], [], []], [False] * 4, threading.Barrier(5)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)] + [threading.Thread(target=take_over)]
for thread in threads: thread.start()
for thread in threads: thread.join()
gc.collect()
print(json.dumps(sys.getsizeof(b"")))
""")
    recorded = harness.record(tmp_path, path, options=[f"--alloc={how}"])
    head, profile = recorded.truth, recorded.profile
    # THEN each function has the blocks that its threads allocated, in sum, and those that live on
    for name, blocks, size in (("keep", 8000, 3000), ("churn", 24_000, 700), ("give", 8000, 2000)):
        assert own(profile, "alloc", name) == (blocks, blocks * (size + head)), name
        alive = blocks if name == "keep" else 0
        assert own(profile, "live", name) == (alive, alive * (size + head)), name
    # AND so have blocks so small that they are 8 bytes apart
    assert own(profile, "alloc", "tiny")[0] == 2 * 8000 and own(profile, "live", "tiny") == (0, 0)
    types = {row.name: row.all for row in profile.memory("live").types if row.is_object}
    assert types["bytes"].blocks >= 8000
    assert harness.drops(profile) == {}


@HOW
def test_buffers_that_grow_in_several_threads(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN threads whose buffers are moved as they grow, and a list that one of them extends and the others look at,
    # whose former items are freed later: when no thread can be looking at them any more
    path = program("""
import gc, json, sys, threading
def grow(data):
    for _ in range(500):
        data.extend(b"0123456789" * 10)
        data.extend(b"x")
def extend(shared):
    for _ in range(20_000): shared.append(None)
def work(index):
    start.wait()
    grow(buffers[index])
    while not done.is_set(): len(shared) and shared[-1]
def write():
    start.wait()
    extend(shared)
    done.set()
buffers, shared, start, done = [bytearray() for _ in range(3)], [], threading.Barrier(4), threading.Event()
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)] + [threading.Thread(target=write)]
for thread in threads: thread.start()
for thread in threads: thread.join()
gc.collect()
print(json.dumps([sum(sys.getsizeof(data) - sys.getsizeof(bytearray()) for data in buffers),
                  sys.getsizeof(shared) - sys.getsizeof([]) + 8]))
""")
    recorded = harness.record(tmp_path, path, options=[f"--alloc={how}"])
    buffers, items = recorded.truth
    # THEN of each chain the last block is alive, and no other
    assert own(recorded.profile, "live", "grow") == (3, buffers)
    assert own(recorded.profile, "live", "extend") == (1, items)
    assert harness.drops(recorded.profile) == {}


@HOW
def test_stacks_are_those_of_the_thread_that_allocates(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN threads that allocate at the same time, each in functions of its own, at changing depths
    path = program("""
import threading
def make(name):
    space = {"BYTES": b"x"}  # whose multiples are made without a tuple of arguments
    exec(TEXT.replace("NAME", name), space)
    return space[f"{name}_run"]
TEXT = '''
def NAME_leaf(): return BYTES * 1000
def NAME_down(depth): return NAME_leaf() if depth == 0 else NAME_down(depth - 1)
def NAME_run(start):
    start.wait()
    for i in range(3000): NAME_down(i % 7)
'''
start = threading.Barrier(4)
threads = [threading.Thread(target=make(name), args=(start,)) for name in "abcd"]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("{}")
""")
    profile = harness.record(tmp_path, path, options=[f"--alloc={how}"]).profile
    leaves: "dict[str, float]" = {}
    threads: "dict[str, set[int]]" = {}
    for row in profile.allocations:
        names = [frame.function.name for frame in profile.frames_of(row.stack)]
        if not names or not names[-1].endswith("_leaf"):
            continue
        # THEN a block's frames are all of one thread, from its beginning to the block
        own_name = names[-1][0]
        begin = names.index(f"{own_name}_run")
        downs = len(names) - begin - 2
        assert 1 <= downs <= 7
        assert names[begin:] == [f"{own_name}_run"] + [f"{own_name}_down"] * downs + [f"{own_name}_leaf"]
        leaves[own_name] = leaves.get(own_name, 0) + row.blocks
        threads.setdefault(own_name, set()).add(row.thread)
    # AND none is missing
    assert leaves == dict.fromkeys("abcd", 3000)
    assert all(len(each) == 1 for each in threads.values()) and len(set.union(*threads.values())) == 4


@HOW
def test_recordings_that_begin_and_end_while_threads_allocate(tmp_path: pathlib.Path, how: str) -> None:
    # GIVEN threads that allocate, free, and free what others allocated, from before the first recording on
    class Node:
        def __init__(self, other: Any) -> None:
            self.other, self.payload = other, bytearray(100)

    handed: "list[Any]" = [None] * 8
    is_over = threading.Event()

    def work(index: int) -> None:
        for number in itertools.count():
            if is_over.is_set():
                return
            handed[(index * 3 + number) % 8] = Node(handed[number % 8] if number % 5 == 0 else None)
            if number % 50 == 0:
                handed[number % 8] = None

    def keep() -> "list[bytes]":
        return [bytes(5000) for _ in itertools.repeat(None, 200)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    kept = []
    path = tmp_path / "now.plim"
    options: "dict[str, Any]" = {f"alloc_{how}": True}
    try:
        for _ in range(8):
            # WHEN a recording begins, is paused, goes on and ends
            with plimsoll.Profiler(path, **options):
                kept.append(keep())
                plimsoll.pause()
                kept.append(keep())
                plimsoll.resume()
                gc.collect()
            # THEN what the calling thread keeps of it is there, to the block, with its type
            profile = plimsoll.Profile.open(path)
            alive = sum(row.blocks for row in profile.allocations
                        if row.freed_ns is None and row.type == "bytes" and row.bytes == row.blocks * (5000 + HEAD))
            assert alive == 200
            # AND nothing is missing at the end
            assert profile.complete
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@HOW
def test_blocks_of_threads_that_are_gone(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN many threads, one after the other, whose blocks outlive them; half of these are freed by others
    path = program("""
import gc, json, sys, threading
BYTES = b"x"
def give(): return BYTES * 4000
def work(): kept.append([give() for _ in range(100)])
kept = []
for _ in range(60):
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    threading.Thread(target=kept.pop).start()
for thread in threading.enumerate():
    if thread is not threading.current_thread(): thread.join()
gc.collect()
print(json.dumps([len(kept), sys.getsizeof(b"")]))
""")
    recorded = harness.record(tmp_path, path, options=[f"--alloc={how}"])
    lists, head = recorded.truth
    assert lists == 60
    assert own(recorded.profile, "alloc", "give") == (12_000, 12_000 * (4000 + head))
    assert own(recorded.profile, "live", "give") == (6000, 6000 * (4000 + head))


@HOW
def test_forks_while_threads_allocate(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN a program that forks while its threads allocate, and whose children go on with what they have
    path = program("""
import gc, itertools, json, os, threading
def keep(count): return [bytes(6000) for _ in itertools.repeat(None, count)]
def churn():
    data = []
    while not done.is_set():
        data.append(bytes(300))
        if len(data) > 50: data.clear()
done = threading.Event()
threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads: thread.start()
before, statuses = keep(100), []
for number in range(5):
    child = os.fork()
    if child == 0:
        del before
        after = keep(30)
        gc.collect()
        os._exit(0)
    statuses.append(os.waitpid(child, 0)[1])
done.set()
for thread in threads: thread.join()
print(json.dumps(statuses))
""")
    for options in ([], ["--children"]):
        recorded = harness.record(tmp_path, path, options=[f"--alloc={how}", *options])
        # THEN all of them come to their ends, and the parent has its blocks
        assert recorded.truth == [0] * 5
        alive = sum(row.blocks for row in recorded.profile.allocations
                    if row.freed_ns is None and row.type == "bytes" and row.bytes == row.blocks * (6000 + HEAD))
        assert alive == 100
