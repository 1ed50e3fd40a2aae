"""Files that only their owner can read."""

from __future__ import annotations

import os


def write_private(path: str, data: bytes) -> None:
    """Writes a file, which is made with mode 0600 if it is not there. OSError if that fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
