"""The side of ``plimsoll run`` that lives inside the profiled process.

``begin`` is called by ``_boot/sitecustomize.py``. The settings come in the environment variable PLIMSOLL_RUN as JSON
(see ``Settings``); they stay there only if child processes are to be recorded, too.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from plimsoll import _recording

VARIABLE = "PLIMSOLL_RUN"


def _forget_settings(settings: dict[str, Any]) -> None:
    """Leaves the environment as the program would have found it without us."""
    del os.environ[VARIABLE]
    before = settings.get("pythonpath")
    if before is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = before


def begin() -> None:
    """Starts the recording. Whatever goes wrong is said on stderr, and the program runs unprofiled."""
    try:
        settings = json.loads(os.environ[VARIABLE])
    except ValueError:
        print(f"plimsoll: the environment variable {VARIABLE} is damaged: not profiled", file=sys.stderr)
        return
    follow = bool(settings.get("children"))
    path, base_path = settings["path"], ""
    if not follow:
        _forget_settings(settings)
    elif settings.get("is_child"):
        path, base_path = _recording.path_with_pid(path), path
    else:
        os.environ[VARIABLE] = json.dumps({**settings, "is_child": True})
    try:
        _recording.start(_recording.Options(path=path, base_path=base_path, after_fork="follow" if follow else "stop",
                                            **settings["options"]))
    except Exception as error:  # the program must run, whatever happens here
        print(f"plimsoll: {error}\nplimsoll: the program runs unprofiled", file=sys.stderr)
