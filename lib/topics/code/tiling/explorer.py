"""An explorer of a thread's tile."""

from __future__ import annotations

from collections.abc import Sequence

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.show.scene import Scene
from lib.topics.code.tiling import model as tiling
from lib.topics.code.tiling import thread_figure

SIZES: tuple[int, ...] = (1, 2, 4, 8, 16)
SHOWN_FIRST = 8
SIDE = 16  # 16 × 16 threads per block, as in 04_register_tile


def thread_tiles(columns: Sequence[int] = SIZES) -> Explorer:
    """A thread's tile of C against shared loads, registers and occupancy.

    Parameters
    ----------
    columns : sequence of int
        TN to choose from; a single one gets no control.
    """
    choices = [("Rows per thread, TM", SIZES)]
    if len(columns) > 1:
        choices.append(("Columns per thread, TN", tuple(columns)))
    sheets = [GPUS[key] for key in ("T4", "A100", "H100")]

    def frame(TM: int, TN: int = columns[0]) -> Scene:
        made = tiling.thread_tile(TM, TN, rows=SIDE, columns=SIDE)
        return thread_figure.draw(made, sheets, SIDE * SIDE, max(SIZES))

    return Explorer([Control.of(label, sizes, sizes.index(SHOWN_FIRST), slider=True)
                     for label, sizes in choices],
                    frame, "A thread's tile, its loads and its registers")
