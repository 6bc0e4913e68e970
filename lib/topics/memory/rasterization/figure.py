"""What do the tiles that run together read? C with its first wave and its last one."""

from __future__ import annotations

from lib.show.scene import Box, Drawing, Scene, column, key, row, words
from lib.show.words import number, percent, plural, quantity
from lib.topics.code.mapping.model import regions
from lib.topics.memory.rasterization.model import Raster

_SIDE, _BAR, _LEFT, _TOP = 250.0, 13.0, 18.0, 18.0  # px


def draw(raster: Raster, *, what: str, l2_bytes: int,
         evidence: str = "modelled: all tiles take equally long") -> Scene:
    """Draw the waves of a product's tiles.

    Parameters
    ----------
    raster : Raster
    what : str
        The product and its tiles, for the finding.
    l2_bytes : int
        Size of the L2.
    """
    waves, first = plural(raster.waves, "wave"), quantity(raster.needed(0), "B")
    facts = (
        ("compute", f"the first of {waves}", False,
         f"{len(raster.wave(0))} tiles at the same time"),
        ("warning", "the last one", True,
         f"{plural(len(raster.wave(raster.waves - 1)), 'tile')}; all in all work for "
         f"{percent(raster.full)} of the time"),
        ("load", "what the first one reads", False,
         f"{first} of A and B; the L2 holds {quantity(l2_bytes, 'B')}"))
    return Scene(
        f"{what}: {waves}, {percent(raster.full)} busy; the first reads {first}",
        row(_tiles(raster).html(), column(
            *(column(key((colour, name, pale)), words(text)) for colour, name, pale, text in facts),
            column(words("through the L2, in all", bold=True),
                   words(f"{quantity(raster.from_l2, 'B')}, {number(raster.flop_per_l2_byte)} "
                         "FLOP a byte")), width=330)), evidence)


def _tiles(raster: Raster) -> Drawing:
    rows, columns = raster.rows * raster.cluster, raster.columns
    high, wide = _SIDE / rows, _SIDE / columns
    left, top = _LEFT + _BAR + 4, _TOP + _BAR + 4

    def boxes(tiles: tuple[tuple[int, int], ...]) -> list[Box]:
        return [(left + r.column * wide, top + r.row * high, r.columns * wide, r.rows * high)
                for r in regions(tiles)]

    first = raster.wave(0)
    drawing = Drawing(left + _SIDE + 1, top + _SIDE + 1)
    drawing.boxes(boxes(raster.wave(raster.waves - 1)), "warning", pale=True)
    drawing.boxes(boxes(first), "compute")
    drawing.boxes([(_LEFT, top + at * high, _BAR, high) for at in {r for r, _ in first}]
                  + [(left + at * wide, _TOP, wide, _BAR) for at in {c for _, c in first}], "load")
    if max(rows, columns) <= 64:
        drawing.grid((left, top, _SIDE, _SIDE), rows, columns)
    drawing.frames([(left, top, _SIDE, _SIDE)])
    return drawing.text(0, top + 12, "A", bold=True).text(left, _TOP - 5, "B", bold=True)
