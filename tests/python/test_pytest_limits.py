"""Tests that are held to limits of memory, by what they are known to allocate."""

from __future__ import annotations

import pathlib
import re

import pytest

import plimsoll
from plimsoll import pytest_limits
from test_integrations import run_pytest

pytestmark = pytest.mark.any_version  # what allocations are recorded is tested elsewhere

PROGRAM = """
import unittest
import pytest

KEPT = {}

def build(count): return [bytes(1000) for _ in range(count)]

@pytest.mark.limit_memory("6 MB")
def test_that_has_no_more_in_use_than_it_may():
    for _ in range(5): build(5000)

@pytest.mark.limit_memory("4 MB")
def test_that_has_too_much_in_use(): build(5000)

@pytest.mark.limit_leaks("100 kB")
def test_that_leaves_nothing_but_a_cycle():
    cycle = [bytearray(1000000)]
    cycle.append(cycle)

@pytest.mark.limit_leaks("100 KiB", warmups=1)
def test_that_keeps_something_once(): KEPT.setdefault("cache", bytearray(1000000))

@pytest.mark.limit_leaks("100 kB")
def test_that_leaves_too_much(): KEPT["leak"] = bytearray(1000000)

@pytest.mark.limit_memory(1000000)
@pytest.mark.limit_leaks(1000000)
class TestClass(unittest.TestCase):
    def test_that_is_fine(self): build(10)
    def test_that_has_both(self): KEPT["both"] = build(2000)

@pytest.mark.xfail(strict=True)
@pytest.mark.limit_memory(0)
def test_that_is_known_to_have_some(): KEPT["some"] = build(100)

@pytest.mark.limit_memory(0)
def test_that_fails_anyway():
    KEPT["more"] = build(100)
    raise ArithmeticError("its own")

def test_without_a_limit(): build(5000)
"""

TOO_MUCH = {"test_that_has_too_much_in_use", "test_that_leaves_too_much", "test_that_has_both"}


def failed(out: str) -> "set[str]":
    return set(re.findall(r"^FAILED .*::(\w+)", out, re.MULTILINE))


def test_tests_fail_that_exceed_their_limits(tmp_path: pathlib.Path) -> None:
    # GIVEN tests that allocate what is known; WHEN they are held to their limits
    done = run_pytest(tmp_path, "--plimsoll-limits", "--strict-markers", "-W", "error", tests=PROGRAM)
    # THEN those fail that exceed them, and those that fail by themselves, as they would
    assert failed(done.out) == {*TOO_MUCH, "test_that_fails_anyway"} and "1 xfailed" in done.out
    assert "ArithmeticError: its own" in done.out
    # AND it is said by how much, and where that is from
    assert re.search(r"had 5\.\d+ MB in use at a time, its limit is 4 MB. By functions:\n +5\.\d+ MB  build \(test_it", done.out)
    assert re.search(r"left 1(\.0\d*)? MB behind, its limit is 100 kB", done.out)
    assert re.search(r"had 2\.\d+ MB in use.*, its limit is 1 MB[^$]*left 2\.\d+ MB behind, its limit is 1 MB", done.out)
    # AND no profile is left
    assert "wrote" not in done.out and not (tmp_path / ".plimsoll").exists()


def test_without_the_option_tests_are_held_to_nothing(tmp_path: pathlib.Path) -> None:
    done = run_pytest(tmp_path, "--strict-markers", "-W", "error", tests=PROGRAM)
    assert failed(done.out) == {"test_that_fails_anyway", "test_that_is_known_to_have_some"}


def test_what_limits_are_held_against_can_be_kept(tmp_path: pathlib.Path) -> None:
    # GIVEN a profile for each test, with samples of allocations; WHEN those that have limits are held to them
    done = run_pytest(tmp_path, "--plimsoll", "--plimsoll-per", "test", "--plimsoll-alloc", "64K", "--plimsoll-limits",
                      "-k", "much or without", tests=PROGRAM)
    assert failed(done.out) == TOO_MUCH - {"test_that_has_both"} and "wrote 3 profiles into .plimsoll" in done.out
    # THEN their profiles have all that they were called for, and that of the other one has samples
    build = plimsoll.Profile.open(tmp_path / ".plimsoll/test_it.py-test_that_has_too_much_in_use.plim").memory("peak")
    assert build.distance == 0 and build.of("build").own.bytes == pytest.approx(5000 * 1033, rel=0.02)
    assert plimsoll.Profile.open(tmp_path / ".plimsoll/test_it.py-test_without_a_limit.plim").memory("alloc").distance == 65536


@pytest.mark.parametrize("marker, said", [
    ("limit_memory('ten')", "@pytest.mark.limit_memory: 'ten' is no size: it is a number of bytes, or a text such as '24 MB'"),
    ("limit_memory()", "@pytest.mark.limit_memory: limit_memory() missing 1 required positional argument: 'size'"),
    ("limit_leaks('1 MB', warmups='a')", "@pytest.mark.limit_leaks: 'a' is no number of warmups"),
    ("limit_leaks('1 MB', warm=1)", "@pytest.mark.limit_leaks: limit_leaks() got an unexpected keyword argument 'warm'"),
])
def test_a_limit_that_is_none_is_told_of(marker: str, said: str, tmp_path: pathlib.Path) -> None:
    tests = f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass\n"
    done = run_pytest(tmp_path, "--plimsoll-limits", tests=tests)
    assert done.code == 1 and said in done.out and "Traceback" not in done.out


def test_a_test_that_ends_the_recording_fails(tmp_path: pathlib.Path) -> None:
    tests = ("import pytest\n@pytest.mark.limit_memory('1 MB')\n"
             "def test_it():\n from plimsoll import _recording\n _recording.stop()\n")
    done = run_pytest(tmp_path, "--plimsoll-limits", tests=tests)
    assert "could not be held to its limits of memory: it has ended the recording" in done.out and done.code == 1


@pytest.mark.parametrize("options, said", [
    (["--plimsoll", "--plimsoll-limits"], "--plimsoll-limits records tests one by one: give --plimsoll-per test"),
    (["--plimsoll", "--plimsoll-alloc", "much"], "--plimsoll-alloc: 'much' is no size"),
])
def test_options_that_cannot_be_are_refused(options: "list[str]", said: str, tmp_path: pathlib.Path) -> None:
    done = run_pytest(tmp_path, *options, tests=PROGRAM)
    assert done.code == 4 and said in done.out + done.err


def test_sizes_are_written_as_for_the_command() -> None:
    sizes = {"512": 512, "512K": 524288, "1.5 MiB": 1572864, "24 MB": 24000000, " 64kB ": 64000, "2g": 1 << 31}
    assert {text: pytest_limits.bytes_of(text) for text in sizes} == sizes
    for wrong in ("", "K", "-1", "1 2", "1e6", "10 quarts", -1, 1.5, None, True):
        with pytest.raises(ValueError, match="is no size"):
            pytest_limits.bytes_of(wrong)  # type: ignore[arg-type]
    texts = {0: "0 bytes", 999: "999 bytes", 1250: "1.25 kB", 23_960_000: "24 MB", 123_456_789_012: "123 GB"}
    assert {size: pytest_limits.text_of(size) for size in texts} == texts
