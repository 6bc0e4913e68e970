"""Tables as lists of columns, each of which knows what it says of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from lib.plotting.display import table
from lib.plotting.markdown import NOT_READ, without_unread

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes
    ----------
    head : str
        What it is called, with its unit where the cells have none.
    read : callable
        The value of a row; None where a sensor wasn't read.
    form : str
        How the value is written, as in an f-string; text as it is.
    unit : str
        What stands behind each value.
    absent : str
        What stands in place of None.
    """

    head: str
    read: Callable[[T], Any]
    form: str = ""
    unit: str = ""
    absent: str = NOT_READ

    def called(self, head: str) -> Column[T]:
        """The same column under another head."""
        return replace(self, head=head)

    def cell(self, row: T) -> str:
        """What it says of a row."""
        value = self.read(row)
        return self.absent if value is None else f"{value:{self.form}}{self.unit}"


def across(columns: Sequence[Column[T]], rows: Sequence[T]) -> tuple[list[str], list[list[str]]]:
    """Head and cells of a table with a row each, without the columns of which nothing was read."""
    return without_unread([column.head for column in columns],
                          [[column.cell(row) for column in columns] for row in rows])


def down(
    name: str, columns: Sequence[Column[T]], rows: Sequence[tuple[str, T]]
) -> tuple[list[str], list[list[str]]]:
    """Head and cells of a table with a column each: what has many values is read downwards."""
    return ([name, *(head for head, _ in rows)],
            [[column.head, *(column.cell(row) for _, row in rows)] for column in columns])


def listed(columns: Sequence[Column[T]], rows: Sequence[T], evidence: str) -> None:
    """Display a row each (`across`)."""
    table(*across(columns, rows), evidence)


def compared(name: str, columns: Sequence[Column[T]], rows: Sequence[tuple[str, T]], evidence: str
             ) -> None:
    """Display a column each, under its name (`down`)."""
    table(*down(name, columns, rows), evidence)
