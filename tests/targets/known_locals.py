"""A program that knows its variables: it prints what a look at them should say as one line of JSON, and waits for another.

The truth: for each function, innermost first, [name, text] of its variables; those that it calls arguments come first.
"""

import collections
import enum
import json
import os
import sys
import threading

SETTING = {"debug": True}
Pair = collections.namedtuple("Pair", "left right")


class Colour(enum.IntEnum):
    RED = 1


class Plain:
    def __init__(self, name, pair):
        self.name, self.pair = name, pair

    def go(self):
        pass


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first):
        self.first = first


class Both(Slotted):
    def __init__(self, first, own):
        super().__init__(first)
        self.own = own


class Failure(ValueError):
    pass


def count():
    yield 1


def literals():
    """Values that are written as repr writes them."""
    return {
        "nothing": None, "yes": True, "no": False, "dots": ..., "other": NotImplemented,
        "zero": 0, "number": -42, "large": 2**62, "larger": 2**100, "least": -(3**200),
        "ratio": 0.1, "whole": 3.0, "huge": 1e16, "tiny": 5e-324, "endless": float("-inf"), "no_number": float("nan"),
        "point": complex(1, -2.5), "imaginary": 2j,
        "text": "it's \"so\"\n\t\x7f\\", "empty_text": "", "latin": "Gr\u00fc\u00dfe", "wide": "\u65e5\u672c\u8a9e",
        "no_text": os.fsdecode(b"a\xff\xfe\x80"), "half": "\ud83d'", "wide_half": "\U0001f40d\udfff",
        "snake": "\U0001f40d", "raw": b"\x00'\xff", "buffer": bytearray(b"abc"), "no_buffer": bytearray(),
        "row": [1, "two", [3.0, None]], "single": (1,), "empties": ((), [], {}, set(), frozenset()),
        "table": {"a": 1, 2: (3,), None: "x"}, "numbers": {3, 1, 2}, "frozen": frozenset({"only"}),
        "steps": range(3), "odd": range(1, 10, 2), "back": range(5, 0, -1), "part": slice(1, None),
        "error": ValueError("bad", 2), "builtin": ValueError,
    }


def others():
    """Values that are written in another way, and how."""
    loop = []
    loop.append(loop)
    moved = Plain("m", None)
    moved.__dict__["late"] = 1
    holes = {number: None for number in range(40)}
    for number in range(38):
        del holes[number]
    # As caches do; large enough that positions in its table take two bytes, and with strs and others as keys.
    used = collections.OrderedDict((str(number), number) for number in range(300))
    used["0"] = used.pop("0")
    used.move_to_end("299", last=False)
    mixed = collections.OrderedDict({"a": 1, 2: 3, -5: None})
    mixed.move_to_end("a")
    return {
        "queue": (collections.deque([1, 2]), "collections.deque([1, 2])"),
        "counted": (collections.Counter("aab"), "collections.Counter({'a': 2, 'b': 1})"),
        "used": (used, "collections.OrderedDict({'299': 299, " + "".join(
            f"'{number}': {number}, " for number in range(1, 10)) + "... 290 more})"),
        "mixed": (mixed, "collections.OrderedDict({2: 3, -5: None, 'a': 1})"),
        "ordered": (collections.OrderedDict(a=1), "collections.OrderedDict({'a': 1})"),
        "pair": (Pair(1, "b"), "__main__.Pair(1, 'b')"),
        "colour": (Colour.RED, "__main__.Colour(1)"),
        "plain": (Plain("n", (1, 2)), "<__main__.Plain name='n', pair=(1, 2)>"),
        "moved": (moved, "<__main__.Plain name='m', pair=None, late=1>"),
        "slotted": (Slotted(1), "<__main__.Slotted first=1>"),
        "both": (Both("f", "o"), "<__main__.Both first='f', own='o'>"),
        "failure": (Failure("x"), "__main__.Failure('x')"),
        "function": (others, "<function others>"),
        "method": (Plain.go, "<function Plain.go>"),
        "bound": (Plain("n", None).go, "<bound method Plain.go>"),
        "built_in": (len, "<built-in function len>"),
        "classy": (Plain, "<class '__main__.Plain'>"),
        "module": (json, "<module json>"),
        "generator": (count(), "<generator count>"),
        "bits": (1 << 100_000, "<int of 100001 bits>"),
        "many": (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 90 more]"),
        "long": ("x" * 1000, "'" + "x" * 200 + "'... 800 more"),
        "deep": ([[[[1]]]], "[[[[...]]]]"),
        "loop": (loop, "[[...]]"),
        "holes": (holes, "{38: None, 39: None}"),
        "lock": (threading.Lock(), "<_thread.lock>"),
    }


def wait(truth):
    print(json.dumps(truth), flush=True)
    return sys.stdin.readline()


def called(argument, second=2, *rest, keyword=7, **more):
    """With variables in cells, of its own and of the function around it."""
    free = "own"
    unset = 1
    del unset
    inner = lambda: (argument, free)  # noqa: E731
    truth = {"pid": os.getpid(), "functions": {
        "called": [["argument", "'a'"], ["second", "2"], ["keyword", "8"], ["rest", "(3, 4)"], ["more", "{'x': 9}"],
                   ["free", "'own'"], ["inner", "<function called.<locals>.<lambda>>"]],
        "show_others": [[name, text] for name, (_, text) in others().items()],
        "show_literals": [[name, repr(value)] for name, value in literals().items()],
        "<module>": [["SETTING", "{'debug': True}"]],
    }}
    wait(truth)


def define(name, values, next_call):
    """A function whose variables have these names."""
    lines = [f"    {each} = values[{each!r}]" for each in values]
    namespace = {"values": values, "next_call": next_call, "__name__": "__main__"}
    exec("\n".join([f"def {name}():", *lines, "    next_call()"]), namespace)
    return namespace[name]


show_others = define("show_others", {name: value for name, (value, _) in others().items()},
                     lambda: called("a", 2, 3, 4, keyword=8, x=9))
define("show_literals", literals(), show_others)()
