"""What does ldmatrix read, and who gets it? Rows in the banks, and two maps of addresses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.figures import shapes, style
from lib.models import fragments
from lib.models.fragments import CHUNK, CHUNK_BYTES, LINE_BYTES, SLOTS, RowAddresses

_SLOT, _LINE, _CELL, _HEAD = 31.0, 12.5, 21.0, 34.0


@style.styled
def draw(named: RowAddresses, *, transposed: bool, what: str) -> Figure:
    """Draw where the rows of an ldmatrix.x4 lie in the banks, and who receives a matrix.

    Parameters
    ----------
    named : RowAddresses
    transposed : bool
        Whether the matrices are handed out transposed.
    what : str
        The layout, for title and alt text.
    """
    lines = named.addresses // LINE_BYTES
    count = int(lines.max()) + 1
    height = _HEAD + max(count * _LINE, 8 * _LINE + 30) + 6
    waves = [named.wavefronts(m) for m in range(4)]
    fig = style.figure(_finding(waves, what), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    _memory(ax, 34.0, height - _HEAD, count, named, waves[0])
    _receivers(ax, 34.0 + SLOTS * _SLOT + 44, height - _HEAD, transposed)
    return style.finish(
        fig, alt=_alt(named, waves, transposed, what), evidence="modelled: PTX ISA, ldmatrix",
        note="full: lanes 0 to 7, the first matrix; pale: the other three",
    )


def _memory(
    ax: Axes, left: float, top: float, count: int, named: RowAddresses, waves: int
) -> None:
    ax.text(left, top + 18, "shared memory: the lane that names each 16 bytes", size=style.NORMAL,
            weight="bold", va="bottom")
    for slot in range(SLOTS):
        ax.text(left + (slot + 0.5) * _SLOT, top + 3, f"{4 * slot}–{4 * slot + 3}",
                size=style.SMALL, ha="center", va="bottom")
    ax.text(left - 6, top + 3, "bank", size=style.SMALL, ha="right", va="bottom")
    shapes.rectangles(
        ax, [(left + s * _SLOT, top - (n + 1) * _LINE, _SLOT, _LINE)
             for n in range(count) for s in range(SLOTS)],
        facecolor="none", edgecolor=style.INK, linewidth=0.4, alpha=0.35,
    )
    first = style.WARNING if waves > 1 else style.PHASE["load"]
    for lane, address in enumerate(named.addresses):
        line, slot = int(address) // LINE_BYTES, int(address) // CHUNK_BYTES % SLOTS
        x, y = left + slot * _SLOT, top - (line + 1) * _LINE
        mine = lane < CHUNK
        shapes.rectangles(
            ax, [(x, y, _SLOT, _LINE)], facecolor=first if mine else style.PHASE["load"],
            alpha=1.0 if mine else style.PALE / 2,
        )
        ax.text(x + _SLOT / 2, y + _LINE / 2, str(lane), size=style.SMALL, ha="center",
                va="center", color=style.on(first) if mine else style.INK)


def _receivers(ax: Axes, left: float, top: float, transposed: bool) -> None:
    ax.text(left, top + 18, "matrix 0: the lane that gets it", size=style.NORMAL, weight="bold",
            va="bottom")
    ax.text(left, top + 3, "transposed: two of a column" if transposed else "two of a row",
            size=style.SMALL, va="bottom")
    who = fragments.receivers(transposed)
    pair = (2, 1) if transposed else (1, 2)
    for r in range(0, CHUNK, pair[0]):
        for c in range(0, CHUNK, pair[1]):
            x, y = left + c * _CELL, top - (r + pair[0]) * _LINE
            shapes.rectangles(ax, [(x, y, pair[1] * _CELL, pair[0] * _LINE)], facecolor="none",
                              edgecolor=style.INK, linewidth=0.5)
            ax.text(x + pair[1] * _CELL / 2, y + pair[0] * _LINE / 2, str(int(who[r, c])),
                    size=style.SMALL, ha="center", va="center")
    ax.text(left, top - CHUNK * _LINE - 4, "row i is what lane i named", size=style.SMALL,
            va="top")


@style.styled
def windows(
    maps: Sequence[tuple[str, RowAddresses]], shape: tuple[int, int] = (16, 24)
) -> Figure:
    """Draw the eight halves that each lane names as windows on a tile, several maps side by side.

    Parameters
    ----------
    maps : sequence of (name, RowAddresses)
        At most two.
    shape : (int, int)
        Rows and columns of the part of the tile that is drawn.
    """
    rows, columns = shape
    cell, high = 9.4, 11.0
    height = 30 + rows * high + 6
    fig = style.figure(_coverage_finding(maps, shape), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    for number, (name, named) in enumerate(maps):
        left, top = 16 + number * (columns * cell + 34), height - 30
        ax.text(left, top + 14, name, size=style.NORMAL, weight="bold", va="bottom")
        for column in (0, 8, 16):
            ax.text(left + column * cell, top + 2, str(column), size=style.SMALL, va="bottom")
        for row in (0, 8, rows - 1):
            ax.text(left - 3, top - (row + 0.5) * high, str(row), size=style.SMALL, ha="right",
                    va="center")
        shapes.rectangles(
            ax, [(left, top - rows * high, columns * cell, rows * high)], facecolor="none",
            edgecolor=style.INK, linewidth=0.6,
        )
        covered = named.coverage(shape)
        for times in np.unique(covered[covered > 0]):
            places = list(zip(*np.nonzero(covered == times), strict=True))
            shapes.rectangles(
                ax, [(left + c * cell, top - (r + 1) * high, cell, high) for r, c in places],
                facecolor=style.GOOD if times == 1 else style.WARNING,
                alpha=min(1.0, 0.3 + 0.1 * float(times)),
            )
        shapes.rectangles(
            ax,
            [(left + int(c) * cell, top - (int(r) + 1) * high, CHUNK * cell, high)
             for r, c in zip(named.rows, named.columns, strict=True)],
            facecolor="none", edgecolor=style.INK, linewidth=0.4,
        )
    return style.finish(
        fig, alt=_coverage_alt(maps, shape), evidence="modelled: rows named by the 32 lanes",
        note="outlined: what a lane names; red: named twice or more",
    )


def _coverage_finding(
    maps: Sequence[tuple[str, RowAddresses]], shape: tuple[int, int]
) -> str:
    parts = []
    for name, named in maps:
        covered = named.coverage(shape)
        most = int(covered.max())
        often = "once each" if most == 1 else f"up to {most} times"
        parts.append(f"{name}: 32 lanes name {int((covered > 0).sum())} halves, {often}")
    return "; ".join(parts)


def _coverage_alt(maps: Sequence[tuple[str, RowAddresses]], shape: tuple[int, int]) -> str:
    parts = []
    for name, named in maps:
        rows = len(np.unique(named.rows))
        align = "all on 16 bytes" if named.aligned else "not all on 16 bytes"
        parts.append(f"{name}: windows begin in {rows} rows, {align}.")
    return _coverage_finding(maps, shape) + ". " + " ".join(parts)


def _finding(waves: Sequence[int], what: str) -> str:
    if max(waves) == 1:
        return f"{what}: the eight rows of each matrix meet different banks, one wavefront"
    return f"{what}: {max(waves)} of eight rows on the same banks: {sum(waves)} wavefronts for 4"


def _alt(named: RowAddresses, waves: Sequence[int], transposed: bool, what: str) -> str:
    first = ", ".join(
        f"lane {lane} banks {int(a) // 4 % 32} to {int(a) // 4 % 32 + 3}"
        for lane, a in enumerate(named.addresses[:CHUNK])
    )
    hands = "two elements of a column" if transposed else "two elements of a row"
    return (f"{what}. Of the first matrix: {first}. Wavefronts of the four matrices: "
            f"{', '.join(map(str, waves))}. Each lane receives {hands}.")
