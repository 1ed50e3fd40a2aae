"""Statistics of a profile, and its call tree, as vmprof's Python interface has them."""

from __future__ import annotations

import datetime
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

from plimsoll.compat.vmprof.reader import AssemblerCode, JittedCode, LogReaderState, NativeCode

Sample = Sequence[Any]  # (addresses, outermost first; 1; thread; KiB in use)


class EmptyProfileFile(Exception):
    """A tree of no samples was asked for."""


class Stats:
    """The samples of a profile and the names of their addresses."""

    def __init__(self, profiles: "Sequence[Sample]", adr_dict: "Optional[dict[int, str]]" = None,
                 jit_frames: Any = None, interp: Optional[str] = None, meta: "Optional[dict[str, str]]" = None,
                 start_time: Optional[datetime.datetime] = None, end_time: Optional[datetime.datetime] = None,
                 state: Optional[LogReaderState] = None) -> None:
        self.profiles = profiles
        self.adr_dict = adr_dict
        self.jit_frames = set() if jit_frames is None else jit_frames
        self.interp = "pypy" if interp is None else interp
        self.meta = meta or {}
        self.start_time = start_time
        self.end_time = end_time
        self.profile_lines = state.profile_lines if state else False
        self.profile_memory = state.profile_memory if state else False
        self.profile_version = state.version if state else 0
        self.gc_profiles: Sequence[Sample] = state.gc_profiles if state else []
        self.gc_obj_info = state.gc_obj_info if state else []
        #: {address: the number of samples that it is in}.
        self.functions: dict[int, int] = {}
        self.generate_top()

    def get_runtime_in_microseconds(self) -> float:
        """How long the recording took; 0 if its file does not tell."""
        if self.start_time is None or self.end_time is None:
            return 0
        return (self.end_time - self.start_time).total_seconds() * 1000000

    # ---- names ----

    def _get_name(self, address: int) -> Any:
        return address if self.adr_dict is None else self.adr_dict.get(address, "<unknown code>")

    def get_name(self, addr: int) -> str:
        """The function's name alone."""
        info = self.get_addr_info(addr)
        return "unknown" if info is None else info[1]

    def get_addr_info(self, addr: int) -> "Optional[tuple[str, str, str, str]]":
        """(language, name, line as text, file), or None."""
        name = (self.adr_dict or {}).get(addr)
        return split_name(name) if name else None

    def find_addrs_containing_name(self, part: str) -> Iterator[int]:
        """The addresses of functions whose names hold a text."""
        for address, name in (self.adr_dict or {}).items():
            if part in split_name(name)[1]:
                yield address

    def getargv(self) -> str:
        return self.meta.get("argv", "")

    def getmeta(self, key: str, default: Any) -> Any:
        return self.meta.get(key, default)

    # ---- samples ----

    def _addresses(self, sample: Sample) -> "Sequence[int]":
        """The stack of a sample without lines."""
        trace: Sequence[int] = sample[0]
        return trace[::2] if self.profile_lines else trace

    def display(self, no: int) -> "list[Any]":
        """The names on the stack of one sample."""
        return [self._get_name(entry) for entry in self.profiles[no][0]]

    def generate_top(self) -> None:
        """Counts, for each address, the samples that it is in, into ``functions``."""
        for sample in self.profiles:
            for address in dict.fromkeys(self._addresses(sample)):
                self.functions[address] = self.functions.get(address, 0) + 1

    def top_profile(self) -> "list[tuple[Any, int]]":
        """(name, number of samples that it is in), in no particular order."""
        return [(self._get_name(address), count) for address, count in self.functions.items()]

    def function_profile(self, top_function: int) -> "tuple[list[tuple[int, int]], int]":
        """What a function calls, directly or not: (address, samples), fewest first; and its own number of samples."""
        below: dict[int, int] = {}
        total = 0
        for sample in self.profiles:
            trace = list(sample[0])
            if top_function not in trace:
                continue
            total += 1
            for address in dict.fromkeys(trace[trace.index(top_function) + 1:]):
                below[address] = below.get(address, 0) + 1
        return sorted(below.items(), key=lambda item: item[1]), total

    # ---- the tree ----

    def get_top(self, profiles: "Iterable[Sample]") -> "Node":
        """A root that stands for all samples: the outermost function of the first stack."""
        all_samples = list(profiles)
        address = next((sample[0][0] for sample in all_samples if sample[0]), None)
        if address is None:
            raise EmptyProfileFile()
        return Node(address, self._get_name(address), len(all_samples))

    def get_tree(self, kind: str = "cpu") -> "Node":
        """The call tree of all samples, or with ``kind="gc"`` of the sampled allocations."""
        samples = self.gc_profiles if kind == "gc" else self.profiles
        top = self.get_top(samples)
        for sample in samples:
            self._add_to_tree(top, sample[0])
        return self.filter_top(top)

    def _add_to_tree(self, top: "Node", trace: "Sequence[int]") -> None:
        node, last, innermost = top, top.addr, None
        for entry in trace:
            if isinstance(entry, AssemblerCode):
                continue
            innermost = entry
            if entry <= 0:  # a line of the function before it
                node.lines[-entry] = node.lines.get(-entry, 0) + 1
            elif entry != last:  # direct recursion is one node
                last = entry
                node = node.add_child(entry, self._get_name(entry))
        if isinstance(innermost, JittedCode):
            node.meta["jit"] = node.meta.get("jit", 0) + 1
        if isinstance(innermost, NativeCode):
            node.meta["native"] = node.meta.get("native", 0) + 1

    def filter_top(self, top: "Node") -> "Node":
        """The module that was run: below what a profiler that runs programs itself has put around it."""
        node: Optional[Node] = top
        while node is not None:
            if node.name.startswith("py:<module>") and "vmprof/__main__.py" not in node.name:
                return node
            node = max(node.children.values(), key=lambda child: child.count, default=None)
        return top


