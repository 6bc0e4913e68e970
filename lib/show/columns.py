"""Tables as lists of columns, each of which knows what it says of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from msgspec import structs

from lib import gpus
from lib.gpus import Gpu
from lib.kernels.spec import Variant
from lib.records import store as records
from lib.records.schema import Benchmark, KernelRecord, Row
from lib.show.display import table
from lib.show.markdown import NOT_READ, NOT_YET, without_unread
from lib.show.version import RECORDED_ON, Version, called

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


STALE = " (stale: the source has changed since)"


def _is_recorded(read: Callable[[], object]) -> bool:
    try:
        return bool(read())
    except records.NotRecorded:
        return False


@dataclass(frozen=True)
class Launches:
    """What is recorded of a variant at one size, read when a column asks for it."""

    page: Version
    variant: Variant
    size: int

    @property
    def name(self) -> str:
        """What tables call it."""
        return called(self.page.kernel.stem, self.variant.name)

    @cached_property
    def row(self) -> Row:
        """How fast it was, and cuBLAS in the same run."""
        return self.page.recorded(self.size, self.variant.name)

    @cached_property
    def counters(self) -> Mapping[str, float]:
        """What a profiler counted of one launch."""
        return self.page.metrics(self.size, self.variant.name)

    @property
    def counted(self) -> bool:
        """Whether its counters are recorded."""
        return _is_recorded(lambda: self.counters)

    @property
    def timed(self) -> bool:
        """Whether its speed is recorded."""
        return _is_recorded(lambda: self.row)

    @property
    def current(self) -> bool:
        """Whether it is recorded of today's source."""
        return _is_recorded(lambda: self.page.reader.current(self.variant.name))

    @property
    def sms(self) -> int:
        """Of the GPU that it ran on."""
        return self.page.record.gpu.sms

    @property
    def sheet(self) -> Gpu:
        """The data sheet of that GPU."""
        return gpus.GPUS[RECORDED_ON]

    @property
    def peak(self) -> int:
        """FLOP per cycle and SM that the data sheet gives for its types."""
        return self.sheet.flops_per_cycle(self.variant.dtype)

    @property
    def part(self) -> tuple[KernelRecord, Row | None]:
        """Its record, and its row where there is one: what an evidence label tells."""
        return self.page.record, self.row if self.timed else None

    @property
    def stale(self) -> str:
        """What an evidence label says where the source has changed since; else nothing."""
        return STALE if self.page.reader.stale(self.variant.name) else ""

    def at(self, size: int) -> Launches:
        """The same at another size."""
        return replace(self, size=size)


@dataclass(frozen=True)
class Retimed(Launches):
    """A variant as it was timed once more in the run of another, which is held against it.

    Its counters are those of its own record.
    """

    of: Launches

    @cached_property
    def row(self) -> Row:
        """How fast it was in that run, and cuBLAS."""
        row = self.of.at(self.size).row
        if row.pair is None or row.pair.variant != self.variant.name:
            raise records.NotRecorded(
                f"{self.variant.name} isn't recorded beside {self.of.variant.name}")
        again = row.pair
        return structs.replace(
            row, seconds=again.seconds, spread=again.spread, tflops=again.tflops,
            cublas_seconds=again.cublas_seconds, ratio=again.ratio, clock=again.clock, pair=None,
            series=[again.seconds])


def in_one_run(first: Launches, second: Launches) -> tuple[Launches, Launches]:
    """A pair; of two runs one side is replaced by how it was in the run of the other, if it was.
    """
    if not (first.timed and second.timed) or first.row.chunk == second.row.chunk:
        return first, second
    mine, theirs = first.row.pair, second.row.pair
    if mine and mine.variant == second.variant.name:
        return first, Retimed(second.page, second.variant, second.size, first)
    if theirs and theirs.variant == first.variant.name:
        return Retimed(first.page, first.variant, first.size, second), second
    return first, second


def launches(
    version: Version, variants: Sequence[str], above: Sequence[str], size: int
) -> list[Launches]:
    """The rows of a table: other versions, then this one's variants (see `Version.rows`)."""
    return [Launches(*one, size) for one in version.rows(variants, above)]


def labels(rows: Iterable[Launches]) -> str:
    """The evidence label of the rows of a table: days and boards, of all that are counted."""
    parts: dict[str, list[tuple[KernelRecord, Row | None]]] = {}
    for one in rows:
        if one.counted:
            parts.setdefault(one.stale, []).append(one.part)
    return "; ".join(records.labels(found) + stale for stale, found in parts.items()) or NOT_YET


def current_labels(rows: Iterable[Launches]) -> str:
    """`labels` of rows that are recorded of today's source."""
    return records.labels(one.part for one in rows) or NOT_YET


def of_cublas(rows: Iterable[Benchmark]) -> str:
    """The head of a column of shares: of the best of cuBLAS, where all rows have it."""
    return "of the best of cuBLAS" if {*map(records.rival, rows)} == {"best"} else "of cuBLAS"


def recorded(
    head: str, read: Callable[[T], Any], form: str = "", absent: str = ""
) -> Column[T]:
    """A column whose cells say what is `absent` where nothing is recorded."""
    def tried(one: T) -> Any:
        try:
            return read(one)
        except records.NotRecorded:
            return None

    return Column(head, tried, form, absent=absent)


def speeds(head: str, *sizes: int) -> list[Column[Launches]]:
    """A column of speeds for each size, which stands behind the head."""
    def at(size: int) -> Column[Launches]:
        return recorded(f"{head} {size:,}", lambda one: one.at(size).row.tflops, ".4g",
                        absent=NOT_YET)

    return [at(size) for size in sizes]
