"""Sizes in heap snapshots against the allocator's own account."""

from __future__ import annotations

import ctypes
import io
import pathlib
import sys
from typing import Any

import pytest

import harness
from heap_rules import run, take

FREE_THREADED = harness.FREE_THREADED
__all__ = ["take"]  # a fixture

# Makes many objects of a kind and prints what the allocator says they take, and what the snapshot says.
SIZES = """
    import json, os, sys, tempfile, plimsoll.heap, gc
    def allocated():
        # A line of sys._debugmallocstats(), which goes to descriptor 2.
        with tempfile.TemporaryFile() as file:
            saved = os.dup(2)
            os.dup2(file.fileno(), 2)
            sys._debugmallocstats()
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            for line in file.read().decode().splitlines():
                if line.startswith("# bytes in allocated blocks"):
                    return int(line.split("=")[1].replace(",", ""))
    def attributes(count):
        class Made:
            def __init__(self):
                for i in range(count):
                    setattr(self, "field_%d" % i, None)
        made = Made
        for _ in range(200):
            made()  # settles how much room new instances get
        return made
    class Slots:
        __slots__ = ("a", "b", "c")
    class Words(str):
        pass
    class Pair(tuple):
        __slots__ = ()
    class Table(dict):
        pass
    kinds = {
        "attributes %d" % count: attributes(count) for count in (0, 1, 2, 3, 5, 8, 13, 20, 29)
    }
    kinds.update({
        "slots": Slots, "object": object, "float": lambda i: i + 0.5, "int": lambda i: 10**30 + i,
        "str": lambda i: "word %d" % (i + 10**6), "wide str": lambda i: "\\u2211%d" % (i + 10**6),
        "bytes": lambda i: b"%d" % (i + 10**9), "tuple": lambda i: (i, None, None), "list": lambda i: [None] * 7,
        "grown list": lambda i: [x for x in range(5)], "dict": lambda i: {1: None, 2: None},
        "set": lambda i: {1, 2, 3}, "frozenset": lambda i: frozenset((1, 2)),
        "function": lambda i: lambda: None, "bytearray": lambda i: bytearray(100), "complex": lambda i: complex(i),
        "method": lambda i: kinds.get, "Pair": lambda i: Pair((1, 2, 3)), "slice": lambda i: slice(i, None),
        "range": lambda i: range(3), "words": lambda i: Words("x" * 20),
    })
    makes = {name: (lambda i, kind=kind: kind()) if isinstance(kind, type) else kind for name, kind in kinds.items()}
    count = 1000
    given = {}
    kept = {name: [None] * count for name in makes}
    numbers = list(range(count))
    gc.collect()
    gc.disable()
    for name, make in makes.items():
        keep = kept[name]
        start = allocated()
        for i in numbers:
            keep[i] = make(i)
        given[name] = allocated() - start
    kind_of = {id(each): name for name, keep in kept.items() for each in keep}
    if sys.version_info < (3, 11):
        for name, keep in kept.items():
            if name.startswith("attributes"):
                kind_of.update((id(held), name) for each in keep for held in gc.get_referents(each)
                               if type(held) is dict)
    plimsoll.heap.snapshot(sys.argv[1])
    heap = plimsoll.heap.open(sys.argv[1])
    found = dict.fromkeys(makes, 0)
    for address, size in zip(heap.address, heap.size):
        if address in kind_of:
            found[kind_of[address]] += size
    result = {name: (given[name] / count, found[name] / count) for name in makes}
    print(json.dumps(result))
"""


@pytest.mark.skipif(FREE_THREADED, reason="mimalloc does not tell how many bytes are in use")
def test_sizes_are_those_of_the_allocator(tmp_path: pathlib.Path) -> None:
    # GIVEN kinds of objects, thousands of each, in the small blocks that the allocator counts
    found = run(SIZES, str(tmp_path / "x.heap"))
    # THEN the snapshot says what the allocator gave, to the byte but for what the program itself made meanwhile
    wrong = {name: pair for name, pair in found.items() if abs(pair[0] - pair[1]) > 1}
    assert wrong == {}


def test_sizes_agree_with_getsizeof_where_that_is_right(take: Any) -> None:
    # GIVEN objects of one block each, small and large
    kept = [b"x" * size for size in (1, 500, 5000, 100_000)] + ["y" * size for size in (1, 500, 5000)] + [
        (1,) * size for size in (1, 100, 1000)] + [10**400, 0.5, 2**31]
    # WHEN
    heap = take()
    # THEN the size is that, rounded up to a block
    for each in kept:
        size, said = heap.find(id(each)).size, sys.getsizeof(each)
        assert said <= size <= said * (1.25 if FREE_THREADED else 1) + 24, (type(each), said, size)


def test_the_bytes_of_a_bytesio_count_once(take: Any) -> None:
    # GIVEN a BytesIO that has written more than it was given
    kept = io.BytesIO(b"x")
    kept.write(b"y" * 1_000_000)
    # WHEN
    found = take().find(id(kept))
    # THEN it holds the bytes, which are an object of their own
    held, = [each for name, each in found.referents() if name == ".buffer"]
    assert held.type == "bytes" and held.size > 1_000_000 > 1000 > found.size
    assert 1_000_000 < found.retained < (1.3 if FREE_THREADED else 1.2) * 1_000_000


class Method(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def test_a_size_method_in_c_that_calls_python_is_not_called(take: Any) -> None:
    # GIVEN a class with a __sizeof__ in C that runs Python, as one of Cython's does that asks for a property
    class Measured:
        __slots__ = ("field",)

    asked = []
    function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        lambda each, _: asked.append(None) or 10**6)
    definition = Method(b"__sizeof__", ctypes.cast(function, ctypes.c_void_p), 4, None)  # METH_NOARGS
    describe = ctypes.pythonapi.PyDescr_NewMethod
    describe.argtypes, describe.restype = [ctypes.py_object, ctypes.POINTER(Method)], ctypes.py_object
    Measured.__sizeof__ = describe(Measured, definition)  # type: ignore[method-assign]
    kept = Measured()
    assert kept.__sizeof__() == 10**6 and asked
    del asked[:]
    # WHEN a snapshot is taken THEN no other thread gets to run meanwhile, and the size is that of the object itself
    found = take().find(id(kept))
    assert not asked
    assert found.size < 100


class Owner:
    def __init__(self) -> None:
        self.held = bytes(500_001)


def test_a_dict_that_was_asked_for_is_its_owners(take: Any) -> None:
    # GIVEN an instance that alone holds bytes, and whose dict somebody has looked at
    owner = Owner()
    assert list(vars(owner)) == ["held"]
    # WHEN
    heap = take()
    # THEN it holds the dict, and that alone the attribute
    found, attributes = heap.find(id(owner)), heap.find(id(vars(owner)))
    assert sorted(name for name, _ in found.referents()) == [".__class__", ".__dict__"]
    assert attributes.referrers() == [found]
    assert heap.find(id(owner.held)).referrers() == [attributes]
    assert found.retained > 500_000
