"""Who computes what: the elements of C that a block, a warp and a thread own, from a traced run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.problem import ITEM_BYTES


@dataclass(frozen=True)
class Region:
    """A rectangle of a matrix, in elements."""

    row: int
    column: int
    rows: int
    columns: int

    def text(self) -> str:
        """``"32 × 1"``."""
        return f"{self.rows} × {self.columns}"


@dataclass(frozen=True)
class Work:
    """Who computes what in one version, for one block.

    Attributes
    ----------
    M, N, K : int
        The drawn problem: C is M × N, A is M × K, B is K × N. Small, so that blocks are visible.
    block : Region
        The block's part of C.
    warp, thread : sequence of Region
        One warp's and one thread's elements of C, within the block.
    a_step, b_step : Region
        What is read of A and of B in one step of the loop over K.
    step : str
        How a step is called: ``"one k"``, ``"one tile of 32 k"``.
    reader : str
        Who reads the step: ``"warp"`` or ``"block"``.
    """

    M: int
    N: int
    K: int
    block: Region
    warp: Sequence[Region]
    thread: Sequence[Region]
    a_step: Region
    b_step: Region
    step: str
    reader: str = "warp"

def work(run: Any) -> Work:
    """Describe the watched warp's block of a traced run.

    What the warp and its first thread compute is read off the addresses that they store to; what
    the block reads in a step follows from its tile of C and the kernel's step along K.

    Parameters
    ----------
    run : lib.run.runner.Run
        Of the emulator, with a watched warp.

    Raises
    ------
    LookupError
        If the watched warp stored nothing.
    """
    problem, variant = run.problem, run.variant
    C = next(a for a in run.emulated.allocations if a.argument == _C)
    base, item_bytes = C.base, ITEM_BYTES[problem.out]
    stores = [  # not those of partial sums, which go elsewhere
        access
        for site in run.trace.sites
        if site.kind == "store" and site.space == "global"
        for access in run.trace.watched.get(site.line, ())
        if base <= int(access.addresses[access.active][0]) < base + C.nbytes
    ]
    if not stores:
        raise LookupError("the watched warp stored nothing: watch one that owns elements of C")
    # Each lane's elements of C, as (row, column).
    lanes: dict[int, list[tuple[int, int]]] = {}
    for access in stores:
        width = access.bytes_per_lane // item_bytes
        for lane in np.flatnonzero(access.active):
            first = (int(access.addresses[lane]) - base) // item_bytes
            for element in range(first, first + width):
                lanes.setdefault(int(lane), []).append(divmod(element, problem.N))
    rows, columns = variant.tile
    everyone = [element for elements in lanes.values() for element in elements]
    top, left = everyone[0][0] // rows * rows, everyone[0][1] // columns * columns
    block = Region(top, left, min(rows, problem.M - top), min(columns, problem.N - left))
    warp = regions(everyone)
    reads = block if variant.step_reader == "block" else _around(warp)
    depth = min(variant.step, problem.K)
    return Work(problem.M, problem.N, problem.K, block, warp, regions(next(iter(lanes.values()))),
                Region(reads.row, 0, reads.rows, depth),
                Region(0, reads.column, depth, reads.columns),
                "one k" if depth == 1 else f"one tile of {depth} k", variant.step_reader)


_C = 7  # C's place among a kernel's arguments


def regions(elements: Sequence[tuple[int, int]]) -> list[Region]:
    """Cover a set of elements with as few rectangles as reading row by row finds.

    Parameters
    ----------
    elements : sequence of (row, column)
    """
    runs: list[Region] = []
    for row, column in sorted(set(elements)):
        last = runs[-1] if runs else None
        if last and last.row == row and last.column + last.columns == column:
            runs[-1] = Region(row, last.column, 1, last.columns + 1)
        else:
            runs.append(Region(row, column, 1, 1))
    stacked: list[Region] = []
    for run in runs:
        for place, above in enumerate(stacked):
            same = (above.column, above.columns) == (run.column, run.columns)
            if same and above.row + above.rows == run.row:
                stacked[place] = Region(above.row, above.column, above.rows + 1, above.columns)
                break
        else:
            stacked.append(run)
    return stacked


def _around(parts: Sequence[Region]) -> Region:
    """The smallest rectangle that holds all of some."""
    top, left = min(r.row for r in parts), min(r.column for r in parts)
    return Region(top, left, max(r.row + r.rows for r in parts) - top,
                  max(r.column + r.columns for r in parts) - left)
