"""Files that other profilers record here and now, and what their own readers find in them."""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys

import pytest

import harness
from vmprof_files import Drawing

PROGRAM = """
import threading, time

def steep(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pour(5)

def pour(cups):
    return cups if cups < 1 else pour(cups - 1)

def wait():
    time.sleep(0.2)

helper = threading.Thread(target=wait)
helper.start()
steep(0.3)
helper.join()
"""

# What CPython's own reader says of a file: each thread's samples by their innermost function.
REPLAY = """
import collections, json, sys
from profiling.sampling.binary_reader import BinaryReader

class Collector:
    def __init__(self):
        self.samples = collections.Counter()

    def collect(self, stack_frames, timestamps_us=None):
        count = len(timestamps_us) if timestamps_us else 1
        for interpreter in stack_frames:
            for thread in interpreter.threads:
                leaf = thread.frame_info[0].funcname if thread.frame_info else ""
                self.samples[f"{thread.thread_id} {leaf}"] += count

    def set_stats(self, *args, **kwargs):
        pass

collector = Collector()
with BinaryReader(sys.argv[1]) as reader:
    reader.replay_samples(collector)
print(json.dumps(collector.samples))
"""


@pytest.mark.skipif(sys.version_info < (3, 15), reason="profiling.sampling comes with CPython 3.15")
@pytest.mark.parametrize("options", [("-a",), ("--mode", "cpu"), ("--compression", "none"), ("-a", "--opcodes")])
def test_binary_profiles_of_cpython_are_read_as_its_own_reader_does(
    tmp_path: pathlib.Path, options: "tuple[str, ...]"
) -> None:
    # GIVEN a recording by CPython's own profiler
    (tmp_path / "tea.py").write_text(PROGRAM)
    recorded = tmp_path / "tea.bin"
    words = [sys.executable, "-m", "profiling.sampling", "run", *options, "--binary", "-o", recorded, "tea.py"]
    recording = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=harness.DEADLINE)
    if not recorded.exists() and "ermission" in recording.stderr:
        pytest.skip("other processes may not be looked at here")
    assert recording.returncode == 0, recording.stderr
    replayed = subprocess.run([sys.executable, "-c", REPLAY, recorded], capture_output=True, text=True, check=True)
    # WHEN it is shown THEN each function has the same samples
    shown = json.loads(harness.plimsoll_command("show", recorded, "flat", "--json").expect(0).out)
    samples = {row["function"]: row["self_samples"] for row in shown["flat"]}
    expected: "collections.Counter[str]" = collections.Counter()
    for key, count in json.loads(replayed.stdout).items():
        expected[key.partition(" ")[2]] += count
    assert shown["session"]["samples"] == sum(expected.values())
    for name in ("pour", "steep", "wait"):
        assert samples.get(name, 0) == expected[name]
    assert expected["pour"] > 0


def test_a_file_of_a_version_to_come_is_bad_input_and_named(tmp_path: pathlib.Path) -> None:
    # GIVEN a profile of a version of vmprof's that does not exist
    path = tmp_path / "later.prof"
    drawn = bytes(Drawing(6).name(7, "py:f:1:a.py").stack(7).end())
    path.write_bytes(drawn.replace(b"\5\0\6", b"\5\0\x09"))
    # WHEN it is shown THEN that is an error of the file's, and says what is known
    shown = harness.plimsoll_command("show", path).expect(5)
    assert "vmprof profile of version 9" in shown.err and "0 to 7" in shown.err
