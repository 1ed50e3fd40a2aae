"""Greenlets: each sample has the stack and the tags of one of them, however fast they switch; `dump` shows all."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any, Iterator

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

has_greenlet = pytest.mark.skipif(importlib.util.find_spec("greenlet") is None, reason="greenlet is not installed")
may_look = pytest.mark.skipif(not harness.may_look_at_others(),
                              reason="kernel.yama.ptrace_scope forbids looking at other processes")


def greenlets_of(profile: plimsoll.Profile) -> "set[str]":
    """The greenlets that were seen. Each stack must be that of one greenlet, callers in order, from its own start."""
    seen = set()
    for stack in harness.stacks(profile):
        parts = [harness.plain_name(frame.function).split("_") for frame in stack.frames]
        own = [part for part in parts if part[0] in ("root", "middle", "leaf")]
        if not own:
            continue
        assert [kind for kind, _ in own] == ["root", "middle", "leaf"][:len(own)], parts
        assert len({number for _, number in own}) == 1 and parts[0] == own[0], parts
        seen.add(own[0][1])
    return seen


@has_greenlet
@pytest.mark.parametrize("engine", ["auto", "reader"])
def test_no_stack_is_of_two_greenlets(tmp_path: pathlib.Path, engine: str) -> None:
    # GIVEN greenlets that take turns WHEN they are recorded
    rate = "1000" if engine == "auto" else "8000"
    recorded = harness.record(tmp_path, harness.TARGETS / "greenlets.py", "1.0",
                              options=["-r", rate, "--engine", engine])
    profile = recorded.profile
    # THEN all are seen, each by itself
    assert greenlets_of(profile) == set("01234")
    # AND what runs in one has its tag
    for stack, tag in zip(harness.stacks(profile), profile.samples.tag):
        kind, _, number = harness.plain_name(stack.frames[-1].function).partition("_") if stack.frames else ("", "", "")
        if kind == "leaf":
            assert profile.tag_sets[tag]["greenlet"] == number


@has_greenlet
@may_look
@pytest.mark.parametrize("way", ["", "--native"])
def test_from_outside_no_stack_is_of_two_greenlets(tmp_path: pathlib.Path, way: str) -> None:
    # GIVEN greenlets that take turns
    path = tmp_path / "attached.plim"
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py", harness.TARGETS / "greenlets.py",
                          "1.0"]) as running:
        assert running.line() == "ready"
        words = [harness.binary(), "attach", str(running.process.pid), "-o", path, "-r", "2000"]
        # WHEN they are recorded from outside
        with harness.Running([*words, *([way] if way else [])]) as attached:
            assert attached.process.stderr is not None
            attached.process.stderr.readline()
            running.say("go")
            running.finish().expect(0)
            attached.finish().expect(0)
    # THEN all are seen, each by itself
    profile = plimsoll.Profile.open(path)
    assert greenlets_of(profile.without_native()) == set("01234")


@contextlib.contextmanager
def suspended() -> "Iterator[tuple[harness.Running, dict[str, Any]]]":
    """The target and its truth: for each greenlet its state, thread, parent and frames."""
    with harness.Running([sys.executable, harness.TARGETS / "suspended_greenlets.py"]) as running:
        yield running, json.loads(running.line())


def shown(*words: str) -> "dict[str, Any]":
    """The same as `dump` has it."""
    dumped = json.loads(harness.plimsoll_command("dump", *words, "--json").expect().out)
    assert "greenlets_problem" not in dumped
    greenlets = dumped["greenlets"]
    assert not any(each["truncated"] for each in greenlets)
    return {each["name"]: [each["state"], each["tid"], greenlets[each["parent"]]["name"] if "parent" in each else None,
                           [[frame["function"], frame["line"]] for frame in each["frames"]]] for each in greenlets}


@has_greenlet
@may_look
def test_dump_shows_where_each_greenlet_is_suspended() -> None:
    # GIVEN a hub that waits, greenlets that are suspended in all ways, one that has not begun and one that has ended
    with suspended() as (running, truth):
        # WHEN the process is looked at
        greenlets = shown(str(running.process.pid))
        # THEN each that has not ended is there, with its own frames down to where it began
        assert greenlets == truth
        # and the process goes on as if nothing had been
        running.finish().expect(0)


@has_greenlet
@may_look
def test_dump_says_in_words_what_a_hub_waits_for() -> None:
    with suspended() as (running, truth):
        # WHEN the process is looked at THEN what hangs is told in one report
        text = harness.plimsoll_command("dump", str(running.process.pid), env={"COLUMNS": "200"}).expect().out
        assert f", {len(truth)} greenlets; innermost frames first" in text
        headings = [re.sub(r" 0x[0-9a-f]+", "", line) for line in text.splitlines()
                    if re.match(r"(main |\d+ )?greenlets? ?", line)]
        main, other = truth["main"][1], truth["of other"][1]
        child = f'thread {main}, child of Worker "hub"'
        assert headings[:2] == [f'main greenlet "main": suspended, of thread {main}',
                                f'greenlet Worker "hub": runs in thread {main}, child of greenlet "main"']
        assert f'greenlet Worker "in_generator": suspended, of {child}' in headings
        assert f'greenlet Worker "new": not begun, of {child}' in headings
        assert f'main greenlet "other main": runs in thread {other}' in headings
        # and those that wait at the same place are one paragraph
        assert f'2 greenlets: suspended, of thread {main}, children of Worker "hub"' in headings
        running.finish().expect(0)


@has_greenlet
@may_look
def test_dump_shows_variables_of_suspended_greenlets() -> None:
    with suspended() as (running, _):
        dumped = json.loads(harness.plimsoll_command("dump", str(running.process.pid), "--locals", "--json").expect().out)
        # WHEN variables are asked for THEN frames of greenlets have theirs
        worker, = (each for each in dumped["greenlets"] if each.get("name") == "in_c")
        assert [(each["name"], each["value"]) for each in worker["frames"][2]["locals"]] == [("_", "1")]
        running.finish().expect(0)


@has_greenlet
@pytest.mark.skipif(not shutil.which("gcore"), reason="there is no gcore")
@may_look
def test_dump_of_a_core_file_shows_greenlets(tmp_path: pathlib.Path) -> None:
    with suspended() as (running, truth):
        # GIVEN the core file of a process with greenlets
        subprocess.run(["gcore", "-o", tmp_path / "core", str(running.process.pid)], check=True, capture_output=True)
        core, = tmp_path.glob("core*")
        # WHEN it is looked at THEN they are there as they were
        assert shown("--core", str(core)) == truth
        running.finish().expect(0)


@has_greenlet
@may_look
def test_dump_mixes_no_greenlets_that_take_turns() -> None:
    # GIVEN greenlets that switch a hundred thousand times a second
    looks = seen = 0
    with harness.Running([sys.executable, harness.TARGETS / "on_command.py", harness.TARGETS / "greenlets.py",
                          "60"]) as running:
        assert running.line() == "ready"
        running.say("go")
        # WHEN they are looked at again and again, once there are any
        while looks < 20:
            dumped = json.loads(harness.plimsoll_command("dump", str(running.process.pid), "--json").expect().out)
            looks += 1 if dumped.get("greenlets") else 0
            # THEN whatever is shown as suspended is in the place where its greenlet can be, by itself
            for each in dumped.get("greenlets", []):
                parts = [frame["function"].split("_") for frame in each["frames"]]
                if each["state"] == "suspended" and not each["main"]:
                    assert [kind for kind, _ in parts] == ["middle", "root"], parts
                    assert len({number for _, number in parts}) == 1, parts
                    seen += 1
    assert seen >= 20


@may_look
def test_dump_says_nothing_of_greenlets_without_the_module() -> None:
    with harness.Running([sys.executable, "-c", "print(); input()"]) as running:
        running.line()
        dumped = json.loads(harness.plimsoll_command("dump", str(running.process.pid), "--json").expect().out)
        assert "greenlets" not in dumped


@has_greenlet
def test_what_switches_allocate_is_not_left_out(tmp_path: pathlib.Path) -> None:
    # GIVEN a program that holds greenlets, whose stacks are saved by switches, when no frame says who called
    path = tmp_path / "suspended.py"
    path.write_text("""
