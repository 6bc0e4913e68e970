"""Where the sums lie, before and with tensor memory, and which part of each atom an MMA reads."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.tensor_memory import COLUMNS, LANES
from lib.topics.memory.accumulators.model import InRegisters, InTensorMemory
from lib.topics.memory.operand.model import Tile

_LEFT, _LANE_ROW, _REGISTERS, _LINE = 46.0, 22.0, 30.0, 15.0
_OF_TILE = (style.PHASE["compute"], style.PHASE["store"])
_POINT = 6.0


@style.styled
def where(
    before: tuple[str, InRegisters], now: tuple[str, InTensorMemory], place: tuple[int, int], *,
    title: str, evidence: str, narrow: bool = False,
) -> Figure:
    """Draw registers of warpgroups that hold one tile, and tensor memory that holds some.

    Parameters
    ----------
    before, now : (str, InRegisters or InTensorMemory)
        What a version is called, and where its sums lie.
    place : (int, int)
        A lane and a column, whose address is told.
    """
    (old, held), (new, memory) = before, now
    quarters = LANES // memory.lanes
    room = style.room(narrow) - _LEFT
    said = _place(memory, place, narrow)
    height = (_LINE + held.groups * _REGISTERS + 16) + (_LINE + quarters * _LANE_ROW + 18
                                                        + _LINE * len(said))
    fig, ax = style.canvas(title, height, narrow)
    unit = room / COLUMNS
    ax.text(0, height, old, va="top", weight="bold")
    top = height - _LINE - 2
    for group in range(held.groups):
        box = (_LEFT, top - _REGISTERS * (group + 1) + 3, held.columns * unit, _REGISTERS - 3)
        shapes.rectangles(ax, [box], facecolor=_OF_TILE[0], alpha=style.PALE)
        shapes.frames(ax, [box])
        shapes.label(ax, box, f"{held.rows}×{held.columns} sums" if narrow else
                     f"{held.rows}×{held.columns} sums: 128 threads × {held.each} registers")
        ax.text(0, box[1] + box[3] / 2, f"warp-\ngroup {group}", va="center", linespacing=1.0)
    if not narrow:
        ax.text(_LEFT + held.columns * unit + 10, top - held.groups * _REGISTERS / 2,
                "the warps that multiply hold them,\nand stop multiplying to store them",
                va="center")
    top -= held.groups * _REGISTERS + 14
    ax.text(0, top, new, va="top", weight="bold")
    top -= _LINE + 2
    low = top - quarters * _LANE_ROW
    for tile in range(memory.tiles):
        box = (_LEFT + tile * memory.columns * unit, low, memory.columns * unit,
               quarters * _LANE_ROW)
        shapes.rectangles(ax, [box], facecolor=_OF_TILE[tile % 2], alpha=style.PALE)
        shapes.frames(ax, [box])
        shapes.label(ax, (box[0], low + _LANE_ROW, box[2], _LANE_ROW),
                     ("the MMAs add here", "four warps store this")[tile % 2])
    shapes.strokes(ax, [((_LEFT, low + n * _LANE_ROW), (_LEFT + room, low + n * _LANE_ROW))
                        for n in range(1, quarters)], linewidth=0.4, alpha=0.5)
    for quarter in range(quarters):
        ax.text(_LEFT - 5, top - (quarter + 0.5) * _LANE_ROW, f"warp {quarter}", ha="right",
                va="center")
    for column in range(0, COLUMNS + 1, memory.columns):
        ax.text(_LEFT + column * unit, low - 3, str(column) if column else "column 0", va="top",
                ha="left" if not column else "right" if column == COLUMNS else "center")
    lane, column = place
    x, y = _LEFT + (column + 0.5) * unit, top - (lane + 0.5) * quarters * _LANE_ROW / LANES
    shapes.rectangles(ax, [(x - _POINT / 2, y - _POINT / 2, _POINT, _POINT)],
                      facecolor=style.FOCUS)
    for number, text in enumerate(said):
        ax.text(_LEFT if not narrow else 0, low - 18 - _LINE * number, text, va="top")
    return style.finish(fig, evidence=evidence, alt=_alt(before, now, place))


def _place(memory: InTensorMemory, place: tuple[int, int], narrow: bool) -> list[str]:
    lane, column = place
    first = f"marked: lane {lane}, column {column}"
    then = f"address {lane} << 16 | {column} = {memory.address(lane, column):#010x}"
    return [first, then] if narrow else [f"{first}; {then}"]


def _alt(
    before: tuple[str, InRegisters], now: tuple[str, InTensorMemory], place: tuple[int, int]
) -> str:
    (old, held), (new, memory) = before, now
    return (f"{old}: {held.groups} warpgroups hold {held.rows}×{held.columns} sums each, "
            f"{held.each} registers of each thread. {new}: tensor memory of {LANES} lanes and "
            f"{COLUMNS} columns holds {memory.tiles} tiles of {memory.columns} columns; each warp "
            f"reaches {memory.lanes} lanes. {'; '.join(_place(memory, place, False))}.")


# -- what an MMA reads of a stage

_ATOM, _GAP, _HEADS = 17.0, 8.0, 66.0


@style.styled
def atoms(a: Tile, b: Tile, *, title: str, evidence: str, narrow: bool = False) -> Figure:
    """Draw the atoms of a stage of A, along K, and of B, along N, and what its first MMA reads.

    Parameters
    ----------
    a, b : Tile
        Of one reader, whose instructions take all of their rows.
    """
    room = style.room(narrow)
    each = room if narrow else (room - 24) / 2
    rows = b.k // b.atom
    panel = 2 * _LINE + rows * _ATOM + 2 * _LINE + 4
    height = panel * (2 if narrow else 1)
    fig, ax = style.canvas(title, height, narrow)
    _a(ax, a, 0.0, height, each, rows)
    _b(ax, b, 0.0 if narrow else each + 24, height - (panel if narrow else 0), each, rows)
    return style.finish(fig, evidence=evidence, alt=_alt_of_atoms(a, b))


def _a(ax: Axes, a: Tile, left: float, top: float, room: float, rows: int) -> None:
    """Atoms below each other, in each of which an instruction reads some bytes of each line."""
    deep = a.piece[1]
    parts, x = a.k // deep, left + _HEADS
    wide, y = (room - _HEADS) / parts, top - 2 * _LINE
    ax.text(left, top, f"A: {a.rows} rows of {a.run} bytes, K along them", va="top", weight="bold")
    for part in range(parts):
        ax.text(x + (part + 0.5) * wide, y, f"k {part * deep}–{(part + 1) * deep - 1}",
                ha="center", va="bottom")
    for atom in range(rows):
        low = y - (atom + 1) * _ATOM
        if atom == rows - 2:
            ax.text(x + (room - _HEADS) / 2, low + _ATOM / 2, "⋮", ha="center", va="center")
            continue
        first = (a.rows // a.atom - 1 if atom == rows - 1 else atom) * a.atom
        ax.text(x - 5, low + _ATOM / 2, f"rows {first}–{first + a.atom - 1}", ha="right",
                va="center")
        shapes.rectangles(ax, [(x, low, wide, _ATOM)], facecolor=style.PHASE["load"])
        shapes.frames(ax, [(x + part * wide, low, wide, _ATOM) for part in range(parts)], 0.4)
        shapes.frames(ax, [(x, low, parts * wide, _ATOM)], 1.2)
    low = y - rows * _ATOM - 4
    ax.text(left, low, f"down: the next 8 rows, stride {a.offsets[1]:,} B", va="top")
    ax.text(left, low - _LINE, f"right: the next MMA, {a.begins(0, deep) - a.begins(0, 0)} B",
            va="top")


def _b(ax: Axes, b: Tile, left: float, top: float, room: float, rows: int) -> None:
    """Slabs beside each other, of whose atoms an instruction reads some."""
    deep, slabs = b.piece[1], b.run // b.span
    wide, y, x = (room - 44 - (slabs - 1) * _GAP) / slabs, top - 2 * _LINE, left + 44
    columns = b.span // b.item
    ax.text(left, top, f"B: {b.k} rows of K, N along them, in {slabs} slabs", va="top",
            weight="bold")
    for slab in range(slabs):
        at = x + slab * (wide + _GAP)
        ax.text(at + wide / 2, y, f"n {slab * columns}–" if wide < 40 else
                f"n {slab * columns}–{(slab + 1) * columns - 1}", ha="center", va="bottom")
        shapes.rectangles(ax, [(at, y - deep // b.atom * _ATOM, wide, deep // b.atom * _ATOM)],
                          facecolor=style.PHASE["load"])
        shapes.frames(ax, [(at, y - (atom + 1) * _ATOM, wide, _ATOM) for atom in range(rows)], 1.2)
    for atom in range(rows):
        ax.text(x - 5, y - (atom + 0.5) * _ATOM, f"k {atom * b.atom}–{(atom + 1) * b.atom - 1}",
                ha="right", va="center")
    low = y - rows * _ATOM - 4
    ax.text(left, low, f"down: 8 of K, stride {b.offsets[1]:,} B; the next MMA, "
                       f"{b.begins(0, deep) - b.begins(0, 0):,} B", va="top")
    ax.text(left, low - _LINE, f"right: the next {columns} columns, leading {b.offsets[0]:,} B",
            va="top")


def _alt_of_atoms(a: Tile, b: Tile) -> str:
    deep = a.piece[1]
    return (f"A: atoms of {a.atom} rows of {a.span} bytes, {a.offsets[1]:,} bytes apart; an MMA "
            f"reads {deep * a.item} bytes of each row, the next MMA begins "
            f"{a.begins(0, deep) - a.begins(0, 0)} bytes further. B: {b.run // b.span} slabs of "
            f"{b.span // b.item} columns, {b.offsets[0]:,} bytes apart, with an atom of {b.span} "
            f"bytes for each {b.atom} of K; an MMA reads {deep // b.atom} atoms of each slab, the "
            f"next MMA begins {b.begins(0, deep) - b.begins(0, 0):,} bytes further.")
