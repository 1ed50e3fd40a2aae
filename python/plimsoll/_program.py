"""The program ``plimsoll``, for what only it can do."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def find() -> str:
    """Its path: beside this interpreter, else on PATH. FileNotFoundError if it is not there."""
    beside = os.path.join(sysconfig.get_path("scripts"), "plimsoll")
    program = beside if os.access(beside, os.X_OK) else shutil.which("plimsoll")
    if program is None:
        raise FileNotFoundError("the program 'plimsoll' is not installed beside this Python, nor on PATH")
    return program


def find_or_exit() -> str:
    """Likewise, for a program that can do nothing without it."""
    try:
        return find()
    except FileNotFoundError as error:
        sys.exit(f"plimsoll: {error}")
