"""`plimsoll heap PID` and `--core`: a heap from outside, against what the program knows and against its own snapshot of itself."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import resource
import signal
import sys
from typing import Any, Iterator, Sequence

import pytest

import harness
from heap_outside import CONTAINERS, Graph, ask, both, take

pytestmark = [
    pytest.mark.skipif(not harness.may_look_at_others(),
                       reason="kernel.yama.ptrace_scope forbids looking at other processes; root may"),
]

#: How much larger a block of some hundred kilobytes is than what was asked for, at most: mimalloc gives whole pages.
ROUNDED = 4096 if harness.FREE_THREADED else 0
USAGE = 2
FAILED = 1


@contextlib.contextmanager
def known_heap(*words: "harness.Word") -> "Iterator[tuple[harness.Running, dict[str, Any]]]":
    with harness.Running([sys.executable, harness.TARGETS / "known_heap.py", *words]) as running:
        yield running, json.loads(running.line())


def buffers_of(path: pathlib.Path, owners: "Sequence[int]") -> "dict[int, list[Any]]":
    """By the address of an object: what it owns outside Python, and how much of that is in memory."""
    statement = f"""select o.address, b.text, b.size from edges e join objects o on o.id = e.holder
                    join objects b on b.id = e.held
                    where b.type = '[buffer]' and o.address in ({','.join(map(str, owners))})"""
    answer = harness.plimsoll_command("heap", "query", path, statement, "--view", "memory", "--json", "--limit", "0").expect()
    return {row[0]: row[1:] for row in json.loads(answer.out)["rows"]}


def test_counts_what_the_program_counts(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that knows how many objects it has of its classes
    with known_heap() as (_, truth):
        # WHEN a snapshot is taken from outside
        take(truth["pid"], tmp_path / "outside.heap")
    # THEN it has as many
    rows = dict(ask(tmp_path / "outside.heap", "select name, count from types"))
    assert {name: rows.get(name) for name in truth["counts"]} == truth["counts"]
    assert rows["generator"] >= truth["generators"]


def test_sees_what_the_program_sees_of_itself(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that has taken a snapshot of itself, and has not gone on since
    with known_heap(tmp_path / "inside.heap") as (_, truth):
        # WHEN one is taken from outside
        take(truth["pid"], tmp_path / "outside.heap")
    inside, outside = Graph(tmp_path / "inside.heap"), Graph(tmp_path / "outside.heap")
    # THEN all that the program keeps is there, with the same classes and sizes
    kept = inside.reached_from(truth["keep"], CONTAINERS | {"generator"} | set(truth["counts"]))
    assert len(kept) > 2500
    assert {at: inside.objects[at] for at in kept} == {at: outside.objects.get(at) for at in kept}
    # AND the same references by the same names
    different = {inside.objects[at]: (inside.edges[at] - outside.edges[at], outside.edges[at] - inside.edges[at])
                 for at in kept if inside.edges[at] != outside.edges[at]}
    assert not different


QUEUED = """
import json, os, queue
class Queue(queue.SimpleQueue): pass
queues = [queue.SimpleQueue(), Queue()]
for each in queues:
    for number in range(30):
        each.put(bytes(100_001 + number))
    for _ in range(10):
        each.get()
    for number in range(3):
        each.put(bytes(200_001 + number))
