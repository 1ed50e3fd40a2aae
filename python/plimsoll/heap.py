"""Heap snapshots: what is alive, how big it is, and what keeps it alive.

Take one in the program, look at it there or later::

    import plimsoll.heap

    plimsoll.heap.snapshot("app.heap")

    heap = plimsoll.heap.open("app.heap")
    print(heap.types())
    session = heap.find("app.Session")     # the one that retains most
    print(session.size, session.retained)
    for path in session.paths():
        print(path)
    gone = heap.select("app.*").retained()  # what would be freed with all of these
    print(gone.types())

From a shell: ``plimsoll heap show app.heap``, ``plimsoll heap diff before.heap after.heap``.

A size is what the object takes of the allocator: with its header, its attributes and its own buffers. Retained is what
would be freed with it. Both are in bytes.
"""

from __future__ import annotations

import difflib
import operator
import io
import os
import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Sequence, Union

from plimsoll import _core
from plimsoll._texts import html_of, printable
from plimsoll._heap_rules import Native, Rule
from plimsoll._heap_sets import ObjectSet
from plimsoll._heap_tables import Answer, Change, Changes, Group, Groups, TypeRow, Types, bytes_text

if TYPE_CHECKING:
    PathLike = Union[str, "os.PathLike[str]"]

__all__ = [
    "Answer", "Change", "Changes", "Frame", "Group", "Groups", "Heap", "Native", "Object", "ObjectSet", "Path",
    "PathPattern", "PathStep", "Pending", "Rule", "Taken", "TypeRow", "Types", "fork_snapshot", "open", "snapshot",
]

# With the process id, which a fork changes, it tells processes apart.
_TOKEN = os.urandom(8).hex()
_LONGEST_NAME = 100  # characters of what an object is called
_MOST_BYTES = 1 << 48  # of one object, as snapshots are read


@dataclass(frozen=True)
class Taken:
    """What a snapshot took."""

    path: str
    objects: int
    references: int
    #: References to what was not found: 0, or an extension type hides objects.
    lost_references: int
    file_bytes: int
    #: For how long no Python code ran, in seconds.
    stop_time: float


def snapshot(path: "PathLike", *, values: bool = False, rules: "Sequence[Union[Rule, str]]" = ()) -> Taken:
    """Writes all objects of this interpreter to a file that only its owner can read.

    No object is created or changed by it, and what Plimsoll holds for itself is left out. Names in the program are
    recorded (of classes, functions, attributes, variables), values are not, unless ``values`` asks for them: then the
    beginning of each str and bytes, and numbers. They may be secrets. ``rules`` tell more of some classes: each a
    :class:`Rule`, or a text as of one.

    ValueError for a text that is no rule; PermissionError or OSError if the file cannot be written.
    """
    path = _file_path(path)
    every = _all_rules(rules)
    told = _core.heap_snapshot(path, **_options(values, every))
    _ask(path, every, told.pop("asked"))
    return _taken(path, told)


def fork_snapshot(path: "PathLike", *, values: bool = False, rules: "Sequence[Union[Rule, str]]" = ()) -> "Pending":
    """As :func:`snapshot`, but the program goes on: a forked child writes its heap as it is now.

    The program stands still for a fork only, some milliseconds a GB. Its memory is shared with the child's until either
    writes to it. No code of the program runs in the child, so that no rule can ask. Wait for it, or it stays as a
    zombie.
    """
    path = _file_path(path)
    return Pending(path, _core.HeapChild.start(path, **_options(values, _all_rules(rules))))


class Pending:
    """A snapshot that a child is writing."""

    def __init__(self, path: str, child: Any) -> None:
        self.path = path
        #: The child's process id.
        self.pid: int = child.pid
        self._child = child

    def wait(self) -> Taken:
        """Blocks until it is written. OSError if the child failed or was ended; then the file is incomplete. After a
        signal whose handler raises, as Ctrl-C does, it can be called again."""
        return _taken(self.path, self._child.wait())


def _file_path(path: "PathLike") -> str:
    path = os.fsdecode(path)
    if "\0" in path:  # the system would take what stands before it for the name
        raise ValueError("embedded null character")
    return path


_RULES = "plimsoll.heap_rules"


