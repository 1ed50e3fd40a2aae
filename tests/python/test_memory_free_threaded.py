"""Free-threaded builds cannot sample allocations yet, and say so."""

from __future__ import annotations

import pathlib

import pytest

import harness
import plimsoll


@pytest.mark.skipif(not harness.FREE_THREADED, reason="this build has a GIL: test_memory.py tests what it can")
def test_free_threaded_builds_say_that_they_cannot(tmp_path: pathlib.Path) -> None:
    with pytest.raises(plimsoll.UnsupportedError, match="free-threaded"):
        plimsoll.Profiler(alloc_bytes=4096).start()
    # and nothing is left behind that would keep the next recording from starting
    with plimsoll.Profiler():
        pass
    finished = harness.plimsoll_run("-c", "print('fine')", options=["--alloc", "-o", tmp_path / "a.plim"]).expect(0)
    assert finished.out == "fine\n" and "free-threaded" in finished.err
