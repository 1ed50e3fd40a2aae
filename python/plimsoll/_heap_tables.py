"""Answers about heap snapshots as rows that print as tables; see plimsoll.heap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Sequence, TypeVar

from plimsoll._texts import html_of, printable

Row = TypeVar("Row")


def bytes_text(count: float) -> str:
    sign, count = ("-", -count) if count < 0 else ("", count)
    units = ["B", "kB", "MB", "GB", "TB"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        del units[0]
    return f"{sign}{count:.0f} {units[0]}" if units[0] == "B" else f"{sign}{count:.3g} {units[0]}"


class Table(Sequence[Row], Generic[Row]):
    """Rows that print as a table."""

    _head: "tuple[str, ...]" = ()

    def __init__(self, rows: "list[Row]") -> None:
        self._rows = rows

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def _cells(self, row: Row) -> "tuple[str, ...]":
        raise NotImplementedError

    def __str__(self) -> str:
        cells = [self._head, *(tuple(map(printable, self._cells(row))) for row in self._rows[:20])]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self._head) - 1)]
        shown = ["  ".join([*(cell.rjust(width) for cell, width in zip(row, widths)), row[-1]]) for row in cells]
        if len(self._rows) > 20:
            shown.append(f"... and {len(self._rows) - 20} more")
        return "\n".join(shown)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html_of(cell)}</th>" for cell in self._head)
        rows = "".join("<tr>" + "".join(f"<td>{html_of(cell)}</td>" for cell in self._cells(row)) + "</tr>"
                       for row in self._rows[:50])
        more = f"<p>... and {len(self._rows) - 50} more</p>" if len(self._rows) > 50 else ""
        return f"<table><tr>{head}</tr>{rows}</table>{more}"


@dataclass(frozen=True)
class TypeRow:
    """The objects of one class."""

    type: str
    count: int
    size: int
    #: What would be freed with each of them, added up; with all of them at least so much.
    retained: int


class Types(Table[TypeRow]):
    """Classes, the one that takes most memory first."""

    _head = ("count", "size", "retained", "class")

    def _cells(self, row: TypeRow) -> "tuple[str, ...]":
        return f"{row.count:,}", bytes_text(row.size), bytes_text(row.retained), row.type


@dataclass(frozen=True)
class Change:
    """How the objects of a class differ between two snapshots."""

    type: str
    count_before: int
    count_after: int
    size_before: int
    size_after: int
    #: Objects that only the second snapshot has; 0 if the snapshots are of different processes.
    new: int


class Changes(Table[Change]):
    """Classes by the change of their size, growth first."""

    _head = ("size change", "count change", "new", "class")

    def _cells(self, row: Change) -> "tuple[str, ...]":
        grown = row.size_after - row.size_before
        return (f"{'+' if grown > 0 else ''}{bytes_text(grown)}", f"{row.count_after - row.count_before:+,}",
                f"{row.new:,}", row.type)


@dataclass(frozen=True)
class Group:
    """Objects that are alike in something."""

    name: str
    count: int
    size: int
    #: As of a class.
    retained: int


class Groups(Table[Group]):
    """Groups of objects, the one that takes most memory first."""

    _head = ("count", "size", "retained", "group")

    def _cells(self, row: Group) -> "tuple[str, ...]":
        return f"{row.count:,}", bytes_text(row.size), bytes_text(row.retained), row.name


class Answer(Table["tuple[Any, ...]"]):
    """What a statement gives: rows are tuples."""

    def __init__(self, columns: "tuple[str, ...]", rows: "list[tuple[Any, ...]]", more: bool) -> None:
        super().__init__(rows)
        self.columns = self._head = columns
        #: Whether there are more rows than were asked for.
        self.more = more

    def _cells(self, row: "tuple[Any, ...]") -> "tuple[str, ...]":
        return tuple("" if value is None else str(value) for value in row)

    def dicts(self) -> "list[dict[str, Any]]":
        """The rows by the names of their columns."""
        return [dict(zip(self.columns, row)) for row in self._rows]
