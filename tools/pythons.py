#!/usr/bin/env python3
"""Finds the Python interpreters of Plimsoll's test matrix on this machine.

Interpreters are looked for in the cache directory of provide_pythons.sh, among
the versions of pyenv, and on PATH. Of several that share implementation, minor
version and threading model, one is chosen: one with headers, since the tests
compile extension modules; then one from pyenv or the cache, since those belong
to the tests alone; then the newest.

As a program it prints a table; see --help for other forms. As a module,
find_interpreters() returns the chosen interpreters in the matrix's order.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

# The matrix, in the order of the table.
MATRIX = (
    "cp39",
    "cp310",
    "cp311",
    "cp312",
    "cp313",
    "cp314",
    "cp315",
    "cp313t",
    "cp314t",
    "cp315t",
    "pypy39",
    "pypy311",
)

# What provide_pythons.sh leaves to pyenv, because no Debian suite it uses has it.
PYENV_TAGS = ("cp39", "cp310", "cp311", "cp312")
# What the stable Debian and Ubuntu have; tools/system_packages.sh installs it.
APT_PACKAGES = {"pypy39": "pypy3"}

PROBE_TIMEOUT_SECONDS = 20

# Runs inside the interpreter that is probed, which may be any Python 3.
PROBE = """
import json, os, sys, sysconfig
include = sysconfig.get_path("include")
info = sys.version_info
print(json.dumps({
    "implementation": sys.implementation.name,
    "implementation_version": ".".join(map(str, sys.implementation.version[:3])),
    "version_info": list(info),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "include": include,
    "has_headers": os.path.exists(os.path.join(include, "Python.h")),
}))
"""

# Executables that may be an interpreter of the matrix. Others of similar name,
# such as python3.14-config and the unpatched python3.14.debian, are not.
NAME = re.compile(r"python3\.\d+t?|pypy3(\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """One interpreter that runs."""

    tag: str  # such as cp314t
    implementation: str  # cpython or pypy
    version: str  # of the language, such as 3.14.0rc1
    implementation_version: str  # differs from version for PyPy
    free_threaded: bool
    path: str
    include: str  # the directory of Python.h, which may be missing
    has_headers: bool
    source: str  # cache, pyenv or PATH

    @property
    def full_version(self) -> str:
        """The version as people know it, with PyPy's own version for PyPy."""
        if self.implementation == "cpython":
            return self.version
        return f"{self.version} ({self.implementation} {self.implementation_version})"


def default_cache() -> pathlib.Path:
    """The directory that provide_pythons.sh fills by default."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "plimsoll" / "pythons"


def pyenv_root() -> pathlib.Path:
    """pyenv's directory, whether it exists or not."""
    return pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")


