"""The traces of PyPy's JIT, out of its log or a profile that has one::

    from plimsoll.jitlog import Forest

    forest = Forest.open("app.plim")
    for trace in forest.query('bridges & op("int_add_ovf")'):
        print(trace.id, trace.runs, trace.place)

``plimsoll jitlog --help`` has the query language.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field

from plimsoll import _program

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Optional, Union

    PathLike = Union[str, os.PathLike[str]]

#: As recorded, as optimised, and as machine code.
STAGES = ("noopt", "opt", "asm")


@dataclass(frozen=True)
class Place:
    """A place in the interpreted program; in a stage the operations from ``before`` on belong to it."""

    file: str
    line: int
    function: str
    position: int  #: in the byte code
    opcode: str
    before: int = 0


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of a trace."""

    name: str
    arguments: "list[str]"
    result: str = ""
    descriptor: str = ""  #: what it works on or leaves to: a field, a guard, a loop
    descriptor_id: int = 0
    fail_arguments: "list[str]" = field(default_factory=list)  #: of guards: what is alive there
    bridge: "Optional[int]" = None  #: the id of the trace that a guard was stitched to
    code_offset: int = 0  #: of ``code``, from the start of the trace's machine code
    code: bytes = b""

    @property
    def is_guard(self) -> bool:
        return self.name.startswith("guard_")


@dataclass(frozen=True, eq=False)
class Stage:
    """The operations of a trace at one time of its making."""

    arguments: "list[str]"
    operations: "list[Operation]"
    merge_points: "list[Place]"


@dataclass(frozen=True, eq=False)
class Trace:
    """A loop, or a bridge: a way out of a trace that was taken often."""

    id: int
    kind: str  #: ``loop`` or ``bridge``
    driver: str
    runs: int
    entries: int
    aborted: bool
    stages: "dict[str, Stage]"  #: by the names in :data:`STAGES`
    place: "Optional[Place]" = None  #: where it begins in the program
    code_start: int = 0  #: 0: it was not assembled
    code_end: int = 0
    guard: int = 0  #: of bridges: the descriptor of the guard that failed
    parent: "Optional[int]" = None  #: of bridges: the id of the trace with that guard


class Forest:
    """All traces of a log, in the order of how often they ran."""

    def __init__(self, document: "dict[str, Any]", path: str) -> None:
        self._path = path
        self.version: int = document["version"]
        self.bits: int = document["bits"]
        self.machine: str = document["machine"]
        self.problem: str = document.get("problem", "")  #: why the log ends early; empty if it does not
        self.traces = [_trace(one) for one in document["traces"]]
        #: Guards that were patched to jump to machine code: descriptor -> address, the last one of each.
        self.stitches = {int(one["guard"], 16): int(one["target"], 16) for one in document["stitches"]}
        self._by_id = {trace.id: trace for trace in self.traces}
        self._by_code = {trace.code_start: trace for trace in self.traces if trace.code_start}

    @classmethod
    def open(cls, path: "PathLike") -> "Forest":
        """Reads a log, plain or gzipped, whole or cut, or a profile that has one. ValueError if it is none."""
        return cls(_ask(os.fspath(path), "--operations"), os.fspath(path))

    def trace(self, number: int) -> Trace:
        """The trace with that id. KeyError if there is none."""
        return self._by_id[number]

    def trace_at(self, code_start: int) -> "Optional[Trace]":
        """The trace whose machine code begins there: what frames of a profile that ran as machine code tell."""
        return self._by_code.get(code_start)

    def query(self, text: str) -> "list[Trace]":
        """The traces that match. ValueError, with the column, for a query that makes no sense."""
        return [self._by_id[one["id"]] for one in _ask(self._path, "-q", text)["traces"]]


def _ask(path: str, *options: str) -> "dict[str, Any]":
    command = [_program.find(), "jitlog", "--json", *options, "--", path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise ValueError(words[len("plimsoll: "):] if words.startswith("plimsoll: ") else words)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _words(text: str) -> "list[str]":
    return text.split(",") if text else []


def _trace(one: "dict[str, Any]") -> Trace:
    numbers = {name: int(one[name], 16) for name in ("code_start", "code_end", "guard") if name in one}
    return Trace(one["id"], one["kind"], one["driver"], one["runs"], one["entries"], one["aborted"],
                 {name: _stage(stage) for name, stage in one["stages"].items()},
                 Place(**one["place"]) if "place" in one else None, parent=one.get("parent"), **numbers)


def _stage(one: "dict[str, Any]") -> Stage:
    return Stage(_words(one["arguments"]), [_operation(operation) for operation in one["operations"]],
                 [Place(**place) for place in one["merge_points"]])


def _operation(one: "dict[str, Any]") -> Operation:
    return Operation(one["name"], _words(one["arguments"]), one.get("result", ""), one.get("descriptor", ""),
                     int(one.get("descriptor_id", "0"), 16), _words(one.get("fail_arguments", "")), one.get("bridge"),
                     one.get("code_offset", 0), bytes.fromhex(one.get("code", "")))
