"""A tile as it lies in shared memory, its descriptor, and one element followed."""

from __future__ import annotations

from lib.show.scene import Grid, Scene, column, row, words
from lib.show.words import plural
from lib.topics.memory.operand.model import FIELDS, PER_LINE, START, Tile

_CELL, _LINES = (37.0, 17.0), 16  # px; lines that are drawn


def draw(tile: Tile, at_row: int, k: int, *,
         evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.15.5") -> Scene:
    """Draw where the tile's chunks lie, and say where one element is.

    Parameters
    ----------
    tile : Tile
        One with a descriptor.
    at_row, k : int
        The element: in the first 16 lines of 128 bytes.
    """
    place = tile.element(at_row, k)
    return Scene(
        f"Row {at_row}, k {k}: byte {place.address:,}, bank {place.bank}; "
        f"{plural(tile.wavefronts(at_row, k), 'wavefront')} for eight chunks",
        row(column(words(f"lines of 128 bytes from {START:,} on, r.c: chunk c of "
                         + ("row r" if tile.order == "K" else "k = r")),
                   _lines(tile, at_row, k).html()),
            column(*(words(text, bold=bold) for text, bold in _says(tile, at_row, k)))), evidence)


def _lines(tile: Tile, at_row: int, k: int) -> Grid:
    """Lines of 128 bytes; cells are chunks of 16."""
    places = (tile.places - START) // 16
    count = min(_LINES, 1 + int(places.max()) // PER_LINE)
    grid = Grid(count, PER_LINE, _CELL, across={group: 4 * group for group in range(PER_LINE)},
                down={line: line for line in range(count)}, corner="bank", left=36)
    colour = "warning" if tile.wavefronts(at_row, k) > 1 else "load"
    chunk, _ = tile.chunk(at_row, k)
    own = int(places[chunk])
    core = {(int(address) - START) // 16 for address in tile.core(at_row, k)} - {own}
    grid.boxes([grid.box(*divmod(at, PER_LINE)) for at in sorted(core) if at // PER_LINE < count],
               colour, pale=True)
    grid.boxes([grid.box(*divmod(own, PER_LINE))], colour)
    for down, line in enumerate(places.tolist()):
        for across, at in enumerate(line):
            if at // PER_LINE < count:
                grid.label(grid.box(*divmod(at, PER_LINE)), f"{down}.{across}",
                           over=colour if at == own else "")
    return grid.ruled()


def _says(tile: Tile, at_row: int, k: int) -> list[tuple[str, bool]]:
    """What stands beside the drawing: text, and whether it is a heading."""
    bits = tile.bits(at_row, k)
    lines: list[tuple[str, bool]] = [(f"{tile.reader}'s descriptor", True), (f"{bits:016x}", False)]
    for field in FIELDS[tile.reader]:
        value = bits >> field.low & (1 << field.width) - 1
        size = f" = {value * 16:,} B / 16" if field.width == 14 else ""
        place = f"{field.low + field.width - 1}–{field.low}" if field.width > 1 else f"{field.low}"
        lines.append((f"{place}  {field.name}: {value}{size}", False))
    holder = tile.holder(at_row, k)
    if holder:
        lines += [
            ("the same, if A comes from registers", True),
            (f"warp {holder.warp}, lane {holder.lane}, register {holder.register}", False),
            (f"element {holder.part} of {4 // tile.item} in it", False),
        ]
    return lines
