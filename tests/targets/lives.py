"""A program that is at another moment of its life all the time: lives.py GENERATIONS

Each process of it imports, starts threads, forks, and ends, one way or another; and the next one begins.
"""

import os
import subprocess
import sys
import threading

ENDS = ["return", "exit", "thread", "kill", "exec"]


def fork_and_wait():
    pid = os.fork()
    if pid == 0:
        sum(range(20_000))
        os._exit(0)
    os.waitpid(pid, 0)


def one_life(number):
    import asyncio  # noqa: F401  takes a while
    import xml.dom.minidom  # noqa: F401
    threads = [threading.Thread(target=sum, args=(range(200_000),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    fork_and_wait()
    for thread in threads:
        thread.join()
    end = ENDS[number % len(ENDS)]
    if end == "exit":
        os._exit(0)
    if end == "thread":  # one that goes on while the interpreter is being finalised
        threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)], daemon=True).start()
    if end == "kill":
        os.kill(os.getpid(), 9)
    if end == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "sum(range(200_000))"])


def main(generations):
    for number in range(generations):
        with subprocess.Popen([sys.executable, __file__, "life", str(number)], stdin=subprocess.DEVNULL) as process:
            print(process.pid, flush=True)
            if process.wait() not in (0, -9):
                sys.exit(f"life {number} has ended with {process.returncode}")


if __name__ == "__main__":
    if sys.argv[1] == "life":
        one_life(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]))
