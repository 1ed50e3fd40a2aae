"""What heap snapshots tell of wasted memory, and of the process's memory, against programs that know it."""

from __future__ import annotations

import ctypes
import gc
import json
import pathlib
import signal
import sys
from typing import Any

import pytest

import harness
import plimsoll.heap
from heap_rules import run, take

pytestmark = pytest.mark.most_versions

FREE_THREADED = harness.FREE_THREADED
__all__ = ["take"]  # a fixture
with_pools = pytest.mark.skipif(FREE_THREADED, reason="mimalloc has no pools")


class Session:
    def __init__(self, name: str) -> None:
        self.name = name
        self.tags: "list[object]" = []


def test_equal_texts_are_counted_without_being_recorded(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN so many equal strs and bytes, none of them the same object, and others
    secret = "a name of which there are many: %s"
    sessions = [Session(secret % "equal") for _ in range(321)] + [Session(secret % number) for number in range(50)]
    blobs = [bytes(100) + b"%d" % 7 for _ in range(17)]
    # WHEN a snapshot without values is taken
    plimsoll.heap.snapshot(tmp_path / "x.heap")
    heap = plimsoll.heap.open(tmp_path / "x.heap")
    rows = heap.duplicates().dicts()
    # THEN they are told by where they are held
    where = f"{__name__}.Session.name"
    assert [(row["count"], row["held_there"]) for row in rows if row["place"] == where] == [(321, 321)]
    blob = min(blobs, key=id)
    assert [row["count"] for row in rows if row["first"] == heap.find(id(blob)).number] == [17]
    # AND the text is not in the file, nor known
    assert all(row["text"] is None for row in rows if row["place"] == where)
    # AND in one with values it is
    shown, = [row for row in take(values=True).duplicates().dicts() if row["place"] == where]
    assert shown["text"] == f"'{secret % 'equal'}'"
    assert len(sessions) == 371


def test_texts_of_all_widths_are_told_apart(take: Any) -> None:
    # GIVEN strs whose characters take 1, 2 and 4 bytes, each three times, and strs with the same bytes in memory
    words = ["plain %d", "\u00e9t\u00e9 %d", "\u2211 %d", "\U0001f40d %d"]
    kept = {word: [word % 12345 for _ in range(3)] for word in words}
    narrow, wide = "ab" * 40 + "%d", "\u6261" * 40 + "%d"
    alike = [narrow % 1, wide % 1]
    # WHEN
    heap = take()
    # THEN
    groups = [row["first"] for row in heap.duplicates().dicts() if row["count"] == 3]
    for word, copies in kept.items():
        first = min(heap.find(id(each)).number for each in copies)
        assert first in groups, word
    hashed = {row["first"] for row in heap.duplicates().dicts()}
    assert not {heap.find(id(each)).number for each in alike} & hashed


def test_empty_containers_and_room_that_is_not_needed(take: Any) -> None:
    # GIVEN sessions with empty lists; a list, a dict and a set that have lost most of what was in them
    class Own(Session):
        pass

    sessions = [Own("x") for _ in range(123)]
    holder = Own("y")
    holder.list = list(range(5000))  # type: ignore[attr-defined]
    holder.dict = dict.fromkeys(range(5000))  # type: ignore[attr-defined]
    holder.set = set(range(5000))  # type: ignore[attr-defined]
    del holder.list[2600:]  # type: ignore[attr-defined]
    for number in range(4990):
        del holder.dict[number]  # type: ignore[attr-defined]
        holder.set.discard(number)  # type: ignore[attr-defined]
    where = f"{__name__}.{Own.__qualname__}"
    # WHEN
    rows = {(row["kind"], row["place"]): row for row in take().waste().dicts()}
    # THEN the empty ones are counted by where they are
    empty = rows["empty", f"{where}.tags"]
    assert (empty["count"], empty["type"]) == (124, "list")
    assert empty["waste"] == empty["size"] > 124 * 48
    # AND the room of the others is what they would give back
    assert len(holder.list) == 2600  # type: ignore[attr-defined]
    spare = (sys.getsizeof(holder.list) - sys.getsizeof([]) - 8 * 2600)  # type: ignore[attr-defined]
    assert abs(rows["too large", f"{where}.list"]["waste"] - spare) <= (spare / 4 if FREE_THREADED else 32)
    for name, kind in (("dict", dict), ("set", set)):
        held = getattr(holder, name)
        spare = sys.getsizeof(held) - sys.getsizeof(kind(list(held)) if kind is set else dict(held.items()))
        found = rows["too large", f"{where}.{name}"]["waste"]
        assert found > 100_000 and abs(found - spare) < spare / 4, (name, found, spare)
    assert len(sessions) == 123


def test_objects_by_where_they_are_held_and_by_generation(take: Any) -> None:
    # GIVEN objects that a full collection has passed, and some that came after it
    old = [Session("old") for _ in range(200)]
    gc.collect()
    gc.disable()
    young = [Session("young") for _ in range(30)]
    # WHEN
    heap = take()
    gc.enable()
    # THEN
    held = {group.name: group for group in heap.groups("place", f"{__name__}.Session")}
    assert sum(group.count for group in held.values()) == 230
    if not FREE_THREADED:
        ages = dict(heap.query(f"select generation, count(*) from objects where type = '{__name__}.Session' group by 1"))
        assert ages == {"old": 200, "young": 30}
        assert heap.query(f"select generation from objects where id = {heap.find(id(old[0].name)).number}")[0] == (
            "not tracked",)
    modules = {group.name: group.count for group in heap.groups("module")}
    assert modules[__name__] >= 230
    referrers = {group.name: group.count for group in heap.groups("referrers", f"{__name__}.Session")}
    assert referrers == {"list": 230}
    assert len(young) == 30


def test_sql_from_python(take: Any) -> None:
    # GIVEN
    kept = [Session("x") for _ in range(77)]
    heap = take()
    # WHEN / THEN
    answer = heap.query("select type, count(*) as n from objects where type = '%s.Session'" % __name__)
    assert answer.columns == ("type", "n") and list(answer) == [(f"{__name__}.Session", 77)]
    assert "n" in str(answer) and "<table>" in answer._repr_html_()
    assert heap.query("select id from objects", limit=3).more
    with pytest.raises(ValueError, match="no such column"):
        heap.query("select colour from objects")
    assert len(kept) == 77


def test_a_signal_ends_a_statement(take: Any) -> None:
    # GIVEN a statement that never ends
    heap = take()

    class Enough(Exception):
        pass

    def handle(*_: object) -> None:
        raise Enough

    before = signal.signal(signal.SIGALRM, handle)
    # WHEN a signal comes, as Ctrl-C would
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        # THEN its handler's exception ends it
        with pytest.raises(Enough):
            heap.query("with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heap.query("select count(*) from meta")[0][0] > 0


# A program of its own, as what others have left behind in memory is no part of a truth.
FRAGMENTED = """
    import json, sys, plimsoll.heap, gc
    class Kept:
        __slots__ = ("a", "b", "c", "d")
    many = [Kept() for _ in range(200_000)]
    gc.collect()
    before = sys.argv[1]
    plimsoll.heap.snapshot(before)
    many = many[::4096]  # one in an arena or two
    gc.collect()
    plimsoll.heap.snapshot(sys.argv[2])
    def total(path):
        heap = plimsoll.heap.open(path)
        arenas = heap.arenas().dicts()
        rss = dict(heap.rss())
        small = int(heap.meta["small_block_bytes"])
        return dict(size=sum(row["size"] for row in arenas), used=sum(row["used"] for row in arenas),
                    arenas=len(arenas), rss=rss, small=small)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4096
    print(json.dumps([total(before), total(sys.argv[2]), resident]))
"""


@with_pools
def test_arenas_tell_what_keeps_memory_and_rss_is_explained(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that frees nearly all of many objects, but some in every part of its memory
    paths = [tmp_path / "before.heap", tmp_path / "after.heap"]
    before, after, resident = run(FRAGMENTED, *map(str, paths))
    # THEN its arenas were full, and are nearly empty
    assert before["used"] / before["size"] > 0.9
    assert after["used"] / after["size"] < 0.6 and after["arenas"] > 10
    # AND bytes in small blocks are explained by objects, but for the little that Plimsoll itself has
    for each in (before, after):
        assert 0 <= each["used"] - each["small"] < 600_000
    assert 0.96 < before["small"] / before["used"] <= 1
    # AND what is said of RSS is all of it
    assert abs(sum(after["rss"].values()) - resident) < resident / 4
    # AND the objects that are left are named
    told = harness.plimsoll_command("heap", "show", paths[1], "arenas").expect().out
    assert "__main__.Kept" in told


RECORDED = """
import json, sys
import plimsoll, plimsoll.heap
class Kept:
    def __init__(self, number):
        self.number = number
        self.bytes = bytes(number % 400)
profiler = plimsoll.Profiler(**json.loads(sys.argv[2])).start()
kept = [Kept(number) for number in range(100_000)]
if sys.argv[3] == "after":
    profiler.stop()
plimsoll.heap.snapshot(sys.argv[1])
print(json.dumps(None))
"""


@with_pools
@pytest.mark.parametrize("options", [{"alloc_bytes": 65536}, {"alloc_exact": True}], ids=["sampled", "exact"])
@pytest.mark.parametrize("when", ["during", "after"])
def test_objects_that_a_recording_has_given_memory_are_small_ones(tmp_path: pathlib.Path, options: "dict[str, Any]",
                                                                  when: str) -> None:
    # GIVEN a program whose objects lie in the heap of a recording of allocations
    run(RECORDED, str(tmp_path / "x.heap"), json.dumps(options), when)
    # WHEN
    heap = plimsoll.heap.open(tmp_path / "x.heap")
    parts = {row["part"]: row["bytes"] for row in heap.rss().dicts()}
    # THEN they are in small blocks, of which little is anything else
    kept = sum(row.size for row in heap.types() if row.type in ("__main__.Kept", "bytes"))
    assert parts["objects, in small blocks"] > kept > 25_000_000
    assert parts["other small blocks in use"] < 2_000_000
    # AND no memory is counted twice
    total, = (row["total"] for row in heap.view("memory").query("select sum(size) as total from objects").dicts())
    assert total == pytest.approx(sum(parts.values()), rel=0.03)


SETS: "list[set[int]]" = []


def test_no_set_is_too_large_that_cannot_be_made_smaller(take: Any) -> None:
    # GIVEN sets of many sizes, each as small as Python makes it
    for count in [*range(1, 200), 1000, 5461, 5462, 60_000]:
        grown = set(range(count))
        SETS.append(min(grown, grown.copy(), key=sys.getsizeof))
    # WHEN / THEN they have no room that could be saved
    rows = [row for row in take().waste().dicts() if row["type"] == "set" and row["place"].endswith("SETS[]")]
    SETS.clear()
    assert not rows


LARGE_BESIDE_SMALL = """
import sys
import plimsoll.heap
class Node:
    pass
def node():
    made = Node()
    made.itself = made
    return made
kept = [([node() for _ in range(5000)], b"x" * 1_000_000) for _ in range(60)]
plimsoll.heap.snapshot(sys.argv[1])
print("null")
"""


@with_pools
def test_large_objects_are_told_of_wherever_the_system_put_them(tmp_path: pathlib.Path) -> None:
    # GIVEN a program whose large objects and arenas came in turn, so that the system made one mapping of many of them
    run(LARGE_BESIDE_SMALL, str(tmp_path / "x.heap"))
    # WHEN
    heap = plimsoll.heap.open(tmp_path / "x.heap")
    parts = {row["part"]: row["bytes"] for row in heap.rss().dicts()}
    # THEN they are objects, once
    assert parts["objects, in large blocks and buffers"] > 60_000_000
    assert parts["beside pools in their mappings"] < 5_000_000
    total, = (row["total"] for row in heap.view("memory").query("select sum(size) as total from objects").dicts())
    assert total == pytest.approx(sum(parts.values()), rel=0.03)


MAPPED = """
import array, json, mmap, os, sys
import plimsoll.heap
mapped = mmap.mmap(-1, 20_000_000)
mapped[:] = b"x" * len(mapped)
kept = [bytearray(b"x") * 5_000_000, array.array("d", [1.5]) * 500_000, [None] * 400_000, bytearray(50_000_000)]
try:
    import numpy
    kept += [numpy.ones(1_000_000), numpy.zeros(9_000_000), [numpy.ones(2000) for _ in range(1000)]]
except ImportError:
    pass
plimsoll.heap.snapshot(sys.argv[1])
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
print(json.dumps({"resident": resident, "mapped": id(mapped), "filled": id(kept[0])}))
"""


@with_pools
def test_all_memory_has_nodes_in_the_view_of_memory(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that has mapped memory and written to it
    told = run(MAPPED, str(tmp_path / "x.heap"))
    # WHEN its memory is looked at as a whole
    heap = plimsoll.heap.open(tmp_path / "x.heap").view("memory")
    # THEN what is mapped is a node of its own, below the object that has it
    mapped = heap.find(told["mapped"])
    buffer, = [each for _, each in mapped.referents() if each.type == "[buffer]"]
    assert buffer.size == 20_000_000
    assert mapped.size < 1000 and mapped.retained >= 20_000_000
    # AND is freed with it
    assert heap.select(objects=[mapped]).retained_size == mapped.retained
    # AND so is what a large object has in a block beside it
    filled = heap.find(told["filled"])
    block, = [each for _, each in filled.referents() if each.type == "[buffer]"]
    assert filled.size < 1000 and 0 < block.size <= 5_000_001
    # AND libraries, stacks and free memory are there, and all together is what the process has
    kinds = {row["type"] for row in heap.query("select distinct type from objects where address is null").dicts()}
    assert {"[library]", "[stack]", "[allocator]", "[native memory]"} <= kinds
    total, = (row["total"] for row in heap.query("select sum(size) as total from objects").dicts())
    assert total == pytest.approx(sum(row["bytes"] for row in heap.rss().dicts()), rel=0.03)
    assert total == pytest.approx(told["resident"], rel=0.25)  # which is what it had a moment later
    shown = harness.plimsoll_command("heap", "show", tmp_path / "x.heap", "tree", "--view", "memory").expect().out
    assert "[memory]" in shown and " library /" in shown and "buffer at 0x" in shown


def test_memory_that_two_objects_own_counts_once(take: Any) -> None:
    # GIVEN a rule that takes a view for an owner, too: of a fifth of an array
    array = (ctypes.c_char * 500_000)()
    view = (ctypes.c_char * 100_000).from_buffer(array)
    rules = ["_ctypes._CData: native 0 24"]
    # WHEN / THEN by themselves both have it, and together it is there once: the inner part is the view's
    raw = take(rules=rules)
    assert raw.find(id(array)).size > 500_000 and raw.find(id(view)).size > 100_000
    heap = raw.view("memory")
    (of_array,), (of_view,) = ([each for _, each in heap.find(id(owner)).referents() if each.type == "[buffer]"]
                               for owner in (array, view))
    assert of_view.number != of_array.number and of_view.text == of_array.text
    assert of_array.size <= 400_000 and of_view.size <= 100_000 and heap.find(id(array)).size < 5000  # of its pages


@pytest.mark.any_version
def test_the_command_shows_them(tmp_path: pathlib.Path) -> None:
    # GIVEN a snapshot
    plimsoll.heap.snapshot(tmp_path / "x.heap")
    # WHEN / THEN
    for view in ("duplicates", "waste", "arenas", "rss", "groups"):
        assert harness.plimsoll_command("heap", "show", tmp_path / "x.heap", view).expect().out
        told = harness.plimsoll_command("heap", "show", tmp_path / "x.heap", view, "--json").expect()
        assert f'"view":"{view}"' in told.out
    wrong = harness.plimsoll_command("heap", "show", tmp_path / "x.heap", "groups", "--by", "colour")
    assert wrong.code == 2 and "place" in wrong.err
