"""Memory that C libraries take from malloc: how much, by whom, what lives on, and that the program does not notice."""

from __future__ import annotations

import importlib.util
import json
import math
import pathlib
from typing import Any, Callable

import pytest

import harness
import plimsoll
from native_programs import built
from test_memory import near

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return built(tmp_path_factory.mktemp("native"), "allocate.c")


def by_function(profile: plimsoll.Profile, domains: "tuple[str, ...]") -> "dict[str, tuple[float, float]]":
    """Bytes allocated and bytes alive at the end, by the function that the stack is in; "" in threads without Python."""
    sums: dict[str, tuple[float, float]] = {}
    for row in profile.allocations:
        if row.domain not in domains:
            continue
        name = profile.frames_of(row.stack)[-1].function.name
        if name == "[native thread]":
            name = ""
        whole, alive = sums.get(name, (0.0, 0.0))
        sums[name] = (whole + row.bytes, alive + (row.bytes if row.freed_ns is None else 0))
    return sums


@pytest.mark.parametrize("python_malloc", harness.MALLOCS)
def test_bytes_by_function_are_right(tmp_path: pathlib.Path, library: pathlib.Path, python_malloc: str) -> None:
    # GIVEN C code that allocates known numbers of bytes, in threads of Python and in others
    recorded = harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "4",
                              options=["--alloc=8K", "--native-memory"], env={"PYTHONMALLOC": python_malloc})
    allocated, live = recorded.profile.memory("alloc"), recorded.profile.memory("live")
    sums = by_function(recorded.profile, ("malloc",))
    for function, truth in recorded.truth.items():
        if function == "":
            continue
        # THEN what each allocated, and what of it lives on, is what the profile says
        assert near(allocated.of(function).own, truth["allocated"]), (function, allocated.of(function), truth)
        if truth["live"]:
            assert near(live.of(function).own, truth["live"]), (function, live.of(function), truth)
        else:
            assert sums[function][1] == 0  # by chance, an object of Python's is a sample
    # and what threads without Python have allocated is no function's
    whole, alive = sums[""]
    assert whole == pytest.approx(recorded.truth[""]["allocated"], rel=0.15)
    assert alive == pytest.approx(recorded.truth[""]["live"], rel=0.2)


def test_large_blocks_are_certain(tmp_path: pathlib.Path, library: pathlib.Path) -> None:
    # WHEN blocks are larger than the mean distance of samples
    recorded = harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "1",
                              options=["--native-memory"])
    # THEN all of them are there, and there is nothing to be unsure of but small ones beside them
    row = recorded.profile.memory("live").of("large")
    assert (row.own.low, row.own.bytes) == (3 << 20, 3 << 20)
    assert row.own.high == pytest.approx((3 << 20) - math.log(0.025) * (512 << 10), abs=1)
    assert row.own.samples == 3


def test_exact_books_are_exact(tmp_path: pathlib.Path, library: pathlib.Path) -> None:
    # GIVEN the same program, every allocation of which is recorded
    recorded = harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "2",
                              options=["--alloc=exact", "--native-memory"])
    sums = by_function(recorded.profile, ("malloc",))
    # THEN every byte is there
    for function, truth in recorded.truth.items():
        whole, alive = sums[function]
        assert (whole, alive) == (truth["allocated"], truth["live"]), function
    # AND at the end that is what is alive beside Python's
    last = recorded.profile.memory_over_time(1)[-1]
    assert 0 < last.alive_native.bytes < last.alive.bytes
    assert last.alive_native.bytes == pytest.approx(
        sum(alive for _, alive in by_function(recorded.profile, ("malloc", "mmap")).values()))