print(json.dumps([id(each) for each in queues]), flush=True)
os.read(0, 1)  # (what a reader of lines holds in C might be taken for a reference)
"""


def test_a_queue_holds_what_is_in_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with queues in which there are bytes, which have no links of the collector's
    with harness.Running([sys.executable, "-c", QUEUED]) as running:
        queues = json.loads(running.line())
        # WHEN
        take(running.process.pid, tmp_path / "outside.heap")
    # THEN they are found, and theirs
    for address in queues:
        (number, retained), = ask(tmp_path / "outside.heap",
                                  f"select id, retained from objects where address = {address}")
        assert 2_600_000 < retained < 3_000_000
        held = ask(tmp_path / "outside.heap",
                   f"select count(*) from edges e join objects o on o.id = e.held "
                   f"where e.holder = {number} and o.type in ('bytes', 'list')")
        assert held[0][0] == (23 if sys.version_info >= (3, 13) else 1)


UNREADY = """
import array, functools, os
@functools.lru_cache(maxsize=100)
def cached(key): return [key]
for key in range(50): cached(key)
turns = [iter(array.array("i", [1])) for _ in range(20)]
print(flush=True)
os.read(0, 1)
"""


def test_objects_are_there_whose_class_was_never_made_ready(tmp_path: pathlib.Path) -> None:
    # GIVEN objects of classes of C code that Python 3.9 uses as they stand in the library: a cache's links, iterators
    with harness.Running([sys.executable, "-c", UNREADY]) as running:
        running.line()
        # WHEN
        take(running.process.pid, tmp_path / "outside.heap")
    # THEN they are there
    rows = dict(ask(tmp_path / "outside.heap", "select name, count from types"))
    assert rows["functools._lru_list_elem"] >= 50
    assert rows["arrayiterator" if sys.version_info < (3, 10) else "array.arrayiterator"] == 20


INTERNED = """
import json, os, sys
class Held: pass
held = Held()
held.text = sys.intern("z" * 500_000 + str(os.getpid()))
print(json.dumps({"held": id(held)}), flush=True)
sys.stdin.readline()
"""


def test_an_interned_str_belongs_to_who_holds_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with an object that alone holds an interned str
    with harness.Running([sys.executable, "-c", INTERNED]) as running:
        truth = json.loads(running.line())
        # WHEN
        take(running.process.pid, tmp_path / "outside.heap")
    # THEN the interpreter's table of interned strs does not hold it
    rows = ask(tmp_path / "outside.heap", f"select retained from objects where address = {truth['held']}")
    assert rows[0][0] > 500_000


RULED = """
import ctypes, io, json, mmap, sys
import plimsoll.heap
from plimsoll.heap import Native, Rule
class Session:
    def __init__(self, name): self.name = name
class Admin(Session): pass
class Asked(Session): pass
class Slotted:
    __slots__ = ("number",)
slotted, asked, array = Slotted(), Asked("has a dict"), (ctypes.c_char * 500_000)()
slotted.number = -7
assert vars(asked)
mapped, text = mmap.mmap(-1, 1_000_000), io.StringIO()
text.write("x"); text.seek(0); text.write("y" * 100_000)
kept = [Session("ann"), Admin("bob"), asked, slotted, array, (ctypes.c_char * 100_000).from_buffer(array), mapped, text,
        ctypes.c_int(5), Session(3.5), Session(10**40)]
rules = [Rule(Session, label="name"), Rule("*.Slot*", label="number"), Rule(Admin, label="nothing", exactly=True),
         Rule("_io.StringIO", native=Native(pointer=0, length=24, unit=2))]  # half of it, which is written
plimsoll.heap.snapshot(sys.argv[1], rules=rules)
print(json.dumps({"kept": [id(each) for each in kept], "rules": [str(rule) for rule in rules]}), flush=True)
sys.stdin.readline()
"""


def test_rules_say_from_outside_what_they_say_inside(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with objects that rules are for, and a snapshot that it has taken by these rules
    with harness.Running([sys.executable, "-c", RULED, tmp_path / "inside.heap"]) as running:
        truth = json.loads(running.line())
        # WHEN one is taken from outside by the same, one of them by itself, the others in a file
        (tmp_path / "rules.txt").write_text("# of the application\n" + "\n".join(truth["rules"][1:]) + "\n")
        pid = running.process.pid
        take(pid, tmp_path / "outside.heap", "--rules", truth["rules"][0], "--rules", str(tmp_path / "rules.txt"))
        refused = harness.plimsoll_command("heap", str(pid), "-o", tmp_path / "x.heap", "--rules", "app.Session: colour blue")
    rows = "select address, text, size from objects where address is not null"
    inside, outside = ({row[0]: row[1:] for row in ask(tmp_path / name, rows)} for name in ("inside.heap", "outside.heap"))
    # THEN they are called the same, and own as much
    assert [outside[at] for at in truth["kept"]] == [inside[at] for at in truth["kept"]]
    assert [outside[at][0] for at in truth["kept"]][:4] == ["ann", None, "has a dict", "-7"]
    sizes = [outside[at][1] for at in truth["kept"]]
    assert 500_000 < sizes[4] < 501_000 + ROUNDED and sizes[5] < 1000 and 1_000_000 < sizes[6] < 1_001_000 + ROUNDED
    assert 200_000 < sizes[7] < 300_000
    # AND it is at the same places
    buffers = [buffers_of(tmp_path / name, truth["kept"]) for name in ("inside.heap", "outside.heap")]
    assert buffers[0] == buffers[1] and len(buffers[0]) == 3
    # AND what is no rule is refused before anything is looked at
    assert refused.code == USAGE and "colour blue" in refused.err and not (tmp_path / "x.heap").exists()


OWNERS = """
import array, json, sys
import plimsoll.heap
kept = [bytearray(b"x") * 3_000_000, array.array("d", [1.5]) * 500_000, [None] * 300_000, set(range(50_000)),
        dict.fromkeys(range(50_000))]
