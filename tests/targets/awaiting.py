"""Asyncio tasks that await each other in every way there is: prints its truth as one line, then waits for its standard
input to end. (Nothing moves while it waits.)

The truth: `drawing`, the tree as `plimsoll dump --tasks` draws it, without frames; `frames`, by the name of a task, its
frames, innermost first, as [function, line]; for all versions from 3.9 on, as far as they have it.
"""

import asyncio
import json
import os
import platform
import sys
import threading
import types

# Also whether a code object knows its qualified name.
HAS_GROUPS = HAS_QUALIFIED = sys.version_info >= (3, 11)
frames = {}
never = threading.Lock()
never.acquire()


def tell(task, *stack):
    frames[task] = [[of.__qualname__ if HAS_QUALIFIED else of.__name__, line] for of, line in stack]


def line_of(function, offset):
    return [function, function.__code__.co_firstlineno + offset]


async def forever():
    await asyncio.get_running_loop().create_future()


async def inner_numbers():
    await forever()
    yield 1


async def numbers():
    async for number in inner_numbers():
        yield number


async def generators():
    async for _ in numbers():
        pass


@types.coroutine
def old_style():
    yield from forever().__await__()


class Awaitable:
    def __await__(self):
        return (yield from forever().__await__())


async def other_kinds(awaitable):
    await awaitable


async def waits_for(task):
    await task


async def guards(task):
    await asyncio.shield(task)


async def meets(tasks, key):
    await tasks[key]


async def group():
    async with asyncio.TaskGroup() as members:
        members.create_task(forever(), name="member one")
        members.create_task(forever(), name="member two")


async def in_turn():
    while True:
        await asyncio.sleep(3600)


async def main():
    asyncio.current_task().set_name("main")
    make = asyncio.create_task
    shared = make(forever(), name="shared")
    shielded = make(forever(), name="shielded")
    ring = {}
    ring["left"] = make(meets(ring, "right"), name="left")
    ring["right"] = make(meets(ring, "left"), name="right")
    later = make(forever())
    later.set_name("renamed")
    children = [make(generators(), name="generators"), make(other_kinds(old_style()), name="old style"),
                make(other_kinds(Awaitable()), name="awaitable"), make(waits_for(shared), name="one"),
                make(waits_for(shared), name="two"), make(guards(shielded), name="guard"), later]
    if HAS_GROUPS:
        children.append(make(group(), name="group"))
    orphan = make(in_turn(), name="ørphan ▲")
    over = make(asyncio.sleep(0), name="over")  # soon, and is none that awaits or is awaited
    announce_when_settled([orphan, over])
    await asyncio.gather(*children)


async def blocks():
    stand_still()


def stand_still():
    never.acquire()


def run_other_loop():
    async def start():
        await asyncio.create_task(blocks(), name="blocks")

    loop = asyncio.new_event_loop()
    loop.run_until_complete(loop.create_task(start(), name="start"))


# Below main. From 3.14 on in the order in which they were made; before, nobody knows that, and it is that of their names.
CHILDREN = [
    ["[task renamed]: waits for a Future"],
    ["[task generators]: waits for a Future"],
    ["[task old style]: waits for a Future"],
    ["[task awaitable]: waits for a Future"],
    ["[task one]: waits for [task shared]",
     "└─ [task shared]: waits for a Future, awaited by [task one], [task two]"],
    ["[task two]: waits for [task shared]",
     "└─ [task shared]: see above"],
    ["[task guard]: waits for a Future",
     "└─ [task shielded]: waits for a Future"],
    ["[task group]: waits for a Future",
     "├─ [task member one]: waits for a Future",
     "└─ [task member two]: waits for a Future"],
]
OTHERS = """\
[task ørphan ▲]: waits for a Future
[task left]: waits for [task right], awaited by [task right]
└─ [task right]: waits for [task left]
   └─ [task left]: again: it awaits itself
[task start]: waits for [task blocks]
└─ [task blocks]: running
"""


def drawing():
    children = CHILDREN if HAS_GROUPS else CHILDREN[:-1]
    if sys.version_info < (3, 14):
        children = sorted(children)
    lines = ["[task main]: waits for a _GatheringFuture"]
    for child in children:
        first, further = ("└─ ", "   ") if child is children[-1] else ("├─ ", "│  ")
        lines.append(first + child[0])
        lines += [further + line for line in child[1:]]
    return "".join(line + "\n" for line in lines) + OTHERS


def is_there(thread):
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code is stand_still.__code__


def announce_when_settled(keep, turns=50):
    """Prints the truth once every task has come to its await: none needs more turns of the loop than this."""
    loop = asyncio.get_running_loop()
    if turns > 0 or not is_there(other):
        loop.call_soon(announce_when_settled, keep, turns - 1)
        return
    print(json.dumps({"pid": os.getpid(), "version": platform.python_version(), "drawing": drawing(), "frames": frames,
                      "threads": [threading.main_thread().native_id, other.native_id]}), flush=True)
    loop.add_reader(0, lambda: os._exit(0))


deep = line_of(forever, 1)
tell("shared", deep)
tell("generators", deep, line_of(inner_numbers, 1), line_of(numbers, 1), line_of(generators, 1))
tell("old style", deep, [old_style, old_style.__code__.co_firstlineno + 2], line_of(other_kinds, 1))
tell("awaitable", deep, line_of(Awaitable.__await__, 1), line_of(other_kinds, 1))
tell("one", line_of(waits_for, 1))
tell("guard", line_of(guards, 1))
tell("left", line_of(meets, 1))
tell("blocks", line_of(stand_still, 1), line_of(blocks, 1))
tell("main", line_of(main, 18))

other = threading.Thread(target=run_other_loop, daemon=True)
other.start()
asyncio.run(main())
