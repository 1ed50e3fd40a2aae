"""What a profile looks like: trees and tables, which print as such. Times are in seconds."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll._texts import html_of, printable
from plimsoll.rows import FlatRow, Function

TYPE_CHECKING = False  # typing's own would have to import typing
if TYPE_CHECKING:
    from typing import Any, Iterator, Optional


class _Table(Sequence[FlatRow]):
    """Rows ordered by self time that print as a table."""

    _place = "function"

    def __init__(self, rows: "list[FlatRow]", all_time: float) -> None:
        self._rows = rows
        self._all_time = all_time

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        shown = [f"{'self %':>7}  {'self s':>9}  {'total s':>9}  {self._place}"]
        for row in self._rows[:20]:
            share = 100 * row.self_time / self._all_time if self._all_time else 0.0
            place = f"{row.function.name}  {_place_of(row)}".rstrip()
            shown.append(f"{share:7.1f}  {row.self_time:9.4f}  {row.total_time:9.4f}  {printable(place)}")
        if len(self._rows) > 20:
            shown.append(f"... and {len(self._rows) - 20} more")
        return "\n".join(shown)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row.self_time:.4f}</td><td>{row.total_time:.4f}</td><td style='text-align:left'>"
            f"{html_of(row.function.name)}</td><td style='text-align:left'>{html_of(_place_of(row))}</td></tr>"
            for row in self._rows[:50])
        more = f"<p>... and {len(self._rows) - 50} more</p>" if len(self._rows) > 50 else ""
        return (f"<table><tr><th>self s</th><th>total s</th><th>{self._place}</th><th>where</th></tr>{rows}</table>"
                f"{more}")


def _place_of(row: FlatRow) -> str:
    """File and line; empty for what the profiler has made, which is nowhere."""
    return f"{row.function.file}:{row.line or row.function.first_line}" if row.function.file else ""


class Flat(_Table):
    """CPU time per function, heaviest first."""


class Lines(_Table):
    """CPU time per line, heaviest first."""

    _place = "line of"


class Node:
    """A node of a call tree: a function called along one path. Children are ordered heaviest first."""

    __slots__ = ("_tree", "_index")

    def __init__(self, tree: "Tree", index: int) -> None:
        self._tree = tree
        self._index = index

    @property
    def _row(self) -> "tuple[Any, ...]":
        return self._tree._nodes[self._index]

    @property
    def function(self) -> Optional[Function]:
        """None for the root, which stands for the whole profile."""
        number = self._row[0]
        return None if number is None else self._tree._functions[number]

    @property
    def line(self) -> int:
        """The line, in a tree by line; else 0."""
        return int(self._row[1])

    @property
    def total_time(self) -> float:
        return float(self._row[2]) / 1e9

    @property
    def self_time(self) -> float:
        return float(self._row[3]) / 1e9

    @property
    def samples(self) -> int:
        return int(self._row[4])

    @property
    def children(self) -> "list[Node]":
        return [Node(self._tree, index) for index in self._row[5]]

    def walk(self) -> "Iterator[tuple[int, Node]]":
        """This node and all below, depth first, each with its depth below this one."""
        pending = [(0, self)]
        while pending:
            depth, node = pending.pop()
            yield depth, node
            pending.extend((depth + 1, child) for child in reversed(node.children))

    def __repr__(self) -> str:
        return f"<plimsoll.Node {self.function or 'all'}: total {self.total_time:.4f} s, self {self.self_time:.4f} s>"


class Tree:
    """The call tree. ``root`` is the whole profile; printing shows what takes at least one percent, a hundred calls
    deep at most."""

    _DEEPEST = 100  # of what is printed: each call is moved in by two, so that the text grows with the square of it
    _HAS_SELF = True

    def __init__(self, nodes: "list[tuple[Any, ...]]", functions: "list[Function]") -> None:
        self._nodes = nodes
        self._functions = functions

    @property
    def root(self) -> Node:
        return Node(self, 0)

    def _visible(self) -> "Iterator[tuple[int, Node]]":
        least = self.root.total_time / 100
        return ((depth, node) for depth, node in self.root.walk() if depth > 0 and node.total_time >= least > 0)

    def __str__(self) -> str:
        everything = self.root.total_time
        of_self = f"  {'self s':>9}" if self._HAS_SELF else ""
        shown = [f"{'total %':>7}  {'total s':>9}{of_self}  function"]
        deeper = 0
        for depth, node in self._visible():
            if depth > self._DEEPEST:
                deeper += 1
                continue
            share = 100 * node.total_time / everything if everything else 0.0
            place = f":{node.line}" if node.line else ""
            of_self = f"  {node.self_time:9.4f}" if self._HAS_SELF else ""
            shown.append(f"{share:7.1f}  {node.total_time:9.4f}{of_self}  {'  ' * (depth - 1)}{node.function}{place}")
        if deeper > 0:
            shown.append(f"... and {deeper:,} more that are deeper than {self._DEEPEST} calls: walk() has them")
        return "\n".join(shown)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html_of(str(self))}</pre>"


class Callers(Tree):
    """A tree the other way round: the children of a node are those who have called it, and its time is that for which
    they have. What a node has of its own is of stacks that begin there. Printing shows eight calls."""

    _DEEPEST = 8
    _HAS_SELF = False


class FlameGraph:
    """A flame graph as a page of its own, without a network: callers above callees, to be searched and looked into.
    The page can do nothing to the notebook that shows it."""

    def __init__(self, page: str, height: int) -> None:
        #: HTML.
        self.page = page
        self._height = int(height)

    def __repr__(self) -> str:
        return f"<plimsoll.FlameGraph: {len(self.page) / 1000:.0f} kB of HTML, which a notebook shows>"

    def _repr_html_(self) -> str:
        from html import escape

        return (f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts" title="flame graph" '
                f'style="width: 100%; height: {self._height}px; border: 0"></iframe>')
