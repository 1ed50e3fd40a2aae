"""Says that it is there, waits for a line, and then is another program: on_command.py PROGRAM ARGUMENT..."""

import runpy
import sys

if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
