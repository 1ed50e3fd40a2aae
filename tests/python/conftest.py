"""What all tests share: see harness.py for running programs and reading profiles."""

from __future__ import annotations

import pathlib
import signal
from typing import Callable

import pytest

import harness
import plimsoll

# Programs inherit what is ignored, as under nohup and in the background of a shell without a terminal; and some tests are
# about how these signals end them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

ENGINES = ("perf", "timer", "cpu-timer", "reader")
#: As a profile names them.
ENGINE_TEXTS = {"perf": "perf task-clock", "timer": "monotonic timer", "cpu-timer": "thread CPU timer", "reader": "reader"}


def refusal(engine: str) -> str:
    """Why an engine does not work on this machine; empty if it does."""
    try:
        with plimsoll.Profiler(engine=engine):
            return ""
    except (plimsoll.UnsupportedError, OSError) as error:
        return str(error)


@pytest.fixture(scope="session")
def refusals() -> "dict[str, str]":
    return {engine: refusal(engine) for engine in ENGINES}


# (What ticks is a matter of the system, not of Python's version; what walks and what reads is.)
@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.any_version)
                                        if name in harness.TIMER_ENGINES else name for name in ENGINES])
def engine(request: pytest.FixtureRequest, refusals: "dict[str, str]") -> str:
    """Each engine in turn, if the machine has it."""
    name = str(request.param)
    # (timers work everywhere: a refusal would be a defect)
    assert name not in harness.TIMER_ENGINES or not refusals[name], refusals[name]
    if refusals[name]:
        pytest.skip(f"engine {name} does not work here: {refusals[name]}")
    return name


@pytest.fixture
def perf(refusals: "dict[str, str]") -> str:
    """The engine perf, if the machine has it."""
    if refusals["perf"]:
        pytest.skip(f"engine perf does not work here: {refusals['perf']}")
    return "perf"


@pytest.fixture
def program(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Writes a program into a directory of its own and returns its path."""

    def write(text: str, name: str = "program.py") -> pathlib.Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def target() -> Callable[[str], pathlib.Path]:
    """The path of a program of tests/targets."""
    return lambda name: harness.TARGETS / f"{name}.py"
