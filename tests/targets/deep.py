"""Deep recursion: deep.py DEPTH SECONDS. Every stack with `bottom` in it has exactly DEPTH frames of `down`."""

import json
import sys
import threading
import time


def bottom(until):
    x = 0
    while time.thread_time() < until:
        x += 1
    return x


def down(n, seconds):
    if n == 1:
        return bottom(time.thread_time() + seconds)
    return down(n - 1, seconds)


def climb(depth, seconds):
    down(depth, seconds)


def main():
    depth, seconds = int(sys.argv[1]), float(sys.argv[2])
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(512 << 20)  # up to 3.10, and where C code is in between, each call needs C stack, too
    thread = threading.Thread(target=climb, args=(depth, seconds))
    thread.start()
    thread.join()
    print(json.dumps({"depth": depth}))


if __name__ == "__main__":
    main()