import greenlet
def worker():
    greenlet.getcurrent().parent.switch()
def spawn(count):
    made = [greenlet.greenlet(worker) for _ in range(count)]
    for each in made:
        each.switch()
    return made
kept = spawn(1000)
""")
    # WHEN its memory is sampled THEN that is as much as where all blocks are recorded
    sampled, exact = (harness.record(tmp_path, path, options=[option]).profile.memory("live").all
                      for option in ("--alloc=256", "--alloc=exact"))
    assert sampled.bytes == pytest.approx(exact.bytes, rel=0.1)


@has_greenlet
@pytest.mark.parametrize("options", [[], ["--mode", "wall"], ["--native"]], ids=["cpu", "wall", "native"])
def test_time_of_c_code_that_a_greenlet_begins_with_is_not_left_out(tmp_path: pathlib.Path,
                                                                    options: "list[str]") -> None:
    # GIVEN greenlets that run C code with no frame of Python around it, before and after a function of Python
    path = tmp_path / "compress.py"
    path.write_text("""
import greenlet, itertools, time, zlib
data = bytes(range(256)) * 400
def nothing(_):
    return None
until = time.process_time() + 0.3
while time.process_time() < until:
    calls = [map(zlib.compress, [data] * 4), map(nothing, "x"), map(zlib.compress, [data] * 4)]
    greenlet.greenlet(list).switch(itertools.chain(*calls))
""")
    # WHEN they are recorded
    profile = harness.record(tmp_path, path, options=options).profile
    # THEN nothing is lost, and their time is that of C code
    assert harness.drops(profile) == {}
    bare = profile.filter(function="[no Python frame]" if "--native" not in options else "deflate")
    assert bare.sampled_cpu >= 0.7 * profile.sampled_cpu
