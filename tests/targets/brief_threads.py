"""Threads of a few milliseconds each, one after the other. Each computes in two functions, for half of its time each."""

import json
import sys
import threading
import time


def first(seconds: float) -> None:
    burn(seconds)


def second(seconds: float) -> None:
    burn(seconds)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def work(seconds: float) -> None:
    first(seconds / 2)
    second(seconds / 2)


def main() -> None:
    seconds, count = float(sys.argv[1]), int(sys.argv[2])
    before = time.process_time()
    for _ in range(count):
        thread = threading.Thread(target=work, args=(seconds,))
        thread.start()
        thread.join()
    print(json.dumps({"cpu": time.process_time() - before, "whole": time.process_time()}))


main()
