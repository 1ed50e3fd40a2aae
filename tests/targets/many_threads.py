"""So many threads alive at once, each with work of its own: many_threads.py COUNT MILLISECONDS [OPEN_FILES]

Every thread works, waits until all others have worked, and works again. Prints the CPU nanoseconds that they used up to
the end of their work, and from their first to their last: what Python and the system do to end a thread takes a
twentieth of two milliseconds.
"""

import json
import pathlib
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


def used_by_the_dead():
    """CPU nanoseconds of threads that have ended: those of the process without those of whoever lives."""
    living = [int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path("/proc/self/task").iterdir()]
    return time.process_time_ns() - sum(living)


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
        while pathlib.Path(f"/proc/self/task/{thread.native_id}").exists():  # one that is joined has yet to end
            time.sleep(0.0001)
    print(json.dumps({"used": sum(used), "used_in_all": used_by_the_dead(), "threads": len(used)}))


if __name__ == "__main__":
    main()
