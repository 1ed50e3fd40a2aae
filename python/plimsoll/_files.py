"""Files that only their owner can read."""

from __future__ import annotations

import os
import stat
import tempfile


def write_private(path: str, data: bytes) -> None:
    """Replaces a file, or makes it, whole or not at all, and with mode 0600, as ``plimsoll convert`` does. A symbolic
    link keeps pointing where it does; a pipe or a device is written to. OSError if that fails."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    target = os.path.realpath(path)
    descriptor, temporary = tempfile.mkstemp(prefix=os.path.basename(target) + ".", dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
