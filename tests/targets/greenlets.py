"""Greenlets that switch a hundred thousand times a second, each with callers of its own; each also has a tag.

Usage: greenlets.py SECONDS
"""

import sys
import time

import greenlet

import plimsoll

SECONDS = float(sys.argv[1])
COUNT = 5


def make(number):
    scope = {"plimsoll": plimsoll, "time": time}
    exec(f"""
def leaf_{number}(n):
    for _ in range(n): pass

def middle_{number}(n, switch):
    leaf_{number}(n)
    switch()
    leaf_{number}(n)

def root_{number}(switch, end):
    with plimsoll.tag(greenlet={number}):
        while time.monotonic() < end:
            middle_{number}(60, switch)
""", scope)
    return scope[f"root_{number}"]


hub = greenlet.getcurrent()
end = time.monotonic() + SECONDS
greenlets = [greenlet.greenlet(make(number)) for number in range(COUNT)]
while not all(each.dead for each in greenlets):
    for each in greenlets:
        if not each.dead:
            each.switch(hub.switch, end)
