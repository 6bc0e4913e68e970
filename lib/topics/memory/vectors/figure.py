"""Who loads a tile? The lanes of a block that have a vector of A or of B, and those that don't."""

from __future__ import annotations

from lib.plotting.display import show
from lib.ptx.core.machine import WARP
from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import number, plural
from lib.topics.memory.vectors.model import Step, TileLoad
from lib.topics.version import Version

_CELL = (9.0, 16.0)  # px


def draw(step: Step, *, evidence: str = "modelled: vector t to thread t",
         title: str | None = None) -> Scene:
    """Draw the load instructions of one step along K."""
    sectors = f"{number(step.sectors)} {'sector' if step.sectors == 1 else 'sectors'}"
    return Scene(title or _finding(step), row(*(
        column(words(f"{name}: {load.rows}×{load.columns}", bold=True),
               words(f"{load.vectors:,} vectors of {2 * load.width} bytes; lanes with work"
                     + ("" if load.loads == 1 else f", {load.loads} times") + ":"),
               _lanes(load, step.threads // WARP),
               words(f"{plural(load.instructions, 'load instruction')}, {load.requests} with work"))
        for name, load in (("A", step.a), ("B", step.b))))
        + words(f"{number(step.instructions)} load instructions and {sectors} for a product of "
                "16×8×8", bold=True)
        + words(f"{step.nbytes:,} bytes under way in a block, whatever the width"), evidence)


def shown(version: Version, variant: str | None = None) -> None:
    """Display which lanes of a block have a vector of A and of B to load in a step."""
    chosen = version.kernel.variant(variant)
    show(draw(Step(*chosen.tile, chosen.step, chosen.threads, chosen.schedule.vec)))


def _lanes(load: TileLoad, warps: int) -> str:
    grid = Grid(warps, WARP, _CELL, across={lane: lane for lane in (0, 8, 16, 24, 31)},
                down={warp: f"warp {warp}" for warp in range(warps)}, left=50)
    boxes: dict[bool, list[Box]] = {True: [], False: []}
    for warp in range(warps):
        for lane in range(WARP):
            x, y, w, h = grid.box(warp, lane)
            boxes[bool(load.at_work[0, warp, lane])].append((x + 1, y + 1, w - 2, h - 2))
    return grid.boxes(boxes[True], "load").frames(boxes[False], faint=True).html()


def _finding(step: Step) -> str:
    a, b = step.a, step.b
    where = f"{step.M}×{step.N}×{step.K}, {16 * step.width} bits a lane"
    lanes = (a.vectors + b.vectors) / (a.instructions + b.instructions)
    if lanes == WARP:
        return f"{where}: every lane of every load has work"
    if all(load.vectors % WARP == 0 for load in (a, b)):  # whole warps, or none of it
        return (f"{where}: {a.requests + b.requests} of {a.instructions + b.instructions} load "
                f"instructions have work, and these bring all {step.nbytes:,} bytes")
    return f"{where}: {number(lanes)} of 32 lanes have work in a load"
