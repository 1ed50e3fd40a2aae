"""The side of ``plimsoll run`` that lives inside the profiled process.

``begin`` is called by ``_boot/sitecustomize.py``. The settings come in the environment variable PLIMSOLL_RUN, as lines
``name=value``; they stay there only if child processes are to be recorded, too. Nothing is imported here that Python
has not imported by itself when it starts, as far as that is possible: the program should find what it would find.
"""

from __future__ import annotations

import os
import sys

from plimsoll import _session_facts

VARIABLE = "PLIMSOLL_RUN"


def _settings(text: str) -> dict[str, str]:
    """The settings as src/cli/run.cc has written them. ValueError if they are not."""
    lines = [line.split("=", 1) for line in text.split("\n")[:-1]]
    return {name: "\\".join(part.replace("\\n", "\n") for part in value.split("\\\\")) for name, value in lines}


def _forget_settings(settings: dict[str, str]) -> None:
    """Leaves the environment as the program would have found it without us."""
    del os.environ[VARIABLE]
    if "pythonpath" in settings:
        os.environ["PYTHONPATH"] = settings["pythonpath"]
    else:
        os.environ.pop("PYTHONPATH", None)


def begin() -> None:
    """Starts the recording. Whatever goes wrong is said on stderr, and the program runs unprofiled."""
    try:
        settings = _settings(os.environ[VARIABLE])
        path, base_path = settings.pop("path"), ""
    except (KeyError, ValueError):
        print(f"plimsoll: the environment variable {VARIABLE} is damaged: not profiled", file=sys.stderr)
        return
    follow = bool(settings.pop("children", ""))
    if not follow:
        _forget_settings(settings)
    elif settings.pop("is_child", ""):
        path, base_path = _session_facts.path_of_child(path), path
    else:
        os.environ[VARIABLE] += "is_child=1\n"
    settings.pop("pythonpath", None)
    try:
        _start(path, base_path, settings, follow)
    except Exception as error:  # the program must run, whatever happens here
        print(f"plimsoll: {error}\nplimsoll: the program runs unprofiled", file=sys.stderr)


def _start(path: str, base_path: str, settings: dict[str, str], follow: bool) -> None:
    if sys.implementation.name == "pypy":
        from plimsoll import _pypy

        _pypy.start(path, settings, _session_facts.path_with_pid(base_path or path, "%d") if follow else "")
        return
    from plimsoll import _recording

    if settings.pop("jitlog", ""):
        print("plimsoll: --jitlog is for PyPy: this Python has none", file=sys.stderr)
    options = _recording.Options(path=path, base_path=base_path, after_fork="follow" if follow else "stop")
    _recording.start(options.with_texts(settings))
