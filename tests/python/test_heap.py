"""Heap snapshots against what the interpreter and its allocator say themselves."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
import weakref
from typing import Any

import pytest

import harness
import plimsoll
import plimsoll.heap
from heap_rules import run, take

FREE_THREADED = harness.FREE_THREADED
__all__ = ["take"]  # a fixture


def counts(heap: plimsoll.heap.Heap) -> "dict[str, int]":
    return {row.type: row.count for row in heap.types()}


class Plain:
    def __init__(self, *values: object) -> None:
        for number, value in enumerate(values):
            setattr(self, f"field_{number}", value)


class Slotted:
    __slots__ = ("first", "second")


class Held:
    pass


def test_counts_objects_by_class(take: Any) -> None:
    # GIVEN so many objects of three classes
    keep = [[Plain(1) for _ in range(1234)], [Slotted() for _ in range(777)], [Held()]]
    # WHEN
    found = counts(take())
    # THEN
    assert found[f"{__name__}.Plain"] == 1234
    assert found[f"{__name__}.Slotted"] == 777
    assert found[f"{__name__}.Held"] == 1
    assert len(keep) == 3


def test_finds_all_that_the_collector_knows(take: Any) -> None:
    # GIVEN all that the collector knows, kept alive
    gc.collect()
    known = gc.get_objects()
    # WHEN
    addresses = set(take().address)
    # THEN nothing is missing but what only Plimsoll's own modules lead to
    missing = {id(each) for each in known if id(each) not in addresses}
    pending = [module for name, module in sys.modules.items() if name.split(".")[0] == "plimsoll"]
    pending += [type(plimsoll._core.HeapData), type(type(plimsoll._core.HeapData))]
    of_ours = set(map(id, pending))
    while pending:
        for each in gc.get_referents(pending.pop()):
            if id(each) not in of_ours and (id(each) in missing or not gc.is_tracked(each)):
                of_ours.add(id(each))
                pending.append(each)
    assert [type(each) for each in known if id(each) in missing - of_ours] == []


def test_finds_what_tp_traverse_does_not_show(take: Any) -> None:
    # GIVEN a key that only a dict holds, a constant and a name that only code holds, numbers in an untracked tuple
    table = {"a key that only %s holds" % "this dict": 1}
    constant = compile("def function_x(): return 'a constant of its own' + name_of_its_own", "x", "exec").co_consts[0]
    numbers = (10**40, 10**41)
    # WHEN
    addresses = set(take().address)
    # THEN
    assert id(next(iter(table))) in addresses
    assert {id(each) for each in [*constant.co_consts, *constant.co_names]} <= addresses
    assert {id(numbers), *map(id, numbers)} <= addresses


@pytest.mark.skipif(sys.version_info < (3, 15), reason="there is no frozendict")
def test_a_frozendict_holds_its_keys_as_a_dict_does(take: Any) -> None:
    # GIVEN frozendicts with keys that only they hold, one of them with an attribute
    class Table(frozendict):  # type: ignore[name-defined,misc]  # noqa: F821
        pass

    table = Table({"a key that only %s holds" % "this one": [1]})
    table.attribute = [2]
    for each in (frozendict({"a key that only %s holds" % "that one": [1]}), table):  # type: ignore[name-defined]  # noqa: F821
        (key, value), = each.items()
        # WHEN
        held = take(values=True).find(id(each)).referents()
        # THEN they are found, as what they are
        assert (" key", id(key)) in [(name, found.address) for name, found in held]
        assert (f"[str {key!r}]", id(value)) in [(name, found.address) for name, found in held]
        assert [found.address for _, found in held].count(id(value)) == 1


def test_finds_all_that_very_long_lists_hold(take: Any) -> None:
    # GIVEN lists of more than a million, two of them at the end of another
    long = [(0, number) for number in range(3)] * 400_000
    longer = [*long, [long, "at the end", [*range(10**6, 10**6 + 1_100_000)]]]
    del long
    # WHEN
    snapshot = take()
    # THEN the last of all is there, and so is what only the end of a list holds
    addresses = set(snapshot.address)
    numbers = longer[-1][2]
    assert {id(longer), id(numbers), id(numbers[0]), id(numbers[-1])} <= addresses
    assert sum(1 for number in numbers if id(number) not in addresses) == 0


def test_a_retained_size_is_that_of_all_below(take: Any) -> None:
    # GIVEN an object that alone holds a list of bytes
    holder = Held()
    holder.buffers = [bytes(1000 + number) for number in range(100)]  # type: ignore[attr-defined]
    # WHEN
    heap = take()
    found = heap.find(id(holder))
    # THEN
    payload = sum(map(len, holder.buffers))  # type: ignore[attr-defined]
    assert payload < found.retained < payload * (1.25 if FREE_THREADED else 1) + 100 * 60 + 2000
    assert found.retained >= heap.find(id(holder.buffers)).retained > payload  # type: ignore[attr-defined]


def test_an_interned_str_belongs_to_who_holds_it(take: Any) -> None:
    # GIVEN an object that alone holds an interned str, beside a dict that has strs as keys and as their values
    holder, text = Held(), sys.intern("z" * 500_000 + str(os.getpid()))
    holder.text = text  # type: ignore[attr-defined]
    pool = Held()
    pool.entries = {each: each for each in ["y" * 500_000 + str(os.getpid())]}  # type: ignore[attr-defined]
    address = id(text)
    del text
    # WHEN
    heap = take()
    # THEN the interpreter's table of interned strs does not hold it, and the program's dict does
    assert heap.find(id(holder)).retained > 500_000
    assert [row.type for row in heap.find(address).referrers()] in ([f"{__name__}.Held"], ["dict"])
    assert heap.find(id(pool)).retained > 500_000


def test_garbage_holds_what_only_it_holds(take: Any) -> None:
    # GIVEN garbage that holds itself and a large buffer, some before and some behind it in memory
    class Cycle:
        pass

    gc.disable()
    try:
        for number in range(10):
            garbage = Cycle()
            garbage.buffer = bytes(1_000_001 + number)  # type: ignore[attr-defined]
            garbage.itself = garbage  # type: ignore[attr-defined]
            del garbage
        # WHEN
        heap = take()
    finally:
        gc.enable()
    # THEN each would be freed with its buffer
    found = list(heap.view("parts").objects(Cycle.__module__ + "." + Cycle.__qualname__))
    assert len(found) == 10
    assert all(each.retained > 1_000_000 for each in found)


def test_a_path_with_a_null_is_an_error(tmp_path: pathlib.Path) -> None:
    for call in (plimsoll.heap.snapshot, plimsoll.heap.fork_snapshot, plimsoll.heap.open):
        with pytest.raises(ValueError, match="null"):
            call(f"{tmp_path}/a\0b")  # type: ignore[operator]
    assert not list(tmp_path.iterdir())


CACHE: "dict[str, object]" = {}


def test_a_path_names_every_step(take: Any) -> None:
    # GIVEN an object in a dict in a module
    CACHE["entry"] = [Held(), Held()]
    wanted = CACHE["entry"][1]  # type: ignore[index]
    # WHEN
    heap = take(values=True)
    found = heap.find(id(wanted))
    paths = [str(path) for path in found.paths(limit=20)]
    CACHE.clear()
    # THEN
    expected = f".CACHE -> dict[str 'entry'] -> list[1] -> {__name__}.Held"
    assert any(path.startswith("modules.") and path.endswith(expected) for path in paths), paths
    assert [row for row, _ in found.referents() if row == ".__class__"] == [".__class__"]


def test_attributes_are_named(take: Any) -> None:
    # GIVEN instances with attributes, with slots, and with a dict that was asked for
    plain, slotted, asked = Plain([1], [2]), Slotted(), Plain([3])
    slotted.first, slotted.second = [4], [5]  # type: ignore[attr-defined]
    assert vars(asked)
    # WHEN
    heap = take()
    # THEN
    def named(instance: object) -> "dict[str, int]":
        direct = {edge: held.address for edge, held in heap.find(id(instance)).referents()}
        inside = heap.find(direct[".__dict__"]).referents() if ".__dict__" in direct else []
        return {**direct, **{edge: held.address for edge, held in inside}}

    assert named(plain)[".field_0"] == id(plain.field_0)  # type: ignore[attr-defined]
    assert named(plain)[".field_1"] == id(plain.field_1)  # type: ignore[attr-defined]
    assert named(asked)[".field_0"] == id(asked.field_0)  # type: ignore[attr-defined]
    assert named(slotted)[".second"] == id(slotted.second)  # type: ignore[attr-defined]


def test_local_variables_of_all_threads_are_roots(take: Any) -> None:
    # GIVEN a thread that waits with an object in a local variable
    ready, done = threading.Event(), threading.Event()
    address = []

    def waiter() -> None:
        only_here = Held()
        address.append(id(only_here))
        ready.set()
        done.wait()

    thread = threading.Thread(target=waiter)
    thread.start()
    ready.wait()
    # WHEN
    heap = take()
    done.set()
    thread.join()
    # THEN
    paths = [str(path) for path in heap.find(address[0]).paths()]
    assert any(path.startswith("threads") for path in paths), paths
    if sys.version_info >= (3, 11):
        assert any("waiter().only_here" in path for path in paths), paths


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what a frame goes on with is not written down")
def test_a_frame_holds_what_it_goes_on_with(take: Any) -> None:
    # GIVEN a loop over a list that nothing else holds, and bytes that wait for another argument of a call
    def rows() -> "list[Held]":
        return [Held() for _ in range(100)]

    def second_of(first: bytes, second: Any) -> Any:
        return second

    def work() -> Any:
        return second_of(bytes(5_000_001), take())

    for row in rows():
        # WHEN a snapshot is taken meanwhile
        heap, first = work(), id(row)
        break
    # THEN the frames hold them, not native code
    others = [each for each in heap.objects(f"{__name__}.Held") if each.address != first]
    assert len(others) == 99
    here = "test_a_frame_holds_what_it_goes_on_with().stack"
    assert [str(path) for each in others for path in each.paths() if here not in str(path)] == []
    large = [each for each in heap.objects("bytes") if each.size > 5_000_000]
    assert [str(path).split("[1] -> ")[-1] for each in large for path in each.paths()] == ["work().stack -> bytes"]


def test_garbage_is_told_from_what_native_code_holds(take: Any) -> None:
    # GIVEN a cycle that nobody holds
    first, second = Held(), Held()
    first.other, second.other = second, first  # type: ignore[attr-defined]
    addresses = [id(first), id(second)]
    gc.disable()
    try:
        del first, second
        # WHEN
        heap = take()
    finally:
        gc.enable()
    # THEN
    for address in addresses:
        holders = heap.find(address).paths()[0].holders
        assert str(holders[1]) == "[garbage]"


def test_garbage_is_found_however_much_there_is(take: Any) -> None:
    # GIVEN one to six cycles that nobody holds, on a list of the collector's that is read from both its ends
    class Lost:
        pass

    for count in range(1, 7):
        gc.collect()
        gc.disable()
        try:
            for _ in range(count):
                lost = Lost()
                lost.itself = lost  # type: ignore[attr-defined]
                del lost
            # WHEN / THEN each is found once
            assert [number for name, number in counts(take()).items() if name.endswith("Lost")] == [count]
        finally:
            gc.enable()


def test_weak_references_keep_nothing_alive(take: Any) -> None:
    # GIVEN
    held = Held()
    reference = weakref.ref(held)
    # WHEN
    heap = take()
    # THEN
    assert heap.find(id(reference)).address == id(reference)
    assert id(held) not in [each.address for _, each in heap.find(id(reference)).referents()]


def test_changes_nothing(take: Any) -> None:
    # GIVEN instances without a dict, and an object whose references are counted
    keep = [Plain(1, 2, 3) for _ in range(20000)]
    watched = Held()
    take()  # makes what is made once
    gc.collect()
    before = sys.getrefcount(watched), sys.getrefcount(None) if sys.version_info < (3, 12) else 0
    tracemalloc.start()
    # WHEN
    start = tracemalloc.get_traced_memory()[0]
    heap = take()
    del heap
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    # THEN no dict was made (48 bytes each would be a million), and no reference was left
    assert grown < 50_000
    assert sys.getrefcount(watched) == before[0]
    assert len(keep) == 20000


@pytest.mark.skipif(FREE_THREADED, reason="free-threaded builds do not tell how many references there are")
def test_reference_counts_are_those_of_the_program(take: Any) -> None:
    # GIVEN an object in a list, several times, and in this variable
    held = Held()
    many = [held] * 25
    # WHEN
    found = take().find(id(held))
    # THEN
    own = 0 if sys.version_info >= (3, 14) else 1  # that of the call
    assert found.refcount == sys.getrefcount(held) - own
    assert len(found.referrers()) >= len(many)


def test_values_are_redacted_unless_asked_for(take: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a secret in a str, in bytes, and as a key
    secret = "hunter2-" + str(os.getpid())
    keep = [secret, secret.encode(), {secret + "-key": 1}]
    # WHEN / THEN
    target = tmp_path / "out.heapsnapshot"
    take().export(target)
    assert secret not in target.read_text()
    take(values=True).export(target)
    assert secret in target.read_text()
    assert len(keep) == 3


def test_bytes_and_numbers_are_written_as_python_writes_them(take: Any) -> None:
    # GIVEN bytes that are no text, and numbers
    keep = [b"it's\xff\xfe\x00" + os.urandom(4), b'"', float(os.getpid()), 1e22, -os.getpid()]
    # WHEN
    heap = take(values=True)
    # THEN each can be told from others that look like it
    assert [heap.find(id(each)).text for each in keep] == [repr(each) for each in keep]


def test_the_file_is_for_its_owner_only(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.heap"
    path.touch(0o644)
    plimsoll.heap.snapshot(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link = tmp_path / "link.heap"
    link.symlink_to(path)
    with pytest.raises(PermissionError, match="symbolic link"):
        plimsoll.heap.snapshot(link)
    with pytest.raises(OSError, match="No such file"):
        plimsoll.heap.snapshot(tmp_path / "nowhere" / "x.heap")
    with pytest.raises(OSError, match="No space"):
        plimsoll.heap.snapshot("/dev/full")


def test_what_is_no_snapshot_is_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "text.heap"
    path.write_text("hello")
    with pytest.raises(plimsoll.ProfileError, match="not a heap snapshot"):
        plimsoll.heap.open(path)


def test_a_child_writes_the_heap_as_it_was(tmp_path: pathlib.Path) -> None:
    # GIVEN objects that are dropped as soon as the child is there, and a thread that goes on
    keep = [Held() for _ in range(500)]
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    # WHEN
    pending = plimsoll.heap.fork_snapshot(tmp_path / "child.heap")
    keep.clear()
    taken = pending.wait()
    stop.set()
    thread.join()
    # THEN
    heap = plimsoll.heap.open(tmp_path / "child.heap")
    assert heap.complete and len(heap) == taken.objects
    assert counts(heap)[f"{__name__}.Held"] >= 500
    assert heap.meta["process"].startswith(f"{os.getpid()}:")
    with pytest.raises(ValueError, match="already"):
        pending.wait()


FEW_FILES = """
import json, os, resource, sys
import plimsoll.heap
path = sys.argv[1]
first = os.dup(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (first + 2, first + 2))
os.close(first)
try:
    plimsoll.heap.fork_snapshot(path)
