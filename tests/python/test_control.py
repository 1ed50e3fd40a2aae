"""Pause, resume, rates and limits of a recording."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import sys
from typing import Any, Callable

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.any_version

Write = Callable[..., pathlib.Path]

BURN = """
import json, sys, threading, time
import plimsoll
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
def first(): burn(0.2)
def second(): burn(0.2)
def third(): burn(0.2)
"""


def told(program: Write, text: str) -> Any:
    """What a program that records itself has printed."""
    return harness.python(program(BURN + text)).expect().truth


def test_pauses_nest(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN two pauses, one inside the other
    out = str(tmp_path / "own.plim")
    paused = told(program, f"""
plimsoll.start({out!r})
first()
plimsoll.pause(); plimsoll.pause(); plimsoll.resume()
paused = plimsoll.stats().is_paused
second()
plimsoll.resume()
third()
plimsoll.resume()  # one too many does nothing
profile = plimsoll.stop()
print(json.dumps([paused, plimsoll.is_active()]))
""")
    # THEN nothing of what ran in them is in the profile, and all of the rest is
    profile = plimsoll.Profile.open(out)
    seconds = harness.total_seconds(profile)
    assert paused == [True, False]
    assert seconds["first"] == pytest.approx(0.2, rel=0.1)
    assert seconds["third"] == pytest.approx(0.2, rel=0.1)
    assert "second" not in seconds
    # and the process's CPU time is without the pause, too
    assert profile.process_cpu == pytest.approx(profile.sampled_cpu, rel=0.1)


def test_threads_born_in_a_pause_are_sampled_after_it(tmp_path: pathlib.Path, program: Write) -> None:
    out = str(tmp_path / "own.plim")
    told(program, f"""
go = threading.Event()
def body():
    second()
    go.wait()
    third()
plimsoll.start({out!r})
plimsoll.pause()
thread = threading.Thread(target=body); thread.start()
first()
plimsoll.resume()
go.set(); thread.join()
plimsoll.stop()
print(json.dumps(0))
""")
    seconds = harness.total_seconds(plimsoll.Profile.open(out))
    assert seconds["third"] == pytest.approx(0.2, rel=0.1)
    assert "first" not in seconds


@pytest.mark.parametrize("engine", ["perf", "timer"], indirect=True)
def test_the_rate_can_change_while_recording(tmp_path: pathlib.Path, program: Write, engine: str) -> None:
    # GIVEN 50 (long enough that periods vary), then 1000, then 200 samples a second
    out = str(tmp_path / "own.plim")
    told(program, f"""
plimsoll.start({out!r}, rate_hz=50, engine={engine!r})
first()
first()
plimsoll.set_rate(1000)
second()
plimsoll.set_rate(200)
third()
assert round(plimsoll.stats().rate_hz) == 200
plimsoll.stop()
print(json.dumps(0))
""")
    # THEN each part has its number of samples, less those of ticks that come late on a busy machine, as a timer's do,
    # and all have their time
    late = 0.2 if engine in harness.TIMER_ENGINES else 0
    profile = plimsoll.Profile.open(out)
    counts = {plain: row.total_samples for row in profile.flat() if (plain := harness.plain_name(row.function))}
    for name, count, near in (("first", 20, 3), ("second", 200, 20), ("third", 40, 6)):
        assert count * (1 - late) - near <= counts[name] <= count + near
    for name, seconds in (("first", 0.4), ("second", 0.2), ("third", 0.2)):
        assert harness.total_seconds(profile)[name] == pytest.approx(seconds, rel=0.15)


def test_statistics_while_it_runs_and_after(tmp_path: pathlib.Path, program: Write) -> None:
    before, after, drops = told(program, f"""
profiler = plimsoll.Profiler({str(tmp_path / "own.plim")!r}, rate_hz=500)
with profiler:
    first()
    second()
    during = profiler.statistics
    third()
after = profiler.statistics
show = lambda s: [s.samples, s.sampled_cpu, s.process_cpu, s.profiler_cpu, s.duration, s.rate_hz, s.engine, s.is_paused,
                  s.error]
