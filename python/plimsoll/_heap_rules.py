"""Rules of heap snapshots: plimsoll.heap.Rule and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Union


@dataclass(frozen=True)
class Native:
    """Memory outside Python that objects of a class own: where an object says how much.

    Offsets are in bytes after ``PyObject_HEAD``, into the structure of the extension type.
    """

    #: Of the address; null: the object has none.
    pointer: int
    #: Of a 64-bit number: how much.
    length: int
    #: Bytes of which ``length`` counts.
    unit: int = 1
    #: Of an int that says that the memory is the object's own; None: it always is.
    owned: Optional[int] = None


@dataclass(frozen=True)
class Rule:
    """What is known of the objects of some classes. It is data: nothing of the program runs, unless it is to be asked.

    All rules that match a class or one of its bases are joined; of several that say the same, that for the most derived
    class is taken, and of those the last. As a text it is what ``plimsoll heap PID --rules`` takes, which goes by the
    same rules from outside.
    """

    #: A class; or a full name or pattern, which need not be imported: ``"app.Session"``, ``"torch.*"``.
    classes: "Union[str, type]"
    #: An attribute, a str or int, that tells objects apart. It is recorded even where values are not.
    label: str = ""
    native: Optional[Native] = None
    #: Of this very class only, not of its subclasses.
    exactly: bool = False

    #: In views (:meth:`Heap.view`): what objects of the class take into themselves: attributes by name, or ``"*"``, all
    #: that only they keep alive.
    parts: "Sequence[str]" = ()
    #: Called with each object of the class after the walk, in the program: the one thing of a rule that runs code, and
    #: so holds in :func:`plimsoll.heap.snapshot` alone. A str is what the object is called, in place of the label; an
    #: int is how many bytes more it has, somewhere; None is nothing.
    ask: "Optional[Callable[[Any], Union[str, int, None]]]" = None

    def __post_init__(self) -> None:
        if not isinstance(self.classes, (str, type)):
            raise TypeError(f"a rule is for a class, its full name or a pattern of names, not for {self.classes!r}")
        if isinstance(self.parts, str):  # else each of its letters would be an attribute
            object.__setattr__(self, "parts", (self.parts,))

    def _classes(self) -> str:
        if not isinstance(self.classes, type):
            return self.classes
        module = self.classes.__module__
        return self.classes.__qualname__ if module == "builtins" else f"{module}.{self.classes.__qualname__}"

    def __str__(self) -> str:
        says = [f"label {self.label}"] if self.label else []
        if self.native is not None:
            owned = "" if self.native.owned is None else f" owned {self.native.owned}"
            says.append(f"native {self.native.pointer} {self.native.length} unit {self.native.unit}{owned}")
        if self.exactly and says:
            says.append("exactly")
        # Parts are of views, and so of the snapshot when it is looked at.
        return f"{self._classes()}: {', '.join(says)}" if says else f"# {self._view()}"

    def _view(self) -> str:
        return f"{self._classes()}: {', '.join(self.parts)}"

    def _row(self, number: int) -> "tuple[str, bool, str, list[int], int]":
        """As the core takes it; ``number`` is told with objects that are to be asked."""
        classes = self._classes()
        native = self.native
        numbers = [] if native is None else [native.pointer, native.length, native.unit,
                                             -1 if native.owned is None else native.owned]
        if any(offset < 0 for offset in numbers[:3]):
            raise ValueError(f"a rule for {classes}: an offset is less than 0")
        return classes, self.exactly, self.label, numbers, number if self.ask is not None else -1
