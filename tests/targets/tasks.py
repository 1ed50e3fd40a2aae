"""Asyncio tasks that take turns: named ones and others, tasks that make tasks, in gather and in create_task.

Each works in a function of its own. Prints, for each of these functions, the tasks that it must be found below.
Usage: tasks.py SECONDS
"""

import asyncio
import json
import sys
import time

SECONDS = float(sys.argv[1])


def work(rounds):
    for _ in range(rounds):
        sum(range(50))


def in_main():
    work(100)


def in_first():
    work(150)


def in_second():
    work(50)


def in_fetch():
    work(100)


def in_child():
    work(100)


def in_callback():
    work(100)


async def each(function, end):
    while time.monotonic() < end:
        function()
        await asyncio.sleep(0)


async def fetch(end):
    await each(in_fetch, end)


async def second(end):
    child = asyncio.create_task(each(in_child, end), name="child of second")
    await each(in_second, end)
    await child


def call_again(loop, end):
    if time.monotonic() < end:
        in_callback()
        loop.call_later(0, call_again, loop, end)


async def main():
    end = time.monotonic() + SECONDS
    named = [asyncio.create_task(each(in_first, end), name="first"), asyncio.create_task(second(end), name="second")]
    await asyncio.gather(fetch(end), *named, each(in_main, end))


loop = asyncio.new_event_loop()
loop.call_soon(lambda: call_again(loop, time.monotonic() + SECONDS))
loop.run_until_complete(main())
loop.close()
print(json.dumps({
    "in_first": ["[task main]", "[task first]"],
    "in_second": ["[task main]", "[task second]"],
    "in_child": ["[task main]", "[task second]", "[task child of second]"],
    "in_fetch": ["[task main]", "[task fetch]"],
    "in_main": ["[task main]", "[task each]"],
    "in_callback": [],
}))
