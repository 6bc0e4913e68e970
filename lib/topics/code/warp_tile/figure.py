"""What do the shape of a warp's tile and the order of its lanes cost in shared memory?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.gpus import Gpu
from lib.plotting import shapes, style
from lib.topics.code.warp_tile.model import GROUP, WarpTile
from lib.topics.limits.occupancy.model import MAX_REGISTERS_PER_THREAD

_HEIGHT = 214.0
_LEFT, _CELL_W, _CELL_H, _GAP = 22.0, 17.0, 13.0, 1.5  # pt: the picture of the lanes
_NAME, _BAR, _ROW = 206.0, 296.0, 17.0
_NARROW_BAR, _NARROW_FULL = 240.0, 72.0
_PICTURE, _NUMBERS = 206.0, 232.0  # pt: a narrow figure's lanes, and what stands under them


@style.styled
def draw(
    tile: WarpTile, gpus: Sequence[Gpu], *,
    evidence: str = "modelled: wavefronts of 128-bit loads, data sheets", narrow: bool = False,
) -> Figure:
    """Draw one warp's tile.

    Parameters
    ----------
    tile : WarpTile
    gpus : sequence of Gpu
        Data sheets, a row each.
    """
    left, height = (0.0, _PICTURE + _NUMBERS) if narrow else (_NAME, _HEIGHT)
    fig, ax = style.canvas(_finding(tile), height, narrow)
    _lanes(ax, tile, height, _NUMBERS if narrow else 0.0)
    top = _loads(ax, tile, left, _NUMBERS if narrow else height - 2)
    top = _registers(ax, tile, left, top)
    ax.text(left, top, "time of shared memory,\nover that of the multiply-adds" if narrow else
            "time of shared memory, over that of the multiply-adds", size=style.NORMAL,
            weight="bold", va="top", linespacing=1.1)
    top -= 30 if narrow else 17
    for gpu in gpus:
        _gpu(ax, tile, gpu, left, top)
        top -= _ROW
    return style.finish(fig, alt=_alt(tile, gpus), evidence=evidence)


def _lanes(ax: Axes, tile: WarpTile, height: float, bottom: float) -> None:
    """The lanes of the warp, as they lie in its tile; who shares lane 0's floats is marked."""
    load, compute = style.PHASE["load"], style.PHASE["compute"]
    ax.text(0, height - 2, f"{tile.WM} × {tile.WN} elements a warp", size=style.NORMAL,
            weight="bold", va="top")
    ax.text(0, height - 17, f"lanes {tile.lanes} down, {tile.across} across; each has "
                            f"{tile.TM} × {tile.TN},", va="top")
    ax.text(0, height - 29, f"in groups of {GROUP} × {GROUP}: {tile.loads[0]} down, "
                            f"{tile.loads[1]} across", va="top")
    top = height - 66
    x_of = [_LEFT + column * _CELL_W for column in range(tile.across)]
    y_of = [top - (row + 1) * _CELL_H for row in range(tile.lanes)]
    shapes.rectangles(ax, [(x, top + 5, _CELL_W - _GAP, 6) for x in x_of], facecolor=load)
    shapes.rectangles(ax, [(_LEFT - 11, y, 6, _CELL_H - _GAP) for y in y_of], facecolor=load)
    ax.text(_LEFT + tile.across * _CELL_W + 2, top + 8, "Bs", va="center")
    ax.text(_LEFT - 8, y_of[-1] - 3, "As", ha="center", va="top")
    for lane, (row, column) in enumerate(tile.places):
        quarter = lane // 8
        box = (x_of[column], y_of[row], _CELL_W - _GAP, _CELL_H - _GAP)
        shapes.rectangles(ax, [box], facecolor=compute if quarter < 2 else "none",
                          edgecolor=compute, linewidth=0.8,
                          alpha=1.0 if quarter == 0 else style.PALE if quarter == 1 else 1.0)
        shapes.label(ax, box, f"{lane}", style.on(compute) if quarter == 0 else style.INK)
    ax.text(0, bottom + 18 if bottom else 12, "filled: lanes 0 to 7, a quarter of the warp",
            va="top")