del kept[0][:1000]  # where it begins is not where its memory does
none = [bytearray(100), [None] * 5, {}, set()]
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"kept": [id(each) for each in kept], "none": [id(each) for each in none],
                  "sizes": [each.__sizeof__() - type(each).__basicsize__ for each in kept]}), flush=True)
sys.stdin.readline()
"""


def test_blocks_of_built_in_objects_have_nodes(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with large and small containers, and snapshots from inside and from outside
    truth, paths = both(OWNERS, tmp_path)
    for path in paths:
        # THEN in the view of memory what a large one has is a buffer that it holds; what small ones have is none
        buffers = buffers_of(path, truth["kept"] + truth["none"])
        assert sorted(buffers) == sorted(truth["kept"])
        for at, size in zip(truth["kept"], truth["sizes"]):
            assert size == pytest.approx(buffers[at][1], rel=0.01)  # but for pages
        # AND without that view it is the object's
        sizes = dict(ask(path, "select address, size from objects where address is not null"))
        assert all(size < sizes[at] < size + 300 + ROUNDED for at, size in zip(truth["kept"], truth["sizes"]))
    assert buffers_of(paths[0], truth["kept"]) == buffers_of(paths[1], truth["kept"])


NUMPY = """
import json, mmap, sys
import numpy
import plimsoll.heap
matrix = numpy.matrix(numpy.ones((300, 300)))
records = numpy.recarray((5000,), dtype=[("a", "i4"), ("b", "f8"), ("c", "U10")])
records[:] = (1, 2.0, "x")
owners = {"plain": numpy.ones((1000, 700)), "of columns": numpy.asfortranarray(numpy.ones((500, 300), dtype="f4")),
          "matrix": matrix.copy(), "records": records, "words": numpy.array(["abc"] * 1000)}
whole = numpy.ones(300_000)
with open(sys.argv[1] + ".data", "wb") as file:
    file.write(bytes(1_000_000))
others = {"single": numpy.array(5.0), "view": whole.reshape(300, 1000)[5:], "bytes": numpy.frombuffer(bytes(5000), "u1"),
          "mapped": numpy.memmap(sys.argv[1] + ".data", mode="r")}
base = id(whole)
del whole  # which the view alone holds now
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"owners": {name: [id(each), each.nbytes] for name, each in owners.items()},
                  "others": {name: id(each) for name, each in others.items()}, "base": base}),
      flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="NumPy is not installed")
