"""Asyncio tasks that are awaited in every way there is, and work in functions of their own.

Prints, for each of these functions, what may stand above it: stacks of [function, line], the line 0 where it does not
matter. With an argument, a line of standard input is awaited first.
"""

import asyncio
import json
import sys
import time

ROUNDS = 60
LINES = {}
with open(__file__, encoding="utf-8") as source:
    for number, text in enumerate(source, 1):
        if "  # >" in text:
            LINES[text.split("  # >")[1].strip()] = number


HAS_GROUPS = sys.version_info >= (3, 11)
HAS_EAGER = sys.version_info >= (3, 12)


def burn():
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass


def in_group(): burn()
def in_unnamed(): burn()
def in_shared(): burn()
def in_lonely(): burn()
def in_adopted(): burn()
def in_shielded(): burn()
def in_timed(): burn()
def in_generator(): burn()
def in_deep(): burn()
def in_eager(): burn()
def in_callback(): burn()
def in_waited_for(): burn()
def in_wait(): time.sleep(0.001)


async def turns(work):
    for _ in range(3):  # until all who await it do
        await asyncio.sleep(0)
    for _ in range(ROUNDS):
        work()
        await asyncio.sleep(0)


def make(work, name):
    return asyncio.get_running_loop().create_task(turns(work), name=name)


async def group():
    if HAS_GROUPS:
        async with asyncio.TaskGroup() as members:  # >group
            members.create_task(turns(in_group), name="member")


async def unnamed():
    await turns(in_unnamed)  # >unnamed


async def waits_for(task):
    await task  # >waits_for


async def guard():
    await asyncio.shield(make(in_shielded, "shielded"))  # >guard


async def in_time():
    await asyncio.wait_for(make(in_timed, "timed"), 1000)  # >in_time


async def numbers():
    for number in range(2):
        await asyncio.sleep(0)
        yield number
    await make(in_generator, "source")  # >numbers
    yield 2


async def reads():
    async for _ in numbers():  # >reads
        pass


async def inner():
    await make(in_deep, "deep")  # >inner


async def middle():
    await inner()  # >middle


async def outer():
    await middle()  # >outer


async def works_at_once():
    in_eager()
    await turns(in_eager)  # >works_at_once


async def waits_for_first():
    for task in [make(in_waited_for, "first")]:
        await asyncio.wait([task], return_when=asyncio.FIRST_COMPLETED)  # >waits_for_first


async def hurries():
    if not HAS_EAGER:
        return
    for _ in range(ROUNDS):
        begun = asyncio.Task(works_for_a_moment(), loop=asyncio.get_running_loop(), eager_start=True, name="quick")
        await begun
    await asyncio.Task(works_at_once(), loop=asyncio.get_running_loop(), eager_start=True, name="eager")  # >hurries


async def works_for_a_moment():
    in_eager()


async def waits():
    await turns(in_wait)


def call_again(turns_left):
    in_callback()
    if turns_left:
        asyncio.get_running_loop().call_soon(call_again, turns_left - 1)


async def main():
    asyncio.current_task().set_name("main / ▲")
    lonely = make(in_lonely, "lonely")
    shared = make(in_shared, "shared")
    adopted = make(in_adopted, "adopted")
    asyncio.get_running_loop().call_soon(call_again, ROUNDS)
    await asyncio.gather(group(), unnamed(), waits_for(shared), waits_for(shared), guard(), in_time(), reads(),  # >main
                         outer(), hurries(), waits_for_first(), waits(),
                         asyncio.create_task(waits_for(adopted), name="foster"))
    await lonely  # >main_at_last


class Loop(asyncio.SelectorEventLoop):
    """As others derive theirs."""

    def create_task(self, coro, **options):
        options.pop("eager_start", None)
        return asyncio.Task(coro, loop=self, **options)


def frames(*names):
    return [[name, LINES.get(name, 0)] for name in names]


TOP = frames("[task main / ▲]", "main")
LAST = [["[task main / ▲]", 0], ["main", LINES["main_at_last"]]]
LEAVES = ["__aexit__", "_aexit"] if hasattr(getattr(asyncio, "TaskGroup", None), "_aexit") else ["__aexit__"]
GROUP = frames("[task group]", "group", *LEAVES)
BEGINS = frames("<module>", "run_until_complete", "run_forever", "_run_once", "_run") + [["hurries", 0]]
EAGER = frames("[task eager]", "works_at_once")
truth = {
    "in_group": [TOP + GROUP + frames("[task member]", "turns")],
    "in_unnamed": [TOP + frames("[task unnamed]", "unnamed", "turns")],
    "in_shared": [frames("[several tasks]", "[task shared]", "turns")],
    "in_lonely": [frames("[task lonely]", "turns"), LAST + frames("[task lonely]", "turns")],
    "in_adopted": [TOP + frames("[task foster]", "waits_for", "[task adopted]", "turns")],
    "in_shielded": [TOP + frames("[task guard]", "guard", "[task shielded]", "turns")],
    "in_timed": [TOP + frames("[task in_time]", "in_time", "wait_for", "[task timed]", "turns")],
    "in_generator": [TOP + frames("[task reads]", "reads", "numbers", "[task source]", "turns")],
    "in_deep": [TOP + frames("[task outer]", "outer", "middle", "inner", "[task deep]", "turns")],
    "in_eager": [BEGINS + frames("[task quick]", "works_for_a_moment"),
                 BEGINS + [["[task eager]", 0], ["works_at_once", 0]],
                 TOP + frames("[task hurries]", "hurries") + EAGER + frames("turns")],
    "in_wait": [TOP + frames("[task waits]", "waits", "turns")],
    "in_waited_for": [TOP + frames("[task waits_for_first]", "waits_for_first", "wait", "_wait") +
                      frames("[task first]", "turns")],
    "in_callback": [],
}
if not HAS_GROUPS:
    del truth["in_group"]
if not HAS_EAGER:
    del truth["in_eager"]
print(json.dumps(truth), flush=True)
if len(sys.argv) > 1:
    sys.stdin.readline()
loop = Loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main())
loop.close()
