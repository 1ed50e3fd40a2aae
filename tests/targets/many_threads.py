"""So many threads alive at once, each with work of its own: many_threads.py COUNT MILLISECONDS [OPEN_FILES]

Every thread works, waits until all others have worked, and works again.
"""

import json
import resource
import sys
import threading
import time


def work(milliseconds):
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < milliseconds * 1e6:
        sum(range(500))


def body(milliseconds, barrier, used):
    work(milliseconds)
    barrier.wait()
    work(milliseconds)
    used.append(time.thread_time_ns())


def main():
    count, milliseconds = int(sys.argv[1]), float(sys.argv[2])
    if sys.argv[3:]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), int(sys.argv[3])))
    threading.stack_size(1 << 18)
    barrier, used = threading.Barrier(count), []
    threads = [threading.Thread(target=body, args=(milliseconds, barrier, used), name=f"worker {number}")
               for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"used": sum(used), "threads": len(used)}))


if __name__ == "__main__":
    main()
