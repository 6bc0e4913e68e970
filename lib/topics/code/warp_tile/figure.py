"""What do the shape of a warp's tile and the order of its lanes cost in shared memory?"""

from __future__ import annotations

from collections.abc import Sequence

from lib.gpus import Gpu
from lib.show.scene import Drawing, Grid, Scene, bar, column, row, words
from lib.show.words import number, percent, plural
from lib.topics.code.warp_tile.model import GROUP, WarpTile
from lib.topics.limits.occupancy.model import MAX_REGISTERS_PER_THREAD

_CELL = (22.0, 17.0)  # px
_FULL = 130.0  # px: as long as the multiply-adds take


def draw(tile: WarpTile, gpus: Sequence[Gpu], *,
         evidence: str = "modelled: wavefronts of 128-bit loads, data sheets") -> Scene:
    """Draw one warp's tile, and of each GPU's data sheet how long its shared memory takes."""
    loads = []
    for name, count, each in zip(("As", "Bs"), tile.loads, tile.wavefronts_a_load, strict=True):
        colour = "good" if each == 2 else "warning"
        passes = Drawing(count * each * 11 + count * 6, 11).boxes(
            [(i * 11 + i // each * 6, 0, 9, 11) for i in range(count * each)], colour)
        loads.append(row(words(f"{plural(count, 'load')} of {name}, {each} wavefronts each"),
                         passes.html()))
    limit = MAX_REGISTERS_PER_THREAD
    return Scene(
        f"{tile.WM} × {tile.WN}, {'in pairs' if tile.paired else 'row by row'}: "
        f"{number(tile.wavefronts_per_fma)} wavefronts for each multiply-add of a warp",
        row(column(words(f"{tile.WM} × {tile.WN} elements a warp", bold=True),
                   words(f"lanes {tile.lanes} down, {tile.across} across; each has "
                         f"{tile.TM} × {tile.TN}, in groups of {GROUP} × {GROUP}: "
                         f"{tile.loads[0]} down, {tile.loads[1]} across"),
                   _lanes(tile).html(), words("filled: lanes 0 to 7, a quarter of the warp"),
                   width=236),
            column(words(f"{tile.wavefronts} wavefronts for {tile.accumulators} multiply-adds",
                         bold=True), *loads,
                   words(f"{tile.accumulators + tile.fragments} registers for sums and floats",
                         bold=True),
                   bar([(tile.accumulators / limit, "compute"), (tile.fragments / limit, "load")]),
                   words(f"{tile.accumulators} for sums, {tile.fragments} for the floats of one "
                         f"k; a thread can have {limit}"),
                   words("time of shared memory, over that of the multiply-adds", bold=True),
                   _times(tile, gpus).html(), width=349)),
        evidence)


def _times(tile: WarpTile, gpus: Sequence[Gpu]) -> Drawing:
    drawing = Drawing(349, 18.0 * len(gpus))
    for place, gpu in enumerate(gpus):
        y, share = 18.0 * place, tile.load(gpu)
        drawing.text(0, y + 11, gpu.key, bold=True)
        drawing.boxes([(44, y + 1, _FULL * min(share, 1.7), 11)],
                      "warning" if share > 1 else "load").frames([(44, y + 1, _FULL, 11)])
        drawing.text(50 + _FULL * max(1.0, min(share, 1.7)), y + 11,
                     percent(share) + (": the limit" if share > 1 else ""))
    return drawing


def _lanes(tile: WarpTile) -> Drawing:
    """The lanes of the warp, as they lie in its tile, beside the floats that they share."""
    grid = Grid(tile.lanes, tile.across, _CELL, corner="As", left=32)
    grid.text(grid.width + 4, 14, "Bs")
    grid.boxes([(x + 1, 4, w - 2, 9) for x, _, w, _ in (
        grid.box(0, at) for at in range(tile.across))], "load")
    grid.boxes([(grid.left - 13, y + 1, 9, h - 2) for _, y, _, h in (
        grid.box(at, 0) for at in range(tile.lanes))], "load")
    for lane, place in enumerate(tile.places):
        x, y, w, h = grid.box(*place)
        box = (x + 1, y + 1, w - 2, h - 2)
        if lane < 16:
            grid.boxes([box], "compute", pale=lane >= 8)
        grid.frames([box]).label(box, lane, over="compute" if lane < 8 else "")
    return grid
