"""What one step of the loop over K reads: the elements of C that someone owns, and what they need.

Whoever owns m × n elements of C needs, for each k, m elements of A and n of B, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.topics.code.mapping.model import Region, Work


@dataclass(frozen=True)
class Reads:
    """What one step of the loop over K reads for the elements of C that someone owns.

    Attributes
    ----------
    name : str
        The version or variant.
    who, step : str
        ``"a warp"``, ``"one k"``.
    rows, columns : int
        Of the part of C that is drawn: a block's tile, or a thread's elements moved together.
    owned : sequence of Region
        Elements owned, counted from the corner of that part.
    depth : int
        Of the step, along K.
    """

    name: str
    who: str
    step: str
    rows: int
    columns: int
    owned: Sequence[Region]
    depth: int

    @property
    def runs_of_a(self) -> list[tuple[int, int]]:
        """Rows of A that are read, as (first, how many)."""
        return _runs({row for r in self.owned for row in range(r.row, r.row + r.rows)})

    @property
    def runs_of_b(self) -> list[tuple[int, int]]:
        """Columns of B that are read, as (first, how many)."""
        return _runs({column for r in self.owned
                      for column in range(r.column, r.column + r.columns)})

    @property
    def floats_of_a(self) -> int:
        """Different elements of A."""
        return self.depth * sum(count for _, count in self.runs_of_a)

    @property
    def floats_of_b(self) -> int:
        """Different elements of B."""
        return self.depth * sum(count for _, count in self.runs_of_b)

    @property
    def floats(self) -> int:
        """Different elements of both."""
        return self.floats_of_a + self.floats_of_b

    @property
    def fmas(self) -> int:
        """Multiply-adds of the step."""
        return self.depth * sum(r.rows * r.columns for r in self.owned)


def reads(work: Work, name: str, who: str, side: int | None = None) -> Reads:
    """Return what one step reads for a thread, a warp or a block.

    Parameters
    ----------
    work : Work
    name : str
        Of the version or variant.
    who : str
        ``"thread"``, ``"warp"``: for one k; ``"block"``: for one tile.
    side : int, optional
        For a thread: rows and columns of the part of C that is drawn; as many as it owns if not
        given. Its rows and columns are moved together, wherever they lie.
    """
    block = work.block
    if who == "block":
        return Reads(name, "a block", f"{work.a_step.columns} k", block.rows, block.columns,
                     [Region(0, 0, block.rows, block.columns)], work.a_step.columns)
    if who == "warp":
        owned = [_from(r, block.row, block.column) for r in work.warp]
        return Reads(name, "a warp", "one k", block.rows, block.columns, owned, 1)
    tall = len({row for r in work.thread for row in range(r.row, r.row + r.rows)})
    wide = len({column for r in work.thread for column in range(r.column, r.column + r.columns)})
    side = side or max(tall, wide)
    return Reads(name, "a thread", "one k", side, side, [Region(0, 0, tall, wide)], 1)


def _from(region: Region, row: int, column: int) -> Region:
    return Region(region.row - row, region.column - column, region.rows, region.columns)


def _runs(numbers: set[int]) -> list[tuple[int, int]]:
    """Cut numbers into runs of neighbours: (first, how many)."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return runs
