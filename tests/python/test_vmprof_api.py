"""vmprof's way to record: plimsoll.compat.vmprof.enable and what belongs to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import sys
import tempfile
import threading
import time
from typing import Any, Iterator, Optional

import pytest

import harness
import plimsoll
from plimsoll.compat import spprof, vmprof

pytestmark = pytest.mark.any_version


def heavy() -> None:
    harness.burn(0.12)


def light() -> None:
    harness.burn(0.04)


@pytest.fixture(autouse=True)
def private_temporary_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A recording leaves nothing in the directory for temporary files."""
    directory = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield
    assert [path.name for path in directory.glob("*.plim")] == []


@pytest.fixture
def prof(tmp_path: pathlib.Path) -> Iterator[Any]:
    """A file to record into; nothing is being recorded afterwards."""
    with open(tmp_path / "app.prof", "w+b") as file:
        yield file
        vmprof.disable()


def read(file: Any) -> vmprof.Stats:
    return vmprof.read_profile(file.name)


def seconds(stats: vmprof.Stats, function: str, period: float = vmprof.DEFAULT_PERIOD) -> float:
    """How long the samples say that a function was on the stack."""
    return period * sum(count for name, count in stats.top_profile() if f"{function}:" in name.replace(".", ":"))


# ---- recording ----


def test_a_recording_is_a_file_in_vmprofs_format(prof: Any) -> None:
    # GIVEN a file in which there is something already
    assert not vmprof.is_enabled() and vmprof.get_profile_path() is None
    vmprof.enable(prof.fileno())
    assert vmprof.is_enabled() and plimsoll.is_active()
    assert vmprof.get_profile_path() == os.path.realpath(prof.name)
    heavy()
    light()
    vmprof.disable()
    # THEN it has what was asked for and no more, and the file is still open
    assert not vmprof.is_enabled() and not prof.closed
    stats = read(prof)
    assert (stats.profile_version, stats.profile_lines, stats.profile_memory) == (6, False, False)
    assert seconds(stats, "heavy") == pytest.approx(0.12, rel=0.2)
    assert seconds(stats, "light") == pytest.approx(0.04, rel=0.3)
    assert stats.get_runtime_in_microseconds() > 150000
    assert stats.meta["os"] == "linux" and stats.interp == "cpython"


def test_threads_that_start_later_are_recorded(prof: Any) -> None:
    vmprof.enable(prof.fileno())
    thread = threading.Thread(target=heavy)
    thread.start()
    thread.join()
    vmprof.disable()
    assert seconds(read(prof), "heavy") == pytest.approx(0.12, rel=0.2)


def test_lines_are_those_of_the_function(prof: Any) -> None:
    vmprof.enable(prof.fileno(), lines=True)
    heavy()
    vmprof.disable()
    stats = read(prof)
    assert stats.profile_lines
    found: "dict[str, set[int]]" = {}
    stats.get_tree().walk(lambda node: found.setdefault(node.name.split(":")[1], set()).update(node.lines))
    first = harness.burn.__code__.co_firstlineno
    assert found["burn"] <= {first + 2, first + 3, first + 4}
    assert found["heavy"] == {heavy.__code__.co_firstlineno + 1}


def test_memory_is_in_kibibytes(prof: Any) -> None:
    vmprof.enable(prof.fileno(), memory=True)
    heavy()
    vmprof.disable()
    stats = read(prof)
    resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    assert stats.profile_memory
    assert all(resident / 3 < kib < resident * 3 for *_, kib in stats.profiles)


def test_real_time_counts_waits_of_the_threads_that_were_inserted(prof: Any) -> None:
    # GIVEN two threads that wait, of which one is inserted
    may_end = threading.Event()
    inserted: "list[int]" = []
    ready = threading.Barrier(3)

    def counted() -> None:
        inserted.append(vmprof.insert_real_time_thread())
        ready.wait()
        may_end.wait()

    def other() -> None:
        ready.wait()
        may_end.wait()

    vmprof.enable(prof.fileno(), 0.001, real_time=True)
    threads = [threading.Thread(target=function) for function in (counted, other)]
    for thread in threads:
        thread.start()
    ready.wait()
    assert inserted == [2] and vmprof.insert_real_time_thread(threads[0].ident or 0) == -1
    began = time.monotonic()
    time.sleep(0.2)
    waited = time.monotonic() - began
    may_end.set()
    for thread in threads:
        thread.join()
    vmprof.disable()
    # THEN that one's waits are in the file, and the other's are not
    stats = read(prof)
    assert seconds(stats, "counted", 0.001) >= waited * 0.9
    assert seconds(stats, "other", 0.001) == 0
    assert seconds(stats, test_real_time_counts_waits_of_the_threads_that_were_inserted.__name__, 0.001) >= waited * 0.9


