"""Short waits, called from alternating callers that are made anew each time: waiting_callers.py SECONDS

Round N makes first_N and second_N, which both call wait(), from a line of their own; each is only ever called by
first_caller or second_caller.
"""

import json
import sys
import time

TEXT = """
def first_{n}(wait):
    wait(1)
def second_{n}(wait):
    wait(2)
"""


def wait(caller):
    time.sleep(0.0001 * caller)


def first_caller(function):
    function(wait)


def second_caller(function):
    function(wait)


def main():
    rounds, end = 0, time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        names = {}
        exec(compile("\n" * (rounds % 100) + TEXT.format(n=rounds), f"<round {rounds}>", "exec"), names)
        first_caller(names[f"first_{rounds}"])
        second_caller(names[f"second_{rounds}"])
        rounds += 1
    print(json.dumps({"rounds": rounds}))


if __name__ == "__main__":
    main()
