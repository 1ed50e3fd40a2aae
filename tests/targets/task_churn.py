"""Asyncio tasks that are made, awaited and gone by the thousand. A task's name says by whom it was made and how it is
awaited: "r", and below it "r:g0", "r:g0:a1", ...; those that nobody awaits are roots, "o17".

Prints how many there were. Usage: task_churn.py SECONDS, of CPU time
"""

import asyncio
import json
import random
import sys
import time

END = time.process_time() + float(sys.argv[1])
made = 0


def work():
    for _ in range(random.randrange(20)):
        sum(range(40))


def make(name, depth):
    global made
    made += 1
    return asyncio.create_task(node(name, depth), name=name)


async def by_await(name, depth):
    await make(name + ":a0", depth)


async def by_shield(name, depth):
    await asyncio.shield(make(name + ":s0", depth))


async def by_gather(name, depth):
    await asyncio.gather(*(make(f"{name}:t{i}", depth) for i in range(3)))


async def by_group(name, depth):
    async with asyncio.TaskGroup() as members:
        for i in range(2):
            members.create_task(node(f"{name}:g{i}", depth), name=f"{name}:g{i}")


async def by_generator(name, depth):
    async def results():
        for i in range(2):
            yield await make(f"{name}:n{i}", depth)

    async for _ in results():
        work()


async def by_wait(name, depth):
    await asyncio.wait([make(f"{name}:w{i}", depth) for i in range(2)])


async def by_time(name, depth):
    await asyncio.wait_for(make(name + ":l0", depth), 1000)


WAYS = (by_await, by_shield, by_gather, by_generator, by_wait, by_time)
if sys.version_info >= (3, 11):
    WAYS += (by_group,)


async def node(name, depth):
    work()
    if random.random() < 0.1:
        make(f"o{made}", 0)
    for _ in range(2):
        if depth > 0 and random.random() < 0.6:
            await random.choice(WAYS)(name, depth - 1)
        else:
            await asyncio.sleep(0)
        work()


async def main():
    while time.process_time() < END:
        await node("r", 5)


loop = asyncio.new_event_loop()
loop.run_until_complete(loop.create_task(main(), name="r"))  # named before its first line
loop.close()
print(json.dumps({"made": made}))
