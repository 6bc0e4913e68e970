"""What does a staged tile leave of the traffic? The tile and its warps; what each level feeds."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.limits.roofline.model import Roofs
from lib.topics.memory.staging.model import Staging

_HEIGHT, _LARGEST = 204.0, 256  # pt; elements along a side of the largest block
_SIDE, _STRIP, _GAP = 112.0, 10.0, 7.0
_NAME, _BAR, _ROW = 206.0, 296.0, 60.0
_NARROW_BAR, _NARROW_ROW, _PICTURE = 240.0, 66.0, 182.0
_WHERE = {
    "L1/shared": "L1 and shared memory", "L2": "the L2", "DRAM": "DRAM, each element once",
}


@style.styled
def draw(
    staging: Staging, roofs: Roofs, *, gpu: str, peak: str = "tensor", n: int = 4096,
    narrow: bool = False,
) -> Figure:
    """Draw one block and warp tile on one GPU.

    Parameters
    ----------
    staging : Staging
    roofs : Roofs
        Bandwidths and peaks of the GPU; a level whose bandwidth is not known gets no bar.
    gpu : str
        Its name.
    peak : str
        Key of ``roofs.peaks``: what is to be fed.
    n : int
        M = N = K.
    """
    fed = staging.fed(roofs, n, peak)
    fig, ax, height = _canvas(_finding(staging, fed, gpu), narrow)
    _tile(ax, staging, height)
    left, bar, row = (0.0, _NARROW_BAR, _NARROW_ROW) if narrow else (_NAME, _BAR, _ROW)
    top = height - (_PICTURE if narrow else 2)
    lowest = min(fed, key=lambda level: fed[level])
    for level, where in _WHERE.items():
        intensity = staging.intensity(level, n)
        ax.text(left, top, f"{style.number(intensity)} FLOP for a byte of "
                f"{level if narrow else where}",
                size=style.NORMAL, weight="bold", va="top")
        y = top - 29
        if level in fed:
            share = fed[level]
            tight = level == lowest and share < 1
            shapes.share(ax, (left, y, bar, 12), share,
                        style.WARNING if tight else style.PHASE["load"])
            below = (f"feeds {style.percent(share)} of the tensor peak;",
                     f"all of it takes {style.number(roofs.ridge(level, peak))}")
        else:
            need = style.quantity(roofs.peaks[peak] / intensity, "B/s")
            below = ("its bandwidth is not given:", f"the peak would need {need}")
        ax.text(left, y - 4 if level in fed else y + 12, ("\n" if narrow else " ").join(below),
                va="top", linespacing=1.2)
        top -= row
    return style.finish(fig, alt=_alt(staging, fed, gpu, n), evidence=roofs.evidence,
                        note="DRAM: each element once" if narrow else "")


def _canvas(title: str, narrow: bool) -> tuple[style.Drawing, Axes, float]:
    height = _PICTURE + len(_WHERE) * _NARROW_ROW if narrow else _HEIGHT
    return *style.canvas(title, height, narrow), height


def _tile(ax: Axes, staging: Staging, under: float) -> None:
    """The block's tile of C, cut into warps, with the strips of A and B that it reads."""
    rows, columns = staging.block or staging.warp
    scale = _SIDE / _LARGEST
    what = f"a block's tile, {rows} × {columns}" if staging.block else "no tile: a warp alone"
    ax.text(0, under - 2, what, size=style.NORMAL, weight="bold", va="top")
    warps = style.plural(staging.warps, "warp")
    each = f"{staging.warp[0]} × {staging.warp[1]}"
    ax.text(0, under - 17, f"{warps} of {each}, {style.plural(staging.sums, 'sum')} a lane",
            va="top")
    height, width = rows * scale, columns * scale
    left, top = 30.0, under - 60.0
    strips = [
        (left - _GAP - _STRIP, top - height, _STRIP, height), (left, top + _GAP, width, _STRIP),
    ]
    shapes.rectangles(ax, strips, facecolor=style.PHASE["load"])
    shapes.rectangles(ax, [(left, top - height, width, height)],
                      facecolor=style.PHASE["compute"], alpha=style.PALE)
    down, across = (size * scale for size in staging.warp)
    shapes.rectangles(ax, [(left, top - down, across, down)], facecolor=style.PHASE["compute"])
    shapes.grid(ax, left, top, (round(height / down), round(width / across)), (down, across),
                linewidth=0.6, alpha=1.0)
    ax.text(left - _GAP - _STRIP - 3, top - height / 2, "A", size=style.NORMAL, weight="bold",
            ha="right", va="center")
    ax.text(left + width / 2, top + _GAP + _STRIP + 2, "B", size=style.NORMAL, weight="bold",
            ha="center", va="bottom")
    ax.text(left + width + 4, top - height, "C", size=style.NORMAL, weight="bold", va="bottom")


def _name(staging: Staging) -> str:
    warp = f"warps of {staging.warp[0]}×{staging.warp[1]}"
    return f"{staging.block[0]}×{staging.block[1]}, {warp}" if staging.block else f"No tile, {warp}"


def _finding(staging: Staging, fed: Mapping[str, float], gpu: str) -> str:
    lowest = min(fed, key=lambda level: fed[level])
    if fed[lowest] >= 1:
        return f"{_name(staging)}: no level holds back the tensor cores of {gpu}"
    share = style.percent(fed[lowest])
    return f"{_name(staging)}: {lowest} feeds {share} of {gpu}'s tensor peak"


def _alt(staging: Staging, fed: Mapping[str, float], gpu: str, n: int) -> str:
    levels = "; ".join(
        f"{where}: {style.number(staging.intensity(level, n))} FLOP a byte"
        + (f", {style.percent(fed[level])} of the peak" if level in fed else "")
        for level, where in _WHERE.items()
    )
    return f"{_name(staging)} on {gpu}, n = {n:,}. {levels}."


@style.styled
def impossible(block: tuple[int, int], warp: tuple[int, int], *, narrow: bool = False) -> Figure:
    """Say that warps don't divide a block: the frame of an explorer."""
    title = f"Warps of {warp[0]}×{warp[1]} don't divide a tile of {block[0]}×{block[1]}"
    fig, ax, height = _canvas(title, narrow)
    ax.text(0, height - 30, "Take a larger block or smaller warps.", size=style.NORMAL, va="top")
    return style.finish(fig, alt=f"{title}: take a larger block or smaller warps.",
                        evidence="modelled: the block's tile")
