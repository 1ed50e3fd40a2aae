"""Magics for IPython and Jupyter: ``%load_ext plimsoll``, then ``%plimsoll statement`` or ``%%plimsoll`` above a cell.

::

    %plimsoll train(model)                 one statement
    %%plimsoll -m wall -o fetch.plim       a cell: waits, too, and kept in a file
    %%plimsoll --flame                     a cell: shown as a flame graph
    %plimsoll?                             this help

The result is a :class:`plimsoll.Profile`, shown as a table; ``_`` has it for more: ``_.flamegraph()``, ``_.tree()``.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

if TYPE_CHECKING:
    from plimsoll.profiles import Profile
    from plimsoll.views import FlameGraph


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}\n{self.format_usage()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%plimsoll", add_help=False)
    parser.add_argument("-r", "--rate", type=float, default=1000.0, help="samples per second")
    parser.add_argument("-m", "--mode", default="cpu", choices=("cpu", "wall", "gil"), help="which time")
    parser.add_argument("-o", "--output", default=None, help="keep the profile in this file")
    parser.add_argument("--flame", action="store_true", help="show a flame graph, which is the result then")
    return parser


_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))\s*""")


def _split(line: str) -> "tuple[list[str], str]":
    """The options in front of a line, and the rest as it is: quotes in it are Python's."""
    words: "list[str]" = []
    rest = line.strip()
    while rest.startswith("-") or (words and _wants_value(words[-1])):
        match = _WORD.match(rest)
        if match is None:
            break
        words.append(next(group for group in match.groups() if group is not None))
        rest = rest[match.end():]
    return words, rest


def _wants_value(word: str) -> bool:
    """Whether an option's value is a word of its own: not so in ``--rate=500`` and ``-r500``."""
    if word == "--flame":
        return False
    return "=" not in word if word.startswith("--") else len(word) == 2 and word.startswith("-")


def _compiled(shell: Any, text: str) -> Any:
    """The code of a cell, in which IPython's own syntax (``!ls``, ``%time x``) is what it is in any cell, and under a
    name by which tracebacks find its lines."""
    if hasattr(shell, "transform_cell"):
        text = shell.transform_cell(text)
    name = shell.compile.cache(text) if hasattr(shell, "compile") else "<plimsoll>"
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | getattr(getattr(shell, "compile", None), "flags", 0)
    tree: Any = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    if hasattr(shell, "transform_ast"):
        tree = shell.transform_ast(tree)
    return compile(tree, name, "exec", flags, dont_inherit=True)


def record(shell: Any, line: str, cell: Optional[str] = None) -> "Union[Profile, FlameGraph, None]":
    """Runs what the magic was given in the user's namespace; the profile, or None after a wrong option."""
    import plimsoll

    try:
        words, statement = _split(line)
        options = _parser().parse_args(words)
    except _UsageError as error:
        print(error, file=sys.stderr)
        return None
    if cell is not None and statement:
        print(f"%%plimsoll takes options only, not {statement!r}: the code stands below it", file=sys.stderr)
        return None
    code = _compiled(shell, statement if cell is None else cell)
    if code.co_flags & inspect.CO_COROUTINE:
        print("%%plimsoll cannot await; write into the cell itself: with plimsoll.Profiler() as profiler: await ...",
              file=sys.stderr)
        return None
    output = os.path.expanduser(options.output) if options.output is not None else None  # no shell has done it
    with plimsoll.Profiler(output, rate_hz=options.rate, mode=options.mode) as profiler:
        exec(code, shell.user_ns)
    found = profiler.profile.begun_at(code.co_filename)  # how IPython came there is nobody's question
    return found.flamegraph() if options.flame and len(found.samples) > 0 else found


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext plimsoll``."""

    def plimsoll(line: str, cell: Optional[str] = None) -> "Union[Profile, FlameGraph, None]":
        return record(shell, line, cell)

    plimsoll.__doc__ = __doc__
    # As @no_var_expand: IPython would put values in the place of braces and dollars, which are the statement's own.
    plimsoll._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
    shell.register_magic_function(plimsoll, "line_cell", "plimsoll")
