"""Calls of every kind that Python knows, each done over and over: calls.py [SECONDS [THREADS]]"""

import asyncio
import collections
import functools
import json
import re
import sys
import threading

import oracle


def leaf(n=3):
    x = 0
    for i in range(n):
        x += i * i
    return x


# ---- the same function called from different places in turn ----


def middle(side):
    leaf()
    return leaf(len(side))


def left():
    return middle("l")


def right():
    return (leaf(2) +
            middle("rr"))


def alternating():
    for _ in range(10):
        left()
        right()
        middle("")


# ---- generators ----


def numbers(n):
    for i in range(n):
        yield leaf(i)
        leaf()
        yield i


def relay(n, depth):
    if depth == 0:
        yield from numbers(n)
    else:
        yield from relay(n, depth - 1)
    leaf()


def odd_consumer(source):
    return next(source, None)


def even_consumer(source):
    leaf()
    return next(source, None)


def generators():
    source = numbers(6)
    while odd_consumer(source) is not None and even_consumer(source) is not None:
        leaf(1)
    for item in relay(3, 4):
        leaf(item)
    sum(leaf(i) for i in range(4))
    source = relay(3, 2)
    next(source)
    source.close()


def guarded():
    try:
        while True:
            leaf()
            yield
    except KeyError:
        leaf()
        yield leaf()
    finally:
        leaf()


def generators_thrown_into():
    source = guarded()
    next(source)
    source.throw(KeyError())
    source.close()


# ---- coroutines ----


class Pause:
    def __await__(self):
        leaf()
        yield


async def resting(depth):
    leaf()
    if depth:
        await resting(depth - 1)
    else:
        await Pause()
    return leaf()


async def resource():
    for i in range(3):
        await Pause()
        yield leaf(i)


async def reading():
    async for _ in resource():
        leaf()


def step_first(coroutine):
    try:
        coroutine.send(None)
    except StopIteration:
        return False
    return True


def step_second(coroutine):
    leaf()
    return step_first(coroutine)


def coroutines():
    for make in (lambda: resting(4), reading):
        coroutine = make()
        while step_first(coroutine) and step_second(coroutine):
            leaf()


async def child(number):
    for _ in range(3):
        leaf(number)
        await asyncio.sleep(0)


async def parent():
    await asyncio.gather(child(1), child(2), child(3))
    leaf()


LOOPS = collections.defaultdict(asyncio.new_event_loop)  # by thread


def event_loop():
    LOOPS[threading.get_ident()].run_until_complete(parent())


# ---- exceptions ----


def failing(depth):
    try:
        if depth == 0:
            raise ValueError(leaf())
        failing(depth - 1)
    finally:
        leaf()


def reraising():
    try:
        failing(4)
    except ValueError:
        leaf()
        raise


def exceptions():
    for _ in range(3):
        try:
            reraising()
        except ValueError as error:
            leaf(len(error.args))


# ---- callbacks out of C ----


class Weight:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        leaf()
        return self.value < other.value

    def __add__(self, other):
        return Weight(leaf() + self.value + other.value)

    def __getattr__(self, name):
        leaf()
        raise AttributeError(name)

    def __call__(self):
        return leaf()


def key_of(item):
    leaf()
    return -item


def replacement(match):
    leaf()
    return match.group(0).upper()


@functools.lru_cache(maxsize=None)
def cached(n):
    return cached(n - 1) + leaf() if n else leaf()


def as_json(weight):
    leaf()
    return weight.value


def callbacks():
    sorted(range(5), key=key_of)
    list(map(leaf, range(4)))
    re.sub("[a-c]", replacement, "abcdef")
    sorted([Weight(3), Weight(1), Weight(2)])
    functools.reduce(lambda a, b: a + leaf(b), range(4))
    Weight(1) + Weight(2)
    getattr(Weight(1), "nothing", None)
    Weight(1)()
    cached.cache_clear()
    cached(5)
    json.dumps([Weight(1), Weight(2)], default=as_json)


# ---- entries from C at the same depth of C calls and different depths of Python calls ----


def key_here(item):
    return item


def key_there(item):
    return -item


def near():
    sorted((1, 2, 3, 4), key=key_here)


def far_in():
    sorted((1, 2, 3, 4), key=key_there)


def far_between():
    far_in()


def far():
    far_between()


def entries():
    for _ in range(20):
        near()
        far()


# ---- what looks like one call and is another ----


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        leaf()
        try:
            return function(*args)
        finally:
            leaf()
    return wrapper


@decorated
@decorated
def twice_decorated(n):
    return leaf(n)


class Managed:
    def __enter__(self):
        leaf()
        return self

    def __exit__(self, *_):
        leaf()

    @property
    def size(self):
        return leaf()

    def __del__(self):
        leaf()


class Registered:
    def __init_subclass__(cls, **words):
        leaf()
        super().__init_subclass__(**words)


def make_class():
    class Made(Registered):
        first = leaf()
        second = [leaf(i) for i in range(3)]

        def method(self):
            return leaf()

    return Made().method()


class Steps:
    def __iter__(self):
        self.left = 3
        return self

    def __next__(self):
        self.left -= leaf(1) + 1
        if self.left < 0:
            raise StopIteration
        return self.left


def drop_at_return():
    kept = Managed()
    return kept.size


def constructs():
    twice_decorated(4)
    with Managed() as one, Managed():
        leaf(one.size)
    del one
    drop_at_return()
    make_class()
    for step in Steps():
        leaf(step)
    [leaf(i) for i in Steps() if leaf()]
    {leaf(i): i for i in range(3)}
    (lambda: leaf())()


# ---- calls with keywords, by a generator and by who resumes it, whose frames are at the same place ----


def keyword_leaf(n=0, by=1):
    return n


def keyword_numbers(n):
    for i in range(n):
        keyword_leaf(by=i)
        yield i


def keywords():
    for i in keyword_numbers(20):
        keyword_leaf(by=i)
        keyword_leaf(by=1)


# ---- recursion ----


def even(n):
    return odd(n - 1) if n else leaf()


def odd(n):
    leaf()
    return even(n - 1) if n else leaf()


def recursion():
    even(40)


SCENARIOS = [alternating, generators, generators_thrown_into, coroutines, event_loop, exceptions, callbacks, entries,
             constructs, keywords, recursion]

if __name__ == "__main__":
    oracle.run_scenarios(SCENARIOS, float(sys.argv[1]) if sys.argv[1:] else 0.3,
                         int(sys.argv[2]) if sys.argv[2:] else 1)