def split_name(name: str) -> "tuple[str, str, str, str]":
    """language, name, line and file of "language:name:line:file"; names and files may hold colons themselves."""
    language, _, rest = name.partition(":")
    words = rest.split(":")
    # The line is the last number between colons, as C++ has names with colons, and Windows files.
    for at in range(len(words) - 1, 0, -1):
        if words[at].isdigit():
            return language, ":".join(words[:at]), words[at], ":".join(words[at + 1:])
    return (language, rest, "0", "-") if rest else ("", name, "0", "-")


class Node:
    """A function called along one path."""

    flat = False

    def __init__(self, addr: int, name: str, count: int = 1, children: "Optional[dict[int, Node]]" = None) -> None:
        self.children: dict[int, Node] = {} if children is None else children
        self.name = name
        self.addr = addr
        self.count = count
        self.jitcodes: dict[int, int] = {}
        #: How many of its samples ended in it as machine code ("jit") or as native code ("native").
        self.meta: dict[str, int] = {}
        #: {line: samples}, where lines were recorded.
        self.lines: dict[int, int] = {}

    def __getitem__(self, item: "Union[int, str]") -> "Node":
        """The child with this address, or the first whose name holds this text. KeyError if there is none."""
        if isinstance(item, int):
            return self.children[item]
        for child in self.children.values():
            if item in child.name:
                return child
        raise KeyError(item)

    def as_json(self) -> str:
        """[name, address as text, count, meta, [children likewise]]."""
        import json

        return json.dumps(self._serialize())

    def _serialize(self) -> "list[Any]":
        """As as_json. From the leaves upwards, since a stack may be deeper than Python's."""
        done: dict[int, list[Any]] = {}
        for node in reversed(list(self._nodes())):
            children = [done.pop(id(child)) for child in node.children.values()]
            done[id(node)] = [node.name, str(node.addr), node.count, node.meta, children]
        return done[id(self)]

    def _nodes(self) -> "Iterator[Node]":
        """This node and all below, each before its children."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(list(node.children.values())))

    def _rec_count(self) -> int:
        return sum(1 for _ in self._nodes())

    def walk(self, callback: "Callable[[Node], Any]") -> None:
        """Calls for this node and all below, each before its children."""
        for node in self._nodes():
            callback(node)

    def cumulative_meta(self, d: "Optional[dict[str, int]]" = None) -> "dict[str, int]":
        """``meta`` of this node and all below, added up."""
        total = {} if d is None else d
        for node in self._nodes():
            for key, value in node.meta.items():
                total[key] = total.get(key, 0) + value
        return total

    def get_self_count(self) -> int:
        """The samples that ended here."""
        return self.count - sum(child.count for child in self.children.values())

    self_count = property(get_self_count)

    def add_child(self, addr: int, name: str) -> "Node":
        """The child with this address, one sample heavier than before."""
        child = self.children.get(addr)
        if child is None:
            child = self.children[addr] = Node(addr, name)
        else:
            child.count += 1
        return child

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return False
        pending = [(self, other)]
        while pending:
            one, two = pending.pop()
            if (one.name, one.addr, one.count) != (two.name, two.addr, two.count):
                return False
            if one.children.keys() != two.children.keys():
                return False
            pending.extend((child, two.children[address]) for address, child in one.children.items())
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        children = ", ".join(f"({child.count}, {child.name})" for _, child in sorted(self.children.items()))
        return f"<Node: {self.name} ({self.count}) [{children}]>"
