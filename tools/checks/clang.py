"""clang-format, clang-tidy, and clang itself for what only it builds."""

from __future__ import annotations

import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checks.layers import includes_of
from checks.report import ROOT, Context, Report, read, run

# Debian 12's. Another version formats a few places differently, and knows other checks.
CLANG_VERSION = "14"

# Tests are held to the compiler's warnings only: the macros of GoogleTest alone break a dozen checks.
NOT_FOR_TIDY = re.compile(r"_(test|fuzz|bench|golden)\.cc$")


def tool(name: str) -> tuple[str, str]:
    """A tool of the wanted version, or of any; empty if there is none. With its version."""
    for command in (f"{name}-{CLANG_VERSION}", name):
        try:
            found = re.search(r"version (\d+)", run([command, "--version"]).stdout)
        except OSError:
            continue
        if found:
            return command, found[1]
    return "", ""


def check_format(context: Context) -> Report:
    """Every source is as clang-format writes it; with --fix it is made so."""
    report = Report()
    command, version = tool("clang-format")
    if version != CLANG_VERSION:
        report.warn(f"not checked: needs clang-format {CLANG_VERSION}, found {version or 'none'}")
        return report
    sources = [str(path) for path in context.sources()]
    if context.fix:
        run([command, "-i", *sources])
    output = run([command, "--dry-run", *sources]).stdout
    wrong = sorted({line.split(":")[0] for line in output.splitlines() if "clang-format-violations" in line})
    for path in wrong:
        report.fail(f"{path}: not formatted (clang-format -i {path})")
    report.summary = f"{len(sources)} files"
    return report


class Tidy:
    """clang-tidy with a memory: looks at a file again only if it, a header of ours in it, or the rules have changed."""

    def __init__(self, context: Context, command: str) -> None:
        self._context = context
        self._command = command
        self._memory = context.build / "tidy"
        self._memory.mkdir(parents=True, exist_ok=True)
        self._rules = read(Path(".clang-tidy")) + run([command, "--version"]).stdout
        self._texts: dict[Path, str] = {}

    def _text(self, path: Path) -> str:
        if path not in self._texts:
            self._texts[path] = read(path)
        return self._texts[path]

    def _key(self, path: Path, arguments: str) -> str:
        seen: set[Path] = set()
        pending = [path]
        while pending:
            each = pending.pop()
            if each in seen or not (ROOT / each).is_file():
                continue
            seen.add(each)
            pending.extend(Path("src") / include for include in includes_of(self._text(each)))
        parts = [self._rules, arguments, *(f"{each}\n{self._text(each)}" for each in sorted(seen))]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def findings(self, path: Path, arguments: str) -> list[str]:
        """What is wrong with one file, a line each."""
        remembered = self._memory / f"{str(path).replace('/', '-')}.json"
        key = self._key(path, arguments)
        if remembered.exists():
            memory = json.loads(remembered.read_text())
            if memory["key"] == key:
                return [str(line) for line in memory["found"]]
        # GCC's flags are in the compile commands; clang need not know all of them.
        command = [self._command, "--quiet", "-p", str(self._context.build), "--extra-arg=-Wno-unknown-warning-option"]
        result = run([*command, str(path)])
        found = [line.replace(f"{ROOT}/", "") for line in result.stdout.splitlines()
                 if re.search(r": (error|warning): |^error: ", line)]
        if result.returncode != 0 and not found:
            return [f"{path}: {(result.stdout.strip().splitlines() or ['clang-tidy failed'])[-1]}"]
        remembered.write_text(json.dumps({"key": key, "found": found}))
        return found


def check_tidy(context: Context) -> Report:
    """clang-tidy finds nothing."""
    report = Report()
    command, version = tool("clang-tidy")
    if version != CLANG_VERSION:
        report.warn(f"not checked: needs clang-tidy {CLANG_VERSION}, found {version or 'none'}")
        return report
    commands = json.loads((context.build / "compile_commands.json").read_text())
    arguments = {Path(each["file"]): str(each["command"]) for each in commands}
    chosen = [path for path in context.sources(".cc") if not NOT_FOR_TIDY.search(path.name)]
    unbuilt = [path for path in chosen if ROOT / path not in arguments]
    for path in unbuilt:
        report.warn(f"{path}: not looked at, no library is built from it")
    tidy = Tidy(context, command)
    with ThreadPoolExecutor(context.jobs) as pool:
        built = [path for path in chosen if path not in unbuilt]
        for found in pool.map(lambda path: tidy.findings(path, arguments[ROOT / path]), built):
            for line in found:
                if line not in report.failures:  # a header's findings come with every file that includes it
                    report.fail(line)
    report.summary = f"{len(chosen) - len(unbuilt)} files"
    return report


def check_fuzzers(context: Context) -> Report:
    """The fuzzers compile, of which no build but their own has any."""
    report = Report()
    command, version = tool("clang++")
    if not version:
        report.warn("not checked: needs clang++")
        return report
    fuzzers = [path for path in context.sources(".cc") if path.name.endswith("_fuzz.cc")]
    compile_only = [command, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Isrc"]
    with ThreadPoolExecutor(context.jobs) as pool:
        for path, result in zip(fuzzers, pool.map(lambda path: run([*compile_only, str(path)]), fuzzers)):
            if result.returncode != 0:
                errors = [line for line in result.stdout.splitlines() if "error: " in line]
                report.fail(errors[0] if errors else f"{path}: does not compile")
    report.summary = f"{len(fuzzers)} files"
    return report