print(json.dumps([show(during), show(after), dict(after.drops)]))
""")
    assert 100 <= before[0] <= after[0] == pytest.approx(300, rel=0.1)
    assert after[1] == pytest.approx(0.6, rel=0.1)
    assert after[1] <= after[2] * 1.001
    assert after[3] < after[2] / 5 and after[4] >= 0.59
    assert after[5] == 500 and after[6] and after[7] is False and after[8] == ""
    assert set(drops) <= {"end of thread", "entering Python", "handler re-entered"}  # see harness.drops


def test_errors_of_use_are_clear(tmp_path: pathlib.Path) -> None:
    # WHEN something cannot be THEN it is an error that says so, at once
    for wrong, words in (({"rate_hz": 0}, "from 1 to 100000"), ({"rate_hz": float("nan")}, "from 1 to 100000"),
                         ({"rate_hz": 1e6}, "from 1 to 100000"), ({"engine": "steam"}, "unknown engine"),
                         ({"after_fork": "dance"}, "after_fork")):
        with pytest.raises(ValueError, match=words):
            plimsoll.Profiler(tmp_path / "x.plim", **wrong).start()  # type: ignore[arg-type]
    with pytest.raises(OSError, match="no-such-directory"):
        plimsoll.start(tmp_path / "no-such-directory" / "x.plim")
    for function in (plimsoll.stop, plimsoll.stats, lambda: plimsoll.set_rate(10)):
        with pytest.raises(ValueError):
            function()
    plimsoll.pause()
    plimsoll.resume()
    assert not plimsoll.is_active()
    # and none of that is in the way of a recording
    with plimsoll.profile(tmp_path / "y.plim"):
        with pytest.raises(ValueError, match="between 1 and 100000"):
            plimsoll.set_rate(0)


MEMORY = BURN + """
import random, resource
def make(i):
    names = {}
    exec(f"def f_{i}(n): return g() if n == 0 else next_function()(n - 1)", {"next_function": pick, "g": g}, names)
    return names[f"f_{i}"]
