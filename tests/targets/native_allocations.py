"""C code that allocates known numbers of bytes by malloc. What it prints: by function, bytes allocated and alive."""

import ctypes
import json
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
scale = int(sys.argv[2])
for name in ("keep", "keep_zeros", "keep_aligned", "churn", "grow", "in_threads", "free_all", "impossible"):
    getattr(library, name).restype = ctypes.c_long
    getattr(library, name).argtypes = [ctypes.c_long] * {"grow": 3, "in_threads": 3, "free_all": 0, "impossible": 0}.get(name, 2)
truth = {}


def known(allocated, live):
    truth[sys._getframe(1).f_code.co_name] = {"allocated": allocated, "live": live}


def freed():
    assert library.keep(1000 * scale, 1000) == 1000 * scale
    assert library.free_all() >= 1000 * scale
    known(1000 * 1000 * scale, 0)


def kept():
    assert library.keep(1000 * scale, 1000) == 1000 * scale
    known(1000 * 1000 * scale, 1000 * 1000 * scale)


def zeros():
    assert library.keep_zeros(500 * scale, 2400) == 500 * scale
    known(500 * 2400 * scale, 500 * 2400 * scale)


def aligned():
    assert library.keep_aligned(500 * scale, 1024) == 500 * scale
    known(500 * 1024 * scale, 500 * 1024 * scale)


def churned():
    assert library.churn(20000 * scale, 100) == 20000 * scale
    known(20000 * 100 * scale, 0)


def grown():
    assert library.grow(100 * scale, 500, 10) == 100 * scale
    known(100 * 500 * 55 * scale, 100 * 500 * 10 * scale)


def large():
    assert library.keep(3, 1 << 20) == 3
    known(3 << 20, 3 << 20)


def refused():
    for _ in range(100):
        assert library.impossible() == 1


def in_python_thread():
    assert library.keep(300 * scale, 1000) == 300 * scale
    known(300 * 1000 * scale, 300 * 1000 * scale)


# In a thread of C code there is no Python function to be named.
freed()
kept()
zeros()
aligned()
churned()
grown()
large()
refused()
thread = threading.Thread(target=in_python_thread)
thread.start()
thread.join()
assert library.in_threads(4, 500 * scale, 1000) == 4
truth[""] = {"allocated": 4 * 2 * 500 * 1000 * scale, "live": 4 * 500 * 1000 * scale}
print(json.dumps(truth))
