"""Learns from CPython's own tracing (sys.setprofile) which stacks a piece of work can have.

A recording of the same work must show no other one. A stack is written from the work's own function inwards: the name
of each caller with the line that it is calling from, and the name of the function called. Only functions of the
program's own file count, so that a stack through a library is as short as what the program can be held to. A function
is named by its name and first line, as several may share a name.
"""

import dis
import json
import sys
import threading
import time
from types import CodeType

GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


def name_of(code):
    return f"{getattr(code, 'co_qualname', code.co_name)}@{code.co_firstlineno}"


def lines_of(code):
    """All lines that code may be executing, by CPython's own line table; its first line included. 0 is no line."""
    if hasattr(code, "co_lines"):
        lines = {line or 0 for _, _, line in code.co_lines()}
    else:
        lines = {line for _, line in dis.findlinestarts(code)}
    return lines | {code.co_firstlineno}


def all_code(code):
    """A code object and all that are nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_code(constant)


class Oracle:
    """What is known of one function `work` and everything below it."""

    def __init__(self, work):
        self._work = work
        self._file = work.__code__.co_filename
        self.stacks = set()
        self.code = {}

    def _on_event(self, frame, event, _):
        if event != "call" or frame.f_code.co_filename != self._file:
            return
        path = [name_of(frame.f_code)]
        self.code[name_of(frame.f_code)] = frame.f_code
        caller = frame.f_back if frame.f_code is not self._work.__code__ else None
        while caller is not None:
            if caller.f_code.co_filename == self._file:
                path.append((name_of(caller.f_code), caller.f_lineno))
                if caller.f_code is self._work.__code__:
                    break
            caller = caller.f_back
        else:
            if frame.f_code is not self._work.__code__:
                return  # not below `work`
        self.stacks.add(tuple(reversed(path)))

    def learn(self, rounds=2):
        sys.setprofile(self._on_event)
        try:
            for _ in range(rounds):
                self._work()
        finally:
            sys.setprofile(None)
        return self

    def facts(self):
        return {
            "work": self._work.__name__,
            "stacks": sorted(self.stacks, key=repr),
            "lines": {name: sorted(lines_of(code)) for name, code in self.code.items()},
            "generators": sorted(name for name, code in self.code.items() if code.co_flags & GENERATOR_FLAGS),
        }


def run_scenarios(scenarios, seconds, threads=1):
    """Learns each scenario, then runs each for so many seconds of CPU time, in so many threads that take turns, then
    tells what was learned."""
    facts = [Oracle(work).learn().facts() for work in scenarios]

    def run():
        for work in scenarios:
            repeat(work, seconds)

    others = [threading.Thread(target=run) for _ in range(threads - 1)]
    for other in others:
        other.start()
    run()
    for other in others:
        other.join()
    print(json.dumps({"file": scenarios[0].__code__.co_filename, "scenarios": facts}))


def repeat(work, seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        work()
