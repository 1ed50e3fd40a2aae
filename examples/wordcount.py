"""The classic word count, twice: naive, and in chunks on several threads.

Usage: wordcount.py TEXT

The naive version splits every line and adds up one word at a time. The chunked version reads large pieces, cut at
white space, and lets collections.Counter do the adding. A profile shows where the difference comes from.
"""

import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor


def clean(word):
    return word.strip(".,;:!?\"'()[]{}<>*#=-_/\\").lower()


def count_naive(path):
    counts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            for word in line.split():
                word = clean(word)
                if word:
                    counts[word] = counts.get(word, 0) + 1
    return counts


def chunks(path, size=1 << 20):
    """Pieces of about `size` characters that end where a word ends."""
    with open(path, encoding="utf-8") as file:
        rest = ""
        while piece := file.read(size):
            piece = rest + piece
            cut = max(piece.rfind(" "), piece.rfind("\n")) + 1
            rest = piece[cut:]
            yield piece[:cut]
        yield rest


def count_chunk(text):
    return Counter(text.split())


def count_chunked(path):
    raw = Counter()
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="counter") as pool:
        for part in pool.map(count_chunk, chunks(path)):
            raw.update(part)
    counts = Counter()
    for word, count in raw.items():  # each distinct word is cleaned once, not at every occurrence
        word = clean(word)
        if word:
            counts[word] += count
    return counts


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = []
    for count in (count_naive, count_chunked):
        start = time.perf_counter()
        results.append(count(sys.argv[1]))
        print(f"{count.__name__:14} {time.perf_counter() - start:6.2f} s, {len(results[-1])} different words")
    assert dict(results[0]) == dict(results[1]), "the two versions must agree"
    for word, count in Counter(results[0]).most_common(5):
        print(f"{count:10} {word}")


if __name__ == "__main__":
    main()