def named_executables(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """The executables in a directory whose name is that of an interpreter."""
    try:
        entries = sorted(directory.iterdir(), reverse=True)  # pypy3.11 before pypy3
    except OSError:  # PATH may name what does not exist or cannot be read
        return
    for entry in entries:
        if NAME.fullmatch(entry.name) and os.access(entry, os.X_OK):
            yield entry


def candidates(cache: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Every file that may be an interpreter, with the source it comes from."""
    for directory in [cache / "sid/usr/bin", *sorted(cache.glob("cpython-*/bin"))]:
        for path in named_executables(directory):
            yield "cache", path

    # python3, not python: the matrix has no Python 2.
    pyenv = pyenv_root()
    for path in sorted(pyenv.glob("versions/*/bin/python3")):
        yield "pyenv", path

    for entry in os.environ.get("PATH", "").split(os.pathsep):
        directory = pathlib.Path(entry)
        # pyenv's shims fail for every version that is not activated.
        if directory.is_absolute() and pyenv not in directory.parents:
            for path in named_executables(directory):
                yield "PATH", path


def is_virtual(path: pathlib.Path) -> bool:
    """Whether an interpreter is a virtual environment's, and so not its own."""
    return (path.parent.parent / "pyvenv.cfg").exists()


def probe(path: pathlib.Path) -> dict[str, Any] | None:
    """What an interpreter says of itself, or None if it does not work."""
    try:
        result = subprocess.run(
            [str(path), "-I", "-c", PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=True,
        )
        facts = json.loads(result.stdout)
        if isinstance(facts, dict) and "version_info" in facts:
            return facts
        reason = "it does not answer like a Python interpreter"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no message"]
        reason = f"exit status {error.returncode}: {lines[-1]}"
    except subprocess.TimeoutExpired:
        reason = f"no answer within {PROBE_TIMEOUT_SECONDS} seconds"
    except (OSError, ValueError) as error:
        reason = str(error)
    print(f"pythons.py: {path} does not work: {reason}", file=sys.stderr)
    return None


def version_text(version_info: Sequence[Any]) -> str:
    """(3, 15, 0, "candidate", 1) -> "3.15.0rc1"."""
    text = ".".join(map(str, version_info[:3]))
    level, serial = version_info[3:]
    if level == "final":
        return text
    return text + {"alpha": "a", "beta": "b", "candidate": "rc"}[level] + str(serial)


def describe(source: str, path: pathlib.Path, facts: dict[str, Any]) -> Interpreter:
    """The interpreter that a probe has found."""
    info = facts["version_info"]
    implementation = facts["implementation"]
    prefix = "cp" if implementation == "cpython" else implementation
    suffix = "t" if facts["free_threaded"] else ""
    return Interpreter(
        tag=f"{prefix}{info[0]}{info[1]}{suffix}",
        implementation=implementation,
        version=version_text(info),
        implementation_version=facts["implementation_version"],
        free_threaded=facts["free_threaded"],
        path=str(path),
        include=facts["include"],
        has_headers=facts["has_headers"],
        source=source,
    )


def find_interpreters(cache: pathlib.Path | None = None) -> list[Interpreter]:
    """The best interpreter for each tag of the matrix that this machine has."""
    seen: set[str] = set()
    best: dict[str, tuple[tuple[Any, ...], Interpreter]] = {}
    for source, path in candidates(default_cache() if cache is None else cache):
        real = os.path.realpath(path)
        if real in seen or is_virtual(path):
            continue
        seen.add(real)
        facts = probe(path)
        if facts is None:
            continue
        found = describe(source, path, facts)
        # "alpha" to "final" are in alphabetical order.
        rank = (found.has_headers, source != "PATH", facts["version_info"])
        if found.tag not in best or rank > best[found.tag][0]:
            best[found.tag] = (rank, found)
    return [best[tag][1] for tag in MATRIX if tag in best]


def missing(found: Sequence[Interpreter], cache: pathlib.Path) -> Iterator[tuple[str, str]]:
    """The tags of the matrix that were not found, each with its command."""
    script = pathlib.Path(__file__).resolve().with_name("provide_pythons.sh")
    provide = str(script)
    if cache != default_cache():
        provide += f" --dir {cache}"
    tags = {interpreter.tag for interpreter in found}
    for tag in MATRIX:
        if tag in tags:
            continue
        if tag in PYENV_TAGS:
            yield tag, f"pyenv install 3.{tag[len('cp3') :]}"
        elif tag in APT_PACKAGES:
            yield tag, f"apt-get install {APT_PACKAGES[tag]}  (as root)"
        else:
            yield tag, f"{provide}  (as root)"


def print_table(found: Sequence[Interpreter]) -> None:
    """Tag, version and path in columns."""
    width = max((len(interpreter.full_version) for interpreter in found), default=0)
    for each in found:
        note = "" if each.has_headers else "  (no headers)"
        print(f"{each.tag:<8} {each.full_version:<{width}}  {each.path}{note}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Lists the Python interpreters of the test matrix on this machine."
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    form.add_argument("--paths", action="store_true", help="print one path per line")
    form.add_argument(
        "--missing",
        action="store_true",
        help="print what was not found, and the command that provides it",
    )
    parser.add_argument(
        "--dir",
        type=pathlib.Path,
        default=default_cache(),
        help="the directory filled by provide_pythons.sh (default: %(default)s)",
    )
    options = parser.parse_args(arguments)

    found = find_interpreters(options.dir)
    if options.json:
        print(json.dumps([dataclasses.asdict(each) for each in found], indent=2))
    elif options.paths:
        for each in found:
            print(each.path)
    elif options.missing:
        for tag, command in missing(found, options.dir):
            print(f"{tag:<8} {command}")
    else:
        print_table(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
