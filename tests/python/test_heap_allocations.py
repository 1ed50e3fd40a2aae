"""Snapshots that are taken while allocations are recorded: who allocated what is alive."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest

import harness
import plimsoll
import plimsoll.heap
from heap_rules import take

pytestmark = pytest.mark.most_versions

__all__ = ["take"]  # a fixture


class Early:
    pass


class Session:
    __slots__ = ("name",)


def open_session() -> Session:
    return Session()


def from_desk() -> Session:
    return open_session()


def from_phone() -> Session:
    return open_session()


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno) + 1


def sites(heap: plimsoll.heap.Heap, by: str = "allocation-site", of: str = "Session") -> "dict[str, int]":
    return {row.name: row.count for row in heap.groups(by, f"{__name__}.{of}")}


def snapshot_of(folder: pathlib.Path) -> plimsoll.heap.Heap:
    plimsoll.heap.snapshot(folder / "before.heap")
    return plimsoll.heap.open(folder / "before.heap")


@pytest.mark.parametrize("native", [False, True])
def test_every_object_of_an_exact_recording_has_its_stack(tmp_path: pathlib.Path, take: Any, native: bool) -> None:
    # GIVEN objects of before the recording, and those that it has seen come from two callers, some gone again
    early = Early()
    with plimsoll.Profiler(tmp_path / "out.plim", alloc_exact=True, native=native):
        keep = [from_desk() for _ in range(300)] + [from_phone() for _ in range(200)]
        del keep[::2]
        # WHEN
        heap = take()
    # THEN
    site = f"open_session ({__file__}:{line_of(open_session)})"
    assert sites(heap)[site] == 250
    assert sites(heap, of="Early") == {"[not recorded]": 1}
    by_stack = sites(heap, "allocation-stack")
    assert sorted(count for name, count in by_stack.items() if name.startswith(f"{site} < from_")) == [100, 150]
    assert heap.meta["allocations"] == "exact"
    phone = heap.find(id(keep[-1])).allocation_stack()
    assert [frame.function for frame in phone][:2] == ["open_session", "from_phone"]
    assert phone[1].line == line_of(from_phone)
    assert heap.find(id(early)).allocation_stack() is None


def test_sampled_objects_have_their_stacks_and_no_others(tmp_path: pathlib.Path, take: Any) -> None:
    # GIVEN a recording of a sample every few kilobytes
    with plimsoll.Profiler(tmp_path / "out.plim", alloc_bytes=2000):
        keep = [from_desk() for _ in range(20_000)]
        big = [bytes(100_000) for _ in range(10)]
        # WHEN
        heap = take()
    # THEN what is known is right, and of the large ones all are
    found = sites(heap)
    site = f"open_session ({__file__}:{line_of(open_session)})"
    assert set(found) == {site, "[not recorded]"}
    assert 0 < found[site] < len(keep)
    assert sum(found.values()) == len(keep)
    assert all(heap.find(id(each)).allocation_stack() for each in big)
    assert heap.meta["allocations"] == "sampled"


def test_an_address_that_is_used_again_has_the_later_stack(tmp_path: pathlib.Path, take: Any) -> None:
    # GIVEN objects in the places of others, which were allocated elsewhere
    with plimsoll.Profiler(tmp_path / "out.plim", alloc_exact=True):
        first = [from_desk() for _ in range(1000)]
        places = {id(each) for each in first}
        first.clear()
        second = [from_phone() for _ in range(1000)]
        reused = [each for each in second if id(each) in places]
        heap = take()
    # THEN
    assert reused
    for each in reused:
        assert [frame.function for frame in heap.find(id(each)).allocation_stack()][1] == "from_phone"


@pytest.mark.parametrize("options", [{"alloc_exact": True}, {"alloc_bytes": 500}])
def test_a_forked_snapshot_has_the_stacks_of_its_time(tmp_path: pathlib.Path, options: "dict[str, Any]") -> None:
    # GIVEN
    known = sum(sites(snapshot_of(tmp_path)).values())
    with plimsoll.Profiler(tmp_path / "out.plim", **options):
        keep = [from_desk() for _ in range(2000)]
        # WHEN the child writes while the program goes on
        pending = plimsoll.heap.fork_snapshot(tmp_path / "a.heap")
        later = [from_phone() for _ in range(2000)]
        pending.wait()
    # THEN
    by_stack = sites(plimsoll.heap.open(tmp_path / "a.heap"), "allocation-stack")
    assert sum(by_stack.values()) - known == len(keep) == len(later)
    assert any("from_desk" in name for name in by_stack)
    assert not any("from_phone" in name for name in by_stack)


def test_a_snapshot_without_a_recording_says_nothing_of_it(tmp_path: pathlib.Path, take: Any) -> None:
    # GIVEN a recording that has ended, and one of time only
    with plimsoll.Profiler(tmp_path / "out.plim", alloc_bytes=64):
        keep = from_desk()
    with plimsoll.Profiler(tmp_path / "out.plim"):
        heap = take()
    # THEN
    assert heap.find(id(keep)).allocation_stack() is None
    assert "allocations" not in heap.meta


def test_shell_and_sql_and_devtools_tell_the_same(tmp_path: pathlib.Path) -> None:
    # GIVEN
    path = tmp_path / "a.heap"
    with plimsoll.Profiler(tmp_path / "out.plim", alloc_exact=True):
        keep = [from_desk() for _ in range(30)]
        plimsoll.heap.snapshot(path)
    site = f"open_session ({__file__}:{line_of(open_session)})"
    name = f"{__name__}.Session"
    # THEN the shell
    shown = harness.plimsoll_command("heap", "show", path, "groups", "--by", "allocation-site", "--of", name, "--json")
    assert (site, len(keep)) in [(row["name"], row["count"]) for row in json.loads(shown.out)["groups"]]
    # SQL
    heap = plimsoll.heap.open(path)
    of = f"type = '{name}' and allocation_site is not null"
    rows = heap.query(f"select allocation_site, count(*) from objects where {of} group by 1")
    assert list(rows) == [(site, len(keep))]
    stack = heap.query(f"select allocation_stack from objects where {of} limit 1")[0][0]
    assert stack.startswith(f"{site} < from_desk (")
    # and DevTools' tree
    heap.export(tmp_path / "a.heapsnapshot")
    file = json.loads((tmp_path / "a.heapsnapshot").read_text())
    strings = file["strings"]
    functions = [strings[file["trace_function_infos"][i + 1]] for i in range(0, len(file["trace_function_infos"]), 6)]
    assert file["snapshot"]["trace_function_count"] == len(functions)
    known: "dict[int, tuple[list[str], int]]" = {}

    def walk(level: "list[Any]", above: "list[str]") -> None:
        for i in range(0, len(level), 5):
            number, function, count, _size, children = level[i:i + 5]
            known[number] = ([*above, functions[function]], count)
            walk(children, known[number][0])

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    walk(file["trace_tree"], [])
    sys.setrecursionlimit(limit)
    nodes = file["nodes"]
    traces = {nodes[i + 5] for i in range(0, len(nodes), 7) if strings[nodes[i + 1]] == name and nodes[i + 5]}
    assert len(traces) == 1
    frames, count = known[traces.pop()]
    assert frames[0] == "(root)" and frames[-2:] == ["from_desk", "open_session"]
    assert count == len(keep)