def test_blocks_are_counted_once(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN Python's own allocators, which turn to malloc for what is large
    path = program("""
def objects():
    return list(map(bytes, [100_000 - 33] * 100))
kept = objects()
""")
    for options in (["--alloc=64K"], ["--alloc=64K", "--native-memory"], ["--alloc=exact"],
                    ["--alloc=exact", "--native-memory"]):
        profile = harness.record(tmp_path, path, options=options).profile
        # THEN a block is counted where it was asked for, and not once more below
        alive = profile.memory("live").of("objects").own.bytes
        assert alive == pytest.approx(10_000_000, rel=0.35 if "exact" not in options[0] else 0.001), options


def test_modules_loaded_meanwhile(tmp_path: pathlib.Path, program: Write, library: pathlib.Path) -> None:
    # GIVEN a library that is loaded, used, unloaded and loaded again while the recording goes on
    path = program(f"""
import _ctypes, ctypes
def use():
    handle = _ctypes.dlopen({str(library)!r}, 2)
    keep = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long)(_ctypes.dlsym(handle, "keep"))
    free_all = ctypes.CFUNCTYPE(ctypes.c_long)(_ctypes.dlsym(handle, "free_all"))
    assert keep(100, 1000) == 100 and free_all() == 100
    _ctypes.dlclose(handle)
for _ in range(20):
    use()
""")
    profile = harness.record(tmp_path, path, options=["--alloc=exact", "--native-memory"]).profile
    # THEN every block is there each time, and the little that ctypes needs
    whole, alive = by_function(profile, ("malloc",))["use"]
    assert 20 * 100 * 1000 <= whole < 20 * 101 * 1000 and alive < 10_000


def test_started_and_stopped_in_the_middle(library: pathlib.Path) -> None:
    # GIVEN C code with blocks from before the recording
    import ctypes

    native = ctypes.CDLL(str(library))
    assert native.keep(1000, 1000) == 1000
    ways: "list[dict[str, Any]]" = [{"alloc_bytes": 1024}, {"alloc_exact": True}]
    for settings in ways * 2:
        # WHEN they are freed in it, and blocks of it live on after it
        with plimsoll.Profiler(native_memory=True, **settings) as profiler:
            assert native.free_all() == 1000
            assert native.keep(1000, 1000) == 1000
        assert native.churn(1000, 1000) == 1000
        # THEN only what was allocated in it is there, alive
        whole, alive = by_function(profiler.profile, ("malloc",))["test_started_and_stopped_in_the_middle"]
        assert whole == alive == pytest.approx(1_000_000, rel=0.2 if "alloc_bytes" in settings else 0)
    assert native.free_all() == 1000


def test_fork(tmp_path: pathlib.Path, program: Write, library: pathlib.Path) -> None:
    # GIVEN a program whose child allocates and frees while other threads of the parent do so, too
    path = program(f"""
import ctypes, os, threading
library = ctypes.CDLL({str(library)!r})
def busy():
    while not done:
        library.churn(1000, 500)
done = False
thread = threading.Thread(target=busy)
thread.start()
library.keep(1000, 1000)
for _ in range(20):
    child = os.fork()
    if child == 0:
        assert library.free_all() == 1000
        library.churn(1000, 500)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
done = True
thread.join()
print("{{}}")
""")
    for options in (["--alloc=4K"], ["--alloc=exact"]):
        # THEN all of them end as they would
        recorded = harness.record(tmp_path, path, options=[*options, "--native-memory"])
        profile = recorded.profile
        # and though more is allocated than can be written down, nothing is missing
        assert by_function(profile, ("malloc",))["<module>"][1] == pytest.approx(1_000_000, rel=0.25)
        # but for a few where the machine stood still for as long as an allocation waits
        lost = {drop.reason: drop.count for drop in profile.drops if drop.reason != "end of thread"}
        assert sum(lost.values()) <= len(profile.allocations) / 1000, lost


def test_refusals(capsys: Any) -> None:
    with pytest.raises(ValueError, match="native_memory needs alloc_bytes, alloc_exact or alloc_events"):
        plimsoll.Profiler(native_memory=True)


HAS_NUMPY = importlib.util.find_spec("numpy") is not None


@pytest.mark.skipif(not HAS_NUMPY, reason="NumPy is not installed")
@pytest.mark.parametrize("how", ["--alloc=64K", "--alloc=exact"])
def test_arrays_belong_to_the_line_that_made_them(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN arrays of known sizes, some kept, some freed, some grown in place
    path = program("""
import numpy
def zeros():
    return list(map(numpy.zeros, [10_000] * 100))
def passing():
    for _ in range(100):
        numpy.empty(20_000)
def big():
    return numpy.empty(1 << 22)
def one_more():
    array = numpy.zeros(1000)
    for n in range(2, 11):
        array.resize(n * 1000, refcheck=False)
    return array
kept = zeros(), big(), one_more()
passing()
""")
    profile = harness.record(tmp_path, path, options=[how, "--native-memory"]).profile
    sums = by_function(profile, ("malloc", "raw"))
    truth = {"zeros": (8_000_000, 8_000_000), "passing": (16_000_000, 0),
             "big": (8 << 22, 8 << 22), "one_more": (8 * 55_000, 80_000)}
    exact = "exact" in how
    for function, (allocated, alive) in truth.items():
        # THEN each has what it has asked for, and a little for what NumPy needs beside it
        if function == "one_more" and not exact:
            continue  # a few samples
        whole, living = sums[function]
        assert whole == pytest.approx(allocated, rel=0.01 if exact else 0.3), function
        assert living == pytest.approx(alive, rel=0.02 if exact else 0.3, abs=20_000), function


def test_the_allocators_of_a_view(tmp_path: pathlib.Path, library: pathlib.Path) -> None:
    # GIVEN a profile with memory of several allocators
    harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "1",
                   options=["--alloc=exact", "--native-memory"])

    def shown(*words: str) -> Any:
        return json.loads(harness.plimsoll_command("show", tmp_path / "recorded.plim", "live", "--json", *words).expect().out)
    every = {row["allocator"]: row["all"]["bytes"] for row in shown()["allocators"]}
    assert {"object", "memory", "malloc"} <= set(every)
    # WHEN one is asked for THEN the view is of that alone
    only = shown("--domain", "malloc")
    assert only["all"]["bytes"] == every["malloc"]
    assert {row["function"]: row["self"]["bytes"] for row in only["functions"]}["kept"] == 1_000_000
    # and the groups are the sums of theirs
    python = shown("--domain", "python")["all"]["bytes"]
    native = shown("--domain", "native")["all"]["bytes"]
    assert python + native == shown()["all"]["bytes"] == sum(every.values())
    # and memory over time has both as tracks
    last = json.loads(harness.plimsoll_command("show", tmp_path / "recorded.plim", "memory", "--json").expect().out)["moments"][-1]
    assert last["alive_native"]["bytes"] == native
    assert "malloc's" in harness.plimsoll_command("show", tmp_path / "recorded.plim", "memory").expect().out
    refused = harness.plimsoll_command("show", tmp_path / "recorded.plim", "live", "--domain", "mallok")
    assert refused.code == 2 and "malloc" in refused.err


@pytest.mark.parametrize("how", ["--alloc=4K", "--alloc=exact"])
def test_memory_at_its_end(tmp_path: pathlib.Path, program: Write, how: str) -> None:
    # GIVEN a program that may have little memory, and asks for more
    path = program("""
import resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
refused = 0
for _ in range(100):
    try:
        bytearray(1 << 30)
    except MemoryError:
        refused += 1
kept = []
try:
    while True:
        kept.append(bytearray(100_000))
except MemoryError:
    count = len(kept)
    kept.clear()
print([refused, int(count > 100)])
""")
    # THEN it meets MemoryError as it would without us
    assert harness.record(tmp_path, path, options=[how, "--native-memory"]).truth == [100, 1]
