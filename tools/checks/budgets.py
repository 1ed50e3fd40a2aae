"""The budgets of size, and the rules that a look at the text can hold: version tests, comments above types."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from checks.cpp import Function, Type, definitions, has_comment
from checks.layers import includes_of
from checks.report import Context, Report, read

# Warn above the first number, fail above the second.
FILE_LINES = (400, 700)
FUNCTION_LINES = (40, 80)
OWN_INCLUDES = (8, 12)

# Programs to be profiled: what is odd about them, long functions included, is their purpose.
PROFILED = ("tests", "targets")

# The headers of C-API twins, the only places that may know a version when compiling.
VERSION_HEADERS = ("src/python/compat.h", "src/python/object_compat.h", "src/cpython/compat.h")
VERSION_TEST = re.compile(
    r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b.*\b(PY_(?:VERSION_HEX|MAJOR_VERSION|MINOR_VERSION|MICRO_VERSION)"
    r"|Py_GIL_DISABLED|Py_LIMITED_API|Py_DEBUG|PYPY_VERSION)\b",
    re.MULTILINE,
)


def check_sizes(context: Context) -> Report:
    """Lines of a file, lines of a function, and how many files of ours a file includes."""
    report = Report()
    functions = 0
    for path in [*context.sources(), *python_files(context)]:
        text = read(path)
        report.judge(text.count("\n"), FILE_LINES, f"{path}: {text.count(chr(10))} lines")
        if path.parts[:2] == PROFILED:
            continue
        if path.suffix == ".py":
            found = python_functions(text)
        else:
            found = [each for each in definitions(text) if isinstance(each, Function)]
            includes = len(includes_of(text))
            report.judge(includes, OWN_INCLUDES, f"{path}: includes {includes} files of ours")
        functions += len(found)
        for each in found:
            report.judge(each.lines, FUNCTION_LINES, f"{path}:{each.first_line}: {each.name} has {each.lines} lines")
    report.summary = f"{functions} functions"
    return report


def python_files(context: Context) -> list[Path]:
    """The package, the tools, the tests and the examples."""
    return [path for path in context.files if path.suffix == ".py"]


def python_functions(text: str) -> list[Function]:
    """The functions of a Python file, those in classes and in functions, too."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return [Function(node.name, node.lineno, node.end_lineno or node.lineno) for node in found]


def check_version_tests(context: Context) -> Report:
    """What differs between versions of Python is data, or a twin in compat.h; never an #if elsewhere."""
    report = Report()
    for path in context.sources():
        if str(path) in VERSION_HEADERS:
            continue
        text = read(path)
        for match in VERSION_TEST.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            report.fail(f"{path}:{line}: tests {match[1]}: only {' and '.join(VERSION_HEADERS)} may")
    report.summary = "no version test outside compat.h" if not report.failures else ""
    return report


def check_type_comments(context: Context) -> Report:
    """Every type with a name that a header defines says in a comment directly above what it is."""
    report = Report()
    count = 0
    for path in context.sources(".h"):
        text = read(path)
        lines = text.splitlines()
        for each in definitions(text):
            if isinstance(each, Type) and each.name:
                count += 1
                if not has_comment(lines, each.line):
                    report.fail(f"{path}:{each.line}: {each.name} has no comment directly above it")
    report.summary = f"{count} types"
    return report