def _may_have_rules() -> bool:
    """Whether a distribution names our group: importlib.metadata would bring its many modules and 3 MB into the program
    that is looked at, and hardly any has rules."""
    # (A program may put anything into sys.path, and import leaves out what is no text.)
    places = [place for place in sys.path if isinstance(place, str) and "\0" not in place]
    if "importlib.metadata" in sys.modules or any(map(os.path.isfile, places)):  # a zip file
        return True
    return any(_names_rules(os.path.join(place, name)) for place in places for name in _names_in(place or os.curdir)
               if name.endswith((".dist-info", ".egg-info")))


def _names_in(directory: str) -> "list[str]":
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _names_rules(distribution: str) -> bool:
    try:
        with io.open(os.path.join(distribution, "entry_points.txt"), encoding="utf-8", errors="replace") as file:
            return _RULES in file.read()
    except OSError:
        return False


def _rules_of_libraries() -> "list[Rule]":
    """Those of entry points in the group ``plimsoll.heap_rules``, each a list of rules or a function that gives one. Of
    libraries that the program has imported only: a snapshot imports no library that is not in use."""
    if not _may_have_rules():
        return []
    from importlib import metadata

    try:
        points: Any = metadata.entry_points()
        chosen = list(points.select(group=_RULES) if hasattr(points, "select") else points.get(_RULES, ()))
    except Exception as error:  # what is in sys.path must not cost the program its snapshot either
        warnings.warn(f"heap rules of libraries cannot be looked for: {error!r}", RuntimeWarning, stacklevel=5)
        return []
    rules: "list[Rule]" = []
    for point in chosen:
        if point.value.partition(":")[0].partition(".")[0] not in sys.modules:
            continue
        try:
            found = point.load()
            found = found() if callable(found) else found
            rules += [rule for rule in found if isinstance(rule, Rule)]
        except Exception as error:  # a library's mistake must not cost the program its snapshot
            warnings.warn(f"the heap rules of {point.name} ({point.value}) cannot be used: {error!r}",
                          RuntimeWarning, stacklevel=5)
    return rules


def _all_rules(given: "Sequence[Union[Rule, str]]") -> "list[Union[Rule, str]]":
    return [*_rules_of_libraries(), *([given] if isinstance(given, str) else given)]


def _ask(path: str, rules: "Sequence[Union[Rule, str]]", objects: "list[tuple[int, int, Any]]") -> None:
    """Calls what rules have to be called with each object, and adds to the snapshot what that says."""
    asks = {number: (rule._classes(), rule.ask) for number, rule in enumerate(rules)
            if isinstance(rule, Rule) and rule.ask is not None}
    rows: "list[tuple[int, int, str]]" = []
    failed: "dict[int, Exception]" = {}
    for node, number, target in objects:
        try:
            said = asks[number][1](target)
            if isinstance(said, str):
                text = said[:_LONGEST_NAME].encode("utf-8", "replace").decode()  # lone surrogates are no text
                rows.append((node, 0, text))
            elif said is not None:
                rows.append((node, _bytes_said(operator.index(said)), ""))
        except Exception as error:  # a mistake in a rule must not cost the program its snapshot
            failed.setdefault(number, error)
    if rows:
        _core.heap_tell(path, rows)
    for number, cause in failed.items():
        warnings.warn(f"the rule for {asks[number][0]} could not ask all of them: {cause!r}", RuntimeWarning,
                      stacklevel=3)


def _bytes_said(size: int) -> int:
    if size >= _MOST_BYTES:
        raise ValueError(f"{size} bytes are more than any object has")
    return max(0, size)


def _options(values: bool, all_rules: "Sequence[Union[Rule, str]]") -> "dict[str, Any]":
    ours = [module for name, module in list(sys.modules.items())
            if (name == "plimsoll" or name.startswith("plimsoll.")) and module is not None]
    return dict(values=values, hidden=ours,
                rules=[rule if isinstance(rule, str) else rule._row(number) for number, rule in enumerate(all_rules)],
                meta=[("process", f"{os.getpid()}:{_TOKEN}")])


def _taken(path: str, told: "dict[str, int]") -> Taken:
    return Taken(path, told["objects"], told["references"], told["lost_references"], told["file_bytes"],
                 told["stop_ns"] / 1e9)


@dataclass(frozen=True)
class Frame:
    """A call on the stack that allocated an object."""

    function: str
    #: Empty: no Python code was running.
    file: str
    #: 0: not known.
    line: int

    def __str__(self) -> str:
        return printable(f"{self.function} ({self.file}:{self.line})" if self.file else self.function)


