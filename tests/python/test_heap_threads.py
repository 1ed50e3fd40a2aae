"""Heap snapshots while other threads run, and how they find what only the collector knows where it has no lists."""

from __future__ import annotations

import gc
import pathlib
import sys
import threading
from typing import Any

import pytest

import harness
import plimsoll.heap
from heap_rules import run, take

FREE_THREADED = harness.FREE_THREADED
__all__ = ["take"]  # a fixture


class Held:
    pass


def test_snapshots_of_several_threads_leave_each_other_out(tmp_path: pathlib.Path) -> None:
    # GIVEN threads that take snapshots at the same time
    start = threading.Barrier(3)

    def work(thread: int) -> None:
        start.wait()
        for number in range(3):
            plimsoll.heap.snapshot(tmp_path / f"{thread}_{number}.heap")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    # WHEN
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # THEN none has a list of all objects, as there would be for another one
    for path in tmp_path.iterdir():
        heap = plimsoll.heap.open(path)
        assert heap.query("select max(held) from objects where type = 'list'")[0][0] < len(heap) / 2


MAKING_TUPLES = """
import json, sys, threading
import plimsoll.heap
exec(sys.argv[2])
is_over, made, errors = False, [], []
def some():
    for _ in range(20): yield object()
def work():
    while not is_over:
        try:
            tuple(some())
            made.append(frozenset(some()))
            made.clear()
        except BaseException as error:
            errors.append(repr(error))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(15): plimsoll.heap.snapshot(sys.argv[1])
is_over = True
for thread in threads: thread.join()
print(json.dumps(errors))
"""


@pytest.mark.skipif(not FREE_THREADED, reason="a snapshot holds no references while others run")
@pytest.mark.parametrize("before", ["pass", "import _interpreters"])
def test_tuples_that_other_threads_are_making_become_whole(before: str, tmp_path: pathlib.Path) -> None:
    # GIVEN threads that make tuples, each of which waits for what is to be in it
    # WHEN snapshots are taken meanwhile
    errors = run(MAKING_TUPLES, str(tmp_path / "a.heap"), before)
    # THEN all are made
    assert errors == []


@pytest.mark.skipif(not FREE_THREADED, reason="of builds with a GIL the list of what was frozen is read")
def test_what_was_frozen_is_found_without_lists_too(take: Any) -> None:
    if "_interpreters" in sys.modules:
        pytest.skip("where there may be several interpreters the collector is asked, which leaves it out")
    # GIVEN garbage that the collector was told to leave alone
    garbage = Held()
    garbage.itself = garbage  # type: ignore[attr-defined]
    address = id(garbage)
    gc.freeze()
    try:
        del garbage
        # WHEN
        heap = take()
    finally:
        gc.unfreeze()
    # THEN
    assert heap.find(address).type == f"{__name__}.Held"
