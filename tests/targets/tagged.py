"""Work under tags that alternate quickly: two asyncio tasks, or two threads, each with functions of its own.

Prints the CPU time in nanoseconds that each tag took, by the thread's clock. Usage: tagged.py SECONDS [threads]
"""

import asyncio
import json
import sys
import threading
import time

import plimsoll

SECONDS = float(sys.argv[1])
spent = {"tea": 0, "coffee": 0}


def tea_work(rounds):
    for _ in range(rounds):
        sum(range(50))


def coffee_work(rounds):
    for _ in range(rounds):
        sum(range(50))


def untagged_work(rounds):
    for _ in range(rounds):
        sum(range(50))


def step(name, work, rounds):
    began = time.thread_time_ns()
    work(rounds)
    spent[name] += time.thread_time_ns() - began


async def serve(name, work, rounds):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with plimsoll.tag(drink=name):
            step(name, work, rounds)
            await asyncio.sleep(0)
            step(name, work, rounds)
        untagged_work(20)
        await asyncio.sleep(0)


async def serve_all():
    await asyncio.gather(serve("tea", tea_work, 300), serve("coffee", coffee_work, 100))


def serve_in_thread(name, work, rounds):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with plimsoll.tag(drink=name):
            step(name, work, rounds)
        untagged_work(20)


if sys.argv[2:] == ["threads"]:
    threads = [threading.Thread(target=serve_in_thread, args=each)
               for each in (("tea", tea_work, 300), ("coffee", coffee_work, 100))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    asyncio.run(serve_all())
print(json.dumps(spent))
