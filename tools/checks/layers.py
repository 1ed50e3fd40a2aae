"""Includes go downwards only: by the levels of the design, and by what each library of src/CMakeLists.txt links."""

from __future__ import annotations

import re
from pathlib import Path

from checks.report import Context, Report, read

# A folder may include what stands on a lower level, never a neighbour.
LEVELS = (
    ("base",),
    ("os", "memory", "nursery", "jitlog"),
    ("cpython", "native"),
    ("capture", "alloc", "heap"),
    ("remote", "sql"),
    ("profile",),
    ("debuginfo",),
    ("formats",),
    ("server",),
    ("cli", "python"),
)
LEVEL = {layer: number for number, layers in enumerate(LEVELS) for layer in layers}
# The nursery can be taken out of Plimsoll and embedded in a language's runtime: it stands on base alone.
ALONE = {"nursery": {"base"}}

# Headers for tests, by their names, and who may include them.
FOR_TESTS = re.compile(r"(^|/|_)(testing|fake)\.h$")
TESTS = re.compile(r"_(test|fuzz|bench|golden)\.cc$|(^|/|_)(testing|fake)\.(h|cc)$")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
LINKS = re.compile(r"^plimsoll_layer\((\w+)(.*?)\)\s*$", re.MULTILINE | re.DOTALL)


def linked_layers() -> dict[str, set[str]]:
    """For each library in CMake's order, the libraries it links, directly or through others."""
    text = re.sub(r"#.*", "", read(Path("src/CMakeLists.txt")))
    linked: dict[str, set[str]] = {}
    for name, body in LINKS.findall(text):
        direct = {layer for layer in re.findall(r"\bplimsoll_(\w+)", body) if layer in LEVEL}
        linked[name] = direct.union(*(linked.get(other, set()) for other in direct))
    return linked


def includes_of(text: str) -> list[str]:
    """The files of ours that a source includes, in order."""
    return INCLUDE.findall(text)


def check_layers(context: Context) -> Report:
    report = Report()
    linked = linked_layers()
    for layer, others in linked.items():
        for other in sorted(others):
            if other not in list(linked)[: list(linked).index(layer)]:
                report.fail(f"src/CMakeLists.txt: {layer} links {other}, which does not stand above it")
    count = 0
    for path in context.sources():
        if len(path.parts) < 3:
            continue
        layer = path.parts[1]
        if layer not in LEVEL:
            report.fail(f"{path}: the folder {layer} has no level in tools/checks/layers.py")
            continue
        for include in includes_of(read(path)):
            count += 1
            target = include.split("/")[0]
            if Path("src") / include not in context.files:
                report.fail(f'{path}: "{include}" is not a path below src/')
            elif FOR_TESTS.search(include) and not TESTS.search(path.name):
                report.fail(f'{path}: only tests may include "{include}"')
            elif target == layer:
                continue
            elif LEVEL.get(target, len(LEVELS)) >= LEVEL[layer] or target not in ALONE.get(layer, {target}):
                report.fail(f'{path}: {layer} must not include "{include}"')
            elif layer in linked and target not in linked[layer]:
                report.fail(f'{path}: includes "{include}", but plimsoll_{layer} does not link plimsoll_{target}')
    report.summary = f"{count} includes in {len(linked)} libraries"
    return report
