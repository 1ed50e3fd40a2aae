"""Threads that stand where the program says: it prints its truth as one line, then waits for its standard input to end.

The truth: for each thread, by the kernel's id, its name, what it does and its frames, innermost first, as [function, line].
"""

import json
import os
import platform
import sys
import threading

stacks = {}
#: The number of the system call that a thread waits for a lock in.
FUTEX = "202" if platform.machine() == "x86_64" else "98"
never = threading.Lock()


def here():
    """The caller's line."""
    return sys._getframe(1).f_lineno


def name(function):
    """As a profiler says it: the qualified name from 3.11 on."""
    return function.__qualname__ if sys.version_info >= (3, 11) else function.__name__


def tell(state, *frames):
    stacks[threading.get_native_id()] = {"state": state, "frames": [[name(of), line] for of, line in frames],
                                         "thread": threading.get_ident(), "name": threading.current_thread().name}


def kernel_says(thread, file):
    with open(f"/proc/self/task/{thread}/{file}") as text:
        return text.read()


def is_there(thread, told):
    """Whether a thread stands where it said it would: at that line, and in that call."""
    frame = sys._current_frames().get(told["thread"])
    if frame is None or frame.f_lineno != told["frames"][0][1]:
        return False
    if told["state"] == "running":
        return True
    call = kernel_says(thread, "syscall").split()[0]
    is_lock = call == FUTEX
    return call != "running" and is_lock == (told["state"] == "lock")


class Lock:
    def hold_on(self):
        tell("lock", (Lock.hold_on, here() + 1), (wait_for_lock, wait_for_lock.__code__.co_firstlineno + 1))
        never.acquire()


def wait_for_lock():
    Lock().hold_on()


def generate():
    tell("io", (generate, here() + 1), (consume, consume.__code__.co_firstlineno + 2))
    os.read(silent, 1)
    yield 1


def consume():
    steps = generate()
    for step in steps:
        print(step)


def spin():
    tell("running", (spin, here() + 2))
    count = 0
    while True: count += 1


def deep(depth):
    if depth > 0:
        deep(depth - 1)
    else:
        line = deep.__code__.co_firstlineno
        tell("io", (deep, here() + 1), *[(deep, line + 2)] * 60, (main, main.__code__.co_firstlineno + 7))
        os.read(0, 1)


def announce():
    """Says when all stand where they say, and ends."""
    while len(stacks) < 4 or not all(is_there(*of) for of in stacks.items()):
        pass
    print(json.dumps({"pid": os.getpid(), "version": ".".join(map(str, sys.version_info[:3])), "stacks": stacks}),
          flush=True)


def main():
    global silent
    silent, _ = os.pipe()
    never.acquire()
    for body in (wait_for_lock, consume, spin, announce):
        threading.Thread(target=body, daemon=True).start()

    deep(60)
    os._exit(0)


main()
