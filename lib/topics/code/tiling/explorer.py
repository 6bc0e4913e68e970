"""An explorer of a thread's tile."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.topics.code.tiling import model as tiling
from lib.topics.code.tiling import thread_figure as thread_tile_figure


def thread_tiles(
    rows: Sequence[int] = (1, 2, 4, 8, 16),
    columns: Sequence[int] = (1, 2, 4, 8, 16),
    gpus: Sequence[str] = ("T4", "A100", "H100"),
    default: int = 8,
) -> Explorer:
    """A thread's tile of C against shared loads, registers and occupancy.

    Parameters
    ----------
    rows, columns : sequence of int
        TM and TN to choose from; a single one gets no control.
    default : int
        The TM and TN shown first, where they can be chosen.
    """
    controls, fixed = [], {}
    for name, sizes in (("TM", rows), ("TN", columns)):
        if len(sizes) == 1:
            fixed[name] = sizes[0]
        else:
            label = f"{'Rows' if name == 'TM' else 'Columns'} per thread, {name}"
            controls.append(Control(
                label, [(str(size), size) for size in sizes], default=sizes.index(default),
                slider=True,
            ))
    sheets = [GPUS[key] for key in gpus]
    side = 16  # 16 × 16 threads per block, as in 04_register_tile

    def frame(*chosen: int, narrow: bool = False) -> Figure:
        left = iter(chosen)
        TM, TN = (fixed[name] if name in fixed else next(left) for name in ("TM", "TN"))
        made = tiling.thread_tile(TM, TN, rows=side, columns=side)
        return thread_tile_figure.draw(made, sheets, side * side, max(*rows, *columns),
                                       narrow=narrow)

    return Explorer(controls, frame, "A thread's tile, its loads and its registers")
