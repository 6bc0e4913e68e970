"""Who computes what? C with a block, a warp and a thread in it, and what they read of A and B."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.display import both
from lib.topics.code.mapping import model as mapping
from lib.topics.code.mapping.model import Region, Work
from lib.topics.version import Version

_SIDE, _GAP, _ZOOM = 118.0, 20.0, 176.0
_NARROW_SIDE = 104.0
_WORDS = 168.0  # what stands above and below the enlarged block


@style.styled
def draw(
    work: Work, *, title: str | None = None, evidence: str = "modelled: launch configuration",
    narrow: bool = False,
) -> Figure:
    """Draw A, B and C, and the block enlarged."""
    scale = (_NARROW_SIDE if narrow else _SIDE) / max(work.M, work.N, work.K)
    tall = 16 + work.K * scale + _GAP + work.M * scale + 16
    block = 52 + _ZOOM * work.block.rows / max(work.block.rows, work.block.columns) + 40
    height = tall + block if narrow else max(tall, block)
    fig, ax = style.canvas(title or _finding(work), height, narrow)
    a_left, top = 14.0, height - 16
    c_left = a_left + work.K * scale + _GAP
    c_top = top - work.K * scale - _GAP
    _operands(ax, work, scale, (a_left, c_top), (c_left, top), (c_left, c_top))
    left = 14.0 if narrow else _zoom_left(work)
    _zoom(ax, work, scale, (c_left, c_top), left, block if narrow else height, narrow)
    return style.finish(fig, alt=_alt(work), evidence=evidence,
                        note=f"drawn for M = {work.M}, N = {work.N}, K = {work.K}")


def shown(version: Version, variant: str | None = None) -> None:
    """Display who computes what, from the stores and the launch of the traced run.

    Where the copy engine stores C, from the same tiles stored by the lanes that computed them.
    """
    both(draw, mapping.work(version.stored_by_lanes(variant)), evidence=version.emulated_label())


def _box(
    origin: tuple[float, float], region: Region, scale: float
) -> tuple[float, float, float, float]:
    left, top = origin
    return (
        left + region.column * scale,
        top - (region.row + region.rows) * scale,
        region.columns * scale,
        region.rows * scale,
    )


def _at_least(box: tuple[float, float, float, float], size: float = 2.0) -> tuple[
    float, float, float, float
]:
    """Grow a box about its middle to at least `size` points, so that it can be seen."""
    x, y, w, h = box
    wide, tall = max(w, size), max(h, size)
    return x - (wide - w) / 2, y - (tall - h) / 2, wide, tall


def _operands(
    ax: Axes, work: Work, scale: float, a: tuple[float, float], b: tuple[float, float],
    c: tuple[float, float],
) -> None:
    load, compute = style.PHASE["load"], style.PHASE["compute"]
    block = work.block
    rows_of_a = Region(work.a_step.row, 0, work.a_step.rows, work.K)
    columns_of_b = Region(0, work.b_step.column, work.K, work.b_step.columns)
    for origin, region, step in ((a, rows_of_a, work.a_step), (b, columns_of_b, work.b_step)):
        shapes.rectangles(ax, [_at_least(_box(origin, region, scale))], facecolor=load,
                          alpha=style.PALE)
        shapes.rectangles(ax, [_at_least(_box(origin, step, scale), 3.2)], facecolor=load)
    for column in range(0, work.N, block.columns):
        for row in range(0, work.M, block.rows):
            shapes.rectangles(
                ax,
                [_box(c, Region(row, column, min(block.rows, work.M - row),
                                min(block.columns, work.N - column)), scale)],
                facecolor="none", edgecolor=style.INK, linewidth=0.4, alpha=0.4,
            )
    shapes.rectangles(ax, [_box(c, block, scale)], facecolor=compute)
    for origin, rows, columns in ((a, work.M, work.K), (b, work.K, work.N), (c, work.M, work.N)):
        shapes.frames(ax, [_box(origin, Region(0, 0, rows, columns), scale)], 0.9)
    bold: dict[str, Any] = {"size": style.LARGE, "weight": "bold"}
    ax.text(a[0], a[1] + 4, "A", va="bottom", **bold)
    ax.text(a[0] + work.K * scale, a[1] + 5, "K →", ha="right", va="bottom")
    ax.text(b[0] - 6, b[1], "B", ha="right", va="top", **bold)
    ax.text(b[0] - 6, b[1] - work.K * scale, "K ↓", ha="right", va="bottom")
    ax.text(c[0], c[1] - work.M * scale - 3, "C", va="top", **bold)
    ax.text(c[0] + work.N * scale, c[1] - work.M * scale - 4, "N →", ha="right", va="top")
    ax.text(a[0] - 4, a[1] - work.M * scale, "M ↓", ha="right", va="bottom", rotation=90)


def _zoom_left(work: Work) -> float:
    """Where the enlarged block begins, at the right of the matrices."""
    longest = max(work.block.rows, work.block.columns)
    return style.WIDTH * 72 - 16 - max(work.block.columns * _ZOOM / longest, _WORDS)


def _zoom(
    ax: Axes, work: Work, scale: float, c: tuple[float, float], left: float, height: float,
    under: bool,
) -> None:
    """The block enlarged: its warp and its thread, and in words what one step reads."""
    block, compute = work.block, style.PHASE["compute"]
    larger = _ZOOM / max(block.rows, block.columns)
    top = height - 46
    corner = _box(c, block, scale)
    if not under:
        edge = corner[0] + corner[2]
        shapes.strokes(ax, [((edge, corner[1] + corner[3]), (left, top)),
                            ((edge, corner[1]), (left, top - block.rows * larger))],
                       linewidth=0.6, alpha=0.5)

    def inside(region: Region) -> tuple[float, float, float, float]:
        local = Region(region.row - block.row, region.column - block.column, region.rows,
                       region.columns)
        return _box((left, top), local, larger)

    shapes.rectangles(ax, [inside(block)], facecolor=compute, alpha=style.PALE)
    shapes.rectangles(ax, [_at_least(inside(w), 3) for w in work.warp], facecolor=compute)
    shapes.rectangles(ax, [_at_least(inside(t), 5) for t in work.thread], facecolor=style.FOCUS)
    shapes.frames(ax, [inside(block)], 0.9)
    warp = sum(r.rows * r.columns for r in work.warp)
    thread = sum(r.rows * r.columns for r in work.thread)
    ax.text(left, top + 29, f"one block: {block.text()} of C", size=style.NORMAL, weight="bold",
            va="bottom")
    y = top + 5
    for colour, text in (
        (style.FOCUS, f"one thread: {style.plural(thread, 'element')}"),
        (compute, f"one warp: {style.plural(warp, 'element')}"),
    ):
        shapes.rectangles(ax, [(left, y, 7, 7)], facecolor=colour)
        ax.text(left + 10, y - 1, text, va="bottom")
        y += 12
    y = top - block.rows * larger - 6
    shapes.rectangles(ax, [(left, y - 10, 7, 7)], facecolor=style.PHASE["load"])
    ax.text(left + 10, y, f"{work.step}: a {work.reader} reads\n{work.a_step.text()} of A and "
                          f"{work.b_step.text()} of B", va="top", linespacing=1.2)


def _finding(work: Work) -> str:
    flop = 2 * sum(
        r.rows * r.columns for r in ([work.block] if work.reader == "block" else work.warp)
    ) * work.a_step.columns
    read = work.a_step.rows * work.a_step.columns + work.b_step.rows * work.b_step.columns
    return (
        f"{work.step[0].upper() + work.step[1:]}: a {work.reader} reads "
        f"{read:,} different elements for {flop:,} FLOP"
    )


def _alt(work: Work) -> str:
    block = work.block
    warp = sum(r.rows * r.columns for r in work.warp)
    thread = sum(r.rows * r.columns for r in work.thread)
    return (
        f"C ({work.M} × {work.N}) cut into blocks of {block.text()}. In the block at row "
        f"{block.row}, column {block.column}, a warp computes {style.plural(warp, 'element')} and "
        f"a thread {style.plural(thread, 'element')}. {work.step[0].upper() + work.step[1:]}: a "
        f"{work.reader} reads {work.a_step.text()} of A and {work.b_step.text()} of B."
    )
