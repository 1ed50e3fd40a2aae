"""What only Python knows of a session, for the profile; docs/format.md lists the names."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from plimsoll import _core


def in_utf8(text: str) -> str:
    """A text whose lone surrogates, which stand for bytes that are no UTF-8, are replaced: profiles are UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def facts() -> list[tuple[str, str]]:
    """Name and value of each."""
    build = "t" if not getattr(sys, "_is_gil_enabled", lambda: True)() else ""
    language = ".".join(map(str, sys.version_info[:3])) + build
    pypy = getattr(sys, "pypy_version_info", None)
    return [
        ("python", language if pypy is None else f"PyPy {'.'.join(map(str, pypy[:3]))}, Python {language}"),
        ("implementation", sys.implementation.name),
        ("executable", in_utf8(sys.executable or "")),
        ("argv", process_name()),
        ("platform", sys.platform + " " + os.uname().machine),
        ("kernel", os.uname().release),
        ("directory", _directory()),
    ]


def _directory() -> str:
    try:
        return in_utf8(os.getcwd())
    except OSError:
        return ""


def process_name() -> str:
    """The command line. Not from sys.argv, which does not exist yet when a recording starts with the interpreter."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).split("\0")[:-1]
    except OSError:
        words = [sys.executable or "python"]
    return in_utf8(" ".join(word if word and not set(word) & set(" \t\n'\"") else repr(word) for word in words))


def tell_sources(recording: _core.Recording) -> None:
    """What functions are of that no file has: cells of a notebook, doctests, code that attrs writes. Python keeps such
    texts for tracebacks, without a time of change, as no file has changed. Those of several things called the same, as
    ``<string>``, are nobody's."""
    kept = getattr(sys.modules.get("linecache"), "cache", None)
    for name, entry in list(kept.items()) if type(kept) is dict else ():
        has_no_file = type(entry) is tuple and len(entry) == 4 and entry[1] is None
        if not has_no_file or type(name) is not str or name in ("<string>", "<stdin>"):
            continue
        if type(entry[2]) is list and all(type(line) is str for line in entry[2]):
            recording.add_source(in_utf8(name), in_utf8("".join(entry[2])))


def path_with_pid(path: str, pid: str = "") -> str:
    """``app.plim`` in process 123 is ``app.123.plim``."""
    pid = pid or str(os.getpid())
    stem, dot, extension = path.rpartition(".")
    return f"{stem}.{pid}.{extension}" if dot and "/" not in extension else f"{path}.{pid}"


def path_of_child(base_path: str) -> str:
    """``app.123.plim``, and of what process 123 becomes by exec after that ``app.123-2.plim``: both are kept."""
    path, count = path_with_pid(base_path), 1
    while _is_of_this_process(path) or _is_of_this_process(path + ".vmprof"):  # what PyPy's will be made of
        count += 1
        path = path_with_pid(base_path, f"{os.getpid()}-{count}")
    return path


def _is_of_this_process(path: str) -> bool:
    """Whether a file with our number in its name was written since we began, and so by us: exec changes neither. An
    older one is of an earlier process of that number."""
    clock_step_s = 0.1  # of the kernel's clocks for files and for processes, and more
    try:
        written_s = os.stat(path).st_mtime  # there is mostly none, and nothing more to ask
        with open("/proc/self/stat", "rb") as file:
            start_ticks = int(file.read().rpartition(b")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")
        return written_s > time.time() - age_s - clock_step_s
    except OSError:
        return False
