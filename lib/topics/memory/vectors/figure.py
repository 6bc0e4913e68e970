"""Who loads a tile? The lanes of a block that have a vector of A or of B, and those that don't."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.display import both
from lib.ptx.core.machine import WARP
from lib.topics.memory.vectors.model import Step, TileLoad
from lib.topics.version import Version

_LEFT, _CELL, _ROW, _HEAD, _GAP = 44.0, 6.2, 13.0, 62.0, 24.0
_IDLE = 0.22  # visible on a dark page, too
_WORDS = 66.0  # pt under the warps
_NARROW_ROW, _NARROW_WORDS, _BETWEEN = 11.0, 68.0, 24.0


@style.styled
def draw(
    step: Step, *, evidence: str = "modelled: vector t to thread t", title: str | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw the load instructions of one step along K.

    Parameters
    ----------
    step : Step
        What a block loads in a step.
    """
    warps = step.threads // WARP
    row, words = (_NARROW_ROW, _NARROW_WORDS) if narrow else (_ROW, _WORDS)
    tall = _HEAD + row * warps
    height = tall + (tall + _BETWEEN if narrow else 0) + words
    fig, ax = style.canvas(title or _finding(step), height, narrow)
    for number, (name, load) in enumerate((("A", step.a), ("B", step.b))):
        x, top = _LEFT + number * (WARP * _CELL + _GAP), height
        if narrow:
            x, top = _LEFT, height - number * (tall + _BETWEEN)
        _tile(ax, x, top, name, load, warps, row)
        if narrow or number == 0:
            for warp in range(warps):
                ax.text(_LEFT - 6, top - _HEAD - (warp + 0.5) * row, f"warp {warp}", ha="right",
                        va="center")
    said = (f"{style.number(step.instructions)} load instructions and", f"{_sectors(step)} for a "
            "product of 16×8×8")
    x, y = (0.0, words - 24) if narrow else (_LEFT, words - 42)
    ax.text(x, y, ("\n" if narrow else " ").join(said), size=style.NORMAL, weight="bold", va="top",
            linespacing=1.1)
    ax.text(x, y - (27 if narrow else 14), f"{step.nbytes:,} bytes under way in a block"
                                           + ("" if narrow else ", whatever the width"), va="top")
    return style.finish(fig, alt=_alt(step), evidence=evidence)


def shown(version: Version, variant: str | None = None) -> None:
    """Display which lanes of a block have a vector of A and of B to load in a step."""
    chosen = version.kernel.variant(variant)
    both(draw, Step(*chosen.tile, chosen.step, chosen.threads, chosen.schedule.vec))


def _tile(ax: Axes, x0: float, height: float, name: str, load: TileLoad, warps: int, high: float
          ) -> None:
    top = height - _HEAD
    ax.text(x0, height - 2, f"{name}: {load.rows}×{load.columns}", size=style.NORMAL,
            weight="bold", va="top")
    ax.text(x0, height - 16, f"{load.vectors:,} vectors of {2 * load.width} bytes", va="top")
    times = "" if load.loads == 1 else f", {load.loads} times"
    ax.text(x0, height - 29, f"lanes with work{times}", va="top")
    for lane in (0, 8, 16, 24, 31):
        ax.text(x0 + (lane + 0.5) * _CELL, top + 2, f"{lane}", ha="center", va="bottom")
    # A dash is a lane: a line for neighbours, not a box for each of a block's lanes.
    thick = high - 2.4
    dashes = (0, ((_CELL - 0.8) / thick, 0.8 / thick))  # of the line's width
    for warp in range(warps):
        y, work = top - (warp + 0.5) * high, load.at_work[0, warp]
        edges = [0, *(np.flatnonzero(np.diff(work)) + 1).tolist(), WARP]
        for first, end in pairwise(edges):
            shapes.strokes(
                ax, [((x0 + first * _CELL + 0.4, y), (x0 + end * _CELL - 0.4, y))],
                linewidth=thick, linestyle=dashes, capstyle="butt",
                **({"edgecolor": style.PHASE["load"]} if work[first] else
                   {"edgecolor": style.INK, "alpha": _IDLE}),
            )
    ax.text(x0, top - warps * high - 4, f"{style.plural(load.instructions, 'load instruction')}, "
                                        f"{load.requests} with work", va="top")


def _finding(step: Step) -> str:
    a, b = step.a, step.b
    where = f"{step.M}×{step.N}×{step.K}, {16 * step.width} bits a lane"
    lanes = (a.vectors + b.vectors) / (a.instructions + b.instructions)
    if lanes == WARP:
        return f"{where}: every lane of every load has work"
    if all(load.vectors % WARP == 0 for load in (a, b)):  # whole warps, or none of it
        return (f"{where}: {a.requests + b.requests} of {a.instructions + b.instructions} load "
                f"instructions have work, and these bring all {step.nbytes:,} bytes")
    return f"{where}: {style.number(lanes)} of 32 lanes have work in a load"


def _alt(step: Step) -> str:
    parts = [
        f"{name}, {load.rows}×{load.columns} halves: {load.vectors:,} vectors for {load.threads} "
        f"threads; {load.requests} of {style.plural(load.instructions, 'load instruction')} of "
        f"warps have work, {style.number(load.lanes)} lanes each on average."
        for name, load in (("A", step.a), ("B", step.b))
    ]
    return (
        f"{' '.join(parts)} For a product of 16×8×8 that is {style.number(step.instructions)} "
        f"load instructions and {_sectors(step)}; {step.nbytes:,} bytes are "
        "under way in a block."
    )


def _sectors(step: Step) -> str:
    return f"{style.number(step.sectors)} {'sector' if step.sectors == 1 else 'sectors'}"
