"""The program ``plimsoll``, for what only it can do."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import sysconfig

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Callable, NoReturn


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


def end_with(main: Callable[[], int]) -> NoReturn:
    """Ends this process as `main` does, or, at Ctrl-C, as that ends any program: it is no failure to be explained."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        sys.exit(128 + signal.SIGINT)  # it is blocked
