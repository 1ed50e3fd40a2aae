"""Tags: plimsoll.tag is a dimension of the samples, and each asyncio task and each thread has its own."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import json
import pathlib
import threading
from typing import Any, Callable, Iterator

import pytest

import harness
import plimsoll

pytestmark = pytest.mark.most_versions

Write = Callable[..., pathlib.Path]


def now() -> "dict[str, str]":
    """The tags that hold in the calling context."""
    for variable, value in contextvars.copy_context().items():
        if variable.name == "plimsoll.tags" and value is not None:
            return dict(pair.split("=") for pair in repr(value)[len("<tags "):-1].split())
    return {}


def times(profile: plimsoll.Profile) -> "dict[tuple[str, str], int]":
    """Nanoseconds on CPUs by innermost function of the target and its tag."""
    result: "collections.Counter[tuple[str, str]]" = collections.Counter()
    sets = profile.tag_sets
    for stack, tag in zip(harness.stacks(profile), profile.samples.tag):
        frames = stack.in_file("tagged.py")
        if frames and stack.activity == "running":
            name = harness.plain_name(frames[-1].function)
            result[name, sets[tag]["drink"] if tag != harness.NO_STACK else ""] += stack.weight_ns
    return result


@pytest.mark.parametrize("options", ["--mode cpu -r 1000", "--mode wall -r 1000", "--mode gil -r 1000",
                                     "--engine reader -r 5000", "--mode wall -r 5000"])
@pytest.mark.parametrize("what", ["tasks", "threads"])
def test_each_task_and_thread_has_its_own_tags(tmp_path: pathlib.Path, options: str, what: str) -> None:
    # GIVEN two tasks, or threads, that take turns every fraction of a millisecond, each with a tag and a function of
    # its own; WHEN they are recorded
    recorded = harness.record(tmp_path, harness.TARGETS / "tagged.py", "0.4", *([what] if what == "threads" else []),
                              options=options.split())
    found = times(recorded.profile)
    # THEN no function that runs under one tag only is ever seen with another one, or without
    for (function, tag) in found:
        assert {"tea_work": "tea", "coffee_work": "coffee", "untagged_work": ""}.get(function, tag) == tag, found
    # and each tag has the time that was spent under it, but for four standard deviations of so many samples
    period = 1e9 / float(options.split()[-1])
    if "gil" not in options:
        for tag in ("tea", "coffee"):
            measured = sum(ns for (function, of), ns in found.items() if of == tag and function == f"{tag}_work")
            truth = recorded.truth[tag]
            chance = 4 * (truth * period) ** 0.5 + 0.05 * truth
            assert abs(measured - truth) < chance, (tag, chance, found, recorded.truth)


def test_tags_nest_and_the_inner_one_of_a_name_holds() -> None:
    assert now() == {}
    with plimsoll.tag(request="GET", user=7):
        assert now() == {"request": "GET", "user": "7"}
        with plimsoll.tag(user=8, job="x"):
            assert now() == {"request": "GET", "user": "8", "job": "x"}
        assert now() == {"request": "GET", "user": "7"}
    assert now() == {}


def test_one_object_can_be_entered_again_while_it_is_entered() -> None:
    tag = plimsoll.tag(job="x")

    @tag
    def deep(n: int) -> int:
        assert now() == {"job": "x"}
        return n and 1 + deep(n - 1)

    assert deep(50) == 50 and now() == {}
    with tag, tag:
        assert now() == {"job": "x"}
    assert now() == {}


def test_tasks_inherit_tags_and_do_not_share_them() -> None:
    seen = []

    async def inner(name: str) -> None:
        assert now() == {"request": "GET"}
        with plimsoll.tag(task=name):
            await asyncio.sleep(0)
            seen.append(now())
        await asyncio.sleep(0)
        assert now() == {"request": "GET"}

    async def outer() -> None:
        with plimsoll.tag(request="GET"):
            await asyncio.gather(inner("a"), inner("b"))
        assert now() == {}

    asyncio.run(outer())
    assert seen == [{"request": "GET", "task": "a"}, {"request": "GET", "task": "b"}]


def test_tags_around_coroutines_and_generators_hold_on_their_steps_only() -> None:
    @plimsoll.tag(kind="coroutine")
    async def coroutine() -> "dict[str, str]":
        await asyncio.sleep(0)
        return now()

    @plimsoll.tag(kind="generator")
    def generator() -> "Iterator[Any]":
        received = []
        try:
            while True:
                try:
                    received.append((yield now()))
                except KeyError:
                    received.append("KeyError")
                if len(received) == 2:
                    return received
        finally:
            received.append(now()["kind"])

    assert asyncio.run(coroutine()) == {"kind": "coroutine"}
    steps: Any = generator()
    assert next(steps) == {"kind": "generator"} and now() == {}
    assert steps.throw(KeyError()) == {"kind": "generator"} and now() == {}
    with pytest.raises(StopIteration) as end:
        steps.send("hello")
    assert end.value.value == ["KeyError", "hello", "generator"] and now() == {}
    unfinished: Any = generator()
    next(unfinished)
    unfinished.close()
    assert now() == {}


def test_a_tag_left_out_of_turn_does_not_stay() -> None:
    # GIVEN a tag in a generator, which its consumer inherits by mistake
    def careless() -> "Iterator[None]":
        with plimsoll.tag(generator="careless"):
            yield

    steps = careless()
    next(steps)
    # WHEN it ends while an inner tag holds THEN it does not come back with the end of that
    with plimsoll.tag(own="x"):
        next(steps, None)
        assert now()["own"] == "x"
    assert now() == {}
    # WHEN it ends in another context THEN nothing happens there
    steps = careless()
    contextvars.copy_context().run(next, steps)
    next(steps, None)
    assert now() == {}


def test_what_cannot_be_a_tag_is_refused() -> None:
    with pytest.raises(TypeError, match="a name and a value"):
        plimsoll.tag()
    with pytest.raises(TypeError, match="a name and a value"):
        plimsoll.tag("request")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="at most 64"):
        plimsoll.tag(**{f"t{i}": i for i in range(65)})

    async def generator() -> Any:
        yield 1

    with pytest.raises(TypeError, match="asynchronous generator"):
        plimsoll.tag(a=1)(generator)
    with pytest.raises(TypeError, match="a function can be tagged"):
        plimsoll.tag(a=1)(int)


def test_tags_that_hold_before_a_recording_begins_are_known(tmp_path: pathlib.Path) -> None:
    with plimsoll.tag(request="GET /" + "é" * 600, odd="\udc80"):
        with plimsoll.profile(rate_hz=5000) as session:
            sum(range(2_000_000))
    tags = [dict(tags) for tags in session.profile.tag_sets]
    # The text is cut at 1000 bytes, between characters, and what is not Unicode is escaped.
    assert tags == [{"request": "GET /" + "é" * 497, "odd": "\\udc80"}]
    # and a copy on disk has them, too
    session.profile.save(tmp_path / "copy.plim")
    assert plimsoll.Profile.open(tmp_path / "copy.plim").tag_sets == session.profile.tag_sets


def test_selecting_by_tag(tmp_path: pathlib.Path) -> None:
    with plimsoll.profile(tmp_path / "tags.plim", rate_hz=5000) as session:
        for request in ("GET /tea", "POST /tea"):
            with plimsoll.tag(request=request):
                sum(range(1_500_000))
        sum(range(1_500_000))
    profile = session.profile
    counts = [len(profile.filter(tag=tag).samples) for tag in ("request=GET*", "request=post*", "request=")]
    assert all(counts) and sum(counts) == len(profile.samples)
    assert len(profile.filter(tag=["request=*tea", "request=GET*"]).samples) == counts[0]
    # and on the command line
    shown = harness.plimsoll_command("show", tmp_path / "tags.plim", "tags", "--json").expect()
    rows = {(row.get("tag"), row.get("value")): row["samples"] for row in json.loads(shown.out)["tags"]}
    assert rows == {("request", "GET /tea"): counts[0], ("request", "POST /tea"): counts[1], (None, None): counts[2]}
    shown = harness.plimsoll_command("show", tmp_path / "tags.plim", "flat", "--json", "--tag", "request=GET*").expect()
    assert json.loads(shown.out)["shown"]["samples"] == counts[0]
    refused = harness.plimsoll_command("show", tmp_path / "tags.plim", "--tag", "user").expect(4)
    assert "its tags are request" in refused.err
    folded = harness.plimsoll_command("convert", tmp_path / "tags.plim", "-f", "collapsed", "-o", "-", "--tag",
                                      "request=nothing").expect(4)
    assert folded.out == ""


def test_thousands_of_tags_a_second_from_many_threads(tmp_path: pathlib.Path) -> None:
    # GIVEN threads that make and forget tags as fast as they can WHEN they are recorded
    def work(number: int) -> None:
        for i in range(3000):
            with plimsoll.tag(thread=number, round=i):
                sum(range(30))

    with plimsoll.profile(rate_hz=10000) as session:
        threads = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # THEN each sample has the tags of its own thread, or none
    profile = session.profile
    names = [thread.name for thread in profile.threads]
    tagged = [(names[thread], profile.tag_sets[tag]["thread"])
              for thread, tag in zip(profile.samples.thread, profile.samples.tag) if tag != harness.NO_STACK]
    assert len(tagged) > 20 and all(name == f"worker {number}" for name, number in tagged)


def test_a_forked_child_can_tag(program: Write) -> None:
    # GIVEN threads that make and forget tags all the time WHEN the process forks THEN the child does not wait for them
    script = program("""
import os, threading, plimsoll
done = threading.Event()
plimsoll.tag  # imported here: a child cannot import what another thread was importing at the fork
def work():
    while not done.is_set():
        with plimsoll.tag(a=1): pass
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
codes = []
for _ in range(30):
    pid = os.fork()
    if pid == 0:
        with plimsoll.tag(child=1): pass
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
done.set()
for thread in threads: thread.join()
print(sum(codes))
""")
    assert harness.python("-W", "ignore", script).expect().out == "0\n"
