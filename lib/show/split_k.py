"""A tile whose K several blocks of a cluster share, and how their sums come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.show.display import show
from lib.show.scene import Drawing, Grid, Scene, column, row, words
from lib.show.version import Version


@dataclass(frozen=True)
class Part:
    """What one of the blocks that share a tile does.

    Attributes
    ----------
    rank : int
    steps : range
        Of K, that it multiplies.
    rows : range
        Of the tile, that it adds up and stores.
    """

    rank: int
    steps: range
    rows: range


def parts(rows: int, steps: int, blocks: int) -> tuple[Part, ...]:
    """What each of some blocks does for a tile of so many rows and steps.

    Raises
    ------
    ValueError
        If the rows can't be shared equally.
    """
    if rows % blocks:
        raise ValueError(f"{rows} rows are no multiple of {blocks} blocks")
    share = rows // blocks
    return tuple(
        Part(rank, range(rank, steps, blocks), range(rank * share, (rank + 1) * share))
        for rank in range(blocks))


_BOX, _BETWEEN, _STRIP = 26.0, 14.0, 310.0  # px
_EVERY = {2: "second", 4: "fourth", 8: "eighth"}


def picture(parts: Sequence[Part], steps: int, *, evidence: str) -> Scene:
    """Draw of each block the steps that it multiplies, and the rows that it adds up of all sums.

    Parameters
    ----------
    parts : sequence of Part
        Of all blocks of a tile.
    steps : int
        Of K.
    """
    every = _EVERY.get(len(parts), f"{len(parts)}th")
    return Scene(
        f"Each of {len(parts)} blocks multiplies every {every} step of K, then adds up its "
        f"{len(parts[0].rows)} rows of all sums",
        column(*(row(words(f"block {part.rank}", bold=True), _steps(part, steps),
                     _sums(part, parts).html()) for part in parts)), evidence,
        f"left: its steps of K, of {steps}; right: the rows that it adds up, of the sums of each")


def _steps(part: Part, steps: int) -> str:
    grid = Grid(1, steps, (min(_STRIP / steps, 16.0), 18.0))
    return grid.boxes([grid.box(0, at) for at in part.steps], "compute").ruled().html()


def _sums(part: Part, parts: Sequence[Part]) -> Drawing:
    rows = max(other.rows.stop for other in parts)
    drawing = Drawing(len(parts) * (_BOX + _BETWEEN) - _BETWEEN + 1, _BOX + 2)
    boxes = [(other.rank * (_BOX + _BETWEEN) + 0.5, 1.0, _BOX, _BOX) for other in parts]
    drawing.boxes(boxes, "compute", pale=True).frames(boxes)
    drawing.boxes([(x, y + part.rows.start / rows * _BOX, w, len(part.rows) / rows * _BOX)
                   for x, y, w, _ in boxes], "focus")
    for x, *_ in boxes[1:]:
        drawing.text(x - _BETWEEN / 2, _BOX / 2 + 5, "+", "middle")
    return drawing


def draw(version: Version, variant: str | None = None, K: int = 1024) -> None:
    """Draw which steps each block multiplies, and which rows of all sums it adds up."""
    chosen = version.kernel.variant(variant)
    steps = -(-K // chosen.step)
    show(picture(parts(chosen.tile[0], steps, chosen.schedule.split), steps,
                     evidence=f"modelled: {version.kernel.stem}, {chosen.name}, K = {K:,}"))
