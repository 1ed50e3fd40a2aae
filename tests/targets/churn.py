"""Code objects made and dropped by the thousand: churn.py SECONDS

Round number N makes functions outer_N, middle_N and inner_N from text, in a file "<round N>" and from line N % 100 + 1
on, calls them, and drops them. Their code objects use the same few addresses again and again.
"""

import json
import sys
import time

TEXT = """
def inner_{n}(work):
    return sum(range(work))
def middle_{n}(work):
    return [inner_{n}(work) for _ in range(2)]
def outer_{n}(work):
    return middle_{n}(work) + middle_{n}(work // 2)
"""


def make(n):
    names = {}
    exec(compile("\n" * (n % 100) + TEXT.format(n=n), f"<round {n}>", "exec"), names)
    return names


def drive(seconds):
    addresses = set()
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        names = make(n)
        addresses.add(id(names[f"inner_{n}"].__code__))
        names[f"outer_{n}"](2000)
        n += 1
    return {"rounds": n, "addresses": len(addresses)}


if __name__ == "__main__":
    print(json.dumps(drive(float(sys.argv[1]))))
