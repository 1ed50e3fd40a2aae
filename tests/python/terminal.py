"""A terminal for programs that draw: a pty, and as much of an emulator as `plimsoll top` needs."""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import Any, Callable, Mapping, Optional, Sequence

import harness

#: A sequence that another one follows before it is whole: terminals forget it.
CUT = re.compile(r"\x1b(\[[?0-9;]*)?(?=\x1b)")
#: Text, or one escape sequence: `ESC [ parameters letter`.
PIECES = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([^\x1b]+)|(\x1b[^\[])")


class Screen:
    """What a terminal shows, cell by cell."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.is_other = False
        self.has_cursor = True
        self.wraps = True
        self.foreign: "list[str]" = []
        #: Sequences that were cut off.
        self.cuts = 0
        self._rest = ""
        self._row = self._column = 0
        self._cells = [[" "] * columns for _ in range(rows)]

    @property
    def lines(self) -> "list[str]":
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._clear()

    def feed(self, data: str) -> None:
        data, cuts = CUT.subn("", self._rest + data)
        self.cuts += cuts
        begun = re.search(r"\x1b(\[[?0-9;]*)?$", data)
        self._rest = begun.group() if begun else ""
        for piece in PIECES.finditer(data[:len(data) - len(self._rest)]):
            if piece.group(3) is not None:
                self._write(piece.group(3))
            elif piece.group(4) is not None:
                self.foreign.append(piece.group())
            else:
                self._obey(piece.group(1), piece.group(2))

    def _clear(self) -> None:
        self._cells = [[" "] * self.columns for _ in range(self.rows)]

    def _write(self, text: str) -> None:
        for letter in text:
            if letter == "\r":
                self._column = 0
            elif letter == "\n":
                self._row = min(self._row + 1, self.rows - 1)
            elif ord(letter) < 32 or letter == "\x7f":
                self.foreign.append(letter)
            else:
                if self._row < self.rows:
                    self._cells[self._row][min(self._column, self.columns - 1)] = letter
                self._column += 1

    def _obey(self, parameters: str, letter: str) -> None:
        numbers = [int(number or 0) for number in parameters.lstrip("?").split(";")]
        if parameters == "?1049":
            self.is_other = letter == "h"
        elif parameters == "?25":
            self.has_cursor = letter == "h"
        elif parameters == "?7":
            self.wraps = letter == "h"
        elif letter == "H":
            self._row, self._column = (numbers + [1])[0] - 1, (numbers + [1])[1] - 1
        elif letter == "G":
            self._column = numbers[0] - 1
        elif letter == "K":
            if self._row < self.rows:
                self._cells[self._row][self._column:] = [" "] * (self.columns - self._column)
        elif letter == "J":
            self._clear()
        elif letter != "m":
            self.foreign.append(f"{parameters}{letter}")


class Terminal:
    """A program on a terminal of its own. For `with`: what still runs at the end is killed."""

    def __init__(self, words: Sequence[harness.Word], *, columns: int = 80, rows: int = 24,
                 env: Optional[Mapping[str, Optional[str]]] = None, **options: Any) -> None:
        self.screen = Screen(columns, rows)
        self.raw = ""
        #: Bytes that the program has written, and that were read here.
        self.received = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, self._slave = pty.openpty()
        self._set_size(columns, rows)
        self.modes_before = self._modes_at_end = self.modes()
        changes = {"TERM": "xterm-256color", "NO_COLOR": None, "COLUMNS": None, **(env or {})}
        self.process = subprocess.Popen([os.fspath(word) for word in words], stdin=self._slave, stdout=self._slave,
                                        stderr=self._slave, env=harness.environment(changes),
                                        preexec_fn=self._take_terminal, **options)

    @staticmethod
    def _take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
            signal.signal(number, signal.SIG_DFL)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for end in (self._master, self._slave):
            if end >= 0:
                os.close(end)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        self._set_size(columns, rows)
        os.kill(self.process.pid, signal.SIGWINCH)

    def modes(self) -> "list[Any]":
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._slave) if self._slave >= 0 else self._modes_at_end

    def hang_up(self) -> None:
        """Closes the window."""
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # all has been read, and nobody can write more
                raise
            return False
        self.received += len(data)
        text = self._decoder.decode(data)
        self.raw += text
        self.screen.feed(text)
        return True

    def wait_for(self, what: Callable[["Terminal"], bool]) -> None:
        """Reads what the program draws until the terminal is like that."""
        end = time.monotonic() + harness.DEADLINE / 4
        while not what(self):
            assert time.monotonic() < end, f"it never came to that; the screen is\n{self.screen.text}"
            if not self._read(0.1):
                assert self.process.poll() is None or what(self), f"it has ended:\n{self.raw[-2000:]}"

    def wait_for_text(self, *texts: str) -> None:
        """Until all of these are on the screen."""
        self.wait_for(lambda terminal: all(text in terminal.screen.text for text in texts))

    def finish(self) -> int:
        """Waits for the program's end; its exit code."""
        end = time.monotonic() + harness.DEADLINE / 4
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end; the screen is\n{self.screen.text}"
            self._read(0.05)
        # The terminal's end comes after all that was written, however long the kernel takes to hand it over.
        self._modes_at_end = self.modes()
        os.close(self._slave)
        self._slave = -1
        while self._read(harness.DEADLINE / 4):
            pass
        return self.process.returncode

    @property
    def after(self) -> str:
        """What was written after the screen was given back."""
        return self.raw.rpartition("\x1b[?1049l")[2]

    def assert_given_back(self, *, cuts: int = 0) -> None:
        """The terminal is as it was before the program began. At most so many sequences were cut off."""
        assert self.modes() == self.modes_before
        assert not self.screen.is_other
        assert self.screen.has_cursor
        assert self.screen.wraps
        assert not self.screen.foreign, self.screen.foreign
        assert self.screen.cuts <= cuts