def _loads(ax: Axes, tile: WarpTile, left: float, top: float) -> float:
    """How many wavefronts a load of each operand takes."""
    ax.text(left, top, f"{tile.wavefronts} wavefronts for {tile.accumulators} multiply-adds",
            size=style.NORMAL, weight="bold", va="top")
    y = top - 16
    for name, count, each in zip(("As", "Bs"), tile.loads, tile.wavefronts_a_load, strict=True):
        colour = style.GOOD if each == 2 else style.WARNING
        x, under = (left + 162, y - 10) if left else (0.0, y - 23)
        shapes.rectangles(ax,
                          [(x + i * 9 + i // each * 6, under, 7.5, 9) for i in range(count * each)],
                          facecolor=colour)
        ax.text(left, y, f"{style.plural(count, 'load')} of {name}, {each} wavefronts each",
                va="top")
        y -= 15 if left else 28
    return y - 8


def _registers(ax: Axes, tile: WarpTile, left: float, top: float) -> float:
    bar = _BAR if left else _NARROW_BAR
    ax.text(left, top, f"{tile.accumulators + tile.fragments} registers for sums and floats",
            size=style.NORMAL, weight="bold", va="top")
    x, y = left, top - 27
    scale = bar / MAX_REGISTERS_PER_THREAD
    for count, colour in (
        (tile.accumulators, style.PHASE["compute"]), (tile.fragments, style.PHASE["load"]),
    ):
        shapes.rectangles(ax, [(x, y, count * scale, 11)], facecolor=colour)
        x += count * scale
    shapes.frames(ax, [(left, y, bar, 11)], alpha=0.7)
    sums = f"{tile.accumulators} for sums, {tile.fragments} for the floats of one k;"
    limit = f"a thread can have {MAX_REGISTERS_PER_THREAD}"
    for text in (f"{sums} {limit}",) if left else (sums, limit):
        ax.text(left, y - 4, text, va="top")
        y -= 12
    return y - 14


def _gpu(ax: Axes, tile: WarpTile, gpu: Gpu, left: float, top: float) -> None:
    share = tile.load(gpu)
    full = 120.0 if left else _NARROW_FULL  # pt: for as long as the multiply-adds take
    ax.text(left, top, gpu.key, size=style.NORMAL, weight="bold", va="top")
    colour = style.WARNING if share > 1 else style.PHASE["load"]
    shapes.rectangles(ax, [(left + 40, top - 12, full * min(share, 1.7), 9)], facecolor=colour)
    shapes.frames(ax, [(left + 40, top - 12, full, 9)], alpha=0.7)
    text = style.percent(share) + (": the limit" if share > 1 else "")
    ax.text(left + 40 + full * max(1.0, min(share, 1.7)) + 5, top - 1, text, va="top")


def _finding(tile: WarpTile) -> str:
    return (
        f"{tile.WM} × {tile.WN}, {'in pairs' if tile.paired else 'row by row'}: "
        f"{style.number(tile.wavefronts_per_fma)} wavefronts for each multiply-add of a warp"
    )


def _alt(tile: WarpTile, gpus: Sequence[Gpu]) -> str:
    order = "in pairs along both directions" if tile.paired else "row by row"
    each = "; ".join(f"{gpu.key} {style.percent(tile.load(gpu))}" for gpu in gpus)
    return (
        f"A warp with {tile.WM} × {tile.WN} elements of C, its lanes {tile.lanes} down and "
        f"{tile.across} across, {order}: for each k {style.plural(tile.loads[0], 'load')} of As "
        f"at {tile.wavefronts_a_load[0]} wavefronts and {tile.loads[1]} of Bs at "
        f"{tile.wavefronts_a_load[1]}, {tile.wavefronts} wavefronts for {tile.accumulators} "
        f"multiply-adds; {tile.accumulators + tile.fragments} registers for sums and floats. Time "
        f"of shared memory over time of the multiply-adds: {each}."
    )
