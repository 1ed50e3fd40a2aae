"""Greenlets in all states, as a hub has them: prints where each is as JSON, and waits for the end of its input.

Usage: suspended_greenlets.py
"""

import json
import pathlib
import sys
import threading

import greenlet

LINES = pathlib.Path(__file__).read_text().splitlines()


class Worker(greenlet.greenlet):
    def __init__(self, run, name, parent=None):
        super().__init__(run, parent)
        self.name = name


def wait():
    hub.switch()  # at: wait


def plain():
    wait()  # at: plain


def each():
    try:
        raise ValueError
    except ValueError:
        yield 1
        wait()  # at: each


def in_generator():
    for _ in each():  # at: in_generator
        pass


def in_c():
    list(map(call, [1]))  # at: in_c


def call(_):
    plain()  # at: call


def nest():
    Worker(plain, "inner").switch()  # at: nest


def below_c():
    iter(hub.switch, None).__next__()  # at: below_c


def ends():
    pass


def other_switches():
    greenlet.getcurrent().parent.switch()  # at: other_switches


def other_thread():
    greenlet.getcurrent().name = "other main"
    keep.append(Worker(other_switches, "of other"))
    keep[-1].switch()
    is_ready.set()
    is_over.wait()


def run_hub():
    for one in workers:
        one.switch()
    thread = threading.Thread(target=other_thread)
    thread.start()
    is_ready.wait()
    print(json.dumps(truth(thread.native_id)), flush=True)
    sys.stdin.read()
    is_over.set()


def at(*names):
    return [[name, next(number for number, line in enumerate(LINES, 1) if line.endswith("# at: " + name))]
            for name in names]


def truth(other_tid):
    main = threading.main_thread().native_id
    module = ["<module>", next(number for number, line in enumerate(LINES, 1) if line.startswith("begin()"))]
    return {
        "main": ["suspended", main, None, [*at("begin"), module]],
        "hub": ["running", main, "main", []],
        "plain": ["suspended", main, "hub", at("wait", "plain")],
        "same": ["suspended", main, "hub", at("wait", "plain")],
        "in_generator": ["suspended", main, "hub", at("wait", "each", "in_generator")],
        "in_c": ["suspended", main, "hub", at("wait", "plain", "call", "in_c")],
        "nest": ["suspended", main, "hub", at("nest")],
        "inner": ["suspended", main, "nest", at("wait", "plain")],
        "below_c": ["suspended", main, "hub", at("below_c")],
        "new": ["new", main, "hub", []],
        "other main": ["running", other_tid, None, []],
        "of other": ["suspended", other_tid, "other main", at("other_switches")],
    }


def begin():
    greenlet.getcurrent().name = "main"
    hub.switch()  # at: begin


keep = []
is_ready = threading.Event()
is_over = threading.Event()
hub = Worker(run_hub, "hub")
workers = [Worker(plain, "plain", hub), Worker(plain, "same", hub), Worker(in_generator, "in_generator", hub),
           Worker(in_c, "in_c", hub), Worker(nest, "nest", hub), Worker(below_c, "below_c", hub)]
new = Worker(plain, "new", hub)
ended = Worker(ends, "ended")
ended.switch()
begin()