except OSError as error:
    print(json.dumps([str(error), os.listdir(os.path.dirname(path))]))
"""


def test_a_child_that_cannot_be_begun_leaves_no_file(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that may open two files, and has no file, or an older one, at the path
    # WHEN it wants a child that takes a snapshot, which needs three
    path = tmp_path / "child.heap"
    without = run(FEW_FILES, str(path))
    path.write_bytes(b"older")
    with_older = run(FEW_FILES, str(path))
    # THEN nothing is left of the snapshot, and the older file stays
    assert "cannot make a pipe" in without[0] and without[1] == []
    assert "cannot make a pipe" in with_older[0] and with_older[1] == ["child.heap"]
    assert path.read_bytes() == b"older"


def test_waiting_for_a_child_can_be_interrupted(tmp_path: pathlib.Path) -> None:
    # GIVEN a child that is stopped, and a signal whose handler raises
    def handle(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    pending = plimsoll.heap.fork_snapshot(tmp_path / "child.heap")
    os.kill(pending.pid, signal.SIGSTOP)
    try:
        # WHEN it is waited for
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            pending.wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.kill(pending.pid, signal.SIGCONT)
    # THEN the program goes on, and can wait again
    assert pending.wait().objects == len(plimsoll.heap.open(tmp_path / "child.heap"))


def test_a_child_that_is_killed_is_told_of(tmp_path: pathlib.Path) -> None:
    # GIVEN a child that waits for a reader of the pipe that it writes to
    os.mkfifo(tmp_path / "pipe")
    keep_open = os.open(tmp_path / "pipe", os.O_RDWR)
    keep = [str(number) * 50 for number in range(50_000)]
    pending = plimsoll.heap.fork_snapshot(tmp_path / "pipe", values=True)
    # WHEN
    os.kill(pending.pid, signal.SIGKILL)
    # THEN
    with pytest.raises(OSError, match="signal 9"):
        pending.wait()
    os.close(keep_open)
    assert len(keep) == 50_000


def test_the_program_goes_on_while_the_rest_of_the_file_is_written(tmp_path: pathlib.Path) -> None:
    # GIVEN a program with few objects, and a pipe of one page that another thread of it reads
    # WHEN the snapshot is written there THEN that thread gets it
    objects, size = run("""
        import fcntl, json, os, sys, threading
        import plimsoll.heap
        os.mkfifo(sys.argv[1])
        reader, writer = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK), os.open(sys.argv[1], os.O_WRONLY)
        fcntl.fcntl(reader, 1031, 4096)  # F_SETPIPE_SZ
        os.set_blocking(reader, True)
        got = []
        def read():
            while piece := os.read(reader, 4096):
                got.append(len(piece))
        thread = threading.Thread(target=read)
        thread.start()
        taken = plimsoll.heap.snapshot(sys.argv[1])
        os.close(writer)
        thread.join()
        assert taken.file_bytes == sum(got)
        print(json.dumps([taken.objects, taken.file_bytes]))
    """, str(tmp_path / "pipe"))
    assert objects < 1 << 16 and size > 10 * 4096


def test_survivors_are_what_came_and_stayed(take: Any) -> None:
    # GIVEN work that keeps three objects each time it is done, and lets go of a hundred
    kept: "list[Held]" = []

    def work() -> None:
        passing = [Held() for _ in range(100)]
        kept.extend(Held() for _ in range(3))
        del passing

    snapshots = []
    for _ in range(3):
        work()
        snapshots.append(take())
    # WHEN
    first, second, third = snapshots
    rows = {row.type: row for row in first.survivors(second, third)}
    # THEN those of the second time are told, not those of the first, nor of the third
    assert rows[f"{__name__}.Held"].count == 3
    assert list(first.survivors(second, first)) == []


class Connection:
    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer


def test_sets_of_objects_tell_what_would_be_freed_with_all_of_them(take: Any) -> None:
    # GIVEN two connections that share a buffer, and one of which a cache holds the buffer, too
    shared, own = bytearray(300_000), bytearray(200_000)
    pool, cache = [Connection(shared), Connection(shared), Connection(own)], [own]
    del shared
    addresses = [id(each) for each in pool]
    # WHEN
    heap = take()
    found = heap.select(f"{__name__}.Connection")
    # THEN these are the objects, and the buffer that they share is freed with all of them, but with none alone
    assert [each.address for each in found] == sorted(addresses) and len(found) == 3
    assert 300_000 <= found.retained().size < 310_000 + found.size
    alone = [heap.select(objects=[each]) for each in found]
    assert all(each.retained().size == heap[each.numbers[0]].retained < 10_000 for each in alone)
    # AND they are combined, compared and looked at as sets
    first, *others = alone
    assert first <= found and not found <= first and first | others[0] | others[1] == found
    assert len(found - first) == 2 and not found & ~found and found ^ first == found - first
    assert heap.find(addresses[0]) in found and heap.find(id(cache)) not in found
    buffers = found.reached() & heap.select("bytearray")
    assert sorted(each.size // 100_000 for each in buffers) == [2, 3]
    only_own, holder = heap.select(objects=[heap.find(id(own))]), heap.select(objects=[heap.find(id(cache))])
    assert holder <= only_own.holders() and only_own <= holder.held()
    assert heap.select("bytearray", where="size > 250000 or 1 = 0 -- a comment") & buffers == buffers - only_own
    assert "3 objects" in repr(found) and f"{__name__}.Connection" in found._repr_html_()
    # AND what does not go together is an error
    with pytest.raises(ValueError, match="two snapshots"):
        found | take().select()
    with pytest.raises(IndexError):
        heap.select(objects=[len(heap)])
    with pytest.raises(ValueError, match="no such column"):
        heap.select(where="no_such_column = 1")


def test_an_object_of_another_snapshot_is_in_no_set(take: Any) -> None:
    # GIVEN two snapshots, and a view of one, which number their objects differently
    keep = [Held() for _ in range(3)]
    heap, later = take(), take()
    name = f"{__name__}.Held"
    found = heap.select(name)
    # WHEN an object of another one is asked for THEN that is an error, and not whatever has its number here
    for other in (later, heap.view("parts")):
        held = other.find(name)
        with pytest.raises(ValueError, match="another snapshot"):
            heap.select(objects=[held])
        with pytest.raises(ValueError, match="another snapshot"):
            print(held in found)
    # AND numbers are those of any library
    class Number:
        def __index__(self) -> int:
            return int(found.numbers[0])

    number: Any = Number()
    assert number in found and len(heap.select(objects=[number])) == 1 and len(keep) == 3


def test_a_diff_counts_what_is_new(take: Any) -> None:
    # GIVEN
    keep = [Held()]
    before = take()
    # WHEN
    keep += [Held() for _ in range(100)]
    rows = {row.type: row for row in before.diff(take())}
    # THEN
    row = rows[f"{__name__}.Held"]
    assert (row.count_after - row.count_before, row.new) == (100, 100)
    assert row.size_after > row.size_before


def test_snapshots_while_threads_make_and_drop_objects(tmp_path: pathlib.Path) -> None:
    # GIVEN four threads that change dicts, lists and instances
    stop = threading.Event()

    def churn() -> None:
        table: "dict[int, object]" = {}
        for number in range(10**9):
            table[number % 997] = Plain(number, [number], {str(number): number})
            if stop.is_set():
                return

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    # WHEN / THEN each is whole, with nothing lost, and has them at their work
    path = tmp_path / "churn.heap"
    try:
        for _ in range(3):
            taken = plimsoll.heap.snapshot(path)
            heap = plimsoll.heap.open(path)
            assert heap.complete and taken.lost_references == 0
            assert counts(heap)[f"{__name__}.Plain"] > 0 and sum(heap.retained[:]) > 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("call", ["snapshot({path!r})", "fork_snapshot({path!r}).wait()"])
def test_snapshots_while_threads_give_memory_back(call: str, tmp_path: pathlib.Path) -> None:
    # GIVEN threads that map memory and unmap it again
    text = f"""
