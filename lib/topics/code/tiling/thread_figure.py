"""What does a thread's tile of C buy and cost? Reuse and registers, on three GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from lib.gpus import Gpu
from lib.show.scene import Drawing, Scene, bar, column, row, words
from lib.show.words import number, percent, plural
from lib.topics.code.tiling.model import OTHER_REGISTERS, ThreadTile
from lib.topics.limits.occupancy.model import MAX_REGISTERS_PER_THREAD

_SIDE, _CELL = 150.0, 17.0  # px: the longest side of a tile, the largest element


def draw(tile: ThreadTile, gpus: Sequence[Gpu], threads: int, largest: int, *,
         evidence: str = "modelled: scalar loads, CUDA's occupancy rules") -> Scene:
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
    limit = MAX_REGISTERS_PER_THREAD
    rows = []
    for gpu in gpus:
        occupancy = tile.occupancy(gpu, threads)
        warps = ("its registers spill" if occupancy is None else
                 f"{occupancy.warps} of {gpu.warps_per_sm} warps, limited by "
                 f"{occupancy.limited_by}")
        rows += [words(gpu.key, bold=True), bar([(min(tile.fed(gpu), 1), "load")], 330, 11),
                 words(f"{percent(tile.fed(gpu))} of its peak fed; {warps}")]
    return Scene(
        f"{tile.TM} × {tile.TN}: {tile.fragments} floats feed "
        f"{plural(tile.accumulators, 'multiply-add')}, {number(tile.flop_per_load)} FLOP per float",
        row(column(words(f"{tile.TM} × {tile.TN} elements per thread", bold=True),
                   words(f"one k: {tile.fragments} floats, "
                         f"{plural(tile.accumulators, 'multiply-add')}"),
                   _tile(tile, largest).html(), width=250),
            column(words(f"{tile.registers} registers per thread"
                         + ("" if tile.fits else ": they spill"), bold=True),
                   bar([(tile.accumulators / limit, "compute"), (tile.fragments / limit, "load"),
                        (OTHER_REGISTERS / limit, "other")]),
                   words(f"{tile.accumulators} for sums, {tile.fragments} for the floats of one "
                         f"k, about {OTHER_REGISTERS} for the rest; the bar ends at {limit}, the "
                         "most a thread can have"),
                   words(f"a block of {threads} threads, {tile.shared_bytes / 1024:g} KiB of "
                         "shared memory", bold=True), *rows, width=330)),
        evidence)


def _tile(tile: ThreadTile, largest: int) -> Drawing:
    """The floats of A and of B for one k, and the sums that they meet in."""
    cell = min(_SIDE / largest, _CELL)
    left, top = cell + 24, cell + 10
    side = cell - 1
    drawing = Drawing(left + largest * cell + 18, top + largest * cell)
    drawing.boxes([(16, top + i * cell, side, side) for i in range(tile.TM)]
                  + [(left + i * cell, 2, side, side) for i in range(tile.TN)], "load")
    drawing.boxes([(left + j * cell, top + i * cell, side, side)
                   for i in range(tile.TM) for j in range(tile.TN)], "compute")
    for x, y, name in ((2.0, top + 11, "A"), (left + tile.TN * cell + 4, 11.0, "B"),
                       (left + tile.TN * cell + 4, top + 11, "C")):
        drawing.text(x, y, name, bold=True)
    return drawing
