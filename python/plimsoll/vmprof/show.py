"""``python -m plimsoll.vmprof.show FILE tree|lines|flat``: vmprofshow, shown by ``plimsoll show``."""

from __future__ import annotations

import argparse
import html
import json
import subprocess
import sys
from typing import Any, Sequence

from plimsoll import _program

_MOST_LEVELS = 1000


def _bounded(kind: type, least: float, most: float) -> Any:
    def read(text: str) -> Any:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
        return value

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.vmprof.show",
        description="Shows a profile with the options of vmprofshow; plimsoll show has more.")
    parser.add_argument("profile", metavar="FILE")
    views = parser.add_subparsers(dest="view", required=True)
    tree = views.add_parser("tree", help="callers above callees")
    tree.add_argument("--html", action="store_true", help="as an HTML page that folds")
    percent, level = _bounded(float, 0, 100), _bounded(int, 0, _MOST_LEVELS)
    tree.add_argument("--prune_percent", type=percent, default=0.0, metavar="P", help="leave out what is below")
    tree.add_argument("--prune_level", type=level, default=_MOST_LEVELS, metavar="N", help="leave out what is deeper")
    tree.add_argument("--indent", type=_bounded(int, 0, 8), default=2, metavar="N", help="taken, without effect")
    lines = views.add_parser("lines", help="source with the time of each line")
    lines.add_argument("--filter", default="", metavar="TEXT", help="only functions or files whose name holds this")
    flat = views.add_parser("flat", help="functions by their own time")
    flat.add_argument("--include-callees", action="store_true", help="by the time in them and in what they call")
    flat.add_argument("--no-native", action="store_true", help="native functions' time goes to their callers")
    flat.add_argument("--percent-cutoff", type=percent, default=0.0, metavar="P", help="leave out what is below")
    return parser


def _show(*words: str) -> int:
    return subprocess.run([_program.find_or_exit(), "show", *words]).returncode


def _json(*words: str) -> "tuple[int, dict[str, Any]]":
    done = subprocess.run([_program.find_or_exit(), "show", *words, "--json"], stdout=subprocess.PIPE)
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else {}


def _lines(profile: str, text: str) -> int:
    """A text may be in a function's name or in a file's; those of functions come first."""
    words = [profile, "lines", "--min-percent", "0", "--limit", "0"]
    if not text:
        return _show(*words)
    code, shown = _json(profile, "flat")
    if code != 0:
        return code
    if any(text.lower() in row["function"].lower() for row in shown["flat"]):
        return _show(*words, "--function", text)
    return _show(*words, "--file", text)


def _page(nodes: "Sequence[dict[str, Any]]") -> str:
    """The tree as nested details elements. Parents come before their children."""
    children: dict[Any, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)
    total = sum(nodes[number]["total_ns"] for number in children.get(None, [])) or 1
    parts = ["<!doctype html><meta charset=utf-8><title>Plimsoll</title>"
             "<style>details{margin-left:2em}summary{font-family:monospace}</style>\n"]
    pending: list[Any] = list(reversed(children.get(None, [])))
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        node = nodes[item]
        place = ":".join(str(node[name]) for name in ("file", "first_line") if name in node)
        percent, name = 100 * node["total_ns"] / total, html.escape(node["function"])
        parts.append(f"<details open><summary>{percent:.1f}% <b>{name}</b> {html.escape(place)}</summary>\n")
        pending += ["</details>\n", *reversed(children.get(item, []))]
    return "".join(parts)


def main() -> int:
    options = _parser().parse_args()
    if options.view == "lines":
        return _lines(options.profile, options.filter)
    if options.view == "flat":
        words = ["--min-percent", str(options.percent_cutoff), "--limit", "0"]
        words += ["--sort", "total"] if options.include_callees else []
        words += ["--no-native"] if options.no_native else []
        return _show(options.profile, "flat", *words)
    words = ["tree", "--no-fold", "--min-percent", str(options.prune_percent), "--depth", str(options.prune_level + 1)]
    if not options.html:
        return _show(options.profile, *words)
    code, shown = _json(options.profile, *words)
    if code == 0:
        print(_page(shown["tree"]), end="")
    return code


if __name__ == "__main__":
    sys.exit(main())
