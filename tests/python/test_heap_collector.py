"""`plimsoll heap PID`: what only the garbage collector knows, and threads that go on until they are stopped."""

from __future__ import annotations

import collections
import json
import pathlib
import sys

import pytest

import harness
from heap_outside import CONTAINERS, Graph, both, take

pytestmark = [
    pytest.mark.skipif(not harness.may_look_at_others(),
                       reason="kernel.yama.ptrace_scope forbids looking at other processes; root may"),
]

LOST = """
import gc, json, sys, threading
import plimsoll.heap
class Lost:
    def __init__(self, number):
        self.number, self.me = number, self
class Ring(list):
    __slots__ = ()
class Kept:
    def __init__(self, number):
        self.number, self.words = number, ["word %d" % number, (number,)]
kept, count, gone = [], 700, threading.Event()
def make():
    for i in range(count):
        Lost(i)
        ring = Ring()
        ring.append((ring, {"of": ring}))
        kept.append(Kept(10**6 + i))
        made = [Ring() for _ in range(i % 50)]  # of which free blocks are left between
def stay():
    make()
    ready.release()
    gone.wait()
gc.disable()
ready = threading.Semaphore(0)
threads = [threading.Thread(target=make) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
staying = threading.Thread(target=stay)
staying.start()
ready.acquire()
make()
del thread, threads
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"kept": id(kept), "count": 5 * count}), flush=True)
sys.stdin.readline()
gone.set()
"""


@pytest.mark.parametrize("malloc", harness.MALLOCS)
def test_finds_what_only_the_collector_knows(tmp_path: pathlib.Path, malloc: str) -> None:
    # GIVEN a program in which threads, of which most have ended, have made objects that hold each other and that nobody
    # else holds, and others
    truth, paths = both(LOST, tmp_path, PYTHONMALLOC=malloc)
    inside, outside = (Graph(path) for path in paths)
    # THEN all are there, not one more, as they are from inside
    lost = {name: {at for at, (of, _) in inside.objects.items() if of == f"__main__.{name}"} for name in ("Lost", "Ring")}
    assert {name: len(found) for name, found in lost.items()} == dict.fromkeys(lost, truth["count"])
    kept = inside.reached_from(truth["kept"], CONTAINERS | {"__main__.Kept"})
    assert len(kept) > 4 * truth["count"]
    for name, found in [*lost.items(), ("Kept", kept)]:
        assert {at: outside.objects.get(at) for at in found} == {at: inside.objects[at] for at in found}
        assert {at: outside.edges[at] for at in found} == {at: inside.edges[at] for at in found}
        assert sum(of == f"__main__.{name}" for of, _ in outside.objects.values()) == truth["count"]


BUSY = """
import json, os, sys, threading
class Kept:
    def __init__(self, number):
        self.number, self.held = number, [number, {"number": number}]
class Passing:
    def __init__(self, other):
        self.other = other
kept = [Kept(i) for i in range(2000)]
begun = threading.Semaphore(0)
def work():
    begun.release()
    table, objects = {}, []
    while True:
        for i in range(3000):
            objects.append(Passing((i, [i])))
            table[i] = objects[-1]
        table, objects = {}, objects[:10]
def short():
    while True:
        thread = threading.Thread(target=lambda: [Passing([i]) for i in range(500)])
        thread.start()
        thread.join()
for target in (work, work, short):
    threading.Thread(target=target, daemon=True).start()
begun.acquire(), begun.acquire()
print(json.dumps({"pid": os.getpid(), "kept": id(kept)}), flush=True)
sys.stdin.readline()
"""


def test_threads_may_be_stopped_anywhere(tmp_path: pathlib.Path) -> None:
    # GIVEN a program whose threads make objects and forget them, end and begin
    with harness.Running([sys.executable, "-c", BUSY]) as running:
        truth = json.loads(running.line())
        # WHEN snapshots are taken of it
        for number in range(5):
            take(truth["pid"], tmp_path / f"{number}.heap")
    # THEN each has what is kept, whole
    for number in range(5):
        found = Graph(tmp_path / f"{number}.heap")
        reached = found.reached_from(truth["kept"], {"list", "__main__.Kept", "dict", "int", "str"})
        counts = collections.Counter(found.objects[at][0] for at in reached)
        # (Up to 3.10 the attributes of an instance are in a dict, too.)
        dicts = 2000 if sys.version_info >= (3, 11) else 4000
        assert (counts["__main__.Kept"], counts["dict"], counts["list"]) == (2000, dicts, 2001)
        assert sum(of == "__main__.Kept" for of, _ in found.objects.values()) == 2000
