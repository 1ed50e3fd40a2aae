"""Every variable that outlives a function and can change stands, with its reason, on the list docs/design/globals.md.

The list is held against the object files: what the compiler put into a writable section, not what a pattern finds in
the source. A constant that is computed when the program starts is in such a section, too, and is to be listed or made
constexpr.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from checks.report import ROOT, Context, Report, read, run

LIST = Path("docs/design/globals.md")
OBJECTS = ("src/CMakeFiles/plimsoll*.dir/**/*.o", "src/python/CMakeFiles/_core.dir/*.cc.o")
# objdump -t: value, flags, section, size, name. Inline variables, which are of a header, are unique ("u").
SYMBOL = re.compile(r"^[0-9a-f]+ (.{7}) (\.(?:data|bss|tdata|tbss)\S*)\s+[0-9a-f]+ (?:\.hidden )?(.+)$", re.MULTILINE)
OURS = re.compile(r"^(?:plimsoll::.*|[^:]*)$")  # of our namespace or of none
NOT_VARIABLES = re.compile(r"^(?:guard variable for|vtable for|typeinfo|construction vtable|VTT for|\.L|DW\.ref)|^\.")
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| (?:Python 3\.(\d+)\+: )?", re.MULTILINE)


def short_name(symbol: str) -> str:
    """capture::active_sampler, however deep in unnamed namespaces, templates or overloads it stands."""
    name = re.sub(r"\(anonymous namespace\)::", "", symbol).removeprefix("plimsoll::")
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)(?: const)?|\[abi:[^\]]*\]", "", name)
        if shorter == name:
            break
        name = shorter
    return re.sub(r"\.\d+$", "", name)  # GCC numbers the static variables of functions


def variables(context: Context, headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Name and file of each variable in a writable section; of an inline one the header that is listed for it."""
    for pattern in OBJECTS:
        for path in sorted(context.build.glob(pattern)):
            source = path.with_suffix("").name if "_core.dir" in path.parts else ""
            inside = path.relative_to(context.build)
            file = f"src/python/{source}" if source else "src/" + "/".join(inside.with_suffix("").parts[3:])
            for flags, section, symbol in SYMBOL.findall(run(["objdump", "-t", "-C", str(path)]).stdout):
                if ".rel.ro" not in section and OURS.match(symbol) and not NOT_VARIABLES.match(symbol):
                    name = short_name(symbol)
                    yield name, headers.get(name, file) if "u" in flags else file


def check_mutable_state(context: Context) -> Report:
    report = Report()
    rows = ROW.findall(read(LIST)) if (ROOT / LIST).exists() else []
    listed = {(name, file) for name, file, _ in rows}
    # What only later versions of Python need is not in this build.
    of_later_ones = {(name, file) for name, file, minor in rows if minor and int(minor) > sys.version_info.minor}
    found = sorted(set(variables(context, {name: file for name, file in listed if file.endswith(".h")})))
    for name, file in found:
        if (name, file) not in listed:
            report.fail(f"{file}: {name} is a mutable global that {LIST} does not list with its reason")
    for name, file in sorted(listed - set(found) - of_later_ones):
        report.fail(f"{LIST}: lists {name} in {file}, which is not there any more")
    report.summary = f"{len(found)} variables, each with its reason in {LIST}"
    return report
