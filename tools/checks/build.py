"""The build that the checks look at: optimised as the wheel is, but with symbols, and every target configured."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

from checks.report import ROOT, Context, run

# From PyPI, into a private environment. What is not to be had there is not checked, and the report says so.
PACKAGES = ("nanobind>=2.9", "mypy", "ruff")


class BuildError(Exception):
    """The tree does not build; the message is the end of the output."""


def environment(context: Context) -> Path:
    """The interpreter of the private environment, created and filled when it is not there yet."""
    home = context.build / "venv"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    have = run([str(python), "-m", "pip", "list", "--format=freeze"]).stdout.lower()
    missing = [each for each in PACKAGES if f"{each.split('>')[0]}==" not in have]
    for each in missing:
        run([str(python), "-m", "pip", "install", "--quiet", each])
    return python


def build(context: Context, targets: list[str]) -> None:
    """Configures the build directory and builds targets in it."""
    python = environment(context)
    settings = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O3 -g -DNDEBUG",  # the wheel's Release, with symbols to look at
        "CMAKE_CXX_COMPILER": "g++",
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
        "PLIMSOLL_TESTS": "ON",
        "PLIMSOLL_BENCH": "ON",
        "PLIMSOLL_PYTHON": "ON",
        "PLIMSOLL_UNITY": "OFF",  # what is looked at are the sources one by one
        "Python_EXECUTABLE": str(python),
        "SKBUILD_SCRIPTS_DIR": "bin",
    }
    defines = [f"-D{name}={value}" for name, value in settings.items()]
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(context.build), *defines]
    compile_all = ["cmake", "--build", str(context.build), "--parallel", str(context.jobs), "--target", *targets]
    for command in (configure, compile_all):
        print(f"... {command[0]} {command[1]} {context.build.name}", file=sys.stderr, flush=True)
        result = run(command)
        if result.returncode != 0:
            raise BuildError("\n".join(result.stdout.splitlines()[-40:]))


def extension(context: Context) -> Path:
    """The Python extension of that build."""
    return next((context.build / "src" / "python").glob("_core*.so"))
