"""How many native stacks are whole: of NumPy, of C++ and of hashlib, recorded by ticks.

    python bench/native_stacks.py [--seconds 10] [--rate 1000]

Needs plimsoll in this Python, a C++ compiler, and NumPy (what is missing is left out). A stack is whole if it was
unwound to where its thread began; what others lack is told by the reasons that the recording counted.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

NUMPY = """
import time, numpy
a = numpy.random.default_rng(1).random((300, 300))
end = time.thread_time() + {seconds}
while time.thread_time() < end:
    b = a @ a
    numpy.sort(b, axis=0)
    numpy.fft.fft(b[0])
    numpy.linalg.svd(a[:60, :60])
"""

CXX = """
import ctypes, time
library = ctypes.CDLL({library!r})
end = time.thread_time() + {seconds}
while time.thread_time() < end:
    library.work()
"""

SOURCE = """
#include <algorithm>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>
static long thrown(int n) {
  try { if (n == 0) throw std::runtime_error("x"); return thrown(n - 1); } catch (const std::logic_error&) { return 0; }
}
extern "C" long work() {
  std::map<std::string, int> counts;
  std::vector<int> numbers;
  for (int i = 0; i < 2000; ++i) { counts[std::to_string(i * 7919 % 1000)]++; numbers.push_back(i * 7919 % 1009); }
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
  long sum = std::regex_search(std::string(300, 'a') + "b", std::regex("(a|b)*c?"));
  for (int i = 0; i < 20; ++i) try { sum += thrown(5); } catch (const std::exception&) { ++sum; }
  return sum + static_cast<long>(counts.size()) + numbers[5];
}
"""

HASHLIB = """
import hashlib, time
data = bytes(range(256)) * 400
names = sorted(hashlib.algorithms_available & {{"md5", "sha1", "sha256", "sha512", "blake2b", "blake2s", "sha3_256"}})
end = time.thread_time() + {seconds}
while time.thread_time() < end:
    for name in names:
        hashlib.new(name, data).digest()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 200)
"""


def measure(name: str, program: str, directory: pathlib.Path, rate: int) -> None:
    import plimsoll

    script = directory / f"{name}_work.py"
    script.write_text(program)
    path = directory / f"{name}.plim"
    command = shutil.which("plimsoll", path=str(pathlib.Path(sys.executable).parent)) or "plimsoll"
    subprocess.run([command, "run", "--quiet", "--native", "-r", str(rate), "-o", path, script], check=True)
    profile = plimsoll.Profile.open(path)
    total = len(profile.samples)
    lacking = {drop.reason: drop.count for drop in profile.drops if "native" in drop.reason}
    whole = total - sum(lacking.values())
    print(f"{name}: {whole} of {total} whole, {100 * whole / max(total, 1):.3f} %; {path.stat().st_size / total:.1f} "
          f"bytes a sample; lacking: {lacking}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        try:
            import numpy  # noqa: F401

            measure("numpy", NUMPY.format(seconds=options.seconds), directory, options.rate)
        except ImportError:
            print("numpy: is not installed here")
        if compiler := shutil.which("c++"):
            library = directory / "libwork.so"
            (directory / "work.cc").write_text(SOURCE)
            subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, directory / "work.cc"], check=True)
            measure("cxx", CXX.format(library=str(library), seconds=options.seconds), directory, options.rate)
        measure("hashlib", HASHLIB.format(seconds=options.seconds), directory, options.rate)


if __name__ == "__main__":
    main()
