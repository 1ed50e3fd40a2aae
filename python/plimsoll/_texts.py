"""Texts of profiles and snapshots on their way to a terminal or a notebook, as ``src/cli/utf8.h`` has them: names come
from the profiled program, or from a file that somebody sent, and may hold what would drive the terminal."""

from __future__ import annotations

_CONTROLS = {code: 0x2400 + code for code in range(0x20)}
_LATE_CONTROLS = dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
#: What makes a text read otherwise than it is.
_DIRECTIONS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x61C], 0xFFFD)
_PICTURES = {**_CONTROLS, 0x7F: 0x2421, **_LATE_CONTROLS, **_DIRECTIONS, ord("\t"): ord(" ")}


def printable(text: str) -> str:
    """One line that is safe to show: control characters as their pictures, direction overrides as U+FFFD."""
    return text if text.isascii() and text.isprintable() else text.translate(_PICTURES)


def html_of(text: str) -> str:
    """Lines as HTML, each as :func:`printable` has it."""
    from html import escape  # which is looked at in notebooks only

    return escape("\n".join(map(printable, text.split("\n"))))
