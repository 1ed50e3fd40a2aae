#!/usr/bin/env python3
"""What can the signal handlers call? Only what is on the lists below, or the check fails and prints the way there.

Reads the machine code of what is linked, so that it sees what the compiler made of the source: every function
reachable from a handler by calls and jumps. A function of another library must be on ALLOWED, with the reason why it
is safe in a handler; a call through a pointer must be on KNOWN_INDIRECT, with where it leads. x86-64 only: the check
is for the project's own machines, not for users'.

    tools/check_signal_safety.py build/check/src/python/_core.*.so build/check/src/plimsoll
"""

from __future__ import annotations

import argparse
import bisect
import re
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field

# The handlers, by the beginning of their names.
ROOTS = {
    "tick": r"plimsoll::capture::\(anonymous namespace\)::on_tick\(",
    "trap": r"plimsoll::capture::\(anonymous namespace\)::on_trap\(",
    "termination": r"plimsoll::os::\(anonymous namespace\)::on_termination\(",
    "fault": r"void plimsoll::memory::\(anonymous namespace\)::on_fault<",
    "pass on": r"plimsoll::cli::\(anonymous namespace\)::pass_on\(",
}

# Functions of other libraries, and why a handler may call them. "POSIX": on its list of async-signal-safe functions.
ALLOWED = {
    "tick": {
        "clock_gettime": "POSIX",
        "timer_settime": "POSIX",
        "memset": "POSIX",
        "memcpy": "POSIX",
        "memmove": "POSIX",
        "memcmp": "POSIX",
        "strlen": "POSIX",
        "pthread_self": "POSIX",
        "ioctl": "a bare system call in every libc; on perf events, to change the period",
        "syscall": "bare; gettid, at a thread's first tick, and futex, where the drain thread is woken",
        "__errno_location": "an address in the thread's own block, which exists while the thread does",
        "PyGILState_GetThisThreadState": "pthread_getspecific, or a load of a thread-local; see python/interpreter.cc",
        "PyThreadState_GetUnchecked": "a load of a thread-local (3.13+), by __tls_get_addr in a shared libpython",
        "_PyThreadState_UncheckedGet": "likewise (3.12), or of a global (up to 3.11); see python/interpreter.cc",
    },
    "fault": {
        "sigaction": "POSIX",
        "getpid": "POSIX",
        "syscall": "tgkill and gettid: nothing but the kernel's work",
    },
    "termination": {
        "clock_gettime": "POSIX",
        "sigaction": "POSIX",
        "raise": "POSIX",
        "syscall": "bare; futex, where the drain thread is woken, and waited for",
        "__errno_location": "as above",
    },
    "pass on": {
        "getpgrp": "POSIX",
        "getpid": "POSIX",
        "kill": "POSIX",
        "raise": "POSIX",
        "__errno_location": "as above",
    },
}

# A trap that is no tick of ours takes its default action.
ALLOWED["trap"] = {**ALLOWED["tick"], "sigaction": "POSIX", "raise": "POSIX"}

# What an exception, or memory from the heap, looks like in machine code. Where one is reached there is no need to look
# any further; most of these are linked in, so they would not show as calls of other libraries.
FORBIDDEN = re.compile(r"_Unwind_|__cxa_|std::terminate|std::__throw_|operator (new|delete)")

# Calls through pointers: the source function that holds the call, and the functions that the pointer can name.
KNOWN_INDIRECT = {
    "plimsoll::capture::CpuSampler::take_sample":
        r"plimsoll::python::\(anonymous namespace\)::thread_state_of_caller\(",
    # The program's own handler, which a fault that is not ours is passed on to: not our code, and its own affair.
    "plimsoll::memory::(anonymous namespace)::pass_on": "",
    # Likewise for a signal of ours that others have sent; inlined, it is told as the handlers' own.
    "plimsoll::capture::(anonymous namespace)::pass_on": "",
    "plimsoll::capture::(anonymous namespace)::on_tick": "",
    "plimsoll::capture::(anonymous namespace)::on_trap": "",
}

HEADER = re.compile(r"^([0-9a-f]+) <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:notrack |bnd |lock |rep[nz]* )*(\w+)\s*(.*)$")
DIRECT = re.compile(r"^([0-9a-f]+) <(.*)>$")
THROUGH_SLOT = re.compile(r"^\*.*\(%rip\)\s+# ([0-9a-f]+) ")
JUMPS_OF_SWITCH = 10  # instructions in front of an indirect jump in which the load from a jump table must stand


@dataclass
class Function:
    """A function in the machine code: where it goes, by calls and by jumps."""

    name: str
    start: int
    targets: list[int] = field(default_factory=list)  # addresses in this file
    external: list[str] = field(default_factory=list)  # names in other files
    indirect: list[int] = field(default_factory=list)  # addresses of calls through pointers


