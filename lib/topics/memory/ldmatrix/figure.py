"""ldmatrix: which lane names which row, which lane gets what, and which banks the rows meet."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.display import both
from lib.ptx.core.machine import LINE
from lib.show import banks
from lib.topics.memory.ldmatrix.model import CHUNK, HALF, SIDE, MatrixLoad

_CHUNK_WIDTH, _NARROW_CHUNK, _LINE, _LEFT, _HEAD = 30.0, 27.0, 12.0, 26.0, 44.0
_LINES = 18  # lines of 128 bytes that a padded tile of 16 rows fills
_TEXT = _LEFT + 8 * _CHUNK_WIDTH + 40
_WORDS = 202.0  # pt: room for them under the memory of a narrow figure
_PAIR, _ROW = 30.0, 11.5  # a lane's two halves in the small matrix


@style.styled
def draw(
    load: MatrixLoad, *, lane: int = 5, layout: str = "",
    evidence: str = "modelled: PTX ISA 9.7.14.5.15, 32 banks", narrow: bool = False,
    frame: bool = False,
) -> Figure:
    """Draw one ldmatrix.

    Parameters
    ----------
    load : MatrixLoad
    lane : int
        The lane whose row is named, and whose elements are marked.
    layout : str
        What the tile's layout is called.
    frame : bool
        Whether it is one of an explorer's frames, which have one height.
    """
    lines = -(-load.rows * load.tile.row_bytes // LINE)
    under = _WORDS if narrow else 0.0
    # Words stand beside the memory, or right under it.
    height = _HEAD + _LINE * (lines if narrow and not frame else max(lines, _LINES)) + 4 + under
    fig, ax = style.canvas(_finding(load, layout), height, narrow)
    _memory(ax, load, lane, height - _HEAD, _NARROW_CHUNK if narrow else _CHUNK_WIDTH)
    _words(ax, load, lane, *((0.0, under) if narrow else (_TEXT, height)))
    return style.finish(fig, alt=_alt(load, lane, layout), evidence=evidence)


def shown(load: MatrixLoad, layout: str = "", lane: int = 5) -> None:
    """Display one ldmatrix: who names which row, who gets what, which banks."""
    both(draw, load, lane=lane, layout=layout)


def _memory(ax: Axes, load: MatrixLoad, lane: int, top: float, wide: float) -> None:
    """Shared memory, 128 bytes a line; the rows that lanes name, and what one lane gets of them."""
    ax.text(0, top + _HEAD - 2, "shared memory, lines of 128 bytes: rows,\n"
            "by the lane that names them", size=style.NORMAL, weight="bold", va="top",
            linespacing=1.1)
    for group in range(8):
        ax.text(_LEFT + (group + 0.5) * wide, top + 2, f"{4 * group}", ha="center", va="bottom")
    ax.text(_LEFT - 4, top + 2, "bank", ha="right", va="bottom")
    lines = -(-load.rows * load.tile.row_bytes // LINE)
    shapes.grid(ax, _LEFT, top, (lines, 8), (_LINE, wide))
    access = load.access
    found = banks.describe(access, "ldmatrix")
    colour = style.WARNING if found.conflicts else style.PHASE["load"]
    first: list[tuple[float, float, float, float]] = []
    others: list[tuple[float, float, float, float]] = []
    for giver in range(SIDE * load.number):
        x, y = _place(int(access.addresses[giver]), top, wide)
        (first if giver < SIDE else others).append((x, y, wide, _LINE))
        ax.text(x + wide / 2, y + _LINE / 2 + 0.7, f"{giver}", ha="center", va="center", zorder=3,
                color=style.on(colour) if giver < SIDE else style.INK,
                weight="bold" if giver == lane else "normal")
    shapes.rectangles(ax, others, facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, first, facecolor=colour)
    unit = wide / (CHUNK // HALF)
    gets = [
        (*_place(int(load.tile.address(row, column)), top, wide), unit, 2.6)
        for _, row, column in load.received(lane)
    ]
    shapes.rectangles(ax, gets, facecolor=style.INK)
    for line in (0, lines - 1):
        ax.text(_LEFT - 5, top - (line + 0.5) * _LINE, f"{line}", ha="right", va="center")


def _place(address: int, top: float, wide: float) -> tuple[float, float]:
    """Lower left corner of what lies at an address, in points."""
    x = _LEFT + address % LINE / CHUNK * wide
    return x, top - (address // LINE + 1) * _LINE


def _words(ax: Axes, load: MatrixLoad, lane: int, at: float, top: float) -> None:
    """One lane's part in words, and the first matrix with its receivers."""
    ax.text(at, top - 2, f"lane {lane}", size=style.NORMAL, weight="bold", va="top")
    matrix, row = divmod(lane, SIDE)
    text = f"names row {row} of matrix {matrix}" if matrix < load.number else "names no row"
    ax.text(at, top - 16, text, va="top")
    places: dict[int, list[str]] = {}
    for register, r, c in load.received(lane):
        places.setdefault(register, []).append(f"({r}, {c})")
    y = top - 31
    for register in range(4):
        if register in places:
            ax.text(at, y, f"r{register}", weight="bold", va="top")
            ax.text(at + 20, y, f"gets {' '.join(places[register])}", va="top")
        y -= 12.5
    y -= 6
    name = "matrix 0: the lanes that get it"
    ax.text(at, y, name, size=style.NORMAL, weight="bold", va="top")
    y -= 16
    down, across = (2, 1) if load.transposed else (1, 2)
    wide, tall = _PAIR / 2, _ROW
    own = []
    for r in range(0, SIDE, down):
        for c in range(0, SIDE, across):
            receiver = load.receiver(r, c)
            box = (at + c * wide, y - (r + down) * tall, across * wide, down * tall)
            if receiver == lane:
                own.append(box)
            shapes.label(ax, box, f"{receiver}", weight="bold" if receiver == lane else "normal")
    shapes.grid(ax, at, y, (SIDE, SIDE), (tall, wide), every=(down, across), alpha=0.5)
    shapes.frames(ax, own, 1.3)
    x = at + SIDE * wide + 8
    where = "ticked at left:" if at else "ticked above:"
    others = ("", "full: rows of", "matrix 0; pale:", "of the others") if load.number > 1 else ()
    for i, line in enumerate(("outlined, and", where, f"what lane {lane}", "gets", *others)):
        ax.text(x, y - 2 - 12 * i, line, va="top")


def _finding(load: MatrixLoad, layout: str) -> str:
    found = banks.describe(load.access, "ldmatrix")
    form = f"x{load.number}{'.trans' if load.transposed else ''}"
    where = f", {layout} tile" if layout else ""
    verdict = "no conflict" if not found.conflicts else f"where {found.ideal} would do"
    return (
        f"ldmatrix.{form}{where}: {style.plural(found.wavefronts, 'wavefront')}, {verdict}"
    )


def _alt(load: MatrixLoad, lane: int, layout: str) -> str:
    matrix, row = divmod(lane, SIDE)
    gives = f"names row {row} of matrix {matrix}" if matrix < load.number else "names no row"
    gets = ", ".join(f"r{register} ({r}, {c})" for register, r, c in load.received(lane))
    used = {bank for cells in banks.describe(load.access, "ldmatrix").rows[:1]
            for _, bank, _ in cells}
    return (
        f"{_finding(load, layout)}. Lanes 0 to {SIDE * load.number - 1} name rows of 16 bytes; the "
        f"first wavefront meets {len(used)} of 32 banks. Lane {lane} {gives} and gets {gets}, as "
        "(row, column) of the tile."
    )
