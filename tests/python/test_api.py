"""The Python API: profile() in all its forms, and what a Profile says."""

from __future__ import annotations

import _thread
import asyncio
import copy
import errno
import gc
import json
import pathlib
import pickle
import re
import resource
import signal
import tempfile
import threading
import time
from typing import Any, AsyncGenerator, AsyncIterator, Iterator

import pytest

import harness
import plimsoll
from plimsoll import _recording
from plimsoll.rows import FlatRow, Function
from plimsoll.views import Flat

pytestmark = pytest.mark.any_version


def burn(seconds: float) -> int:
    total, end = 0, time.thread_time() + seconds
    while time.thread_time() < end:
        total += sum(range(500))
    return total


def hot() -> int:
    return burn(0.12)


def cool() -> int:
    return burn(0.04)


@pytest.fixture(scope="module")
def profile() -> plimsoll.Profile:
    """A profile of hot() and cool() in this thread, and hot() in another."""
    with plimsoll.profile() as session:
        hot()
        cool()
        thread = threading.Thread(target=hot, name="other thread")
        thread.start()
        thread.join()
    return session.profile


def seconds(profile: plimsoll.Profile, name: str) -> float:
    return harness.total_seconds(profile).get(name, 0.0)


# ---- recording ----


def test_a_block_is_recorded_and_leaves_no_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with plimsoll.profile() as session:
        assert plimsoll.is_active() and session.is_active
        assert len(list(tmp_path.iterdir())) == 1
        hot()
    assert not plimsoll.is_active()
    assert seconds(session.profile, "hot") == pytest.approx(0.12, rel=0.15)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("sys.exit(3)", 3), ("os._exit(0)", 0), ("sys.exit(1 / 0)", 1),
                                          ("fork()", 0)])
def test_a_recording_that_nobody_stops_leaves_no_file(end: str, code: int, tmp_path: pathlib.Path) -> None:
    # GIVEN a program that starts a recording without a file's name, and a child that goes on with it
    text = f"""
import os, sys, warnings, plimsoll
warnings.simplefilter("ignore")
plimsoll.start(after_fork="follow")
def work(): sum(i * i for i in range(1_000_000))
def fork():
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()
work()
assert os.listdir({str(tmp_path)!r})
{end}
"""
    # WHEN it ends without stopping it
    ended = harness.python("-c", text, env={"TMPDIR": str(tmp_path)}).expect(code)
    assert ("ZeroDivisionError" in ended.err) == (code == 1) and "AssertionError" not in ended.err
    # THEN there is nothing that nobody knows of
    assert list(tmp_path.iterdir()) == []


def test_start_and_stop(tmp_path: pathlib.Path) -> None:
    plimsoll.start(tmp_path / "x.plim", rate_hz=500)
    hot()
    profile = plimsoll.stop()
    assert seconds(profile, "hot") == pytest.approx(0.12, rel=0.15)
    assert plimsoll.Profile.open(tmp_path / "x.plim").meta["rate_hz"] == "500"


def test_a_block_that_fails_is_recorded_and_fails() -> None:
    session = plimsoll.profile()
    with pytest.raises(KeyError, match="from the block"):
        with session:
            hot()
            raise KeyError("from the block")
    assert seconds(session.profile, "hot") > 0.1


def test_a_decorated_function() -> None:
    @plimsoll.profile(rate_hz=500)
    def work(n: int, *, plus: int = 0) -> int:
        """Doc."""
        hot()
        return n + plus

    # WHEN it is called THEN it behaves as before, and its profile is at hand
    assert work(1, plus=2) == 3
    assert work.__name__ == "work" and work.__doc__ == "Doc."
    first: plimsoll.Profile = work.profiler.profile  # type: ignore[attr-defined]
    assert seconds(first, "hot") == pytest.approx(0.12, rel=0.15)
    # and the next call is a recording of its own
    work(1)
    assert work.profiler.profile is not first  # type: ignore[attr-defined]
    assert seconds(work.profiler.profile, "hot") == pytest.approx(0.12, rel=0.15)  # type: ignore[attr-defined]


