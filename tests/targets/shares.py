"""Functions whose shares of the CPU time are known: shares.py [SECONDS [SEED]]

The work comes in short pieces in random order; each piece is timed by the thread's CPU clock.
"""

import json
import random
import sys
import time

PARTS = {"tiny": 1, "small": 3, "medium": 6, "large": 10, "huge": 20}


def tiny(n):
    x = 0
    for i in range(n):
        x += i
    return x


def small(n):
    x = 1
    for i in range(n):
        x = x * 3 % 1000003
    return x


def medium(n):
    words = []
    for i in range(n):
        words.append(str(i))
    return words


def large(n):
    return sum([i * i for i in range(n)])


def huge(n):
    table = {}
    for i in range(n):
        table[i % 1024] = table.get(i % 1024, 0) + i
    return table


FUNCTIONS = {"tiny": tiny, "small": small, "medium": medium, "large": large, "huge": huge}


def spend(spent, name, size):
    began = time.thread_time_ns()
    made = FUNCTIONS[name](size)  # is freed after that, which is no work of the function's
    took = time.thread_time_ns() - began
    del made
    spent[name] += took
    return took


def size_of(spent, name, nanoseconds):
    """How much work takes so long. Not every function is twice as fast with half of it, and the first run is slow."""
    size = 20000
    for _ in range(3):
        size = max(1, int(size * nanoseconds / min(spend(spent, name, size), spend(spent, name, size))))
    return size


def main():
    seconds = float(sys.argv[1]) if sys.argv[1:] else 1.0
    order = random.Random(sys.argv[2] if sys.argv[2:] else "plimsoll")
    spent = dict.fromkeys(FUNCTIONS, 0)
    sizes = {name: size_of(spent, name, 3_000_000) for name in FUNCTIONS}
    while sum(spent.values()) < seconds * 1e9:
        name = order.choices(list(PARTS), weights=list(PARTS.values()))[0]
        spend(spent, name, sizes[name])
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