@dataclass(frozen=True)
class Path:
    """A way from a root to an object: who holds whom, and how."""

    #: The holders, from the root on.
    holders: "tuple[Object, ...]"
    #: How each holds the next: ``.name``, ``[3]``, or nothing that can be told.
    edges: "tuple[str, ...]"
    end: "Object"

    def __str__(self) -> str:
        # Of a long one, like that to the end of a linked list, the first steps and the last ones.
        count, at_an_end = len(self.holders), 20
        left_out = range(at_an_end, count - at_an_end)
        shown = [*range(1, count)] if not left_out else [*range(1, at_an_end), *range(left_out.stop, count)]
        steps = [f"{self.holders[number]}{self.edges[number]}" for number in shown]
        if left_out:
            steps.insert(at_an_end - 1, f"... {len(left_out):,} steps ...")
        return printable(" -> ".join([*steps, str(self.end)]))


@dataclass(frozen=True)
class PathStep:
    """What many paths have in common: objects of one class, which hold the next ones in the same way."""

    #: One of them.
    holder: "Object"
    holders: int
    text: str
    edge: str
    #: Some of them are held by others of them, in the same way: a linked list is one step.
    repeats: bool

    def __str__(self) -> str:
        return printable(f"{self.text}{self.edge}{' (repeated)' if self.repeats else ''}")


@dataclass(frozen=True)
class PathPattern:
    """Ways from a root to an object that pass the same classes by the same attributes."""

    #: From the root on.
    steps: "tuple[PathStep, ...]"
    end: "Object"

    def __str__(self) -> str:
        return " -> ".join([*(str(step) for step in self.steps[1:]), str(self.end)])


class Object:
    """An object in a snapshot, or a root. Nothing but its number is kept; the snapshot is asked."""

    __slots__ = ("_heap", "number")

    def __init__(self, heap: "Heap", number: int) -> None:
        self._heap = heap
        #: Its row in the columns of the heap.
        self.number = number

    @property
    def _row(self) -> "tuple[Any, ...]":
        row: "tuple[Any, ...]" = self._heap._data.node(self.number)
        return row

    @property
    def type(self) -> str:
        return str(self._row[0])

    @property
    def text(self) -> str:
        """The name of a class, function, module or thread; in a snapshot with values, a str or number itself."""
        return str(self._row[1])

    @property
    def address(self) -> int:
        """Its id() while it lived; 0 for a root."""
        return int(self._row[2])

    @property
    def size(self) -> int:
        return int(self._row[3])

    @property
    def refcount(self) -> int:
        """0: immortal, or not counted in this build of Python."""
        return int(self._row[4])

    @property
    def retained(self) -> int:
        """What would be freed with it."""
        return int(self._heap._data.retained_by(self.number))

    @property
    def dominator(self) -> "Optional[Object]":
        """The nearest object without which this one would be freed; None for the root of all."""
        parent = self._heap._data.dominator(self.number)
        return None if parent is None else Object(self._heap, parent)

    def referents(self) -> "list[tuple[str, Object]]":
        """What it holds, each with how: ``.name``, ``[3]``, or an empty str."""
        return [(edge, Object(self._heap, number)) for number, edge in self._heap._data.referents(self.number)]

    def referrers(self) -> "list[Object]":
        """What holds it."""
        return [Object(self._heap, number) for number in self._heap._data.referrers(self.number)]

    def paths(self, limit: int = 5) -> "list[Path]":
        """Why it is alive: the shortest paths from a root, each by another holder."""
        found = self._heap._data.paths(node=self.number, most=limit)
        return [Path(tuple(Object(self._heap, number) for number, _ in steps), tuple(edge for _, edge in steps), self)
                for steps in found]

    def path_patterns(self, limit: int = 30) -> "list[PathPattern]":
        """All ways from a root to it that differ in the classes or attributes that they pass, the shortest first. For
        objects that very many hold the search is bounded, and may find fewer than there are."""
        patterns, _more = self._heap._data.path_patterns(node=self.number, most=limit)
        return [PathPattern(tuple(PathStep(Object(self._heap, holder), count, words, edge, repeats)
                                  for holder, count, words, edge, repeats in steps), self) for steps in patterns]

    def allocation_stack(self) -> "Optional[list[Frame]]":
        """Who allocated it, the innermost frame first; None if that was not recorded. It was if allocations were being
        recorded at both times: all of them, or those that were sampled."""
        frames = self._heap._data.allocation_stack(self.number)
        return None if frames is None else [Frame(*frame) for frame in frames]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Object) and (self._heap, self.number) == (other._heap, other.number)

    def __hash__(self) -> int:
        return hash(self.number)

    def __str__(self) -> str:
        if not self.text:
            return printable(self.type)
        return printable(f"{self.type} {self.text}" if self._row[5] else self.text)

    def __repr__(self) -> str:
        return f"<plimsoll.heap.Object {self} at {self.address:#x}: {bytes_text(self.size)}>"