def test_arrays_of_numpy_own_their_elements(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with arrays of several kinds, views of them, and files that are mapped as arrays
    truth, paths = both(NUMPY, tmp_path)
    owners = dict(truth["owners"].values())
    for path in paths:
        buffers = buffers_of(path, [*owners, *truth["others"].values(), truth["base"]])
        # THEN those that own their elements hold a buffer of them, and no other does
        assert {at: buffers[at][1] for at in owners} == pytest.approx(owners, rel=0.01)  # but for pages
        assert sorted(buffers) == sorted([*owners, truth["base"]])
        # AND in sizes they are counted once, with their owners
        sizes = dict(ask(path, "select address, size from objects where address is not null"))
        assert all(nbytes < sizes[at] < nbytes + 1000 + ROUNDED for at, nbytes in owners.items())
        assert all(sizes[at] < 1000 for at in truth["others"].values())
        # AND a view holds what it is a view of
        held = ask(path, f"""select h.address from edges e join objects o on o.id = e.holder join objects h on h.id = e.held
                             where o.address = {truth['others']['view']} and e.name = '.base'""")
        assert held == [[truth["base"]]]
    # AND both snapshots say the same
    every = [*owners, *truth["others"].values()]
    of_array = f"select address, type, size from objects where address in ({','.join(map(str, every))}) order by 1"
    assert ask(paths[0], of_array) == ask(paths[1], of_array)
    assert buffers_of(paths[0], every) == buffers_of(paths[1], every)


OBJECTS_IN_ARRAYS = """
import json, sys
import numpy
import plimsoll.heap
class Row:
    pass
class Cell:
    pass
column = numpy.array([Row() for _ in range(5)], dtype=object)
table = numpy.array([[Cell() for _ in range(20)] for _ in range(30)], dtype=object)
column[1], part = None, table[10:20, ::2]
single = numpy.empty((), dtype=object)
single[()] = Cell()
numbers = numpy.arange(600)
whole = id(table)
del table  # which the part alone holds now
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"column": id(column), "rows": [id(each) for each in column], "single": id(single), "numbers": id(numbers),
                  "table": whole, "part": id(part), "cell": id(part[0, 0])}), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="NumPy is not installed")
def test_arrays_of_numpy_hold_the_objects_in_them(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with objects that only arrays hold, which do not show them to the collector
    truth, paths = both(OBJECTS_IN_ARRAYS, tmp_path)
    for path in paths:
        held = Graph(path).edges
        # THEN each is the element that it is of its array
        elements = {label: at for at, kind, label in held[truth["column"]] if kind == "element"}
        assert [elements[f"[{i}]"] for i in range(5)] == truth["rows"]
        assert sum(kind == "element" for _, kind, _ in held[truth["single"]]) == 1
        assert sum(kind == "element" for _, kind, _ in held[truth["table"]]) == 600
        assert not any(kind == "element" for at in (truth["part"], truth["numbers"]) for _, kind, _ in held[at])
        # AND is retained by whoever holds the array, here by the view of it
        retained = dict(ask(path, "select address, retained from objects where type in ('numpy.ndarray', '__main__.Cell')"))
        assert retained[truth["part"]] > retained[truth["table"]] > 600 * retained[truth["cell"]]


# Classes whose class is the class itself, as those that h11 has for its events.
OWN_CLASSES = """
import json, sys, time, plimsoll.heap

class Sentinel(type):
    def __new__(cls, *words):
        made = super().__new__(cls, *words)
        made.__class__ = made
        return made
class Closed(Sentinel, metaclass=Sentinel): pass
class After: pass
assert type(Closed) is Closed
later = [After() for _ in range(100)]
cycle = [After()]
cycle.append(cycle)
del cycle  # which the collector's lists alone lead to
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"closed": id(Closed)}), flush=True)
time.sleep(60)
"""


@pytest.mark.any_version
def test_a_class_may_be_its_own_class(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with such a class, and objects that were made after it
    truth, paths = both(OWN_CLASSES, tmp_path)
    # THEN a snapshot from outside has the class, and all that stands behind it on the collector's lists
    for path in paths:
        assert ask(path, f"select count(*) from objects where address = {truth['closed']}") == [[1]], path
        assert ask(path, "select count(*) from objects where type like '%After'") == [[101]], path
    # AND nothing is said to be missing
    with harness.Running([sys.executable, "-c", OWN_CLASSES, paths[0]]) as running:
        running.line()
        told = take(running.process.pid, paths[1])
    assert "could not be" not in told.err, told.err


def test_the_program_goes_on(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that waits in a system call
    with known_heap() as (running, truth):
        # WHEN a snapshot is taken of it
        told = take(truth["pid"], tmp_path / "outside.heap")
        # THEN it answers afterwards, and how long it stood still is told
        running.say("still there?")
        assert running.line().strip() == "yes"
    assert f"process {truth['pid']} stood still for " in told.err
    assert int(dict(ask(tmp_path / "outside.heap", "select name, value from meta"))["stop_ns"]) > 0


@pytest.mark.any_version
def test_values_are_recorded_only_if_they_are_asked_for(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with a secret in a local variable
    with known_heap() as (_, truth):
        # WHEN snapshots are taken without values, and with them
        take(truth["pid"], tmp_path / "without.heap")
        take(truth["pid"], tmp_path / "with.heap", "--values")
    # THEN the secret is in the latter only
    texts = "select o.text from objects o join edges e on e.held = o.id where e.holder = (select id from objects where address = {})"
    assert ask(tmp_path / "without.heap", texts.format(truth["secret"])) == [[None]] * 4
    assert ask(tmp_path / "with.heap", texts.format(truth["secret"])) == [
        ["'it is a secret that nobody records'"], ["8675309"], [repr(b"it's\xff\x00")], [repr(100000.0)]]


NUMBERS = """
import json, os, sys, plimsoll.heap
numbers = [eval(text) for text in json.loads(sys.argv[2])]
plimsoll.heap.snapshot(sys.argv[1], values=True)
print(json.dumps([*map(id, numbers)]), flush=True)
os.read(0, 1)
"""


def test_ints_of_64_bits_have_their_values(tmp_path: pathlib.Path) -> None:
    # GIVEN ints of two digits of 30 bits and of more, one of them a time in nanoseconds
    short = [2**60 - 1, 2**60, -(2**60), 1795854752442870377, 2**63 - 1, -(2**63)]
    long = [2**63, -(2**63) - 1, 10**40]
    texts = [*map(str, short + long)]
    # WHEN their values are recorded from inside and from outside
    inside, outside = tmp_path / "inside.heap", tmp_path / "outside.heap"
    with harness.Running([sys.executable, "-c", NUMBERS, inside, json.dumps(texts)]) as running:
        numbers = json.loads(running.line())
        take(running.process.pid, outside, "--values")
    # THEN both have those that fit into 64 bits
    for path in (inside, outside):
        found = dict(ask(path, "select address, text from objects where type = 'int'"))
        assert [found[at] for at in numbers] == [*texts[:len(short)], *[None] * len(long)], path


@pytest.mark.any_version
def test_copies_no_more_than_it_may(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with more than a megabyte
    with known_heap() as (running, truth):
        (tmp_path / "x.heap").write_text("an older snapshot")
        # WHEN no more than that may be copied
        told = harness.plimsoll_command("heap", str(truth["pid"]), "-o", tmp_path / "x.heap", "--max-copy", "1")
        # THEN it is refused in words, nothing is overwritten, and the program goes on
        assert (tmp_path / "x.heap").read_text() == "an older snapshot"
        assert told.code == FAILED and "--max-copy" in told.err
        running.say("still there?")
        assert running.line().strip() == "yes"


def leaves_core_files_here() -> bool:
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    return "/" not in pattern and not pattern.startswith("|")


@pytest.mark.skipif(not leaves_core_files_here(), reason="kernel.core_pattern sends core files elsewhere")
def test_a_core_file_has_what_the_process_had(tmp_path: pathlib.Path) -> None:
    # GIVEN a program of which a snapshot has been taken
    words = [sys.executable, harness.TARGETS / "known_heap.py"]
    with harness.Running(words, cwd=tmp_path) as running:
        truth = json.loads(running.line())
        running.await_sleep()  # what it printed is gone by then
        take(truth["pid"], tmp_path / "outside.heap")
        # WHEN it is killed, and leaves a core file
        resource.prlimit(truth["pid"], resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.kill(truth["pid"], signal.SIGABRT)
        running.process.wait()
    core, = tmp_path.glob("core*")
    harness.plimsoll_command("heap", "--core", core, "-o", tmp_path / "core.heap").expect()
    # THEN the core file's snapshot is the same
    for statement in ["select name, count, size from types order by name", "select count(*), sum(held) from edges"]:
        assert ask(tmp_path / "core.heap", statement) == ask(tmp_path / "outside.heap", statement)


@pytest.mark.any_version
def test_says_what_it_needs(tmp_path: pathlib.Path) -> None:
    # GIVEN no process, no file, or both for a verb that reads
    for words, told in [((), "plimsoll heap PID -o FILE"), (("1234",), "Add -o FILE"),
                        (("1234", "--core", "core", "-o", tmp_path / "x"), "Leave one of them out")]:
        finished = harness.plimsoll_command("heap", *words)
        assert finished.code == USAGE and told in finished.err


CAUGHT = """
import json, os, sys
import contextvars
import plimsoll.heap
def catch():
    try:
        raise ValueError
    except ValueError as error:
        return error
