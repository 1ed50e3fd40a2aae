"""What the tests of heap snapshots share."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap
from typing import Any, Callable

import pytest

import harness
import plimsoll.heap


@pytest.fixture
def take(tmp_path: pathlib.Path) -> "Callable[..., plimsoll.heap.Heap]":
    """Takes a snapshot of this process and reads it."""

    def take_one(**options: Any) -> plimsoll.heap.Heap:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.heap"
        taken = plimsoll.heap.snapshot(path, **options)
        heap = plimsoll.heap.open(path)
        assert heap.complete
        assert (taken.objects, taken.lost_references) == (len(heap), 0)
        return heap

    return take_one


def run(text: str, *arguments: str) -> Any:
    """What a program of its own prints as JSON."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *arguments], capture_output=True, text=True,
                          timeout=harness.DEADLINE, env=harness.environment())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
