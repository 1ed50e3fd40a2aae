"""Several interpreters in one process."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Callable

import pytest

import harness
import plimsoll

Write = Callable[..., pathlib.Path]

START = """
import json, threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
BURN = '''
import time
def burn_inside(seconds):
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < seconds * 1e9: sum(range(500))
def named_inside(seconds): burn_inside(seconds)
'''
def make():
    try:
        return interpreters.create("legacy")
    except TypeError:
        return interpreters.create()
def run(interpreter, text):
    failed = interpreters.run_string(interpreter, text)
    assert failed is None, failed
def burn_outside(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
"""


def test_code_of_a_subinterpreter_is_seen(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a second interpreter that runs code on the main thread, in turn with the first
    script = program(START + """
interpreter = make()
run(interpreter, BURN)
for _ in range(5):
    run(interpreter, "named_inside(0.06)")
    burn_outside(0.06)
interpreters.destroy(interpreter)
burn_outside(0.1)
print("done")
""")
    recorded = harness.record(tmp_path, script)
    # THEN both have their time, each in its own frames
    assert recorded.finished.out == "done\n"
    measured = harness.total_seconds(recorded.profile)
    assert measured["named_inside"] == pytest.approx(0.3, rel=0.1)
    assert measured["burn_outside"] == pytest.approx(0.4, rel=0.1)
    for stack in harness.stacks(recorded.profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        assert not ("burn_inside" in names and "burn_outside" in names)
        assert "burn_inside" not in names or "named_inside" in names
    assert harness.drops(recorded.profile) == {}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters have had their own GIL since 3.12")
def test_interpreters_that_run_at_the_same_time(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN two interpreters with a GIL of their own, on threads of their own
    script = program(START + """
def body(number):
    try: interpreter = interpreters.create("isolated")
    except TypeError: interpreter = interpreters.create(isolated=True)
    run(interpreter, BURN.replace("_inside", f"_inside_{number}"))
    run(interpreter, f"named_inside_{number}(0.25)")
    interpreters.destroy(interpreter)
threads = [threading.Thread(target=body, args=(number,), name=f"interpreter {number}") for number in (1, 2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
    recorded = harness.record(tmp_path, script)
    # THEN each has its time, on its thread
    for number in (1, 2):
        measured = harness.total_seconds(recorded.profile.filter(thread=f"interpreter {number}"))
        assert measured[f"named_inside_{number}"] == pytest.approx(0.25, rel=0.1)
        assert f"named_inside_{3 - number}" not in measured
    assert harness.drops(recorded.profile) == {}


def test_code_of_interpreters_that_come_and_go_keeps_its_name(tmp_path: pathlib.Path, program: Write) -> None:
    script = program(START + """
for number in range(12):
    interpreter = make()
    run(interpreter, BURN.replace("_inside", f"_inside_{number}"))
    run(interpreter, f"named_inside_{number}(0.03)")
    interpreters.destroy(interpreter)
""")
    recorded = harness.record(tmp_path, script)
    # THEN each has its time under its own name (a sample stands for the time since the one before, which may be late)
    measured = harness.total_seconds(recorded.profile)
    latest = max(recorded.profile.samples.weight_ns) / 1e9
    for number in range(12):
        assert measured[f"named_inside_{number}"] == pytest.approx(0.03, abs=0.009 + latest)
    for stack in harness.stacks(recorded.profile):
        inside = {harness.plain_name(frame.function).rpartition("_")[2] for frame in stack.frames
                  if "_inside_" in frame.function.name}
        assert len(inside) <= 1


@pytest.mark.skipif(not harness.may_look_at_others(), reason="kernel.yama.ptrace_scope forbids looking at other processes")
@pytest.mark.parametrize("kind", ["shared lock", "own lock"])
def test_from_outside_a_thread_is_in_one_interpreter_at_a_time(tmp_path: pathlib.Path, program: Write, kind: str) -> None:
    # GIVEN a thread that goes to and fro between two interpreters
    if kind == "own lock" and sys.version_info < (3, 12):
        pytest.skip("interpreters have had their own GIL since 3.12")
    isolated = """
try: interpreter = interpreters.create("isolated")
except TypeError: interpreter = interpreters.create(isolated=True)
"""
    script = program(START + ("interpreter = make()" if kind == "shared lock" else isolated) + """
import sys
print("ready", flush=True)
sys.stdin.readline()
run(interpreter, BURN)
for _ in range(2):
    run(interpreter, "named_inside(0.25)")
    burn_outside(0.25)
interpreters.destroy(interpreter)
print(json.dumps(time.process_time()))
""")
    path = tmp_path / "attached.plim"
    # WHEN it is recorded from outside
    with harness.Running([sys.executable, script]) as running:
        assert running.line() == "ready"
        with harness.Running([harness.binary(), "attach", str(running.process.pid), "-o", path]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            running.say("go")
            used = json.loads(running.finish().expect(0).out)
            attached.finish().expect(0)
    profile = plimsoll.Profile.open(path)
    # THEN each has its time (but for what a sample stands for), each sample the frames of one, and no time is counted
    # twice
    measured = harness.total_seconds(profile)
    longest = max(profile.samples.weight_ns) / 1e9
    assert measured["named_inside"] == pytest.approx(0.5, abs=0.05 + longest)
    assert measured["burn_outside"] == pytest.approx(0.5, abs=0.05 + longest)
    for stack in harness.stacks(profile):
        names = [harness.plain_name(frame.function) for frame in stack.frames]
        assert not ("burn_inside" in names and "burn_outside" in names)
    assert profile.sampled_cpu <= used * 1.02


@pytest.mark.skipif(sys.version_info < (3, 12) or harness.FREE_THREADED, reason="interpreters have had their own GIL since 3.12")
@pytest.mark.parametrize("what", ["alloc_exact=True", "alloc_bytes=32768"])
def test_a_recording_that_ended_under_other_hooks_is_nothing_to_later_interpreters(program: Write, what: str) -> None:
    # GIVEN a recording that ends while tracemalloc's hooks lie over its own, which end later
    script = program(START + f"""
import tracemalloc
import plimsoll
profiler = plimsoll.Profiler({what})
profiler.start()
kept = [[i] for i in range(1000)]
tracemalloc.start()
profiler.stop()
tracemalloc.stop()
""" + """
CODE = "for _ in range(100): x = [[i, {i: str(i)}, bytes(i % 400)] for i in range(2000)]"
def body():
    try: interpreter = interpreters.create("isolated")
    except TypeError: interpreter = interpreters.create(isolated=True)
    run(interpreter, CODE)
    interpreters.destroy(interpreter)
threads = [threading.Thread(target=body) for _ in range(3)]
for thread in threads: thread.start()
exec(CODE)
for thread in threads: thread.join()
print("done")
""")
    # WHEN interpreters with GILs of their own allocate at the same time THEN they do as without us
    assert harness.run([sys.executable, script]).expect().out == "done\n"


# Interpreters with the GIL of the first, which extension modules may be loaded in.
LEGACY = """
def make_legacy():
    try: return interpreters.create("legacy")
    except TypeError: return interpreters.create(isolated=False)
"""


def test_a_second_interpreter_does_not_get_what_the_first_one_records_with(program: Write) -> None:
    # GIVEN a recording in one interpreter, and another one that imports what it needs
    script = program(START + LEGACY + """
import gc
import plimsoll
with plimsoll.profile() as session:
    interpreter = make_legacy()
    run(interpreter, '''
try:
    import plimsoll
    plimsoll.tag
except ImportError as error:
    print("subinterpreters" in str(error))
''')
    interpreters.destroy(interpreter)
    gc.collect()
    burn_outside(0.1)
print(session.profile.sampled_cpu > 0.08, session.profile.complete)
""")
    # WHEN it is refused THEN the recording goes on, and nothing complains
    done = harness.run([sys.executable, script]).expect()
    assert done.out == "True\nTrue True\n" and done.err == ""


@pytest.mark.parametrize("kind", ["legacy", "isolated"])
def test_child_processes_are_recorded_not_interpreters(kind: str, tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program whose children are recorded, and which makes interpreters
    if kind == "isolated" and sys.version_info < (3, 12):
        pytest.skip("interpreters have had their own GIL since 3.12")
    script = program(START + LEGACY + f"""
import gc
def make_isolated():
    try: return interpreters.create("isolated")
    except TypeError: return interpreters.create(isolated=True)
for _ in range(2):
    interpreter = make_legacy() if {kind!r} == "legacy" else make_isolated()
    run(interpreter, BURN + "burn_inside(0.05)")
    interpreters.destroy(interpreter)
    gc.collect()
""")
    # WHEN it runs THEN their time is in its recording, and nothing is said about them
    done = harness.plimsoll_run(script, options=["-q", "--children", "-o", tmp_path / "x.plim"]).expect()
    assert done.err == ""
    profile = plimsoll.Profile.open(tmp_path / "x.plim")
    assert profile.complete and harness.total_seconds(profile)["burn_inside"] == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("options", [[], ["--children"]])
def test_another_interpreter_begins_as_without_a_recording(options: "list[str]", tmp_path: pathlib.Path,
                                                            program: Write) -> None:
    # GIVEN an interpreter that a thread makes which has ended when the interpreter does
    script = program(START + LEGACY + """
import os
made = []
thread = threading.Thread(target=lambda: made.append(make_legacy()))
thread.start()
thread.join()
run(made[0], "import os, sys; os.write(1, ' '.join(sorted(sys.modules)).encode())")
interpreters.destroy(made[0])
""")
    plain = harness.run([sys.executable, script]).expect().out
    # WHEN the program is recorded THEN the interpreter has the modules that it has without us, and comes to its end
    recorded = harness.plimsoll_run(script, options=["-q", *options, "-o", tmp_path / "x.plim"]).expect()
    assert set(recorded.out.split()) - set(plain.split()) <= {"sitecustomize"} and recorded.err == ""


@pytest.mark.skipif(harness.FREE_THREADED, reason="Python refuses modules of one interpreter to others where there is no GIL")
def test_the_first_interpreter_that_has_it_need_not_be_the_main_one(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN two interpreters after each other that look at columns of a profile and of a heap, and ask in SQL
    script = program(START + LEGACY + f"""
for _ in range(2):
    interpreter = make_legacy()
    run(interpreter, '''
import plimsoll, plimsoll.heap
with plimsoll.profile() as session:
    sum(i * i for i in range(300_000))
assert sum(session.profile.samples.weight_ns) > 0
plimsoll.heap.snapshot({str(tmp_path / "x.heap")!r})
heap = plimsoll.heap.open({str(tmp_path / "x.heap")!r})
assert sum(heap.size) == sum(heap[number].size for number in heap.select().numbers)
count = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 500000) select count(*) from c"
assert heap.query(count)[0] == (500000,)
print("done")
''')
    interpreters.destroy(interpreter)
""")
    # WHEN they do THEN none waits for the other, nor for itself (up to Python 3.11)
    assert harness.run([sys.executable, script]).expect().out == "done\ndone\n"


UNDER_TRACEMALLOC = """
import tracemalloc
import plimsoll
{before}
profiler = plimsoll.Profiler({path!r}, alloc_bytes=4096)
profiler.start()
tracemalloc.start()  # its hooks lie over ours: the heap cannot be locked from now on
import asyncio, concurrent.futures
asyncio.run(asyncio.sleep(0))
try:
    import _interpreters
    _interpreters.destroy(_interpreters.create())
    print("made")
except RuntimeError as error:
    print(error)
profiler.stop()
"""


@pytest.mark.skipif(sys.version_info < (3, 13) or harness.FREE_THREADED, reason="_interpreters came with Python 3.13")
def test_allocations_take_locks_when_an_interpreter_is_made_not_when_one_might_be(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that samples allocations, in a way that allows no locks to be added
    script = UNDER_TRACEMALLOC.format(before="", path=str(tmp_path / "a.plim"))
    # WHEN it imports what brings the module that makes interpreters, as asyncio does, THEN that is nothing to it
    # AND making one is refused, with the reason
    told = harness.run([sys.executable, "-c", script]).expect().out
    assert "interpreters cannot be added now" in told
    # BUT if somebody may make them past us, there are locks from the beginning
    script = UNDER_TRACEMALLOC.format(before="from _interpreters import create", path=str(tmp_path / "b.plim"))
    assert harness.run([sys.executable, "-c", script]).expect().out == "made\n"


@pytest.mark.skipif(sys.version_info < (3, 13) or harness.FREE_THREADED, reason="_interpreters came with Python 3.13")
@pytest.mark.parametrize("option", ["--alloc=1K", "--alloc=exact"])
def test_interpreters_that_allocate_at_the_same_time(tmp_path: pathlib.Path, program: Write, option: str) -> None:
    # GIVEN a program that makes interpreters after its allocations have been recorded for a while, as an executor does
    script = program("""
import _interpreters, asyncio, threading
CODE = "for _ in range(20): x = [[i, {i: str(i)}, bytes(i % 700)] for i in range(2000)]"
def body():
    interpreter = _interpreters.create()
    failed = _interpreters.run_string(interpreter, CODE)
    assert failed is None, failed
    _interpreters.destroy(interpreter)
exec(CODE)
threads = [threading.Thread(target=body) for _ in range(3)]
for thread in threads: thread.start()
exec(CODE)
for thread in threads: thread.join()
print(_interpreters.create.__name__, "done")
""")
    # THEN it does what it does without us, and all are seen
    recorded = harness.record(tmp_path, script, options=[option])
    assert recorded.finished.out == "create done\n"
    assert recorded.profile.memory("alloc").all.bytes > 4 * 20 * 2000 * 300
