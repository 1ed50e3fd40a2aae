"""Holds sampled stacks against the stacks that tests/targets/oracle.py has learned from CPython."""

from __future__ import annotations

import collections
from typing import Any, Iterable, Iterator

import harness


class CallRules:
    """The rules of one scenario: what may be on the stack from its function `work` inwards."""

    def __init__(self, file: str, facts: "dict[str, Any]") -> None:
        self.work: str = facts["work"]
        self.stacks = {tuple(map(_hashable, stack)) for stack in facts["stacks"]}
        self._file = file
        self._lines = {name: set(lines) for name, lines in facts["lines"].items()}
        self._generators = set(facts["generators"])

    def relevant(self, stacks: "Iterable[harness.Stack]") -> "Iterator[tuple[tuple[str, int], ...]]":
        """The part of each stack that is ruled: the file's frames from `work` inwards. Not while it was learned."""
        for stack in stacks:
            frames = stack.in_file(self._file)
            names = [frame.function.name for frame in frames]
            is_learning = any(harness.plain_name(frame.function) == "learn" for frame in stack.frames)
            if self.work in names and not is_learning:
                yield tuple((f"{frame.function.name}@{frame.function.first_line}", frame.line)
                            for frame in frames[names.index(self.work):])

    def violation(self, path: "tuple[tuple[str, int], ...]") -> str:
        """What is impossible about a stack; empty if it is possible."""
        name, line = path[-1]
        if path[:-1] + (name,) in self.stacks:
            return "" if line in self._lines[name] else f"{name} has no code on line {line}"
        # A generator function that is called makes its generator in a frame that tracing does not tell of.
        if len(path) > 1 and name in self._generators and line == min(self._lines[name] - {0}):
            return self.violation(path[:-1])
        return "no such stack"


    def judge(self, stacks: "Iterable[harness.Stack]") -> "tuple[int, int, str]":
        """Of the stacks that are ruled: how many, how many of them are impossible, and which, in words."""
        seen = collections.Counter(self.relevant(stacks))
        wrong = {path: self.violation(path) for path in seen if self.violation(path)}
        told = "\n".join(f"{seen[path]} times, {why}: {written(path)}" for path, why in wrong.items())
        return sum(seen.values()), sum(seen[path] for path in wrong), told


def cut(stacks: "Iterable[harness.Stack]") -> "list[str]":
    """The stacks of the main thread that lack the function that calls all scenarios, in its own time, as words."""
    in_time = [[harness.plain_name(frame.function) for frame in stack.frames] for stack in stacks if stack.thread == 0]
    whole = ["run_scenarios" in names for names in in_time]
    if not any(whole):
        return []
    first, last = whole.index(True), len(whole) - whole[::-1].index(True)
    return [" > ".join(in_time[i]) or "nothing" for i in range(first, last) if not whole[i]]


def _hashable(entry: Any) -> Any:
    return entry if isinstance(entry, str) else tuple(entry)


def written(path: "tuple[tuple[str, int], ...]") -> str:
    return " > ".join(f"{name}:{line}" for name, line in path)
