#!/usr/bin/env python3
"""Prints what one interpreter says of the places of its own instructions.

The output is one entry of src/cpython/line_table_cases.h for each function
below; run it with each interpreter of the matrix, from 3.9 on, to make that
file anew:

    (for each python) python tools/line_table_cases.py

An entry has the bytes of the line table and, wherever it changes, the place of
the instruction at a byte offset, as CPython itself decodes the table: the line
from PyCode_Addr2Line, the column from co_positions() (3.11 and later; counted
from 1 here). 0 stands for "none".
"""

import ctypes
import sys
import textwrap

WIDTH = 100


def flow_source():
    """Loops, handlers, calls over several lines: lines go forth and back."""
    return '''
def flow(items, limit):
    total = 0
    for item in items:
        try:
            if item > limit:
                continue
            total += max(
                item,
                len(str(item)),
                limit)
        except (TypeError,
                ValueError) as error:
            total -= 1
            raise RuntimeError(
                "bad item") from error
        finally:
            total += 1
    return [
        value
        for value in range(total)
        if value
    ]
'''


def gaps_source():
    """Gaps of more than 127 and 255 lines, and a column beyond 255."""
    return (
        "def gaps(a):\n"
        + "    b = a\n"
        + "\n" * 130
        + "    c = b\n"
        + "\n" * 300
        + "    d = (a,"
        + "\n" * 140
        + " " * 20
        + "b)\n"
        + "    return "
        + " " * 300
        + "(c + d + a.attribute)\n"
    )


def function_of(source, name):
    namespace = {}
    exec(compile(source, "<cases>", "exec"), namespace)
    return namespace[name].__code__


def places_of(code):
    """(line, column) of each 2-byte unit of the bytecode; 0 = none."""
    addr2line = ctypes.pythonapi.PyCode_Addr2Line
    addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
    columns = None
    if sys.version_info >= (3, 11):
        columns = [0 if at[2] is None else at[2] + 1 for at in code.co_positions()]
    places = []
    for unit in range(len(code.co_code) // 2):
        line = max(addr2line(code, unit * 2), 0)
        column = columns[unit] if columns and line else 0
        places.append((line, column))
    return places


def changes_of(places):
    text = []
    for unit, place in enumerate(places):
        if unit == 0 or place != places[unit - 1]:
            text.append("%d=%d:%d" % (unit * 2, place[0], place[1]))
    return " ".join(text)


def quoted(text):
    lines = textwrap.wrap(text, WIDTH)
    return "\n".join('     "%s%s"' % (line, "" if line is lines[-1] else " ") for line in lines)


def print_entry(code):
    table = code.co_lnotab if sys.version_info < (3, 10) else code.co_linetable
    version = "%d.%d" % sys.version_info[:2]
    size = len(code.co_code)
    print('    {"%s", "%s", %d, %d,' % (version, code.co_name, code.co_firstlineno, size))
    print(quoted(table.hex(" ")) + ",")
    print(quoted(changes_of(places_of(code))) + "},")


def main():
    print_entry(function_of(flow_source(), "flow"))
    print_entry(function_of(gaps_source(), "gaps"))


if __name__ == "__main__":
    main()
