"""ldmatrix: which lane names which row, which lane gets what, and which banks the rows meet."""

from __future__ import annotations

from lib.plotting.display import show
from lib.ptx.core.machine import LINE
from lib.show import banks
from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import plural
from lib.topics.memory.ldmatrix.model import CHUNK, HALF, SIDE, MatrixLoad

_CELL = (38.0, 18.0)  # px: 16 bytes of a line


def draw(load: MatrixLoad, *, lane: int = 5, layout: str = "",
         evidence: str = "modelled: PTX ISA 9.7.14.5.15, 32 banks") -> Scene:
    """Draw one ldmatrix.

    Parameters
    ----------
    load : MatrixLoad
    lane : int
        The lane whose row is named, and whose elements are marked.
    layout : str
        What the tile's layout is called.
    """
    served = banks.describe(load.access, "ldmatrix")
    form = f"x{load.number}{'.trans' if load.transposed else ''}"
    verdict = "no conflict" if not served.conflicts else f"where {served.ideal} would do"
    matrix, place = divmod(lane, SIDE)
    gets: dict[int, list[str]] = {}
    for register, at_row, at_column in load.received(lane):
        gets.setdefault(register, []).append(f"({at_row}, {at_column})")
    full = "; full: rows of matrix 0, pale: of the others" if load.number > 1 else ""
    return Scene(
        f"ldmatrix.{form}{f', {layout} tile' if layout else ''}: "
        f"{plural(served.wavefronts, 'wavefront')}, {verdict}",
        row(column(words("shared memory, lines of 128 bytes: rows, by the lane that names them",
                         bold=True),
                   _memory(load, lane, "warning" if served.conflicts else "load").html(),
                   words(f"ticked: what lane {lane} gets{full}"), width=345),
            column(words(f"lane {lane}", bold=True),
                   words(f"names row {place} of matrix {matrix}" if matrix < load.number
                         else "names no row"),
                   *(words(f"r{register} gets {' '.join(places)}")
                     for register, places in gets.items()),
                   words("matrix 0: the lanes that get it", bold=True), _first(load, lane).html())),
        evidence)


def shown(load: MatrixLoad, layout: str = "", lane: int = 5) -> None:
    """Display one ldmatrix: who names which row, who gets what, which banks."""
    show(draw(load, lane=lane, layout=layout))


def _memory(load: MatrixLoad, lane: int, colour: str) -> Grid:
    """Shared memory, 128 bytes a line; the rows that lanes name, and what one lane gets of them."""
    lines = -(-load.rows * load.tile.row_bytes // LINE)
    grid = Grid(lines, LINE // CHUNK, _CELL, across={group: 4 * group for group in range(8)},
                down={line: line for line in (0, lines - 1)}, corner="bank", left=36)

    def place(address: int) -> Box:
        return grid.box(address // LINE, address % LINE // CHUNK)

    boxes = []
    for giver in range(SIDE * load.number):
        boxes.append(place(int(load.access.addresses[giver])))
        grid.label(boxes[-1], giver, over=colour if giver < SIDE else "", bold=giver == lane)
    grid.boxes(boxes[SIDE:], colour, pale=True).boxes(boxes[:SIDE], colour).ruled()
    unit, ticks = _CELL[0] * HALF / CHUNK, []
    for _, at_row, at_column in load.received(lane):
        address = int(load.tile.address(at_row, at_column))
        x, y, _, tall = place(address)
        ticks.append((x + address % CHUNK // HALF * unit, y + tall - 3, unit, 3))
    return grid.boxes(ticks, "ink")


def _first(load: MatrixLoad, lane: int) -> Grid:
    """The first matrix with its receivers."""
    down, across = (2, 1) if load.transposed else (1, 2)
    grid, own = Grid(SIDE, SIDE, (20.0, 16.0 / down)), []
    for at_row in range(0, SIDE, down):
        for at_column in range(0, SIDE, across):
            receiver = load.receiver(at_row, at_column)
            box = grid.box(at_row, at_column, down, across)
            if receiver == lane:
                own.append(box)
            grid.label(box, receiver, bold=receiver == lane)
    return grid.boxes(own, "load", pale=True).ruled(down, across)
