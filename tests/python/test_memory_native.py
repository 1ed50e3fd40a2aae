"""Memory that C libraries take from malloc: how much, by whom, what lives on, and that the program does not notice."""

from __future__ import annotations

import pathlib
from typing import Any, Callable

import pytest

import harness
import plimsoll
from native_programs import built
from test_memory import near

Write = Callable[..., pathlib.Path]

pytestmark = pytest.mark.skipif(harness.FREE_THREADED, reason="free-threaded builds cannot record allocations")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return built(tmp_path_factory.mktemp("native"), "allocate.c")


def by_function(profile: plimsoll.Profile, domains: "tuple[str, ...]") -> "dict[str, tuple[float, float]]":
    """Bytes allocated and bytes alive at the end, by the function that the stack is in; "" in threads without Python."""
    sums: dict[str, tuple[float, float]] = {}
    is_sampled = profile.memory("alloc").distance != 0
    for row in profile.allocations:
        if row.domain not in domains:
            continue
        name = profile.frames_of(row.stack)[-1].function.name
        if name == "[native thread]":
            name = ""
        whole, alive = sums.get(name, (0.0, 0.0))
        size = row.size * (row.blocks if is_sampled else 1)
        sums[name] = (whole + size, alive + (size if row.freed_ns is None else 0))
    return sums


@pytest.mark.parametrize("python_malloc", ["pymalloc", "debug", "malloc"])
def test_bytes_by_function_are_right(tmp_path: pathlib.Path, library: pathlib.Path, python_malloc: str) -> None:
    # GIVEN C code that allocates known numbers of bytes, in threads of Python and in others
    recorded = harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "4",
                              options=["--alloc=8K", "--native-memory"], env={"PYTHONMALLOC": python_malloc})
    allocated, live = recorded.profile.memory("alloc"), recorded.profile.memory("live")
    for function, truth in recorded.truth.items():
        if function == "":
            continue
        # THEN what each allocated, and what of it lives on, is what the profile says
        assert near(allocated.of(function).own, truth["allocated"]), (function, allocated.of(function), truth)
        if truth["live"]:
            assert near(live.of(function).own, truth["live"]), (function, live.of(function), truth)
        else:
            assert function not in [row.function.name for row in live.rows]
    # and what threads without Python have allocated is no function's
    whole, alive = by_function(recorded.profile, ("malloc",))[""]
    assert whole == pytest.approx(recorded.truth[""]["allocated"], rel=0.15)
    assert alive == pytest.approx(recorded.truth[""]["live"], rel=0.2)


def test_large_blocks_are_certain(tmp_path: pathlib.Path, library: pathlib.Path) -> None:
    # WHEN blocks are larger than the mean distance of samples
    recorded = harness.record(tmp_path, harness.TARGETS / "native_allocations.py", str(library), "1",
                              options=["--native-memory"])
    # THEN all of them are there, and there is nothing to be unsure of
    row = recorded.profile.memory("live").of("large")
    assert (row.own.low, row.own.bytes, row.own.high) == (3 << 20, 3 << 20, 3 << 20)
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


def test_blocks_are_counted_once(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN Python's own allocators, which turn to malloc for what is large
    path = program("""
def objects():
    return [bytes(100_000 - 33) for _ in range(100)]
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
    # THEN every block is there each time
    assert by_function(profile, ("malloc",))["use"] == (20 * 100 * 1000, 0)


def test_started_and_stopped_in_the_middle(library: pathlib.Path) -> None:
    # GIVEN C code with blocks from before the recording
    import ctypes

    native = ctypes.CDLL(str(library))
    assert native.keep(1000, 1000) == 1000
    for settings in ({"alloc_bytes": 1024}, {"alloc_exact": True}) * 2:
        # WHEN they are freed in it, and blocks of it live on after it
        with plimsoll.Profiler(native_memory=True, **settings) as profiler:  # type: ignore[arg-type]
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
        profile = harness.record(tmp_path, path, options=[*options, "--native-memory"]).profile
        assert by_function(profile, ("malloc",))["<module>"][1] == pytest.approx(1_000_000, rel=0.2)


def test_refusals(capsys: Any) -> None:
    with pytest.raises(ValueError, match="native_memory needs alloc_bytes or alloc_exact"):
        plimsoll.Profiler(native_memory=True)
