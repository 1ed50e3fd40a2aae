"""Runs, until SIGUSR1 tells it to sleep."""

import signal
import time
from typing import Any


def nap(*_: Any) -> None:
    time.sleep(1000)


def spin() -> None:
    print("ready", flush=True)  # in here: who hears it may tell us to sleep at once
    while True:
        pass


signal.signal(signal.SIGUSR1, nap)
spin()