def test_real_time_waits_keep_their_names_when_threads_are_inserted(prof: Any) -> None:
    # GIVEN a thread that sleeps, and waits for a lock once another thread has been inserted
    may_end = threading.Event()
    other = threading.Thread(target=may_end.wait)
    other.start()
    locked = threading.Lock()
    locked.acquire()
    vmprof.enable(prof.fileno(), 0.001, real_time=True)
    times = [time.monotonic()]
    time.sleep(0.3)
    times.append(time.monotonic())
    assert vmprof.insert_real_time_thread(other.ident or 0) == 2
    assert not locked.acquire(timeout=0.1)
    times.append(time.monotonic())
    vmprof.disable()
    may_end.set()
    other.join()
    # THEN each wait is what it was, and one stands for as long as another: 0.3 s of sleep, 0.1 s for a lock in each
    slept, waited = times[1] - times[0], 2 * (times[2] - times[1])
    counts = {name: sum(count for told, count in read(prof).top_profile() if name in told)
              for name in ("[sleep]", "[lock]")}
    assert counts["[sleep]"] / counts["[lock]"] == pytest.approx(slept / waited, rel=0.3)


def test_a_thread_that_was_removed_is_recorded_until_then(prof: Any) -> None:
    def hidden() -> None:
        harness.burn(0.12)

    vmprof.enable(prof.fileno(), 0.001, real_time=True)
    heavy()
    assert vmprof.remove_real_time_thread() == 0
    hidden()
    assert vmprof.remove_real_time_thread() == -1
    assert vmprof.insert_real_time_thread(0) == 1
    heavy()
    vmprof.disable()
    # (A wait for the processor in which the thread was removed belongs to one side as a whole.)
    stats = read(prof)
    assert seconds(stats, "heavy", 0.001) >= 0.2
    assert seconds(stats, "hidden", 0.001) <= 0.06


def test_pauses_nest(prof: Any) -> None:
    vmprof.enable(prof.fileno())
    assert vmprof.stop_sampling() == prof.fileno()
    assert vmprof.stop_sampling() == prof.fileno()
    vmprof.start_sampling()
    light()
    vmprof.start_sampling()
    heavy()
    vmprof.disable()
    stats = read(prof)
    assert seconds(stats, "light") <= 0.01 and seconds(stats, "heavy") == pytest.approx(0.12, rel=0.2)


def test_names_outlive_their_code(prof: Any) -> None:
    # GIVEN functions that die while they are recorded, one after the other at the same address
    vmprof.enable(prof.fileno())
    for number in range(10):
        space: "dict[str, Any]" = {"burn": harness.burn}
        exec(f"def short_{number}(): burn(0.02)", space)
        space.pop(f"short_{number}")()
    vmprof.disable()
    times = [seconds(read(prof), f"short_{number}") for number in range(10)]
    assert sum(times) == pytest.approx(0.2, rel=0.2) and max(times) < 0.06


# ---- errors ----


@pytest.mark.parametrize("period", [1, "0.1", None])
def test_a_period_is_a_float(period: Any, prof: Any) -> None:
    with pytest.raises(ValueError, match="period must be a float, not <class"):
        vmprof.enable(prof.fileno(), period)


@pytest.mark.parametrize("period", [0.0, 1.0, 5e-7, -1.0, float("nan"), float("inf")])
def test_a_period_has_bounds(period: float, prof: Any) -> None:
    with pytest.raises(ValueError, match="bad value for 'interval'"):
        vmprof.enable(prof.fileno(), period)


def test_the_file_must_be_open_for_writing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    for descriptor in (-1, 99999):
        with pytest.raises(ValueError, match="file descriptor must be writeable"):
            vmprof.enable(descriptor)
    with open(tmp_path / "file", "rb") as file, pytest.raises(ValueError, match="must be writeable"):
        vmprof.enable(file.fileno(), native=False)
    with open(tmp_path / "file", "wb") as file, pytest.raises(ValueError, match="must be readable"):
        vmprof.enable(file.fileno())
    with pytest.raises(TypeError):
        vmprof.enable("file")  # type: ignore[arg-type]
    assert not vmprof.is_enabled()


def test_a_pipe_will_do_without_native_frames() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file:
        vmprof.enable(writing, 0.01, native=False)
        vmprof.disable()
        os.close(writing)
        assert vmprof.read_profile(file).profile_version == 6


def test_it_is_enabled_once(prof: Any) -> None:
    vmprof.enable(prof.fileno())
    with pytest.raises(ValueError, match="vmprof is already enabled"):
        vmprof.enable(prof.fileno())
    vmprof.disable()
    vmprof.disable()
    with plimsoll.profile(), pytest.raises(ValueError, match="active already"):
        vmprof.enable(prof.fileno())
    assert not vmprof.is_enabled()


def test_real_time_threads_need_real_time(prof: Any) -> None:
    for function in (vmprof.insert_real_time_thread, vmprof.remove_real_time_thread):
        with pytest.raises(ValueError, match="vmprof is not enabled"):
            function()
    vmprof.enable(prof.fileno())
    with pytest.raises(ValueError, match="vmprof is not in real time mode"):
        vmprof.insert_real_time_thread()
    vmprof.disable()
    assert vmprof.stop_sampling() == -1
    vmprof.start_sampling()


