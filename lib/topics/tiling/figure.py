"""What does a tile size buy and cost? Reuse, shared memory and resident warps, for one GPU."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.gpus import Gpu
from lib.plotting import shapes, style
from lib.topics.tiling.model import Tile

_HEIGHT, _PITCH = 196.0, 2.15  # pt; pt an element
_NAME, _BAR, _ROW = 206.0, 296.0, 62.0


@style.styled
def draw(tile: Tile, gpu: Gpu, *, evidence: str | None = None) -> Figure:
    """Draw one tile size on one GPU.

    Parameters
    ----------
    tile : Tile
        ``models.tiling.square_tile``.
    gpu : Gpu
        The GPU it was computed for.
    evidence : str, optional
    """
    fig = style.figure(_finding(tile, gpu), _HEIGHT / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, _HEIGHT / 72, bare=True)
    _tiles(ax, tile.T)
    occupancy = tile.occupancy
    top = _HEIGHT - 2
    for heading, share, cut, colour, below in (
        (
            f"{style.number(tile.intensity)} FLOP for each byte loaded",
            tile.intensity / gpu.fp32_ridge, 1, style.PHASE["compute"],
            f"of the {style.number(gpu.fp32_ridge)} at which {gpu.key}'s DRAM could feed its FP32 "
            f"peak",
        ),
        (
            f"{tile.shared_bytes / 1024:g} KiB of shared memory a block, "
            f"{style.plural(occupancy.blocks, 'block')} an SM",
            occupancy.used["shared memory"], occupancy.blocks, style.PHASE["load"],
            f"of the SM's {gpu.shared_bytes_per_sm // 1024} KiB",
        ),
        (
            f"{occupancy.warps} warps resident: limited by {occupancy.limited_by}",
            occupancy.fraction, occupancy.blocks, style.PHASE["barrier"],
            f"of the {gpu.warps_per_sm} that an SM of {gpu.key} can hold",
        ),
    ):
        _bar(ax, top, heading, min(share, 1.0), cut, colour, f"{style.percent(share)} {below}")
        top -= _ROW
    return style.finish(
        fig, alt=_alt(tile, gpu),
        evidence=evidence or f"modelled: data sheet of {gpu.name}, CUDA's occupancy rules",
    )


def _tiles(ax: Axes, T: int) -> None:
    """A's tile, B's tile and C's tile to scale: a row of one and a column of the other meet."""
    side, gap = T * _PITCH, 12.0
    largest = 32 * _PITCH
    a = (8.0 + largest - side, _HEIGHT - 44 - largest - gap - side)
    c = (8.0 + largest + gap, a[1])
    b = (c[0], _HEIGHT - 44 - largest)
    row = 0.4 * side
    for (x, y), letter, at in (
        (a, "A", (a[0], a[1] + side + 3)),
        (b, "B", (b[0], b[1] + side + 3)),
        (c, "C", (c[0] + side + 5, c[1] + side - 11)),
    ):
        colour = style.PHASE["compute" if letter == "C" else "load"]
        shapes.rectangles(ax, [(x, y, side, side)], facecolor=colour, alpha=style.PALE)
        shapes.rectangles(ax, [(x, y, side, side)], facecolor="none", edgecolor=style.INK,
                          linewidth=0.7)
        ax.text(*at, letter, size=style.LARGE, weight="bold", va="bottom")
    shapes.rectangles(ax, [(a[0], a[1] + row, side, _PITCH), (b[0] + row, b[1], _PITCH, side)],
                      facecolor=style.PHASE["load"])
    shapes.rectangles(ax, [(c[0] + row - 1, c[1] + row - 1, _PITCH + 2, _PITCH + 2)],
                      facecolor=style.FOCUS)
    ax.text(0, _HEIGHT - 2, f"{T} × {T} tiles, {T * T:,} threads", size=style.NORMAL,
            weight="bold", va="top")
    ax.text(0, _HEIGHT - 17, f"each element loaded is used {T} times", size=style.SMALL, va="top")


def _bar(
    ax: Axes, top: float, heading: str, share: float, parts: int, colour: str, below: str
) -> None:
    ax.text(_NAME, top, heading, size=style.NORMAL, weight="bold", va="top")
    y = top - 29
    part = share * _BAR / parts
    cut = 1.0 if parts > 1 and part > 4 else 0.0
    shapes.rectangles(ax, [(_NAME + i * part, y, part - cut, 12) for i in range(parts)],
                      facecolor=colour)
    shapes.rectangles(ax, [(_NAME, y, _BAR, 12)], facecolor="none", edgecolor=style.INK,
                      linewidth=0.6, alpha=0.7)
    ax.text(_NAME, y - 4, below, size=style.SMALL, va="top")


def _finding(tile: Tile, gpu: Gpu) -> str:
    return (
        f"T = {tile.T}: tiles straight from DRAM feed "
        f"{style.percent(tile.intensity / gpu.fp32_ridge)} of {gpu.key}'s FP32 peak"
        if tile.intensity < gpu.fp32_ridge
        else f"T = {tile.T}: DRAM is no longer the limit of {gpu.key}"
    )


def _alt(tile: Tile, gpu: Gpu) -> str:
    one = tile.occupancy
    return (
        f"Tiles of {tile.T} × {tile.T} on {gpu.key}: each element loaded is used {tile.T} times, "
        f"{style.number(tile.intensity)} FLOP for each byte, where {style.number(gpu.fp32_ridge)} "
        f"would let DRAM feed the FP32 peak; {tile.shared_bytes:,} bytes of shared memory a block; "
        f"{style.plural(one.blocks, 'block')} and {one.warps} of {gpu.warps_per_sm} warps an SM, "
        f"limited by {one.limited_by}."
    )
