"""A program that knows its heap: what there is of its own classes, and where. It says so as JSON, and waits for a line.

With a path it takes a snapshot of itself before."""

from __future__ import annotations

import array
import collections
import functools
import gc
import json
import os
import sys
import weakref


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second


class Plain:
    def __init__(self, name, pair):
        self.name, self.pair = name, pair


class Filled(Plain):
    def __init__(self, name, pair):
        super().__init__(name, pair)
        self.__dict__  # makes a dict of it


class Mixed(Plain):
    """Slots and attributes."""

    __slots__ = ("extra",)


class Mapping(dict):
    pass


class Items(list):
    pass


class Pair(tuple):
    pass


class Queue(collections.deque):
    pass


class Number(int):
    pass


Point = collections.namedtuple("Point", "x y")


def generator(held):
    local = [held]
    yield local
    yield held


def closure(value):
    def inner():
        return value
    return inner


def mixed(number):
    made = Mixed(f"mixed {number}", (number, None))
    made.extra = [number]
    return made


def main():
    keep = {
        "slotted": [Slotted([n], None if n % 2 else (n,)) for n in range(100)],
        "plain": [Plain(f"name {n}", (n, [n])) for n in range(200)],
        "filled": [Filled(f"name {n}", (n, {n})) for n in range(30)],
        "mixed": [mixed(n) for n in range(20)],
        "mappings": [Mapping(a=[n], b=n) for n in range(10)],
        "items": [Items([n, [n]]) for n in range(10)],
        "pairs": [Pair((n, [n])) for n in range(10)],
        "queues": [Queue([n, [n]] * 100) for n in range(5)],
        "numbers": [Number(10**n) for n in range(40)],
        "points": [Point([n], n) for n in range(15)],
        "generators": [generator({n}) for n in range(12)],
        "closures": [closure([n]) for n in range(13)],
        "sets": [{n, (n, n)} for n in range(9)] + [set(range(100))] + [frozenset([(n,)]) for n in range(7)],
        "ordered": [collections.OrderedDict(a=[n], b=n) for n in range(6)],
        "defaults": collections.defaultdict(list, a=[1]),
        "partial": functools.partial(closure, [1], key={2}),
        "general": {(n, n): [n] for n in range(20)},
        "emptied": {n: [n] for n in range(50)},
        "texts": ["plain", "l\xe4nger", "\u4f60\u597d", "\U0001f600", b"bytes", bytearray(1000), array.array("d", [1.5] * 99)],
        "deep": functools.reduce(lambda inner, _: [inner], range(1000), []),
    }
    for n in range(45):
        del keep["emptied"][n]
    for each in keep["generators"][:-1]:
        next(each)
    circle: list = []
    circle.append((circle, {"back": circle}))
    keep["circle"] = circle
    keep["reference"] = weakref.ref(keep["plain"][0])
    keep["method"] = keep["items"][0].append
    try:
        local = [keep["slotted"][1]]
        raise ValueError(local)
    except ValueError as error:
        keep["error"] = error
    secret = ["it is a secret that nobody records", 8675309, b"it's\xff\x00", 100000.0]
    gc.collect()
    if len(sys.argv) > 1:
        import plimsoll.heap
        plimsoll.heap.snapshot(sys.argv[1])
    own = [Slotted, Plain, Filled, Mixed, Mapping, Items, Pair, Queue, Number, Point]
    print(json.dumps({
        "pid": os.getpid(),
        "keep": id(keep),
        "secret": id(secret),
        "counts": {f"__main__.{cls.__name__}": count for cls, count in
                   zip(own, [100, 200, 30, 20, 10, 10, 10, 5, 40, 15])},
        "generators": 12,
    }), flush=True)
    while sys.stdin.readline().strip() == "still there?":
        print("yes", flush=True)


main()
