"""Who computes what? C with a block, a warp and a thread in it, and what they read of A and B."""

from __future__ import annotations

from lib.plotting.display import show
from lib.show.scene import Box, Drawing, Scene, column, key, row, words
from lib.show.words import plural
from lib.topics.code.mapping import model as mapping
from lib.topics.code.mapping.model import Region, Work
from lib.topics.version import Version

_SIDE, _GAP, _LEFT, _TOP, _ZOOM = 136.0, 14.0, 16.0, 18.0, 230.0  # px


def draw(work: Work, *, title: str | None = None,
         evidence: str = "modelled: launch configuration") -> Scene:
    """Draw A, B and C, and the block enlarged."""
    warp, thread = (sum(r.rows * r.columns for r in regions)
                    for regions in (work.warp, work.thread))
    return Scene(title or _finding(work), row(_matrices(work).html(), column(
        words(f"one block: {work.block.text()} of C", bold=True), _block(work).html(),
        key(("compute", f"one warp: {plural(warp, 'element')}", False),
            ("focus", f"one thread: {plural(thread, 'element')}", False),
            ("load", f"{work.step}: a {work.reader} reads {work.a_step.text()} of A and "
             f"{work.b_step.text()} of B", False)), width=330)),
        evidence, f"drawn for M = {work.M}, N = {work.N}, K = {work.K}")


def shown(version: Version, variant: str | None = None) -> None:
    """Display who computes what, from the stores and the launch of the traced run.

    Where the copy engine stores C, from the same tiles stored by the lanes that computed them.
    """
    show(draw(mapping.work(version.stored_by_lanes(variant)), evidence=version.emulated_label()))


def _box(left: float, top: float, region: Region, scale: float, least: float = 0.0) -> Box:
    """Where a region lies, grown about its middle so that it can be seen."""
    wide, tall = (max(size * scale, least) for size in (region.columns, region.rows))
    return (left + (region.column + region.columns / 2) * scale - wide / 2,
            top + (region.row + region.rows / 2) * scale - tall / 2, wide, tall)


def _matrices(work: Work) -> Drawing:
    scale = _SIDE / max(work.M, work.N, work.K)
    right, under = _LEFT + work.K * scale + _GAP, _TOP + work.K * scale + _GAP
    drawing = Drawing(right + work.N * scale + 1, under + work.M * scale + 18)
    rows = Region(work.a_step.row, 0, work.a_step.rows, work.K)
    columns = Region(0, work.b_step.column, work.K, work.b_step.columns)
    drawing.boxes([_box(_LEFT, under, rows, scale, 2.5), _box(right, _TOP, columns, scale, 2.5)],
                  "load", pale=True)
    drawing.boxes([_box(_LEFT, under, work.a_step, scale, 4),
                   _box(right, _TOP, work.b_step, scale, 4)], "load")
    drawing.boxes([_box(right, under, work.block, scale)], "compute")
    drawing.grid((right, under, work.N * scale, work.M * scale), -(-work.M // work.block.rows),
                 -(-work.N // work.block.columns))
    drawing.frames([(_LEFT, under, work.K * scale, work.M * scale),
                    (right, _TOP, work.N * scale, work.K * scale),
                    (right, under, work.N * scale, work.M * scale)])
    drawing.text(_LEFT, under - 5, "A", bold=True).text(right - _GAP, under - 5, "K →", "end")
    drawing.text(right - 5, _TOP + 11, "B", "end", bold=True).text(right - 5, under - _GAP, "K ↓",
                                                                  "end")
    drawing.text(right, under + work.M * scale + 14, "C", bold=True)
    drawing.text(right + work.N * scale, under + work.M * scale + 14, "N →", "end")
    return drawing.text(_LEFT, under + work.M * scale + 14, "M ↓")


def _block(work: Work) -> Drawing:
    """The block enlarged: its warp and its thread."""
    block = work.block
    scale = _ZOOM / max(block.rows, block.columns)
    left, top = -block.column * scale + 1, -block.row * scale + 1
    drawing = Drawing(block.columns * scale + 2, block.rows * scale + 2)
    drawing.boxes([_box(left, top, block, scale)], "compute", pale=True)
    drawing.boxes([_box(left, top, region, scale, 3) for region in work.warp], "compute")
    drawing.boxes([_box(left, top, region, scale, 6) for region in work.thread], "focus")
    return drawing.frames([_box(left, top, block, scale)])


def _finding(work: Work) -> str:
    flop = 2 * sum(
        r.rows * r.columns for r in ([work.block] if work.reader == "block" else work.warp)
    ) * work.a_step.columns
    read = work.a_step.rows * work.a_step.columns + work.b_step.rows * work.b_step.columns
    return (
        f"{work.step[0].upper() + work.step[1:]}: a {work.reader} reads "
        f"{read:,} different elements for {flop:,} FLOP"
    )
