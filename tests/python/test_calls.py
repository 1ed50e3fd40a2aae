"""No stack that never existed: sampled stacks are held against those that CPython's own tracing knows."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import pytest

import harness
from call_rules import CallRules, cut

SCENARIOS = ["alternating", "generators", "generators_thrown_into", "coroutines", "event_loop", "exceptions",
             "callbacks", "entries", "constructs", "keywords", "recursion"]


def record_calls(directory: pathlib.Path, engine: str, rate: int, seconds: float) -> harness.Recorded:
    return harness.record(directory, harness.TARGETS / "calls.py", str(seconds),
                          options=["--engine", engine, "-r", str(rate)])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, engine: str) -> harness.Recorded:
    return record_calls(tmp_path_factory.mktemp("calls"), engine, 4000, 0.25)


def check(recorded: harness.Recorded, scenario: str, least: int) -> None:
    facts = next(facts for facts in recorded.truth["scenarios"] if facts["work"] == scenario)
    rules = CallRules(recorded.truth["file"], facts)
    ruled, impossible, told = rules.judge(harness.stacks(recorded.profile))
    assert not impossible, f"of {ruled} samples:\n{told}"
    assert ruled >= least, "too few samples to tell anything"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_stack_is_one_that_existed(recorded: harness.Recorded, engine: str, scenario: str) -> None:
    # GIVEN calls of one kind, over and over; WHEN they are sampled; THEN tracing has seen every sampled stack
    check(recorded, scenario, least=1 if engine == "cpu-timer" else 100)


def test_every_stack_reaches_the_function_that_calls_all(recorded: harness.Recorded) -> None:
    # (While a generator is resumed or yields, CPython 3.12 has nothing for some instructions that leads outwards.)
    assert collections.Counter(cut(harness.stacks(recorded.profile))) == {}


def test_samples_are_lost_for_no_reason_but_the_end_of_a_thread(recorded: harness.Recorded) -> None:
    drops = harness.drops(recorded.profile)
    # The reader's looks may come to nothing: until it is known that a thread is better left to its ticks.
    ran_on = sum(drop.count for drop in recorded.profile.drops if drop.reason == "thread ran on")
    assert ran_on <= len(recorded.profile.samples) * 0.01
    assert drops == {}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["perf", "reader"], indirect=True)
def test_no_impossible_stack_in_a_long_recording(tmp_path: pathlib.Path, engine: str) -> None:
    recorded = record_calls(tmp_path, engine, 4000, 4.0)
    for scenario in SCENARIOS:
        check(recorded, scenario, least=1000)


def _entry(name: str, line: int) -> "tuple[str, int]":
    return (name, line)


def test_the_rules_themselves_know_right_from_wrong() -> None:
    # GIVEN what was learned of work() calling f() on line 3, and f() a generator function
    facts: "dict[str, Any]" = {"work": "work", "stacks": [["work"], [["work", 3], "f"]],
                               "lines": {"work": [1, 2, 3], "f": [7, 8]}, "generators": ["f"]}
    rules = CallRules("x.py", facts)

    # THEN possible stacks pass
    assert not rules.violation((_entry("work", 2),))
    assert not rules.violation((_entry("work", 3), _entry("f", 8)))
    # and so does f() while it makes its generator
    assert not rules.violation((_entry("work", 2), _entry("f", 7)))
    # but no wrong caller's line, no wrong line, and no missing caller
    assert rules.violation((_entry("work", 2), _entry("f", 8)))
    assert rules.violation((_entry("work", 4),))
    assert rules.violation((_entry("f", 8),))
