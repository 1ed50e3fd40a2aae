"""Starts the recording that ``plimsoll run`` asked for, before the program's first line.

``plimsoll run`` starts a plain ``python program.py``, so that nothing about the program differs from a run without it,
with this directory in front of PYTHONPATH: Python's site module imports ``sitecustomize`` from it. This file takes
itself out of the way again, starts the recording, and hands over to the sitecustomize that would have been found.
"""

import os
import sys


def _take_ourselves_out() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path_importer_cache.pop(here, None)


def _is_recorded() -> bool:
    """Whether this process has an interpreter already: its recording is of all of them.

    Found out without importing anything into this one: threading, for example, takes the thread that imports it for the
    interpreter's main thread, for which the interpreter's end waits, and which may be the one that ends it, or another.
    """
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"/plimsoll/_core." in maps.read()
    except OSError:
        return False


def _start_recording() -> None:
    try:
        from plimsoll._launch import begin
    except ImportError as error:
        print(f"plimsoll: {sys.executable} cannot import plimsoll ({error}): this process is not profiled.\n"
              f"plimsoll: install it there with: {sys.executable} -m pip install plimsoll", file=sys.stderr)
        return
    begin()


def _run_the_real_one() -> None:
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  # the program's own, if there is one
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # The import system, still busy with this file, expects to find a module under its name.
        sys.modules.setdefault("sitecustomize", ours)


if "PLIMSOLL_RUN" in os.environ:
    _take_ourselves_out()
    if not _is_recorded():
        _start_recording()
    _run_the_real_one()
