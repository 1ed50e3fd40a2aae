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


def pieces_per_millisecond(function):
    began = time.thread_time_ns()
    function(20000)
    return 20000 * 1_000_000 / (time.thread_time_ns() - began)


def main():
    seconds = float(sys.argv[1]) if sys.argv[1:] else 1.0
    order = random.Random(sys.argv[2] if sys.argv[2:] else "plimsoll")
    calls = {name: int(pieces_per_millisecond(function) * 3) for name, function in FUNCTIONS.items()}
    spent = dict.fromkeys(FUNCTIONS, 0)
    while sum(spent.values()) < seconds * 1e9:
        name = order.choices(list(PARTS), weights=list(PARTS.values()))[0]
        began = time.thread_time_ns()
        FUNCTIONS[name](calls[name])
        spent[name] += time.thread_time_ns() - began
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