def pick(): return random.choice(functions)
def g(): sum(range(2000))
functions = []
functions.extend(make(i) for i in range(50))
def flood(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pick()(300)
flood(0.3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plimsoll.start(PATH, memory_mb=BUDGET, rate_hz=4000)
plimsoll.pause(); flood(0.1); plimsoll.resume()
flood(2.0)
stats = plimsoll.stats()
plimsoll.stop()
print(json.dumps([(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, stats.samples]))
"""


def test_the_memory_budget_is_kept(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a flood: hundreds of frames deep, each stack unlike all others, 4000 times a second
    grown, samples = {}, {}
    for budget in (4, 64):
        text = MEMORY.replace("PATH", repr(str(tmp_path / f"{budget}.plim"))).replace("BUDGET", str(budget))
        grown[budget], samples[budget] = harness.python(program(text)).expect().truth
    # THEN memory grows by little more than the budget, tables of names and stacks included
    assert samples[4] > 1000 and samples[64] > 1000
    assert grown[4] < 40, grown
    assert grown[64] < 100, grown


def test_memory_and_collections_are_recorded(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN a program that grows by 64 MB and collects garbage of generation 0, 1 and 2
    script = program("""
import gc, json, sys, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
gc.disable()
burn(0.3)
kept = bytearray(64 << 20)
kept[::4096] = b"x" * len(kept[::4096])
garbage = []
for _ in range(20000):
    item = []; item.append(item)
del item
collected = [gc.collect(generation) for generation in (0, 1, 2)]
burn(0.3)
print(json.dumps(collected))
""")
    recorded = harness.record(tmp_path, script, options=["--mem"])
    # THEN the memory counter grows by as much
    rss = recorded.profile.counters["rss"]
    assert rss.unit == "bytes" and len(rss.value) == len(rss.time_ns) > 20
    assert list(rss.time_ns) == sorted(rss.time_ns)
    assert 60 << 20 < max(rss.value) - rss.value[0] < 100 << 20
    # and each collection has left a marker, with what it was and how long it took
    markers = [marker for marker in recorded.profile.markers if marker.name == "GC"]
    by_hand = {marker.fields["generation"]: marker for marker in markers}
    assert {"0", "1", "2"} <= set(by_hand)
    assert all(marker.duration_ns > 0 for marker in markers)
    assert sum(int(marker.fields["collected"]) for marker in markers) >= 20000 - 700
    assert sum(int(marker.fields["collected"]) for marker in markers) >= max(recorded.truth)
    last = recorded.profile.duration * 1e9
    assert all(0 <= marker.time_ns <= last for marker in markers)


def test_settings_files_and_the_command_line(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN settings in pyproject.toml, two directories up
    script = program("sum(range(3000000))\n", "a/b/app.py")
    (tmp_path / "pyproject.toml").write_text("[tool.plimsoll]\nrate = 250\nengine = 'cpu-timer'\noutput = 'set.plim'\n")

    def meta(*options: str) -> "dict[str, str]":
        harness.plimsoll_run("app.py", options=options, cwd=script.parent).expect()
        name = options[options.index("-o") + 1] if "-o" in options else "set.plim"
        return plimsoll.Profile.open(script.parent / name).meta

    # THEN they hold
    assert meta()["rate_hz"] == "250" and meta()["engine"] == "thread CPU timer"
    # but the command line wins
    assert meta("-r", "200")["rate_hz"] == "200" and meta("-o", "other.plim")["rate_hz"] == "250"
    # an ini file in the directory itself comes first
    (script.parent / "plimsoll.ini").write_text("[plimsoll]\nrate = 125\noutput = set.plim\n")
    assert meta()["rate_hz"] == "125"
    # and with --config nothing else is read
    (tmp_path / "other.ini").write_text("[plimsoll]\nrate = 50\noutput = set.plim\n")
    assert meta("--config", str(tmp_path / "other.ini"))["rate_hz"] == "50"


#: A value of each setting that has one; the others are on or off.
VALUES = {"output": "named.plim", "rate": "250", "duration": "30", "mode": "wall", "engine": "cpu-timer", "alloc": "64K",
          "format": "speedscope", "max_overhead": "3", "memory_limit": "32", "max_depth": "100"}
#: Options that are no settings: what is done with the recording, or of one program only.
NO_SETTINGS = {"help", "jitlog", "quiet", "external", "firefox", "config", "python"}


def test_every_option_can_be_set_in_a_file(tmp_path: pathlib.Path, program: Write) -> None:
    # GIVEN all options that run has, as the words of its help
    said = harness.plimsoll_command("run", "--help").expect().out
    options = set(re.findall(r"^  (?:-\w,)?--([a-z-]+)", said, re.M)) - NO_SETTINGS
    names = {option.replace("no-", "").replace("-", "_"): option for option in options}
    assert set(VALUES) < set(names)
    settings = tmp_path / "set.ini"

    def recorded(text: str, *words: str) -> "tuple[str, set[str]]":
        settings.write_text("[plimsoll]\n" + text)
        directory = tmp_path / "there"
        directory.mkdir()
        words = ("-q", "--config", str(settings), *words, "-c", "print(open('/proc/self/environ').read())")
        finished = harness.plimsoll_run(*words, cwd=directory).expect()
        told = finished.out.split("PLIMSOLL_RUN=")[1].split("\0")[0]
        files = {re.sub(r"\d{8}-\d{6}", "DATE", file.name) for file in directory.iterdir()}
        shutil.rmtree(directory)
        return re.sub(r"(?m)^path=.*\n", "", told), files

    plain = recorded("")
    for name, option in sorted(names.items()):
        # WHEN one is given to the command, and when a file says the same
        value = VALUES.get(name, "off" if option.startswith("no-") else "on")
        given = recorded("", f"--{option}={value}" if name in VALUES else f"--{option}")
        in_file = recorded(f"{name} = {value}\n")
        # THEN the recording is made alike, and otherwise than without
        assert in_file == given != plain, name
        # and a flag that the file has set can be taken back
        if value == "on":
            assert recorded(f"{name} = on\n", f"--{option}=false") == plain, name


def test_a_program_runs_in_a_directory_that_was_removed(tmp_path: pathlib.Path, program: Write) -> None:
    script, gone = program("print('ran')"), tmp_path / "gone"
    words = [harness.binary(), "run", "--python", sys.executable, "-o"]
    for output in (tmp_path / "x.plim", "x.plim"):
        gone.mkdir()
        finished = harness.run(["sh", "-c", 'cd "$0" && rmdir "$0" && "$@"', gone, *words, output, script])
        # THEN a file elsewhere is written, and what can be nowhere is refused
        assert (finished.code, finished.out) == ((0, "ran\n") if output != "x.plim" else (1, ""))
        assert "x.plim" in finished.err
    assert plimsoll.Profile.open(tmp_path / "x.plim").complete


@pytest.mark.parametrize("text", ["rate = fast", "colour = red", "engine = steam", "rate = 0"])
def test_wrong_settings_are_told_of_before_anything_runs(tmp_path: pathlib.Path, program: Write, text: str) -> None:
    script = program("print('ran')")
    (tmp_path / "plimsoll.ini").write_text(f"[plimsoll]\n{text}\n")
    finished = harness.plimsoll_run(script, cwd=tmp_path).expect(2)
    assert finished.out == "" and text.split(" = ")[1 if "colour" not in text else 0] in finished.err


def test_formats_can_be_written_at_once(tmp_path: pathlib.Path, program: Write) -> None:
    out = tmp_path / "out.json"
    harness.plimsoll_run(program("sum(range(3000000))\n"), options=["-f", "speedscope", "-o", out]).expect()
    assert json.loads(out.read_text())["$schema"].endswith("file-format-schema.json")
    assert list(tmp_path.glob("*.plim")) == []
