#!/usr/bin/env python3
"""What heap snapshots cost, side by side with gc.collect(), guppy3, Pympler and objgraph, on heaps of known size.

    python bench/heap.py [--objects 1000000 5000000] [--aged]

Each tool runs in a process of its own, on the same heap. Times are CPU time of all threads, so that a busy machine
changes little, and where threads help also that of the program's own thread and that of the clock; memory is by how
much the process's peak grew. Tools that are not installed are left out. For how long the program stands still is also
measured by turns with collections, in one process.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

# Objects that one record is made of, itself and its number among them.
OBJECTS_A_RECORD = 7


class User:
    def __init__(self, number: int) -> None:
        self.number = 10**6 + number
        self.name = "user %d" % number
        self.tags: "list[object]" = []
        self.extra = {"key": self}
        self.place = (number + 0.5, None)


def make_heap(objects: int, aged: bool) -> "list[User]":
    """Records one after another; aged: after three rounds in which two thirds are replaced in random order."""
    users = [User(number) for number in range(objects // OBJECTS_A_RECORD)]
    generator = random.Random(7)
    for _ in range(3 if aged else 0):
        for place in generator.sample(range(len(users)), 2 * len(users) // 3):
            users[place] = User(place)
    if aged:
        generator.shuffle(users)
    gc.collect()
    return users


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(work: "Callable[[], Any]") -> "dict[str, Any]":
    before, start, own, clock = peak_bytes(), time.process_time(), time.thread_time(), time.perf_counter()
    result = work()
    return {"seconds": time.process_time() - start, "own": time.thread_time() - own,
            "clock": time.perf_counter() - clock, "bytes": peak_bytes() - before, **(result or {})}


def times(one: "dict[str, Any]") -> str:
    return f"{one['seconds']:.3f} s ({one['own']:.3f} s of its own thread, {one['clock']:.3f} s by the clock)"


def by_plimsoll(path: str) -> "dict[str, Any]":
    import plimsoll.heap

    taken = plimsoll.heap.snapshot(path)
    return {"objects": taken.objects, "file": taken.file_bytes}


def by_fork(path: str) -> "dict[str, Any]":
    import plimsoll.heap

    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    taken = plimsoll.heap.fork_snapshot(path).wait()
    return {"objects": taken.objects, "pause": taken.stop_time, "resident": resident}


def by_collector(_: str) -> None:
    gc.collect()


def by_guppy(_: str) -> "dict[str, Any]":
    from guppy import hpy

    heap = hpy().heap()
    str(heap.bytype)
    return {"objects": heap.count}


def by_pympler(_: str) -> "dict[str, Any]":
    from pympler import muppy, summary

    objects = muppy.get_objects()
    summary.summarize(objects)
    return {"objects": len(objects)}


def by_objgraph(_: str) -> "dict[str, Any]":
    import objgraph

    return {"objects": sum(count for _, count in objgraph.most_common_types(limit=10**6))}


def read_again(path: str) -> "dict[str, Any]":
    import plimsoll.heap

    return {"objects": len(plimsoll.heap.open(path))}


def retained(path: str) -> "dict[str, Any]":
    """Reading it, and the dominators and retained sizes of all; peak memory is that of both."""
    import plimsoll.heap

    heap = plimsoll.heap.open(path)
    start = time.process_time()
    len(heap.retained)
    return {"objects": len(heap), "dominators": time.process_time() - start}


def exported(path: str) -> "dict[str, Any]":
    import plimsoll.heap

    heap = plimsoll.heap.open(path)
    start = time.process_time()
    heap.export(path + ".heapsnapshot")
    os.unlink(path + ".heapsnapshot")
    return {"objects": len(heap), "export": time.process_time() - start}


TAKERS = {"plimsoll": by_plimsoll, "plimsoll, forked": by_fork, "gc.collect()": by_collector, "guppy3": by_guppy,
          "Pympler": by_pympler, "objgraph": by_objgraph}
NEEDS = {"guppy3": "guppy", "Pympler": "pympler", "objgraph": "objgraph"}
def by_turns(path: str, rounds: int = 15) -> "dict[str, Any]":
    """Seconds by the clock for which the program stands still: for a collection, and for a snapshot; medians."""
    import plimsoll.heap

    collections, stops = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        gc.collect()
        collections.append(time.perf_counter() - start)
        stops.append(plimsoll.heap.snapshot(path).stop_time)
    return {"collection": statistics.median(collections), "stop": statistics.median(stops),
            "ratio": statistics.median(stop / collection for stop, collection in zip(stops, collections))}


READERS = {"open": read_again, "retained": retained, "export": exported}


def run_one(name: str, objects: int, aged: bool, path: str) -> None:
    """In a process of its own: prints what was measured."""
    if name in READERS:
        print(json.dumps(measured(lambda: READERS[name](path))))
        return
    heap = make_heap(objects, aged)
    if name.startswith("plimsoll"):
        import plimsoll.heap  # noqa: F401 (which is not what is measured)
    print(json.dumps(by_turns(path) if name == "turns" else measured(lambda: TAKERS[name](path))))
    del heap


def in_a_process(name: str, objects: int, aged: bool, path: str) -> "dict[str, Any]":
    words = [sys.executable, __file__, "--one", name, "--path", path, "--objects", str(objects)]
    done = subprocess.run(words + (["--aged"] if aged else []), capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def compare(objects: int, aged: bool, path: str) -> None:
    print(f"\n{objects:,} objects, {'aged' if aged else 'fresh'}, Python {sys.version.split()[0]}")
    for name in TAKERS:
        if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
            print(f"  {name:18} (not installed)")
            continue
        one = in_a_process(name, objects, aged, path)
        count = one.get("objects", 0)
        told = f"  {name:18} {times(one)}  +{one['bytes'] / 1e6:6.0f} MB"
        if count:
            told += f"  {count:>10,} objects, {count / one['seconds'] / 1e6:6.2f} million/s"
        if "file" in one:
            told += f", {one['file'] / count:.2f} bytes/object in the file"
        if "pause" in one:
            told += f", stopped for {one['pause'] * 1e3:.1f} ms ({one['pause'] * 1e12 / one['resident']:.1f} ms/GB)"
        print(told, flush=True)
    turns = in_a_process("turns", objects, aged, path)
    print(f"  by turns, the program stands still for {turns['stop']:.3f} s, for gc.collect() "
          f"{turns['collection']:.3f} s; ratio {turns['ratio']:.2f}")
    opened = in_a_process("open", objects, aged, path)
    held = in_a_process("retained", objects, aged, path)
    out = in_a_process("export", objects, aged, path)
    count = opened["objects"]
    print(f"  reopen {times(opened)}; dominators {held['dominators'] * 1e6 / count:.3f} us/object, "
          f"peak {held['bytes'] / count:.0f} bytes/object; .heapsnapshot {count / out['export'] / 1e6:.2f} million/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--aged", action="store_true", help="of heaps that have been changed in random order")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return run_one(options.one, options.objects[0], options.aged, options.path)
    with tempfile.TemporaryDirectory() as directory:
        for objects in options.objects:
            compare(objects, options.aged, os.path.join(directory, "x.heap"))


if __name__ == "__main__":
    main()
