"""Limits of memory that tests give themselves, for :mod:`plimsoll.pytest_plugin`: what of a test's call is too much.

Only loaded with ``pytest --plimsoll-limits``.
"""

from __future__ import annotations

import gc
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generator

import pytest

from plimsoll import UnsupportedError
from plimsoll.profiler import Profiler

if TYPE_CHECKING:
    from plimsoll.profiles import Profile
    from plimsoll.pytest_plugin import Recorder
    from plimsoll.rows import Function

_MOST_ROWS = 8
_UNHELD = "this test could not be held to its limits of memory: "
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
          "TIB": 1 << 40, "B": 1, "KB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9, "TB": 10 ** 12}


def bytes_of(size: "int | str") -> int:
    """A size as the command takes it: ``24000000``, ``"24 MB"`` (of 1000), ``"24M"`` or ``"24 MiB"`` (of 1024)."""
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", size.strip()) if isinstance(size, str) else None
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"{size!r} is no size: it is a number of bytes, or a text such as '24 MB' or '512 KiB'")
    return round(float(match[1]) * _UNITS[match[2].upper()])


def text_of(size: float) -> str:
    """Bytes as people read them: ``24 MB``, ``1.25 kB``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size / factor:.0f} {unit}"
    return f"{size:.0f} bytes"


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _is_ours(function: "Function") -> bool:
    """Whether it is what a recording needs, and no part of the test."""
    return function.file.startswith(_OURS)


@dataclass(frozen=True)
class Limit:
    """Of the bytes in a view of the memory that was recorded while a test was called."""

    view: str
    bytes: int
    #: How often the test is called beforehand, so that what it keeps once, such as a cache, is no leak.
    warmups: int = 0

    def complaint(self, profile: "Profile") -> str:
        """What to say of a profile that has more; empty if it has not."""
        memory = profile.memory(self.view)
        used = memory.all.bytes - sum(row.own.bytes for row in memory.rows if _is_ours(row.function))
        if used <= self.bytes:
            return ""
        said = f"had {text_of(used)} in use at a time" if self.view == "peak" else f"left {text_of(used)} behind"
        lines = [f"This test {said}, its limit is {text_of(self.bytes)}. By functions:"]
        rows = [row for row in memory.rows if row.own.bytes > 0 and not _is_ours(row.function)]
        lines += [f"{text_of(row.own.bytes):>10}  {row.function}" for row in rows[:_MOST_ROWS]]
        if len(rows) > _MOST_ROWS:
            rest = rows[_MOST_ROWS:]
            lines.append(f"{text_of(sum(row.own.bytes for row in rest)):>10}  {len(rest)} more")
        return "\n".join(lines)


def limit_memory(size: "int | str") -> Limit:
    """What a marker of this name says: so much may be in use at a time."""
    return Limit("peak", bytes_of(size))


def limit_leaks(size: "int | str", *, warmups: int = 0) -> Limit:
    """What a marker of this name says: so much may be left behind."""
    if not isinstance(warmups, int) or warmups < 0:
        raise ValueError(f"{warmups!r} is no number of warmups")
    return Limit("live", bytes_of(size), warmups)


def limits_of(item: "pytest.Item") -> "list[Limit]":
    """The limits that a test has. It fails if a marker has what it does not take."""
    limits, wrong = [], ""
    for limit in (limit_memory, limit_leaks):
        marker = item.get_closest_marker(limit.__name__)
        if marker is None:
            continue
        try:
            limits.append(limit(*marker.args, **marker.kwargs))
        except (TypeError, ValueError) as error:
            wrong = f"@pytest.mark.{limit.__name__}: {error}"
    if wrong:
        raise pytest.fail.Exception(wrong, pytrace=False)
    return limits


class LimitKeeper:
    """Records the calls of tests that have limits, each by itself, and lets those fail that exceed them."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder

    def pytest_runtest_call(self, item: "pytest.Item") -> "Generator[None, Any, None]":
        limits = limits_of(item)
        if not limits:
            yield
            return
        for _ in range(max(limit.warmups for limit in limits)):
            item.runtest()
        profiler = self._start(item)
        process = os.getpid()
        outcome = yield
        if os.getpid() != process:  # the child of a test that forks has no part in it
            return
        complaints = self._complaints(item, limits, profiler)
        if complaints and outcome.excinfo is None:
            _let_fail(outcome, pytest.fail.Exception("\n".join(complaints), pytrace=False))

    def _start(self, item: "pytest.Item") -> Profiler:
        options = {**self._recorder.options, "alloc_bytes": 0, "alloc_exact": True, "native_memory": True}
        gc.collect()  # what tests before have left is freed by now
        try:
            return Profiler(self._recorder.path_for(item), **options).start()
        except (OSError, ValueError, UnsupportedError) as error:
            said = str(error)
        raise pytest.fail.Exception(f"{_UNHELD}{said}", pytrace=False)

    def _complaints(self, item: "pytest.Item", limits: "list[Limit]", profiler: Profiler) -> "list[str]":
        if not profiler.is_active:
            return [f"{_UNHELD}it has ended the recording"]
        gc.collect()  # cycles are no leaks
        try:
            profile = profiler.stop()
        except (OSError, ValueError) as error:  # a full disk, for example
            return [f"{_UNHELD}{error}"]
        self._recorder.has_written(item)
        return [complaint for limit in limits if (complaint := limit.complaint(profile))]


def _let_fail(outcome: Any, error: BaseException) -> None:
    """What a wrapper raises is warned of by pluggy, which before 1.1 knows no other way to say it."""
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:
        raise error


# Inside of other wrappers, whose memory is none of the test's.
pytest.hookimpl(hookwrapper=True, trylast=True)(LimitKeeper.pytest_runtest_call)