def holder():
    kept = bytearray(20_000_000)
    return id(kept), catch()
data, error = holder()
variable = contextvars.ContextVar("variable", default=["nothing"])
value = ["something"]
variable.set(value)
assert variable.get() is value
functions = [each for each in vars(os).values() if type(each).__name__ == "function"]
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps({"data": data, "error": id(error), "variable": id(variable), "functions": id(functions)}), flush=True)
sys.stdin.readline()
"""


def test_what_saved_exceptions_functions_and_variables_hold_is_told(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with an exception that was saved, below whose frame is another one, with data; with functions of
    # modules that are part of the interpreter; and with a variable that was asked for its value
    truth, paths = both(CAUGHT, tmp_path)
    inside, outside = Graph(paths[0]), Graph(paths[1])
    # THEN the exception holds the data, by frames
    for graph in (inside, outside):
        assert truth["data"] in graph.reached_from(truth["error"], {"ValueError", "traceback", "frame", "bytearray"})
    # AND functions have all their code
    kept = inside.reached_from(truth["functions"], {"list", "function", "code", "tuple", "str", "bytes"})
    assert len(kept) > 400
    assert kept <= set(outside.objects)
    # AND the variable holds its default, and not the value, which only its context holds
    assert outside.edges[truth["variable"]] == inside.edges[truth["variable"]]


COUNTED = """
import asyncio, collections, concurrent.futures, contextvars, ctypes, dataclasses, functools, io, itertools, json, os
import re, sqlite3, weakref, xml.etree.ElementTree as ElementTree
@functools.lru_cache(maxsize=5000)
def cached(x): return [x] * 50
results = [cached(1000 + x) for x in range(1000)]
class Slotted: __slots__ = ("held", "__weakref__")
slotted = [Slotted() for _ in range(50)]
for each in slotted: each.held = [1]
weak = [weakref.ref(each, print) for each in slotted], weakref.WeakValueDictionary(enumerate(slotted))
tree = ElementTree.fromstring("<a>" + "<b x='1'>t</b>" * 50 + "</a>")
connection = sqlite3.connect(":memory:")
cursor = connection.execute("select 1 union select 2")
one, other = itertools.tee(iter([object() for _ in range(200)]))
iterators = [itertools.chain([1, 2], [3]), itertools.groupby([1, 1, 2]), itertools.product([1, 2], [3]), zip([1]), one,
             map(str, [1]), enumerate([1]), reversed([1]), itertools.zip_longest([1], [2, 3]), iter({1: 2}.items())]
