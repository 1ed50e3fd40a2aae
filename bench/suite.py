"""What recording allocations costs the programs of pyperformance, plainly and recorded, in turn.

    pip install pyperformance
    python bench/suite.py [--rounds 5] [--distances 512K] [--only nbody json]      with an interpreter that has plimsoll

Those of its benchmarks that need nothing but the standard library. Each round runs each way of each of them once, in a
random order, as pyperf's worker, which is one process. Time is CPU time, of all threads, the profiler's among them;
told is the median of a way's time divided by plain Python's in the same round, and the geometric mean of all
benchmarks. Ticks of CPU time come once a second, so that what is seen is the cost of allocations.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from allocations import recorded

BENCHMARKS = """
argparse:many_optionals async_generators async_tree:none barnes_hut base64 chaos comprehensions coroutines
decimal_factorial decimal_pi deepcopy deltablue fannkuch float gc_collect gc_traversal generators go hexiom json_dumps
json_loads logging mdp meteor_contest nbody nqueens pathlib pickle:pickle pickle:unpickle pickle:pickle_dict pidigits
pprint pyflate raytrace regex_compile regex_dna regex_effbot regex_v8 richards richards_super scimark spectral_norm
sqlite_synth telco typing_runtime_protocols unpack_sequence xml_etree
""".split()
# pyperf asks for the time that has passed; other programs of a shared machine have a part in that.
DRIVER = """
import runpy, sys, time
time.perf_counter = time.process_time
del sys.argv[0]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ENOUGH_SECONDS = 0.4  # of work in a run of a benchmark
VALUES = 3


class Suite:
    """The benchmarks, and the ways to run them."""

    def __init__(self, directory: Path, distances: "list[str]") -> None:
        spec = importlib.util.find_spec("pyperformance")
        if spec is None or spec.origin is None:
            sys.exit(f"pyperformance is not installed: {sys.executable} -m pip install pyperformance")
        self.programs = Path(spec.origin).parent / "data-files" / "benchmarks"
        self.directory = directory
        self.driver = directory / "driver.py"
        self.driver.write_text(DRIVER, encoding="utf-8")
        plimsoll = recorded(str(directory))
        self.ways = {"plain": [sys.executable], "again": [sys.executable], "ticks only": plimsoll,
                     **{f"--alloc={distance}": [*plimsoll, f"--alloc={distance}"] for distance in distances}}

    def run(self, benchmark: str, way: str, loops: int, values: int) -> "tuple[dict[str, float], float]":
        """Seconds of each thing that a benchmark measures, and those of the whole process."""
        name, _, argument = benchmark.partition(":")
        told = self.directory / "told.json"
        told.unlink(missing_ok=True)
        command = [*self.ways[way], str(self.driver), str(self.programs / f"bm_{name}" / "run_benchmark.py"),
                   "--worker", "-l", str(loops), "-w", "1", "-n", str(values), "-o", str(told), *argument.split()]
        before = os.times()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, cwd=self.directory)
        after = os.times()
        answer = json.loads(told.read_text(encoding="utf-8"))
        found = {}
        for one in answer["benchmarks"]:
            label = one.get("metadata", {}).get("name") or answer["metadata"]["name"]
            found[label] = statistics.mean(one["runs"][0]["values"])
        return found, after.children_user + after.children_system - before.children_user - before.children_system

    def loops_of(self, benchmark: str) -> int:
        """So many that a run takes long enough to be measured."""
        loops = 1
        _, least = self.run(benchmark, "plain", loops, 1)
        while True:
            _, seconds = self.run(benchmark, "plain", loops, 1)
            if seconds - least > ENOUGH_SECONDS / VALUES or loops >= 1 << 20:
                return loops
            loops *= 2


def measure(suite: Suite, rounds: int, chosen: "list[str]") -> None:
    loops = {}
    for benchmark in chosen:
        try:
            loops[benchmark] = suite.loops_of(benchmark)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{benchmark}: does not run here: {error}", file=sys.stderr)
    times: "dict[tuple[str, str], list[float]]" = {}
    for turn in range(rounds):
        order = [(benchmark, way) for benchmark in loops for way in suite.ways]
        random.shuffle(order)
        for benchmark, way in order:
            for label, seconds in suite.run(benchmark, way, loops[benchmark], VALUES)[0].items():
                times.setdefault((label, way), []).append(seconds)
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
    if not times:
        sys.exit("no benchmark ran")
    tell(list(suite.ways), times)


def tell(ways: "list[str]", times: "dict[tuple[str, str], list[float]]") -> None:
    labels = sorted({label for label, _ in times})
    ratios = {(label, way): statistics.median(a / b for a, b in zip(times[label, way], times[label, "plain"]))
              for label in labels for way in ways}
    print(f"{sys.version.split()[0]}: CPU time as a multiple of plain Python's")
    print(f"{'':30}" + "".join(f"{way:>14}" for way in ways[1:]))
    for label in labels:
        print(f"{label:30}" + "".join(f"{ratios[label, way]:14.3f}" for way in ways[1:]))
    print(f"{'geometric mean':30}"
          + "".join(f"{statistics.geometric_mean(ratios[label, way] for label in labels):14.3f}" for way in ways[1:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--distances", nargs="*", default=["512K"])
    parser.add_argument("--only", nargs="+", default=BENCHMARKS, metavar="BENCHMARK")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        measure(Suite(Path(scratch), options.distances), options.rounds, options.only)