def test_a_descriptor_that_was_closed_and_used_again_is_left_alone(prof: Any, tmp_path: pathlib.Path) -> None:
    # GIVEN a recording into a file that its owner closes too early, and another with the same descriptor
    vmprof.enable(prof.fileno())
    with open(tmp_path / "other", "w+b") as other:
        os.dup2(other.fileno(), prof.fileno())
    # WHEN it ends THEN the other file is as it was, and the first is whole
    vmprof.disable()
    assert (tmp_path / "other").read_bytes() == b""
    assert vmprof.read_profile(tmp_path / "app.prof").profile_version == 6


# ---- processes ----


def test_a_child_leaves_the_file_to_its_parent(prof: Any) -> None:
    vmprof.enable(prof.fileno())
    pid = os.fork()
    if pid == 0:
        enabled = vmprof.is_enabled()
        vmprof.disable()
        os._exit(1 if enabled else 0)
    assert os.waitpid(pid, 0)[1] == 0
    heavy()
    vmprof.disable()
    stats = read(prof)
    assert seconds(stats, "heavy") == pytest.approx(0.12, rel=0.2) and stats.end_time is not None


PROGRAM = """
import sys
from plimsoll.compat import install_as_vmprof
install_as_vmprof()
import vmprof, vmprof.stats, _vmprof
from vmprof.reader import JittedCode
from vmprof.profiler import Profiler, read_profile
assert vmprof.Stats is vmprof.stats.Stats and _vmprof.stop_sampling() == -1
file = open(sys.argv[1], "w+b")
vmprof.enable(file.fileno())
def work(): sum(range(3000000))
work()
raise RuntimeError("an error of the program")
"""


def test_a_program_that_fails_has_a_whole_profile(tmp_path: pathlib.Path, program: Any) -> None:
    # GIVEN a program that knows vmprof only, and ends by an exception; WHEN it runs
    done = harness.python(program(PROGRAM), tmp_path / "app.prof")
    # THEN its error is its own, and the profile is whole
    assert done.code == 1 and done.err.rstrip().endswith("RuntimeError: an error of the program")
    stats = vmprof.read_profile(tmp_path / "app.prof")
    assert stats.end_time is not None and seconds(stats, "work") > 0


def test_another_vmprof_is_not_replaced_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vmprof", pathlib)
    from plimsoll.compat import install_as_vmprof

    with pytest.raises(RuntimeError, match="another vmprof"):
        install_as_vmprof()


def test_importing_plimsoll_imports_none_of_it() -> None:
    harness.python("-c", "import plimsoll, sys; plimsoll.profile; plimsoll.Profile; "
                         "sys.exit(any(name.startswith('plimsoll.compat') for name in sys.modules))").expect(0)


# ---- Profiler ----


def test_the_profiler_records_blocks(tmp_path: pathlib.Path) -> None:
    profiler = vmprof.Profiler()
    with pytest.raises(vmprof.VMProfError, match="no profiling done"):
        profiler.get_stats()
    with profiler.measure(str(tmp_path / "app.prof"), lines=True):
        heavy()
        with pytest.raises(vmprof.VMProfError, match="profiling in process"):
            profiler.get_stats()
    stats = profiler.get_stats()
    assert stats.profile_lines and seconds(stats, "heavy", 0.001) == pytest.approx(0.12, rel=0.2)
    with profiler.measure():
        light()
    assert seconds(profiler.get_stats(), "light", 0.001) == pytest.approx(0.04, rel=0.3)


# ---- addresses ----


def test_the_current_stack() -> None:
    def inner() -> "list[int]":
        return vmprof.sample_stack_now()

    stack = inner()
    assert vmprof.resolve_addr(stack[0])[0] == "inner"
    name, line, file = vmprof.resolve_many_addr(stack)[stack[1]]
    assert (name, file) == ("test_the_current_stack", __file__) and line == test_the_current_stack.__code__.co_firstlineno
    assert vmprof.sample_stack_now(1) == stack[2:]


@pytest.mark.parametrize("native", [None, True, False])
def test_native_frames(native: "Optional[bool]") -> None:
    # GIVEN a recording of machine code
    can = spprof.native_unwinding_available()
    warns = pytest.warns(RuntimeWarning, match="native frames ") if native and not can else contextlib.nullcontext()
    with tempfile.TemporaryFile() as file:
        with warns:
            vmprof.enable(file.fileno(), 0.001, native=native)
        harness.burn_in_zlib(0.1)
        vmprof.disable()
        # WHEN it is read
        file.seek(0)
        kinds = {address.split(":")[0] for address in vmprof.read_profile(file).adr_dict.values()}
    # THEN it has native frames unless they were not wanted, or cannot be recorded
    assert kinds == ({"py", "n"} if can and native is not False else {"py"})


def test_native_functions_have_names() -> None:
    address = ctypes.cast(ctypes.pythonapi.PyObject_Repr, ctypes.c_void_p).value or 0
    name, line, file = vmprof.resolve_addr(address)
    assert (name, line) == ("PyObject_Repr", 0) and os.path.exists(file)
    assert vmprof.resolve_addr(1) == ("", 0, "-")