for each in iterators: next(each)
containers = (collections.OrderedDict((str(x), x) for x in range(100)), collections.deque(range(300)),
              collections.defaultdict(list, {1: [2]}), {x: str(x) for x in range(50)})
with concurrent.futures.ThreadPoolExecutor(2) as pool: futures = [pool.submit(pow, 2, 3) for _ in range(10)]
def generator():
    local = [1, 2, 3]
    yield local
generators = [generator() for _ in range(20)]
for each in generators[:10]: next(each)
loop = asyncio.new_event_loop()
tasks = [loop.create_task(asyncio.sleep(100)) for _ in range(20)]
loop.run_until_complete(asyncio.sleep(0))
for each in tasks: each._log_destroy_pending = False
others = (functools.partial(cached, 1, k=2), re.compile("a(b)").match("ab"), io.TextIOWrapper(io.BufferedReader(
    io.BytesIO(bytes(100)))), [str(x).find for x in range(50)], slice([1], [2]), ctypes.py_object([1]),
    contextvars.copy_context(), ValueError([1]))
print(json.dumps({}), flush=True)
os.read(0, 1)
"""


@pytest.mark.skipif(harness.FREE_THREADED, reason="there the counts of references are divided, and partly deferred")
def test_no_object_has_more_references_than_it_counts(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with objects of all kinds of C code, of which some point to what they do not hold
    with harness.Running([sys.executable, "-c", COUNTED]) as running:
        running.line()
        # WHEN
        take(running.process.pid, tmp_path / "outside.heap")
    # THEN none has more references than its count says. (Up to 3.11 what is compiled into the interpreter holds classes,
    # strs and bools without counting.)
    too_many = ask(tmp_path / "outside.heap", """
        select o.type, o.address, o.refcount, count(*) from edges e join objects o on o.id = e.held
            join objects holder on holder.id = e.holder
        where e.kind <> 'weak' and holder.address is not null and o.refcount > 0 group by 2 having count(*) > o.refcount""")
    assert [row for row in too_many if sys.version_info >= (3, 12) or row[0] not in ("type", "str", "bool")] == []
    # AND nearly all that they count is known, but for strs and classes that C code holds, and what 3.12 made immortal
    (unknown, everything), = ask(tmp_path / "outside.heap", """
        select sum(o.refcount - coalesce(known.n, 0)), (select count(*) from edges) from objects o
            left join (select held, count(*) as n from edges where kind <> 'weak' group by held) known on known.held = o.id
        where o.refcount > coalesce(known.n, 0) and o.type not in ('str', 'type')""")
    assert sys.version_info < (3, 12) or unknown < everything / 1000
    # AND what is held is: each result by its entry in the cache, of which each is held by at most one other
    lists, entries = (sorted(count for (count,) in ask(tmp_path / "outside.heap", f"""
        select count(*) from edges e join objects o on o.id = e.held join objects holder on holder.id = e.holder
        where holder.type like '%lru_list_elem' and o.type like '{kind}' group by o.id"""))
                      for kind in ("list", "%lru_list_elem"))
    if sys.version_info >= (3, 10):  # before, the class of entries is never made ready, and so is none
        assert lists == [1] * 1000 and set(entries) == {1} and len(entries) > 900


ZONED = """
import ctypes, datetime, json, os, sys
import plimsoll.heap
class Moment(datetime.datetime): pass
def zone(minutes): return datetime.timezone(datetime.timedelta(minutes=minutes), f"zone {minutes}")
former = zone(99)
for _ in range(1000):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(former))  # as C code would that holds it
gone = [datetime.datetime(2020, 1, 1, tzinfo=former) for _ in range(100)]
del gone
without = [datetime.datetime(2020, 1, 1) for _ in range(100)] + [datetime.time(1), Moment(2020, 1, 1)]
zoned = [datetime.datetime(2020, 1, 1, tzinfo=zone(1)), datetime.time(1, tzinfo=zone(2)),
         Moment(2020, 1, 1, tzinfo=zone(3))]