def test_what_cannot_be_decorated_is_told_at_once() -> None:
    # GIVEN a decorator without parentheses, and decorators above @classmethod and @staticmethod
    def work() -> None: ...

    # WHEN they are used THEN what to write is said there, and not where the function is called
    with pytest.raises(TypeError, match=r"@plimsoll.profile\(\)"):
        plimsoll.profile(work)  # type: ignore[arg-type]
    for of_a_class in (classmethod, staticmethod):  # (what a static method got was the instance, too)
        method: Any = of_a_class(work)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="@classmethod and @staticmethod stand above"):
            plimsoll.profile()(method)
        with pytest.raises(TypeError, match="can be tagged"):
            plimsoll.tag(a=1)(method)


def test_a_decorated_function_that_calls_itself_is_one_recording() -> None:
    @plimsoll.profile()
    def work(n: int) -> None:
        burn(0.03)
        if n:
            work(n - 1)

    work(3)
    assert seconds(work.profiler.profile, "work") == pytest.approx(0.12, rel=0.15)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "work.plim"])
def test_a_decorated_function_in_many_threads(
        name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a function that threads call at the same time, so that one begins a recording while another ends one
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    errors: "list[BaseException]" = []

    @plimsoll.profile(tmp_path / name if name else None)
    def work() -> None:
        sum(range(1000))

    def call_often() -> None:
        try:
            for _ in range(40):
                work()
        except BaseException as error:
            errors.append(error)

    # WHEN they have done so
    threads = [threading.Thread(target=call_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # THEN none noticed, nothing is recorded any more, and no other file is left
    assert errors == []
    assert not plimsoll.is_active()
    assert [path.name for path in tmp_path.iterdir()] == ([name] if name else [])


def test_a_second_start_changes_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = plimsoll.Profiler().start()
    with pytest.raises(ValueError, match="active"):
        session.start()
    hot()
    assert seconds(session.stop(), "hot") == pytest.approx(0.12, rel=0.15)
    assert list(tmp_path.iterdir()) == []


def test_a_decorated_coroutine_is_recorded_to_its_end() -> None:
    @plimsoll.profile()
    async def work() -> str:
        hot()
        await asyncio.sleep(0.01)
        cool()
        return "done"

    assert asyncio.run(work()) == "done"
    profile = work.profiler.profile  # type: ignore[attr-defined]
    assert seconds(profile, "hot") > 0.1 and seconds(profile, "cool") > 0.03


def test_a_decorated_object_is_recorded_as_what_runs_when_it_is_called() -> None:
    class Application:
        async def __call__(self) -> str:
            await asyncio.sleep(0)
            hot()
            return "done"

    decorated: Any = plimsoll.profile()(Application())
    assert asyncio.run(decorated()) == "done"
    assert seconds(decorated.profiler.profile, "hot") > 0.1


def test_a_decorated_generator_is_recorded_until_it_is_exhausted_or_closed() -> None:
    @plimsoll.profile()
    def items() -> Iterator[int]:
        hot()
        yield 1
        yield 2

    assert list(items()) == [1, 2]
    assert not plimsoll.is_active()
    assert seconds(items.profiler.profile, "hot") > 0.1  # type: ignore[attr-defined]

    started = items()
    next(started)
    assert plimsoll.is_active()
    started.close()  # type: ignore[attr-defined]
    assert not plimsoll.is_active()


def test_a_decorated_asynchronous_generator() -> None:
    @plimsoll.profile()
    async def items() -> AsyncIterator[int]:
        yield 1
        hot()
        yield 2

    async def read() -> "list[int]":
        return [item async for item in items()]

    assert asyncio.run(read()) == [1, 2]
    assert seconds(items.profiler.profile, "hot") > 0.1  # type: ignore[attr-defined]


def test_a_decorated_asynchronous_generator_hears_what_it_is_told() -> None:
    # GIVEN one that answers what is sent and thrown, and cleans up
    heard: "list[str]" = []

    @plimsoll.profile()
    async def echo() -> AsyncGenerator[str, str]:
        answer = "begin"
        try:
            while True:
                try:
                    answer = yield answer
                except LookupError as error:
                    answer = f"caught {error}"
                heard.append(answer)
        finally:
            await asyncio.sleep(0)
            heard.append("closed")

    async def talk() -> "list[str]":
        generator = echo()
        answers = [await generator.__anext__(), await generator.asend("one"), await generator.athrow(LookupError("it"))]
        await generator.aclose()
        return answers

    # WHEN / THEN
    assert asyncio.run(talk()) == ["begin", "one", "caught it"]
    assert heard == ["one", "caught it", "closed"]
    assert not plimsoll.is_active()


def test_a_program_may_go_to_another_directory(tmp_path: pathlib.Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with plimsoll.profile("here.plim") as session:
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert session.profile.complete and (tmp_path / "here.plim").exists()


def test_what_there_is_not_is_said() -> None:
    profiler = plimsoll.Profiler()
    for wrong in (lambda: profiler.profile, lambda: profiler.statistics, profiler.stop):
        with pytest.raises(ValueError):
            wrong()
    assert "not started" in repr(profiler)


@pytest.mark.parametrize("name", ["work.speedscope.json", "work.pb.gz", "work.collapsed", "work.vmprof"])
def test_a_recording_is_not_named_after_another_format(name: str, tmp_path: pathlib.Path) -> None:
    # GIVEN the name of a file that another tool is to read WHEN it is to be recorded into THEN it is said how to
    with pytest.raises(ValueError, match=r"stop\(\)\.save"):
        plimsoll.Profiler(tmp_path / name)
    with plimsoll.Profiler() as profiler:
        pass
    profiler.profile.save(tmp_path / "work.plim")
    assert [path.name for path in tmp_path.iterdir()] == ["work.plim"]


def test_the_package_is_pleasant_to_look_at() -> None:
    assert set(plimsoll.__all__) <= set(dir(plimsoll))
    assert plimsoll.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no_such"):
        plimsoll.no_such  # noqa: B018
    assert all(getattr(plimsoll, name).__doc__ for name in plimsoll.__all__)


# ---- a profile ----


def test_samples_are_columns(profile: plimsoll.Profile) -> None:
    samples = profile.samples
    columns = [samples.time_ns, samples.thread, samples.stack, samples.weight_ns]
    assert all(isinstance(column, memoryview) and column.readonly for column in columns)
    assert {len(column) for column in columns} == {len(samples)}
    assert [column.format for column in columns] == ["q", "I", "I", "q"]
    assert sum(samples.weight_ns) / 1e9 == pytest.approx(profile.sampled_cpu)
    assert all(0 <= at <= profile.duration * 1e9 for at in samples.time_ns)
    assert set(samples.thread) <= set(range(len(profile.threads)))
    # and columns outlive the profile
    with plimsoll.profile() as session:
        cool()
    column = session.profile.samples.time_ns
    expected = list(column)
    del session
    assert list(column) == expected


def test_stacks_are_outermost_first(profile: plimsoll.Profile) -> None:
    names = [[frame.function.name for frame in stack.frames] for stack in harness.stacks(profile)]
    assert any(stack[-2:] == ["hot", "burn"] for stack in names)
    assert profile.frames_of(harness.NO_STACK) == []
    with pytest.raises(IndexError):
        profile.frames_of(10**6)


def test_tables_agree_with_one_another(profile: plimsoll.Profile) -> None:
    flat, lines, root = profile.flat(), profile.lines(), profile.tree().root
    assert sum(row.self_time for row in flat) == pytest.approx(profile.sampled_cpu)
    assert sum(row.self_time for row in lines) == pytest.approx(profile.sampled_cpu)
    assert root.total_time == pytest.approx(profile.sampled_cpu)
    assert sum(node.self_time for _, node in root.walk()) == pytest.approx(profile.sampled_cpu)
    assert root.samples == len(profile.samples)
    assert [row.self_time for row in flat] == sorted((row.self_time for row in flat), reverse=True)
    row = next(row for row in flat if row.function.name == "hot")
    assert row.total_time == pytest.approx(0.24, rel=0.15) and row.function.file == __file__
    assert any(node.line for _, node in profile.tree(by_line=True).root.walk())


def test_filters_leave_what_they_say(profile: plimsoll.Profile) -> None:
    assert seconds(profile.filter(function="cool"), "hot") == 0
    assert profile.filter(function="cool").sampled_cpu == pytest.approx(0.04, rel=0.3)
    other = profile.filter(thread="other thread")
    assert other.sampled_cpu == pytest.approx(0.12, rel=0.15)
    started = [stack for stack in harness.stacks(profile) if stack.in_file("threading.py")]
    assert len(profile.filter(file="THREADing").samples) == len(started) > 0 and len(started) < len(profile.samples)
    middle = profile.duration / 2
    early, late = profile.filter(end=middle), profile.filter(start=middle)
    assert len(early.samples) + len(late.samples) == len(profile.samples)
    assert all(at <= middle * 1e9 for at in early.samples.time_ns)
    assert len(profile.filter(function="no such function").samples) == 0
    assert len(profile.samples) > len(other.samples), "the profile itself is as it was"


def test_a_time_may_be_beyond_all_times(profile: plimsoll.Profile) -> None:
    # GIVEN a profile WHEN it is cut at times that are too large for a number of nanoseconds THEN they are after the end
    everything = len(profile.samples)
    for late in (float("inf"), 1e300, 1e10):
        assert len(profile.filter(start=late).samples) == 0 and len(profile.filter(end=late).samples) == everything
        assert len(profile.filter(start=-late).samples) == everything and len(profile.filter(end=-late).samples) == 0
    # AND what is no number is said to be none
    with pytest.raises(ValueError, match="nan"):
        profile.filter(end=float("nan"))


def test_an_id_that_no_stack_has_is_an_error(profile: plimsoll.Profile) -> None:
    # GIVEN ids of which one, cut to 32 bits, is that of the empty stack
    for number in (-1, 10**6, 2**33 - 1):
        with pytest.raises(IndexError, match="no such stack"):
            profile.frames_of(number)
    assert profile.frames_of(0xFFFFFFFF) == []


def test_a_profile_goes_to_other_processes(profile: plimsoll.Profile) -> None:
    # GIVEN a profile that nobody has looked at, and one that somebody has
    with plimsoll.profile() as session:
        cool()
    for one in (session.profile, profile):
        # WHEN they are pickled, and copied THEN they are the same
        for copied in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert copied.meta == one.meta and copied.complete and repr(copied) == repr(one)
            assert copied.samples.time_ns == one.samples.time_ns and str(copied.tree()) == str(one.tree())


def test_time_of_another_tool_is_not_called_cpu_time(tmp_path: pathlib.Path) -> None:
    # GIVEN a profile that does not say which time it has
    (tmp_path / "stacks.txt").write_text("main;work 5\n")
    # THEN nobody says that it is CPU time, and one sample is no samples
    shown = repr(plimsoll.Profile.open(tmp_path / "stacks.txt"))
    assert " 1 sample, " in shown and "s of time in" in shown and "CPU" not in shown


def test_it_prints(profile: plimsoll.Profile) -> None:
    assert "of CPU time in" in repr(profile)
    assert "samples" in repr(profile) and "2 threads" in repr(profile)
    assert "hot" in str(profile.tree()) and "hot" in repr(profile.flat()) and "burn" in str(profile.lines())
    for shown in (profile, profile.tree(), profile.flat(), profile.lines()):
        assert "hot" in shown._repr_html_()


def test_a_table_in_a_notebook_says_what_it_leaves_out() -> None:
    # GIVEN 60 functions, of which one is nowhere
    functions = [Function(f"f{number}", "" if number == 0 else "a.py", number, "python") for number in range(60)]
    table = Flat([FlatRow(function, 0, 1.0, 1.0, 1, 1) for function in functions], 60.0)
    # WHEN they are shown THEN that one has no place, and the rest is counted
    shown = table._repr_html_()
    assert "f0</td><td style='text-align:left'></td>" in shown and "a.py:49" in shown and "a.py:50" not in shown
    assert "... and 10 more" in shown and "... and 40 more" in str(table)


def test_names_do_not_drive_the_terminal(tmp_path: pathlib.Path) -> None:
    frames = [{"name": "main"}, {"name": "\x1b[2Jevil\u202e"}]
    samples = {"type": "sampled", "name": "t", "unit": "seconds", "startValue": 0, "endValue": 1, "samples": [[0, 1]],
               "weights": [1]}
    (tmp_path / "evil.json").write_text(json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames},
        "profiles": [samples]}))
    evil = plimsoll.Profile.open(tmp_path / "evil.json")
    for shown in (evil.tree(), evil.flat(), evil.functions[1]):
        assert "\u241b[2Jevil\ufffd" in str(shown) and "\x1b" not in str(shown)
    for table in (evil.tree(), evil.flat(), evil):
        assert "\u241b[2Jevil\ufffd" in table._repr_html_() and "\x1b" not in table._repr_html_()


def test_a_deep_tree_is_shown_to_a_depth(tmp_path: pathlib.Path) -> None:
    (tmp_path / "deep.collapsed").write_text(";".join(f"f{depth}" for depth in range(3000)) + " 5\n")
    shown = str(plimsoll.Profile.open(tmp_path / "deep.collapsed").tree()).splitlines()
    assert len(shown) == 1 + 100 + 1
    assert shown[100].endswith(" f99") and "2,900 more" in shown[-1]


def test_callers_of_a_function_stand_below_it(tmp_path: pathlib.Path) -> None:
    # GIVEN a function that two others call, and that calls itself and another one
    (tmp_path / "callers.collapsed").write_text("main;load;parse;parse;scan 3\nmain;parse 2\nmain 1\n")
    profile = plimsoll.Profile.open(tmp_path / "callers.collapsed")

    def paths(tree: plimsoll.Callers) -> "list[tuple[int, str]]":
        return [(depth, node.function.name) for depth, node in tree.root.walk() if node.function is not None]

    # WHEN its callers are asked for THEN it has all of its time, and each caller that for which it has called it
    of_parse = profile.callers("PARSE")
    assert paths(of_parse) == [(1, "parse"), (2, "parse"), (3, "load"), (4, "main"), (2, "main")]
    assert [child.samples for child in of_parse.root.children] == [2]
    assert "self" not in str(of_parse) and str(of_parse).splitlines()[1].endswith(" parse")
    # AND without a name every function that takes time is asked for
    assert {child.function.name for child in profile.callers().root.children if child.function} == {
        "scan", "parse", "main"}


def test_a_tree_without_samples_has_no_rows(profile: plimsoll.Profile) -> None:
    assert len(str(profile.filter(function="no such function").tree()).splitlines()) == 1


def test_a_start_that_is_interrupted_records_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN Ctrl-C while a recording begins
    def interrupted(recording: object) -> None:
        raise KeyboardInterrupt

    callbacks, start_thread = list(gc.callbacks), _thread.start_new_thread
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(_recording, "_name_threads", interrupted)
        plimsoll.Profiler(tmp_path / "a.plim").start()
    # THEN nothing of it is left, and the next one begins as ever
    assert not plimsoll.is_active()
    assert gc.callbacks == callbacks and _thread.start_new_thread is start_thread
    with plimsoll.profile(tmp_path / "b.plim"):
        assert _thread.start_new_thread is not start_thread


def test_it_is_saved_in_every_format(profile: plimsoll.Profile, tmp_path: pathlib.Path) -> None:
    from plimsoll.profiles import formats

    assert {name for name, _, _ in formats()} >= {"speedscope", "collapsed", "firefox", "pprof"}
    for name, ending, description in formats():
        assert description
        path = tmp_path / f"{name}-by-ending{ending}"
        if name == "pprof-heap":  # of allocations, of which there are none
            with pytest.raises(ValueError, match="no allocations"):
                profile.save(path)
            assert not path.exists()
            continue
        profile.save(path)
        profile.save(tmp_path / name, format=name)
        assert path.read_bytes() and (tmp_path / name).read_bytes()
    assert json.loads((tmp_path / "speedscope").read_text())["profiles"]
    assert json.loads((tmp_path / "firefox").read_bytes())["threads"]
    assert re.search(r";hot \([^;]*\);burn \([^;]*\) \d+$", (tmp_path / "collapsed").read_text(), re.MULTILINE)
    with pytest.raises(ValueError, match="nonsense"):
        profile.save(tmp_path / "x", format="nonsense")
    # (it is told what Python's function takes, not the command line)
    with pytest.raises(ValueError, match=r"give one with format=, or end the name with \.html"):
        profile.save(tmp_path / "x.unknown")
    with pytest.raises(ValueError, match="give format=speedscope or format=firefox, or end"):
        profile.save(tmp_path / "x.json")
    with pytest.raises(ValueError, match="no samples"):
        profile.filter(function="no such function").save(tmp_path / "x.collapsed")


def test_a_saved_profile_is_the_same_profile(profile: plimsoll.Profile, tmp_path: pathlib.Path) -> None:
    profile.save(tmp_path / "copy.plim")
    copy = plimsoll.Profile.open(tmp_path / "copy.plim")
    assert list(copy.samples.time_ns) == list(profile.samples.time_ns)
    assert list(copy.samples.weight_ns) == list(profile.samples.weight_ns)
    assert copy.threads == profile.threads and copy.functions == profile.functions
    assert copy.meta == profile.meta and copy.sources == profile.sources and copy.complete


def test_a_profile_that_cannot_be_saved_leaves_what_was_there(profile: plimsoll.Profile, tmp_path: pathlib.Path) -> None:
    # GIVEN a saved profile
    path = tmp_path / "one.plim"
    profile.save(path)
    before = path.read_bytes()
    # WHEN another is to take its place, and the disk is full
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError) as refused:
            profile.filter(function="hot").save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    # THEN it is still there, and nothing else
    assert refused.value.errno == errno.EFBIG
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_the_system_are_of_their_classes(profile: plimsoll.Profile, tmp_path: pathlib.Path) -> None:
    for name in ("x.plim", "x.pb.gz"):
        with pytest.raises(FileNotFoundError, match="^cannot write .*: No such file or directory") as missing:
            profile.save(tmp_path / "no" / name)
        assert missing.value.errno == errno.ENOENT


