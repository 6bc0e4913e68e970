"""What does a thread's tile of C buy and cost? Reuse and registers, on three GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.gpus import Gpu
from lib.plotting import shapes, style
from lib.topics.code.tiling.model import OTHER_REGISTERS, ThreadTile
from lib.topics.limits.occupancy.model import MAX_REGISTERS_PER_THREAD

_LEFT, _SIDE = 30.0, 116.0  # pt: where the picture of the tile begins; its sum's longest side
_NAME, _BAR, _ROW = 206.0, 296.0, 17.0
_NARROW_BAR, _NARROW_ROW = 240.0, 29.0
_PICTURE, _NUMBERS = 184.0, 100.0  # pt: a narrow figure's picture, and what is under it but GPUs


@style.styled
def draw(
    tile: ThreadTile, gpus: Sequence[Gpu], threads: int, largest: int, *,
    evidence: str = "modelled: scalar loads, CUDA's occupancy rules", narrow: bool = False,
) -> Figure:
    """Draw one tile of one thread.

    Parameters
    ----------
    tile : ThreadTile
        What `lib.topics.code.tiling.model.thread_tile` returns.
    gpus : sequence of Gpu
        Data sheets, a row each.
    threads : int
        Threads of a block.
    largest : int
        Elements on the longest side of any tile of the explorer: one scale for all frames.
    """
    left, row = (0.0, _NARROW_ROW) if narrow else (_NAME, _ROW)
    height = (_PICTURE + _NUMBERS if narrow else 132.0) + row * len(gpus)
    fig, ax = style.canvas(_finding(tile), height, narrow)
    _picture(ax, tile, height, largest)
    top = height - (_PICTURE if narrow else 2)
    top = _registers(ax, tile, left, top)
    of = "KiB shared" if narrow else "KiB of shared memory"
    ax.text(left, top, f"a block of {threads} threads, {tile.shared_bytes / 1024:g} {of}",
            size=style.NORMAL, weight="bold", va="top")
    top -= 17
    for gpu in gpus:
        _gpu(ax, tile, gpu, threads, left, top)
        top -= row
    return style.finish(fig, alt=_alt(tile, gpus, threads), evidence=evidence)


def _picture(ax: Axes, tile: ThreadTile, height: float, largest: int) -> None:
    """The floats of A and of B for one k, and the sums that they meet in."""
    cell = min(_SIDE / largest, 14.0)
    load, compute = style.PHASE["load"], style.PHASE["compute"]
    gap = 1.0 if cell > 5 else 0.6
    ax.text(0, height - 2, f"{tile.TM} × {tile.TN} elements per thread", size=style.NORMAL,
            weight="bold", va="top")
    ax.text(0, height - 17, f"one k: {tile.fragments} floats, "
                            f"{style.plural(tile.accumulators, 'multiply-add')}", va="top")
    top = height - 54 - cell
    a, b = [], []
    for row in range(tile.TM):
        a.append((_LEFT - 8 - cell, top - (row + 1) * cell, cell - gap, cell - gap))
    for column in range(tile.TN):
        b.append((_LEFT + column * cell, top + 8, cell - gap, cell - gap))
    sums = [
        (_LEFT + column * cell, top - (row + 1) * cell, cell - gap, cell - gap)
        for row in range(tile.TM) for column in range(tile.TN)
    ]
    shapes.rectangles(ax, [*a, *b], facecolor=load)
    shapes.rectangles(ax, sums, facecolor=compute)
    ax.text(_LEFT - 8 - cell / 2, top + 3, "A", size=style.NORMAL, weight="bold", ha="center",
            va="bottom")
    ax.text(_LEFT + tile.TN * cell + 4, top + 8 + cell / 2, "B", size=style.NORMAL, weight="bold",
            va="center")
    ax.text(_LEFT + tile.TN * cell + 4, top - tile.TM * cell / 2, "C", size=style.NORMAL,
            weight="bold", va="center")


def _registers(ax: Axes, tile: ThreadTile, left: float, top: float) -> float:
    """One bar: what a thread's registers hold, to the most that it may have."""
    bar = _BAR if left else _NARROW_BAR
    ax.text(left, top, f"{tile.registers} registers per thread"
            + ("" if tile.fits else ": they spill"),
            size=style.NORMAL, weight="bold", va="top")
    x, y = left, top - 29
    scale = bar / MAX_REGISTERS_PER_THREAD
    for count, colour, alpha in (
        (tile.accumulators, style.PHASE["compute"], 1.0),
        (tile.fragments, style.PHASE["load"], 1.0),
        (OTHER_REGISTERS, style.OTHER, 0.6),
    ):
        width = min(count * scale, left + bar - x)
        if width > 0:
            shapes.rectangles(ax, [(x, y, width, 12)], facecolor=colour, alpha=alpha)
        x += count * scale
    shapes.frames(ax, [(left, y, bar, 12)], alpha=0.7)
    sums = f"{tile.accumulators} for sums, {tile.fragments} for the floats of one k,"
    rest = f"about {OTHER_REGISTERS} for the rest;"
    for text in (f"{sums} {rest}",) if left else (sums, rest):
        ax.text(left, y - 4, text, va="top")
        y -= 12
    ax.text(left, y - 4, f"the bar ends at {MAX_REGISTERS_PER_THREAD}, the most a thread can "
                         "have", va="top")
    return y - 28


def _gpu(ax: Axes, tile: ThreadTile, gpu: Gpu, threads: int, left: float, top: float) -> None:
    ax.text(left, top, gpu.key, size=style.NORMAL, weight="bold", va="top")
    shapes.share(ax, (left + 40, top - 12, 60, 9), tile.fed(gpu), style.PHASE["load"])
    ax.text(left + 105, top - 1, f"{style.percent(tile.fed(gpu))} of its peak fed;", va="top")
    found = tile.occupancy(gpu, threads)
    text = "spills" if found is None else f"{found.warps} of {gpu.warps_per_sm} warps"
    ax.text(*((left + 205, top - 1) if left else (105.0, top - 13)), text, va="top")


def _finding(tile: ThreadTile) -> str:
    return (
        f"{tile.TM} × {tile.TN}: {tile.fragments} floats feed "
        f"{style.plural(tile.accumulators, 'multiply-add')}, {style.number(tile.flop_per_load)} "
        "FLOP per float"
    )


def _alt(tile: ThreadTile, gpus: Sequence[Gpu], threads: int) -> str:
    each = []
    for gpu in gpus:
        found = tile.occupancy(gpu, threads)
        warps = "its registers spill" if found is None else (
            f"{found.warps} of {gpu.warps_per_sm} warps fit an SM, limited by {found.limited_by}"
        )
        each.append(f"{gpu.key}: shared memory can feed {style.percent(tile.fed(gpu))} of the FP32 "
                    f"peak; {warps}.")
    return (
        f"A thread with {tile.TM} × {tile.TN} elements of C reads {tile.fragments} floats for "
        f"{style.plural(tile.accumulators, 'multiply-add')}, and needs {tile.registers} registers: "
        f"{tile.accumulators} for sums, {tile.fragments} for those floats, about "
        f"{OTHER_REGISTERS} for the rest. " + " ".join(each)
    )
