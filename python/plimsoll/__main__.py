"""``python -m plimsoll``: the command ``plimsoll`` for this very interpreter."""

import os
import sys

from plimsoll import _program


def main() -> None:
    """Replaces this process by the ``plimsoll`` program, which runs programs with this interpreter."""
    words = sys.argv[1:]
    if words[:1] == ["run"]:
        words[1:1] = ["--python", sys.executable]
    os.execv(_program.find(), ["plimsoll", *words])


if __name__ == "__main__":
    main()
