"""Sets of a heap snapshot's objects; see plimsoll.heap.ObjectSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Union

from plimsoll._heap_tables import TypeRow, Types, bytes_text
from plimsoll._texts import html_of

if TYPE_CHECKING:
    from plimsoll.heap import Heap, Object


class ObjectSet:
    """Some objects of a snapshot: ``heap.select("app.*") - heap.select("app.Cache").retained()``.

    Combined as sets are, by ``|``, ``&``, ``-``, ``^``, ``~``, and compared by ``==`` and ``<=``: a bit for each object
    of the snapshot, whatever is in them. Those of two snapshots, or of two views, do not go together: ValueError.
    """

    __slots__ = ("_heap", "_data")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, heap: "Heap", data: Any) -> None:
        self._heap = heap
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> "Iterator[Object]":
        """The objects in the order of their addresses."""
        from plimsoll.heap import Object

        return (Object(self._heap, number) for number in self.numbers)

    def __contains__(self, what: "Union[Object, int]") -> bool:
        return self._heap._number(what) in self._data

    @property
    def numbers(self) -> memoryview:
        """The rows that they have in the columns of the heap."""
        return memoryview(self._data.numbers())

    @property
    def size(self) -> int:
        """Bytes that they take themselves."""
        return int(self._data.size)

    def retained(self) -> "ObjectSet":
        """What would be freed with all of them, themselves included. It can be more than what each of them retains, as
        what two of them hold together, and nobody else, is freed with both."""
        return ObjectSet(self._heap, self._data.retained())

    @property
    def retained_size(self) -> int:
        """Bytes that would be freed with all of them: ``.retained().size``, and in a view of memory the buffers, which
        are no objects there."""
        return int(self._data.retained_size)

    def held(self) -> "ObjectSet":
        """What one of them holds."""
        return ObjectSet(self._heap, self._data.held())

    def holders(self) -> "ObjectSet":
        """The objects that hold one of them."""
        return ObjectSet(self._heap, self._data.holders())

    def reached(self) -> "ObjectSet":
        """What can be reached from them, themselves included."""
        return ObjectSet(self._heap, self._data.reached())

    def types(self) -> Types:
        """Count, size and retained size of each class among them."""
        return Types([TypeRow(*row) for row in self._data.types()])

    def __or__(self, other: "ObjectSet") -> "ObjectSet":
        return ObjectSet(self._heap, self._data | other._data)

    def __and__(self, other: "ObjectSet") -> "ObjectSet":
        return ObjectSet(self._heap, self._data & other._data)

    def __sub__(self, other: "ObjectSet") -> "ObjectSet":
        return ObjectSet(self._heap, self._data - other._data)

    def __xor__(self, other: "ObjectSet") -> "ObjectSet":
        return ObjectSet(self._heap, self._data ^ other._data)

    def __invert__(self) -> "ObjectSet":
        return self._heap.select() - self

    def __le__(self, other: "ObjectSet") -> bool:
        return bool(self._data.is_within(other._data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectSet) and self._heap is other._heap and len(self ^ other) == 0

    def __repr__(self) -> str:
        count = len(self)
        return f"<plimsoll.heap.ObjectSet: {count:,} object{'' if count == 1 else 's'}, {bytes_text(self.size)}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html_of(repr(self))}</b></p>{self.types()._repr_html_()}"
