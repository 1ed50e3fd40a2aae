"""Allocations whose bytes are known, function by function.

    python allocations.py SCALE     prints {function: {"allocated": bytes, "live": bytes}}
"""

from __future__ import annotations

import json
import sys
import threading
from itertools import repeat


def keep_small(count):
    """Blocks of 100 bytes that live on."""
    return list(map(bytes, repeat(100 - OVERHEAD, count)))


def keep_large(count):
    """Blocks of 2000 bytes, which Python's small object allocator does not serve, that live on."""
    return list(map(bytes, repeat(2000 - OVERHEAD, count)))


def churn(count):
    """Blocks of 300 bytes that live shortly."""
    for size in repeat(300 - OVERHEAD, count):
        bytes(size)


def grow(size):
    """One block that realloc makes longer, 1 MB at a time."""
    grown = bytearray()
    total = 0
    for _ in repeat(None, size):
        grown.extend(MEGABYTE)
        total += grown.__alloc__()
    return grown, total


def in_thread(count):
    kept.append(list(map(bytes, repeat(200 - OVERHEAD, count))))


OVERHEAD = sys.getsizeof(b"")  # of a bytes object beside its bytes
MEGABYTE = bytes(1_000_000)
kept = []


def main(scale):
    small = keep_small(40_000 * scale)
    large = keep_large(2_000 * scale)
    churn(20_000 * scale)
    grown, grown_bytes = grow(3 * scale)
    thread = threading.Thread(target=in_thread, args=(20_000 * scale,))
    thread.start()
    thread.join()

    # list(map(...)) cannot know its length: what the lists' growing costs is counted apart, by doing it once more.
    def growth(count):
        total, items, last = 0, [], 0
        for item in repeat(None, count):
            items.append(item)
            now = sys.getsizeof(items)
            if now != last:
                total += now - sys.getsizeof([])
                last = now
        return total

    def of(items, size):
        return {"allocated": size * len(items) + growth(len(items)), "live": size * len(items) + sys.getsizeof(items)}

    truth = {
        "keep_small": of(small, 100),
        "keep_large": of(large, 2000),
        "churn": {"allocated": 300 * 20_000 * scale, "live": 0},
        "grow": {"allocated": grown_bytes, "live": grown.__alloc__()},
        "in_thread": of(kept[0], 200),
    }
    return truth, small, large, grown


if __name__ == "__main__":
    result = main(int(sys.argv[1]))
    print(json.dumps(result[0]))