def output_of(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def relocated_slots(library: str) -> dict[int, str]:
    """What the dynamic linker puts into each slot: a name, or "*address" for a function of this file."""
    slots = {}
    for line in output_of(["objdump", "-R", library]).splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith("R_X86_64_"):
            own = re.fullmatch(r"\*ABS\*\+0x([0-9a-f]+)", words[2])
            slots[int(words[0], 16)] = f"*{own[1]}" if own else words[2].split("@")[0].split("+")[0]
    return slots


def is_switch(recent: list[str]) -> bool:
    """Whether an indirect jump goes through a jump table of the function itself: its target was computed from one."""
    return any(re.search(r"movs[xl]\w*\s.*\(%\w+,%\w+,4\)|\(,%\w+,8\)", line) for line in recent)


def functions_of(library: str) -> dict[int, Function]:
    """Every function of a library, by its address."""
    slots = relocated_slots(library)
    functions: dict[int, Function] = {}
    current: Function | None = None
    recent: list[str] = []
    for line in output_of(["objdump", "-d", "-C", "-w", "--no-show-raw-insn", library]).splitlines():
        if header := HEADER.match(line):
            current = Function(header[2], int(header[1], 16))
            functions[current.start] = current
            recent = []
            continue
        instruction = INSTRUCTION.match(line)
        if current is None or instruction is None:
            continue
        mnemonic, operand = instruction[2], instruction[3].strip()
        if mnemonic.startswith(("call", "j")):
            follow(current, int(instruction[1], 16), operand, slots, mnemonic == "jmp" and is_switch(recent))
        recent = [*recent[-JUMPS_OF_SWITCH:], line]
    return functions


def follow(function: Function, at: int, operand: str, slots: dict[int, str], is_table: bool) -> None:
    """Notes where a call or jump goes."""
    if direct := DIRECT.match(operand):
        name = direct[2]
        if name.endswith("@plt"):
            function.external.append(name[: -len("@plt")].split("@")[0])
        else:
            function.targets.append(int(direct[1], 16))
    elif slot := THROUGH_SLOT.match(operand):
        name = slots.get(int(slot[1], 16), "")
        if name.startswith("*"):
            function.targets.append(int(name[1:], 16))
        elif name:
            function.external.append(name)
        else:
            function.indirect.append(at)
    elif operand.startswith("*") and not is_table:
        function.indirect.append(at)


def source_function(library: str, address: int) -> tuple[str, str]:
    """The innermost function of the source, inlined or not, at an address; and its file and line."""
    lines = output_of(["addr2line", "-f", "-i", "-C", "-e", library, hex(address)]).splitlines()
    return re.sub(r"\(.*\).*$|\[clone.*$", "", lines[0].replace("(anonymous namespace)", "\0")).replace(
        "\0", "(anonymous namespace)"), re.sub(r"^.*/src/", "src/", lines[1])


@dataclass
class Findings:
    """What one handler can reach."""

    reached: int = 0
    external: set[str] = field(default_factory=set)
    indirect: list[str] = field(default_factory=list)  # known ones, in words
    problems: list[str] = field(default_factory=list)


class Search:
    """A walk from one handler through everything it can call."""

    def __init__(self, library: str, functions: dict[int, Function], handler: str) -> None:
        self._library = library
        self._functions = functions
        self._starts = sorted(functions)
        self._handler = handler
        self._came_from: dict[int, int | None] = {}
        self._pending: deque[int] = deque()
        self._findings = Findings()

    def run(self) -> Findings:
        self._enter_all(ROOTS[self._handler], None)
        while self._pending:
            function = self._functions[self._pending.popleft()]
            self._findings.reached += 1
            for address in function.targets:
                target = self._functions[self._containing(address)]
                if FORBIDDEN.match(target.name):
                    self._problem(f"calls {target.name}", function)
                else:
                    self._enter(target.start, function.start)
            for name in function.external:
                self._findings.external.add(name)
                if name not in ALLOWED[self._handler]:
                    self._problem(f"calls {name}", function)
            for address in function.indirect:
                self._indirect(function, address)
        return self._findings

    def _containing(self, address: int) -> int:
        return self._starts[bisect.bisect_right(self._starts, address) - 1]

    def _enter(self, start: int, origin: int | None) -> None:
        if start not in self._came_from:
            self._came_from[start] = origin
            self._pending.append(start)

    def _enter_all(self, pattern: str, origin: int | None) -> int:
        found = [each.start for each in self._functions.values() if re.match(pattern, each.name)]
        for start in found:
            self._enter(start, origin)
        return len(found)

    def _indirect(self, function: Function, address: int) -> None:
        name, place = source_function(self._library, address)
        if name not in KNOWN_INDIRECT:
            self._problem(f"calls through a pointer in {name} ({place})", function)
            return
        leads_to = KNOWN_INDIRECT[name]
        if leads_to and not self._enter_all(leads_to, function.start):
            self._findings.problems.append(f"the pointer in {name} was known to lead to {leads_to}, which is gone")
        self._findings.indirect.append(f"{name} ({place})")

    def _problem(self, what: str, function: Function) -> None:
        text = f"{what}, by way of {self._way_to(function)}"
        if text not in self._findings.problems:
            self._findings.problems.append(text)

    def _way_to(self, function: Function) -> str:
        names = []
        at: int | None = function.start
        while at is not None:
            names.append(re.sub(r"\(anonymous namespace\)::|plimsoll::", "", self._functions[at].name).split("(")[0])
            at = self._came_from[at]
        return " -> ".join(reversed(names))


def check(files: list[str]) -> dict[str, Findings]:
    """The findings for each handler, in the first of the files that has it."""
    found: dict[str, Findings] = {}
    machine_code = {file: functions_of(file) for file in files}
    for handler, pattern in ROOTS.items():
        homes = [file for file in files if any(re.match(pattern, each.name) for each in machine_code[file].values())]
        if homes:
            found[handler] = Search(homes[0], machine_code[homes[0]], handler).run()
        else:
            found[handler] = Findings(problems=[f"no function is named like {pattern}: was the handler renamed?"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Check what the signal handlers can call.")
    parser.add_argument("files", nargs="+", help="the extension and the program, optimised, with symbols")
    findings = check(parser.parse_args().files)
    for handler, found in findings.items():
        print(f"{handler}: {found.reached} functions; calls {', '.join(sorted(found.external)) or 'nothing'}")
        for each in found.indirect:
            print(f"  through a pointer, known: {each}")
        for each in found.problems:
            print(f"  NOT SAFE: {each}")
    return 1 if any(found.problems for found in findings.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
