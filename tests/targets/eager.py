"""A task that is begun at once, within the step of the one that makes it, computes. From Python 3.12 on.

The truth: the functions around the computing, from the outermost task's coroutine on. With an argument it begins when
it is told to.
"""
import asyncio
import json
import sys
import time


def burn(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


async def child():
    burn(1.0)


async def parent():
    await asyncio.create_task(child())


async def main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    await parent()


print(json.dumps(["main", "parent", "create_task", "[task child]", "child", "burn"]), flush=True)
if len(sys.argv) > 1:
    sys.stdin.readline()
asyncio.run(main())
