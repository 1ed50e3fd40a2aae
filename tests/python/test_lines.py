"""Lines and columns are those of code that was running, by CPython's own line tables."""

from __future__ import annotations

import collections
import dis
import pathlib
import sys
import types
from typing import Any, Callable, Iterator

import pytest

import harness
from call_rules import CallRules, written

HAS_COLUMNS = sys.version_info >= (3, 11)
LINES = harness.TARGETS / "lines.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> harness.Recorded:
    return harness.record(tmp_path_factory.mktemp("lines"), LINES, "1.5", options=["-r", "4000"])


def code_objects(code: types.CodeType) -> "Iterator[types.CodeType]":
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def known_code(path: pathlib.Path) -> "dict[tuple[str, int], types.CodeType]":
    """Every code object of a file, by its name and first line as a profile has them."""
    module = compile(path.read_text(), str(path), "exec")
    return {(getattr(code, "co_qualname", code.co_name), code.co_firstlineno): code for code in code_objects(module)}


def positions(code: Any) -> "set[tuple[int, int]]":
    """Line and column, counted from 1, of every instruction; 0 where it has none."""
    return {(line or 0, 0 if column is None else column + 1) for line, _, column, _ in code.co_positions()}


def lines(code: Any) -> "set[int]":
    if sys.version_info >= (3, 10):
        return {line or 0 for _, _, line in code.co_lines()}
    return {line for _, line in dis.findlinestarts(code)}


def seen_frames(recorded: harness.Recorded) -> "dict[tuple[str, int], collections.Counter[tuple[int, int]]]":
    """By function: how often each line and column was seen."""
    seen: "dict[tuple[str, int], collections.Counter[tuple[int, int]]]" = collections.defaultdict(collections.Counter)
    for stack in harness.stacks(recorded.profile):
        for frame in stack.in_file(LINES.name):
            seen[frame.function.name, frame.function.first_line][frame.line, frame.column] += 1
    return seen


def test_every_line_is_one_that_the_function_has(recorded: harness.Recorded) -> None:
    # GIVEN code of every shape, recorded
    seen = seen_frames(recorded)
    assert len(seen) > 12, "hardly anything was seen"

    # THEN each line of each function is in CPython's table for it. The first line is where a call begins.
    for (name, first_line), places in seen.items():
        allowed = lines(known_code(LINES)[name, first_line]) | {first_line}
        assert {line for line, _ in places} <= allowed, name


@pytest.mark.skipif(not HAS_COLUMNS, reason="columns are known from 3.11")
def test_every_column_is_one_of_its_line(recorded: harness.Recorded) -> None:
    found = 0
    for (name, first_line), places in seen_frames(recorded).items():
        allowed = positions(known_code(LINES)[name, first_line]) | {(first_line, 0)}
        assert set(places) <= allowed, name
        found += sum(count for (_, column), count in places.items() if column)
    assert found > 1000, "hardly any column"


@pytest.mark.skipif(HAS_COLUMNS, reason="columns are known from 3.11")
def test_without_columns_there_are_none(recorded: harness.Recorded) -> None:
    assert all(column == 0 for places in seen_frames(recorded).values() for _, column in places)


def test_a_caller_is_on_the_line_that_it_calls_from(recorded: harness.Recorded) -> None:
    # GIVEN what tracing says of who calls whom from which line; THEN no sample says otherwise
    rules = CallRules(recorded.truth["file"], recorded.truth["scenarios"][0])
    seen = collections.Counter(rules.relevant(harness.stacks(recorded.profile)))
    wrong = {path: rules.violation(path) for path in seen if rules.violation(path)}
    assert not wrong, "\n".join(f"{seen[path]} times, {why}: {written(path)}" for path, why in wrong.items())

    # and nearly every place that calls was met
    calling = {stack[:-1] for stack in rules.stacks if stack[-1].startswith("leaf")}
    met = {path[:-1] for path in seen}
    assert len(calling & met) > 0.9 * len(calling), sorted(calling - met)


def test_a_line_without_samples_is_not_in_the_profile(recorded: harness.Recorded) -> None:
    # GIVEN lines that are never executed: the `else` of a try that raises, comments, blanks
    source = LINES.read_text().splitlines()
    never = {number for number, text in enumerate(source, 1) if not text.strip() or text.lstrip().startswith("#")}
    never.add(next(number for number, text in enumerate(source, 1) if text == "        else:") + 1)

    # THEN nothing is said of them
    seen = {line for places in seen_frames(recorded).values() for line, _ in places}
    assert not seen & never


def test_sources_are_in_the_profile(recorded: harness.Recorded) -> None:
    assert recorded.profile.sources[str(LINES)] == LINES.read_text()


def test_code_that_no_file_has_is_shown_with_the_text_that_python_keeps(tmp_path: pathlib.Path,
                                                                        program: Callable[..., pathlib.Path]) -> None:
    # GIVEN code as notebooks, doctest and attrs make it, with its text where tracebacks look for it
    recorded = harness.record(tmp_path, program(harness.BURN + """
import linecache
text = "def cell():\\n    burn(0.2)  # of the cell\\n"
for name in ["<ipython-input-1-abc>", "/tmp/ipykernel_1/2.py", "<string>"]:
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"))
    cell()
linecache.cache["never run"] = len(text), None, text.splitlines(True), "never run"
linecache.cache["odd"] = lambda: text,
"""))
    # THEN the profile has the text of what ran; but for a name that many things have
    text = "def cell():\n    burn(0.2)  # of the cell\n"
    told = {name for name, source in recorded.profile.sources.items() if source == text}
    assert told == {"<ipython-input-1-abc>", "/tmp/ipykernel_1/2.py"}
    shown = harness.plimsoll_command("show", tmp_path / "recorded.plim", "lines", "--file", "ipython-input").expect().out
    assert "burn(0.2)  # of the cell" in shown


def test_frames_that_the_interpreter_hides_are_hidden(tmp_path: pathlib.Path, program: Callable[..., pathlib.Path]) -> None:
    # GIVEN a class that is called so often that CPython specializes the call, with a frame of its own (3.12+)
    script = program("""
import time
class Made:
    def __init__(self):
        sum(range(300))
end = time.thread_time() + 0.3
while time.thread_time() < end:
    Made()
print("null")
""")
    recorded = harness.record(tmp_path, script)
    # THEN a stack in the constructor has the frames that a traceback would have
    paths = {tuple(harness.plain_name(frame.function) for frame in stack.frames)
             for stack in harness.stacks(recorded.profile) if stack.frames and stack.frames[-1].function.name.endswith("__init__")
             and stack.frames[-1].function.file == str(script)}
    assert paths == {("<module>", "__init__")}