import mmap, threading, warnings, plimsoll.heap
warnings.simplefilter("ignore")
done = threading.Event()
def churn():
    while not done.is_set():
        block = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(bytes(4 << 20))
        block.close()
threads = [threading.Thread(target=churn) for _ in range(4)]
for thread in threads: thread.start()
try:
    for _ in range(20): plimsoll.heap.{call.format(path=str(tmp_path / "x.heap"))}
finally: done.set()
for thread in threads: thread.join()
print(plimsoll.heap.open({str(tmp_path / "x.heap")!r}).complete)
"""
    # WHEN snapshots look for pools in what was mapped a moment ago THEN the program is none the worse
    assert harness.python("-c", text).expect().out == "True\n"


def test_own_objects_are_left_out(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that has nothing of Plimsoll but a name
    found = run("""
        import json, sys
        from plimsoll.heap import snapshot
        snapshot(sys.argv[1])
        import plimsoll.heap
        heap = plimsoll.heap.open(sys.argv[1])
        names = {row.type: row.count for row in heap.types() if "plimsoll" in row.type or "nanobind" in row.type}
        modules = [each.text for each in heap.objects("module") if "plimsoll" in each.text]
        print(json.dumps([names, modules]))
    """, str(tmp_path / "own.heap"))
    assert found == [{}, []]


def test_a_table_prints_and_shows_in_a_notebook(take: Any) -> None:
    heap = take()
    assert str(heap.types()).splitlines()[0].split() == ["count", "size", "retained", "class"]
    assert "<table>" in heap._repr_html_() and f"... and {len(heap.types()) - 50} more" in heap._repr_html_()
    assert "objects" in repr(heap)
    assert heap.largest(3)[0].retained >= heap.largest(3)[1].retained
    assert len(list(heap.objects("module"))) == counts(heap)["module"]
    with pytest.raises(KeyError):
        heap.find("no.such.Class")
    with pytest.raises(IndexError):
        heap[len(heap)]


def test_the_largest_object_may_be_a_local_variable(take: Any) -> None:
    # GIVEN a list that only this call holds, larger than all else
    large = [bytes(1000) for _ in range(100_000)]
    # WHEN
    heap = take()
    # THEN it is the largest, and no object of those after it is a part of it
    assert heap.largest(1) == [heap.find(id(large))]
    sizes = [each.retained for each in heap.largest()]
    assert len(sizes) == 20 and sizes == sorted(sizes, reverse=True) and sum(sizes) <= heap.root.retained
    assert heap.largest(0) == []


@pytest.mark.any_version
def test_the_command_reads_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.heap"
    plimsoll.heap.snapshot(path)
    for words in (["show", path], ["diff", path, path, "--json"]):
        done = subprocess.run([harness.binary(), "heap", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["one_process"] is True
