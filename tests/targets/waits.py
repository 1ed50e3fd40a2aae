"""Threads that wait in one way each, and say for how long they lived: waits.py SECONDS

Prints, by thread, its life in nanoseconds on CLOCK_MONOTONIC and its CPU time.
"""

import json
import os
import select
import sys
import threading
import time

SECONDS = float(sys.argv[1])
lives = {}


def sleeping():
    time.sleep(SECONDS)  # sleep


def locked(lock):
    lock.acquire()  # lock


def reading(descriptor):
    os.read(descriptor, 1)  # io


def selecting(descriptor):
    select.select([descriptor], [], [], 2 * SECONDS)  # io


def napping():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(0.0005)  # sleep


def computing():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sum(range(500))


def live(work, *args):
    began = time.monotonic_ns()
    work(*args)
    lives[threading.current_thread().name] = {"life": time.monotonic_ns() - began, "cpu": time.thread_time_ns()}


def main():
    lock = threading.Lock()
    lock.acquire()
    pipes = [os.pipe(), os.pipe()]
    works = [(sleeping,), (locked, lock), (reading, pipes[0][0]), (selecting, pipes[1][0]), (napping,)]
    if "compute" in sys.argv:
        works = [(computing,), (computing,)]
    threads = [threading.Thread(target=live, args=work, name=f"{work[0].__name__} {number}")
               for number, work in enumerate(works)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    lock.release()
    for _, end in pipes:
        os.write(end, b"x")
    for thread in threads:
        thread.join()
    print(json.dumps(lives))


if __name__ == "__main__":
    main()
