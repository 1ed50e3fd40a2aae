"""``python -m plimsoll``: the command ``plimsoll`` for this very interpreter."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    """Replaces this process by the ``plimsoll`` program, which runs programs with this interpreter."""
    beside = os.path.join(sysconfig.get_path("scripts"), "plimsoll")
    program = beside if os.access(beside, os.X_OK) else shutil.which("plimsoll")
    if program is None:
        sys.exit("plimsoll: the program 'plimsoll' is not installed beside this Python, nor on PATH")
    words = sys.argv[1:]
    if words[:1] == ["run"]:
        words[1:1] = ["--python", sys.executable]
    os.execv(program, ["plimsoll", *words])


if __name__ == "__main__":
    main()
