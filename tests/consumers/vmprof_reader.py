"""Gives profiles in vmprof's format to vmprof's own reader, and compares its trees with ours.

    python vmprof_reader.py PLIMSOLL FILE...

Runs where vmprof is installed (CPython 3.9 to 3.11: pip install vmprof). Each FILE is any profile that Plimsoll reads;
`PLIMSOLL convert -f vmprof` writes it, vmprof reads that, and `PLIMSOLL show --json` says what must be found: the same
functions below each other, with the same share of the samples. A FILE in vmprof's format is also read by vmprof as it is,
and must hold as many samples before and after.
"""

import json
import os
import subprocess
import sys
import tempfile

from vmprof.profiler import read_profile
from vmprof.reader import AssemblerCode


def plimsoll(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True).stdout


def vmprof_tree(path):
    """{names of functions, outermost first: samples that ended there}, direct recursion taken once as vmprof does."""
    stats = read_profile(path)
    totals = {}
    for trace, _weight, _thread, _memory in stats.profiles:
        names = []
        for address in trace:
            if isinstance(address, AssemblerCode) or address <= 0:
                continue
            name = stats.adr_dict.get(address, "?").split(":", 2)[1]
            if not names or names[-1] != name:
                names.append(name)
        totals[tuple(names)] = totals.get(tuple(names), 0) + 1
    return totals, stats


def our_tree(program, path):
    """The same, from Plimsoll: times in place of samples."""
    nodes = json.loads(plimsoll(program, "show", path, "tree", "--json", "--no-fold"))["tree"]
    totals, paths = {}, []
    for node in nodes:  # parents come before their children
        above = () if node["parent"] is None else paths[node["parent"]]
        name = node["function"]
        paths.append(above if above[-1:] == (name,) else (*above, name))
        totals[paths[-1]] = totals.get(paths[-1], 0) + node["self_ns"]
    return {names: ns for names, ns in totals.items() if ns}


def check(program, path, directory):
    converted = os.path.join(directory, "converted.vmprof")
    plimsoll(program, "convert", path, "-f", "vmprof", "-o", converted)
    theirs, stats = vmprof_tree(converted)
    ours = our_tree(program, path)
    samples, time = sum(theirs.values()), sum(ours.values())
    failures = [f"{';'.join(names)}: {theirs.get(names, 0)} of {samples} samples, {ours.get(names, 0)} of {time} ns"
                for names in sorted({*theirs, *ours})
                if abs(theirs.get(names, 0) / samples - ours.get(names, 0) / time) > 1.5 / samples]
    try:
        original = read_profile(path)
        if len(original.profiles) != samples:
            failures.append(f"{len(original.profiles)} samples before, {samples} after")
    except Exception:  # not one of vmprof's: its reader has no error of its own for that
        original = None
    print(f"{'FAIL' if failures else 'ok  '} {os.path.basename(path)} in vmprof: {samples} samples, {len(theirs)} stacks")
    for failure in failures[:20]:
        print("      ", failure)
    return not failures


def main(program, *paths):
    with tempfile.TemporaryDirectory() as directory:
        results = [check(program, path, directory) for path in paths]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
