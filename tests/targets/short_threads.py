"""Many short threads: short_threads.py COUNT. Tells what they used by their own CPU clocks, from their beginning on."""

import json
import random
import sys
import threading
import time


def body(milliseconds, used):
    while time.thread_time_ns() < milliseconds * 1e6:
        sum(range(200))
    used.append(time.thread_time_ns())


def main():
    order, used = random.Random("plimsoll"), []
    for _ in range(int(sys.argv[1]) // 4):
        threads = [threading.Thread(target=body, args=(order.uniform(1, 5), used), name="short") for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(json.dumps({"used": sum(used), "threads": len(used)}))


if __name__ == "__main__":
    main()
