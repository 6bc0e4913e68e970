"""What does one bulk copy touch? A box's rows as sectors of global memory."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.machine import SECTOR
from lib.topics.memory.tma_box.model import BoxRows, Placed

_LEFT, _ROW, _HEAD, _STRIP = 78.0, 16.0, 20.0, 210.0
_SHOWN = 6  # rows before the gap
_NUMBERS = (388.0, 440.0, 502.0)
_NARROW_STRIP, _NARROW_NUMBERS = 168.0, (62.0, 140.0, 240.0)  # the numbers stand under the rows


@style.styled
def draw(
    found: BoxRows, *, evidence: str, name: str = "A", title: str | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw one box.

    Parameters
    ----------
    found : BoxRows
        What `lib.topics.memory.tma_box.model.box` returns.
    name : str
        The matrix.
    """
    rows = list(range(min(_SHOWN, found.rows)))
    gap = found.rows > _SHOWN + 1
    rows += [found.rows - 1] if found.rows > _SHOWN else []
    height = _HEAD + _ROW * (len(rows) + gap) + (72 if narrow else 20)
    fig, ax = style.canvas(title or _finding(found), height, narrow)
    longest = max(len(row) for row in found.sectors)
    unit = (_NARROW_STRIP if narrow else _STRIP) / max(longest, 4)
    y = height - _HEAD
    numbers, heads = (_NARROW_NUMBERS, 50.0) if narrow else (_NUMBERS, y + 5)
    for right, text in zip(numbers, ("requests", "sectors", "useful"), strict=True):
        ax.text(right, heads, text, ha="right", va="bottom")
    ax.text(_LEFT, y + 5, "32-byte sectors of each row", va="bottom")
    for number, row in enumerate(rows):
        if gap and number == len(rows) - 1:
            y -= _ROW
            ax.text(_LEFT, y + 4, f"… {found.rows - _SHOWN - 1} rows like these", va="bottom")
        y -= _ROW
        _row(ax, y, found, row, unit)
    wasteful = found.efficiency < 1
    price = style.WARNING if wasteful else style.INK
    middle = heads - 10 if narrow else height - _HEAD - _ROW
    for right, text, ink in zip(numbers, ("1", f"{found.count:,}", style.percent(found.efficiency)),
                                (style.INK, price, price), strict=True):
        ax.text(right, middle, text, size=14, weight="bold", ha="right", va="center", color=ink)
    for i, text in enumerate((
        f"one thread asks for {found.rows} × {found.row_bytes} B",
        f"rows {found.stride:,} B apart",
    )):
        ax.text(0 if narrow else numbers[-1], middle - 20 - 13 * i, text,
                ha="left" if narrow else "right", va="center")
    return style.finish(fig, alt=_alt(found, name), evidence=evidence,
                        note=f"addresses from the first row of {name}'s box")


@style.styled
def placed(found: Placed, *, evidence: str, narrow: bool = False) -> Figure:
    """Draw where a step's boxes lie in A and B, and where they land in the ring's stage.

    Parameters
    ----------
    found : Placed
        Of `lib.topics.memory.tma_box.model.placed`.
    """
    width = style.NARROW if narrow else style.WIDTH
    scale = (width * 72 - 60 - (0 if narrow else 190)) / (found.K + found.N)
    matrices = 30 + max(found.M, found.K) * scale
    stage = max(150.0, matrices - 30)
    height = matrices + stage + 44 if narrow else max(matrices, stage + 30) + 14
    fig, ax = style.canvas(_finding_of(found), height, narrow)
    top = height - 30
    left = 0.0
    for name, rows, columns, boxes in (("A", found.M, found.K, found.a),
                                       ("B", found.K, found.N, found.b)):
        ax.text(left, top + 15, f"{name}, {rows}×{columns}", va="bottom", weight="bold")
        at = ", ".join(f"{{{one.column}, {one.row}}}" for one in boxes[:2])
        ax.text(left, top + 3, f"at {at}" + ", …" * (len(boxes) > 2), va="bottom")
        shapes.frames(ax, [(left, top - rows * scale, columns * scale, rows * scale)], 0.7)
        shapes.rectangles(
            ax, [(left + one.column * scale, top - (one.row + one.rows) * scale,
                  one.columns * scale, one.rows * scale) for one in boxes],
            facecolor=style.PHASE["load"], edgecolor=style.INK, linewidth=0.5)
        left += columns * scale + 30
    x, y = (0.0, stage + 16) if narrow else (left, height - 18)
    ax.text(x, y, f"its stage, {found.nbytes:,} B", va="bottom", weight="bold")
    for one in (*found.a, *found.b):
        tall = one.nbytes / found.nbytes * stage
        y -= tall
        shapes.rectangles(ax, [(x, y, 62.0, tall)], facecolor=style.PHASE["load"],
                          edgecolor=style.INK, linewidth=0.5)
        ax.text(x + 31, y + tall / 2, f"{one.rows}×{one.columns}", ha="center", va="center",
                color=style.on(style.PHASE["load"]))
        ax.text(x + 67, y + tall - 2, f"+ {one.offset:,} B", va="top")
    return style.finish(fig, alt=_alt_of(found), evidence=evidence)


def _finding_of(found: Placed) -> str:
    a, b = len(found.a), len(found.b)
    return f"A stage is {a + b} boxes, {a} of A and {b} of B, each named by {{column, row}}"


def _alt_of(found: Placed) -> str:
    parts = [f"{name} of {shape[0]}×{shape[1]}: " + ", ".join(
        f"a box of {one.rows}×{one.columns} at {{column {one.column}, row {one.row}}} to byte "
        f"{one.offset:,} of the stage" for one in boxes) + "."
        for name, shape, boxes in (("A", (found.M, found.K), found.a),
                                   ("B", (found.K, found.N), found.b))]
    return " ".join(parts)


def _row(ax: Axes, y: float, found: BoxRows, row: int, unit: float) -> None:
    colour = style.PHASE["load"]
    start = found.first + row * found.stride
    sectors = found.sectors[row]
    ax.text(_LEFT - 5, y + 5, f"+ {row * found.stride:,} B", ha="right", va="center")
    boxes = [(_LEFT + i * unit, y, unit, _ROW - 5) for i in range(len(sectors))]
    shapes.rectangles(ax, boxes, facecolor=colour, alpha=style.PALE)
    offset = (start - sectors[0]) / SECTOR * unit
    shapes.rectangles(ax, [(_LEFT + offset, y, found.row_bytes / SECTOR * unit, _ROW - 5)],
                      facecolor=colour)
    shapes.frames(ax, boxes, 0.5, alpha=0.6)


def _finding(found: BoxRows) -> str:
    share = "every byte is used" if found.efficiency == 1 else (
        f"{style.percent(found.efficiency)} of the bytes are used"
    )
    return f"One request, {style.plural(found.count, 'sector')}: {share}"


def _alt(found: BoxRows, name: str) -> str:
    return (
        f"A bulk copy of a box of {name}, {found.rows} rows of {found.row_bytes} bytes that lie "
        f"{found.stride:,} bytes apart: one request of one thread, "
        f"{style.plural(found.count, 'sector')}, {style.percent(found.efficiency)} of their bytes "
        "useful."
    )