def test_names_that_are_no_text_are_shown(tmp_path: pathlib.Path) -> None:
    (tmp_path / "latin.collapsed").write_bytes(b"caf\xe9;inner 5\n")
    foreign = plimsoll.Profile.open(tmp_path / "latin.collapsed")
    assert [function.name for function in foreign.functions] == ["caf\ufffd", "inner"]
    assert "caf\ufffd" in str(foreign.tree())


def test_what_is_no_profile_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.plim").write_bytes(b"not a profile")
    for path in (tmp_path / "bad.plim", tmp_path / "missing.plim"):
        with pytest.raises(plimsoll.ProfileError, match=path.name):
            plimsoll.Profile.open(path)


def test_a_path_where_a_profile_belongs_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"Profile\.open\(path\) opens a profile, not .*x\.plim"):
        plimsoll.Profile("x.plim")


def test_a_profile_knows_its_session(profile: plimsoll.Profile) -> None:
    import platform

    assert profile.meta["python"].startswith(platform.python_version())
    assert profile.meta["python"].endswith("t") == harness.FREE_THREADED
    assert profile.meta["plimsoll"] == plimsoll.__version__
    assert {"engine", "rate_hz", "argv", "platform", "kernel", "executable", "directory", "trust"} <= set(profile.meta)
    assert profile.complete and profile.duration > 0.2
    assert {thread.name for thread in profile.threads} >= {"MainThread", "other thread"}
