"""A threaded, forking, importing program that does all of it all the time: soak.py SECONDS

Prints JSON: for each tenth of its life, its resident memory in bytes.
"""

import json
import os
import subprocess
import sys
import threading
import time
import types


def resident():
    with open("/proc/self/statm") as file:
        return int(file.readline().split()[1]) * os.sysconf("SC_PAGESIZE")


def burn(iterations):
    total = 0
    for i in range(iterations):
        total += i & 3
    return total


def nested(depth):
    return burn(200) if depth == 0 else nested(depth - 1)


def numbers(count):
    for i in range(count):
        yield burn(i)


def fresh_code(number):
    """A module of the moment, whose code objects die with it."""
    module = types.ModuleType(f"fresh_{number}")
    source = f"def function_{number % 50}(n):\n    return sum(i for i in range(n))\n"
    exec(compile(source, f"fresh_{number % 20}.py", "exec"), module.__dict__)
    return module.__dict__[f"function_{number % 50}"](300)


def fork_once():
    child = os.fork()
    if child == 0:
        burn(5000)
        os._exit(0)
    os.waitpid(child, 0)


def round_of_work(number):
    nested(40)
    sum(numbers(60))
    fresh_code(number)
    try:
        nested(-1)
    except RecursionError:
        pass


def worker(until, number):
    while time.monotonic() < until:
        round_of_work(number)
        thread = threading.Thread(target=burn, args=(3000,), name=f"short {number % 7}")
        thread.start()
        thread.join()
        number += 1
        time.sleep(0.002)


def main():
    seconds = float(sys.argv[1])
    began = time.monotonic()
    until = began + seconds
    threads = [threading.Thread(target=worker, args=(until, index * 1000), name=f"worker {index}") for index in range(3)]
    for thread in threads:
        thread.start()
    sizes, rounds = [], 0
    while time.monotonic() < until:
        burn(20000)
        rounds += 1
        if rounds % 20 == 0:
            fork_once()
        if rounds % 200 == 0:
            subprocess.run([sys.executable, "-c", "import json, re"], check=True)
        if time.monotonic() - began >= len(sizes) * seconds / 10:
            sizes.append(resident())
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    print(json.dumps({"resident": sizes, "rounds": rounds}))


if __name__ == "__main__":
    main()
