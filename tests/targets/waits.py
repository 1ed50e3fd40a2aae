"""Threads that wait in one way each, and say for how long they lived: waits.py SECONDS

Prints, by thread, in nanoseconds, its life, and what passed from before it was started until it was gone (it may wait
for a CPU before its first line, and after its last), both on CLOCK_MONOTONIC; and its CPU time.
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
    asked = {}
    for thread in threads:
        asked[thread.name] = time.monotonic_ns()
        thread.start()
    time.sleep(SECONDS)
    lock.release()
    for _, end in pipes:
        os.write(end, b"x")
    for thread in threads:
        thread.join()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # one that is joined has yet to end
            time.sleep(0.0001)
        lives[thread.name]["with_start_and_end"] = time.monotonic_ns() - asked[thread.name]
    print(json.dumps(lives))


if __name__ == "__main__":
    main()