plimsoll.heap.snapshot(sys.argv[1])
zones = [each.tzinfo for each in zoned]
print(json.dumps([[*map(id, each)] for each in (without, zoned, zones)]), flush=True)
os.read(0, 1)
"""


def test_a_time_holds_its_zone(tmp_path: pathlib.Path) -> None:
    # GIVEN times with zones that nothing else holds, and times without, where others were that had one
    # WHEN
    (without, zoned, zones), paths = both(ZONED, tmp_path)
    for path in paths:
        graph = Graph(path)
        held_by = {at: {name: held for held, kind, name in edges if kind != "class"} for at, edges in graph.edges.items()}
        # THEN each zone is there, with its offset and name, and whose it is
        assert [held_by.get(each) for each in zoned] == [{".tzinfo": each} for each in zones], path
        for each in zones:
            assert {name: graph.objects[held][0] for name, held in held_by[each].items()} == {
                ".offset": "datetime.timedelta", ".name": "str"}, path
        # AND who has none holds nothing
        assert [each for each in without if held_by.get(each)] == [], path


LOOPING = """
import os
class Row: pass
def rows(): return [Row() for _ in range(100)]
def second_of(first, second): return second
def wait():
    print(flush=True)
    os.read(0, 1)
def work(): second_of(bytes(5_000_001), wait())
def main():
    for row in rows(): work()
main()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what a frame goes on with is not written down")
def test_a_frame_holds_what_it_goes_on_with(tmp_path: pathlib.Path) -> None:
    # GIVEN a loop over a list that nothing else holds, and bytes that wait for another argument of a call
    with harness.Running([sys.executable, "-c", LOOPING]) as running:
        running.line()
        # WHEN
        take(running.process.pid, tmp_path / "outside.heap")
    # THEN the frames hold them, not native code
    rows = ask(tmp_path / "outside.heap", "select path(id) from objects where type = '__main__.Row' and holders = 1")
    assert len(rows) == 99
    assert [path for (path,) in rows if not path.startswith("threads[0][2].stack")] == []  # main()
    large = ask(tmp_path / "outside.heap", "select path(id) from objects where type = 'bytes' and size > 5000000")
    assert [path for (path,) in large] == ["threads[0][1].stack"]  # work()
