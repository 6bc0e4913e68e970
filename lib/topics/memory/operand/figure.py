"""A tile as it lies in shared memory, its descriptor, and one element followed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.operand.model import FIELDS, PER_LINE, START, Tile

_CELL, _ROW, _LEFT, _HEAD = 28.0, 13.0, 30.0, 34.0
_LINES = 16
_TEXT = _LEFT + PER_LINE * _CELL + 18
_HEIGHT = _HEAD + _LINES * _ROW + 16
_STEP = 13.0


@style.styled
def draw(
    tile: Tile, row: int, k: int, *, narrow: bool = False,
    evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.15.5",
) -> Figure:
    """Draw where the tile's chunks lie, and say where one element is.

    Parameters
    ----------
    tile : Tile
        One with a descriptor.
    row, k : int
        The element: in the first 16 lines of 128 bytes.
    narrow : bool
        What is said below the lines, for phones.
    """
    place = tile.element(row, k)
    finding = (f"Row {row}, k {k}: byte {place.address:,}, bank {place.bank}; "
               f"{style.plural(tile.wavefronts(row, k), 'wavefront')} for eight chunks")
    says = _says(tile, row, k)
    height = _HEIGHT + (_STEP * len(says) if narrow else 0)
    fig, ax = style.canvas(finding, height, narrow)
    _lines(ax, tile, row, k, height)
    left, top = (0.0, height - _HEIGHT) if narrow else (_TEXT, height)
    for number, (text, bold) in enumerate(says):
        ax.text(left, top - 2 - _STEP * number, text, va="top", weight="bold" if bold else "normal")
    alt = f"{finding}. {'. '.join(text for text, _ in says if text)}."
    return style.finish(fig, alt=alt, evidence=evidence)


def _lines(ax: Axes, tile: Tile, row: int, k: int, height: float) -> None:
    """Lines of 128 bytes; cells are chunks of 16."""
    top = height - _HEAD
    at = (tile.places - START) // 16
    count = min(_LINES, 1 + int(at.max()) // PER_LINE)
    ax.text(0, height - 2, f"lines of 128 bytes from {START:,} on, r.c: chunk c of "
                           + ("row r" if tile.order == "K" else "k = r"), va="top")
    for group in range(PER_LINE):
        ax.text(_LEFT + (group + 0.5) * _CELL, top + 2, f"{4 * group}", ha="center", va="bottom")
    ax.text(_LEFT - 5, top + 2, "bank", ha="right", va="bottom")
    for line in range(count):
        ax.text(_LEFT - 5, top - (line + 0.5) * _ROW, f"{line}", ha="right", va="center")

    def box(place: int) -> tuple[float, float, float, float]:
        return (_LEFT + place % PER_LINE * _CELL, top - (place // PER_LINE + 1) * _ROW, _CELL, _ROW)

    colour = style.WARNING if tile.wavefronts(row, k) > 1 else style.PHASE["load"]
    chunk, _ = tile.chunk(row, k)
    own = int(at[chunk])
    core = [(int(address) - START) // 16 for address in tile.core(row, k)]
    shapes.rectangles(ax, [box(one) for one in core if one != own and one // PER_LINE < count],
                      facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, [box(own)], facecolor=colour)
    for down in range(at.shape[0]):
        for across in range(at.shape[1]):
            one = int(at[down, across])
            if one // PER_LINE < count:
                x, y, w, h = box(one)
                ax.text(x + w / 2, y + h / 2 - 0.5, f"{down}.{across}", ha="center", va="center",
                        color=style.on(colour) if one == own else style.INK)
    shapes.grid(ax, _LEFT, top, (count, PER_LINE), (_ROW, _CELL))


def _says(tile: Tile, row: int, k: int) -> list[tuple[str, bool]]:
    """What stands beside the drawing: text, and whether it is a heading."""
    bits = tile.bits(row, k)
    found: list[tuple[str, bool]] = [(f"{tile.reader}'s descriptor", True), (f"{bits:016x}", False)]
    for one in FIELDS[tile.reader]:
        value = bits >> one.low & (1 << one.width) - 1
        size = f" = {value * 16:,} B / 16" if one.width == 14 else ""
        place = f"{one.low + one.width - 1}–{one.low}" if one.width > 1 else f"{one.low}"
        found.append((f"{place}  {one.name}: {value}{size}", False))
    holder = tile.holder(row, k)
    if holder:
        found += [
            ("", False), ("the same, if A comes from registers", True),
            (f"warp {holder.warp}, lane {holder.lane}, register {holder.register}", False),
            (f"element {holder.part} of {4 // tile.item} in it", False),
        ]
    return found
