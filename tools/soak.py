"""Records a program that threads, forks, imports and raises for a long time, and says whether anything grew.

    python3 tools/soak.py --minutes 60 --rates 1000 10000      with the plimsoll of .venv (make demo installs it)
    python3 tools/soak.py --bin build/matrix/cp314/bin         with another one

Fails if the program or the recording fails, or if the program's memory has grown by more than 4 MB from the middle of
its life to its end. How many bytes a sample takes is told.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "targets" / "soak.py"
GROWTH = 4 << 20  # bytes, over half of the run: what allocators do, not what leaks do


def soak(bin_: Path, rate: int, seconds: float, directory: Path) -> bool:
    out = directory / f"soak-{rate}.plim"
    command = [str(bin_ / "plimsoll"), "run", "-r", str(rate), "-o", str(out), str(PROGRAM), str(seconds)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{rate} Hz: exit code {result.returncode}\n{result.stderr}")
        return False
    sizes = json.loads(result.stdout)["resident"]
    growth = sizes[-1] - sizes[len(sizes) // 2]
    ask = [str(bin_ / "plimsoll"), "info", "--json", str(out)]
    told = subprocess.run(ask, capture_output=True, text=True, check=True)
    info = json.loads(told.stdout)
    samples = info["session"]["samples"]
    per_sample = out.stat().st_size / max(samples, 1)
    print(f"{rate} Hz: {samples} samples, {per_sample:.2f} bytes a sample, resident {sizes[0] >> 10} kB at first, "
          f"{sizes[len(sizes) // 2] >> 10} kB in the middle, {sizes[-1] >> 10} kB at the end")
    print("    " + "\n    ".join(result.stderr.strip().splitlines()), flush=True)
    return bool(growth <= GROWTH)


def main() -> int:
    parser = argparse.ArgumentParser(description="A long recording of a program that does everything all the time.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rates", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--bin", type=Path, default=ROOT / ".venv" / "bin", help="where plimsoll is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-soak-") as directory:
        results = [soak(options.bin, rate, options.minutes * 60, Path(directory)) for rate in options.rates]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
