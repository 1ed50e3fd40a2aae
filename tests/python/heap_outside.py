"""For tests of snapshots from outside: takes them, and reads their graphs."""

from __future__ import annotations

import collections
import json
import pathlib
import sys
from typing import Any

import harness


def take(pid: int, path: pathlib.Path, *options: str) -> "harness.Finished":
    return harness.plimsoll_command("heap", str(pid), "-o", path, *options).expect()


def ask(path: pathlib.Path, statement: str) -> "list[list[Any]]":
    answer = harness.plimsoll_command("heap", "query", path, statement, "--json", "--limit", "0").expect()
    return list(json.loads(answer.out)["rows"])


def both(program: str, tmp_path: pathlib.Path, **environment: str) -> "tuple[dict[str, Any], list[pathlib.Path]]":
    """What a program says, and its snapshots from inside and from outside."""
    paths = [tmp_path / "inside.heap", tmp_path / "outside.heap"]
    with harness.Running([sys.executable, "-c", program, paths[0]], env=environment) as running:
        truth = json.loads(running.line())
        take(running.process.pid, paths[1])
    return truth, paths


class Graph:
    """A snapshot's objects by their addresses, and what each holds."""

    def __init__(self, path: pathlib.Path) -> None:
        rows = ask(path, "select id, type, size, address from objects where address is not null")
        address = {row[0]: row[3] for row in rows}
        self.objects = {row[3]: (row[1], row[2]) for row in rows}
        self.edges: "dict[int, collections.Counter[Any]]" = collections.defaultdict(collections.Counter)
        for holder, held, kind, name in ask(path, "select holder, held, kind, name from edges"):
            if holder in address and held in address:
                label = name if kind in ("attribute", "element") else ""
                self.edges[address[holder]][(address[held], kind, label)] += 1

    def reached_from(self, start: int, inside: "set[str]") -> "set[int]":
        """What is reached by objects of the classes `inside` alone."""
        reached, open_ = {start}, [start]
        while open_:
            for held, kind, _ in self.edges[open_.pop()]:
                if held not in reached and kind != "class" and self.objects[held][0] in inside:
                    reached.add(held)
                    open_.append(held)
        return reached


CONTAINERS = {
    "dict", "list", "tuple", "set", "frozenset", "collections.OrderedDict", "collections.defaultdict", "cell",
    "functools.partial", "str", "bytes", "int", "float", "bytearray", "array.array", "builtin_function_or_method",
    "ValueError",
}