class Heap:
    """A snapshot. Objects are numbered from 0 in the order of their addresses; columns are read-only memoryviews."""

    def __init__(self, data: Any, path: str = "") -> None:
        self._data = data
        self._path = path

    @cached_property
    def meta(self) -> "dict[str, str]":
        """Facts about the snapshot: ``python``, ``pid``, ``time_ns``, ``values`` and more."""
        return dict(self._data.meta)

    @property
    def complete(self) -> bool:
        """False if the file ends early."""
        return bool(self._data.complete)

    @property
    def references(self) -> int:
        """How many references objects have to each other."""
        return int(self._data.reference_count)

    @cached_property
    def type_names(self) -> "list[str]":
        """What the numbers of :attr:`type` mean."""
        return list(self._data.type_names())

    @cached_property
    def type(self) -> memoryview:
        return memoryview(self._data.type())

    @cached_property
    def size(self) -> memoryview:
        return memoryview(self._data.size())

    @cached_property
    def address(self) -> memoryview:
        return memoryview(self._data.address())

    @cached_property
    def refcount(self) -> memoryview:
        return memoryview(self._data.refcount())

    @cached_property
    def retained(self) -> memoryview:
        """What would be freed with each object; computed at first use."""
        return memoryview(self._data.retained())

    @property
    def root(self) -> Object:
        """What holds everything: modules, threads, the interpreter, native code; and garbage."""
        return Object(self, self._data.root)

    def __len__(self) -> int:
        return int(self._data.object_count)

    def __getitem__(self, number: int) -> Object:
        number = operator.index(number)
        if not -len(self) <= number < len(self):
            raise IndexError("no such object")
        return Object(self, number % len(self))

    def objects(self, type_name: str) -> "Iterator[Object]":
        """All objects of a class, by its full name."""
        wanted = {number for number, name in enumerate(self.type_names) if name == type_name}
        return (Object(self, number) for number, type_number in enumerate(self.type) if type_number in wanted)

    def select(self, type: str = "", *, where: str = "",
               objects: "Optional[Iterable[Union[Object, int]]]" = None) -> ObjectSet:
        """A set of objects: all that are of a class, by its full name or a pattern (``"app.*"``), for which a condition
        in SQL on the columns of ``objects`` is true (``"size > 1000 and holders = 1"``, see :meth:`query`), and that
        are among those given, by themselves or by their numbers. Without any of these, all objects. ValueError for an
        object of another snapshot, or of another view."""
        chosen = ObjectSet(self, _core.HeapSet.select(self._data, type))
        if where:
            rows = self.query(f"select id from objects where address is not null and ({where}\n)")
            chosen &= self._set_of([row[0] for row in rows])
        if objects is not None:
            chosen &= self._set_of([self._number(each) for each in objects])
        return chosen

    def _number(self, what: "Union[Object, int]") -> int:
        """The row of an object, given by itself or by that. ValueError for another snapshot's, or another view's."""
        if not isinstance(what, Object):
            return operator.index(what)
        if what._heap._data is not self._data:
            raise ValueError("the object is of another snapshot, or of another view of this one")
        return what.number

    def _set_of(self, numbers: "list[int]") -> ObjectSet:
        return ObjectSet(self, _core.HeapSet.chosen(self._data, numbers))

    def find(self, what: "Union[str, int]") -> Object:
        """The object with an id(), or the one of a class, by its full name, that retains most. KeyError if none is."""
        number = self._data.find(hex(what) if isinstance(what, int) else what)
        if number is None:
            raise KeyError(what)
        return Object(self, number)

    def types(self) -> Types:
        """Count, size and retained size of each class: what its objects retain, each by itself. What several of them
        hold together is freed with all of them, too: ``select("app.Session").retained_size``."""
        return Types([TypeRow(*row) for row in self._data.types()])

    def largest(self, limit: int = 20) -> "list[Object]":
        """The objects that hold most memory alive, none of them below another in the tree of dominators."""
        return [Object(self, number) for number in self._data.largest(max(0, limit))]

    def diff(self, later: "Heap") -> Changes:
        """How a later snapshot differs from this one."""
        return Changes([Change(*row) for row in self._data.diff(later._data)])

    def survivors(self, second: "Heap", third: "Heap") -> Types:
        """What came after this snapshot, and is in both later ones: with the same work between each two of them, what
        is left of the first time is a leak, or a cache. ValueError if they are of different processes.
        """
        return Types([TypeRow(*row) for row in third._data.survivors(self._data, second._data)])

    def query(self, statement: str, limit: "Optional[int]" = None) -> Answer:
        """What a select statement in SQL gives, for at most ``limit`` rows.

        The tables are those of ``plimsoll heap query``: ``objects``, ``edges``, ``types``, ``meta``, ``duplicates``,
        ``waste``, ``arenas``, ``mappings`` and ``rss`` (docs/heap.md). ValueError if the statement is wrong.
        """
        return Answer(*self._data.query(statement, -1 if limit is None else limit))

    def groups(self, by: str = "place", type: str = "") -> Groups:
        """The objects, or those of a class, by where they are held (``"place"``), by the classes of what holds them
        (``"referrers"``), by ``"module"``, ``"generation"`` or ``"size"``; or by what allocated them, if allocations
        were being recorded: ``"allocation-site"`` or ``"allocation-stack"``."""
        return Groups([Group(*row) for row in self._data.groups(by, type)])

    def view(self, *stages: "Union[str, Rule]") -> "Heap":
        """The same heap with several objects as one; it can be asked all that this one can.

        A stage is ``"parts"`` (an object with its dict and other insides), ``"module"`` (a module with its classes,
        functions and constants), ``"memory"`` (libraries, stacks, buffers outside Python and free memory have nodes,
        too, below all other views), or a :class:`Rule` with ``parts``, or rules as text (``"app.Cache: entries"``).
        Each is applied to what those before it have made, rules and modules to parts. ValueError if there is no such
        view; a warning if a rule is for a class that no object is of.
        """
        words = [stage._view() if isinstance(stage, Rule) else stage for stage in stages]
        for name in self._data.classes_not_there(words):
            near = difflib.get_close_matches(name, self._data.type_names(), 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            warnings.warn(f"there is no object of class {name!r}{hint}: this rule changes nothing", stacklevel=2)
        return Heap(self._data.view(words), self._path)

    def duplicates(self, limit: "Optional[int]" = None) -> Answer:
        """str and bytes that are there more than once, the most waste first."""
        return self.query("select * from duplicates", limit)

    def waste(self, limit: "Optional[int]" = None) -> Answer:
        """Containers that are empty, or have room for more than they hold, by where they are held."""
        return self.query("select * from waste", limit)

    def arenas(self) -> Answer:
        """The arenas of Python's small-object allocator, and how full they are."""
        return self.query("select * from arenas")

    def rss(self) -> Answer:
        """What the memory that the process had in use (RSS) was used for."""
        return self.query("select * from rss")

    def export(self, path: "PathLike", format: str = "") -> None:
        """Writes a file for another program: ``"heapsnapshot"`` for Chrome's DevTools (Memory, Load profile),
        ``"perfetto"`` for ui.perfetto.dev, or ``"ndjson"``, a line of JSON for each object. Without a format it is
        told by the name: .heapsnapshot, .pftrace, .ndjson. ValueError if there is no such format."""
        path = _file_path(path)
        _core.write_file(path, self._data.exported(path, format))

    def __repr__(self) -> str:
        return (f"<plimsoll.heap.Heap: {len(self):,} objects, {bytes_text(sum(self.size))}"
                f"{'' if self.complete else ', incomplete'}>")

    def _repr_html_(self) -> str:
        return f"<p><b>{html_of(repr(self))}</b></p>{self.types()._repr_html_()}"


def open(path: "PathLike") -> Heap:
    """Reads a snapshot. ProfileError if the file is none."""
    path = _file_path(path)
    return Heap(_core.HeapData.open(path), path)
