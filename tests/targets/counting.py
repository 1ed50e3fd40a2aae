"""Counts in a thread for as long as its standard input is open; says which thread as one line of JSON."""

import json
import os
import sys
import threading


def count():
    number = twice = 0
    while True:
        number += 1
        twice = 2 * number


thread = threading.Thread(target=count, daemon=True)
thread.start()
print(json.dumps({"pid": os.getpid(), "tid": thread.native_id}), flush=True)
sys.stdin.read()
