"""Which lane holds what? A matrix with lane numbers in its cells, and one lane's registers."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.compute.fragments.model import Held, formulae

_CELL, _NARROW_CELL, _ROW, _LEFT, _HEAD = 17.0, 14.0, 12.5, 24.0, 34.0
_TEXT = _LEFT + 16 * _CELL + 22
_WINDOW = 16  # rows and columns that are drawn of a larger matrix
_LINES = 8  # registers that are written out
_UNDER = 240.0  # pt: room for a lane's registers under a narrow figure's matrix


@style.styled
def draw(
    held: Held, *, lane: int = 5, evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.14",
    rows: int = 16, narrow: bool = False,
) -> Figure:
    """Draw one operand of one instruction.

    Parameters
    ----------
    held : Held
        What `lib.topics.compute.fragments.model.held` returns.
    lane : int
        The lane whose elements are filled, with its registers in their cells; those of the other
        lanes of its group of four are pale.
    rows : int
        Room for that many rows: the frames of an explorer have one height.
    """
    height = _HEAD + _ROW * rows + (8 + _UNDER if narrow else 16)
    fig, ax = style.canvas(_finding(held, lane), height, narrow)
    _matrix(ax, held, lane, height - _HEAD, cell=_NARROW_CELL if narrow else _CELL)
    _registers(ax, held, lane, *((0.0, _UNDER) if narrow else (_TEXT, height)))
    return style.finish(fig, alt=_alt(held, lane), evidence=evidence)


@style.styled
def product(
    maps: Sequence[Held], *, lane: int = 5, narrow: bool = False,
    evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.14",
) -> Figure:
    """Draw A, B and C of one mma as they meet in a product, and the formulae of their maps.

    Parameters
    ----------
    maps : sequence of Held
        A, B and C of one instruction.
    lane : int
        As in `draw`.
    """
    a, b, c = maps
    tall = {held.operand: _HEAD + _ROW * held.shape[0] for held in maps}
    says = [*_formulae(maps), f"filled: lane {lane}; pale: the others of its four"]
    if narrow:
        height = 13.0 * len(says) + 20 + sum(tall.values()) + 24
    else:
        height = tall["B"] + tall["A"] + 24
    fig, ax = style.canvas(f"{a.instruction}: lane {lane} holds {len(a.of(lane))} elements of A, "
                           f"{len(b.of(lane))} of B, {len(c.of(lane))} of C", height, narrow)
    for number, text in enumerate(says):
        ax.text(0, height - 4 - 13 * number, text, va="top")
    if narrow:
        top = height - 13 * len(says) - 14
        for held in maps:
            _matrix(ax, held, lane, top - _HEAD, cell=_NARROW_CELL if held.shape[1] > 8 else _CELL)
            top -= tall[held.operand] + 8
    else:
        right = _LEFT + a.shape[1] * _CELL + 10
        right = max(right, 290.0)  # the formulae stand above A, beside B
        _matrix(ax, b, lane, height - _HEAD, right)
        _matrix(ax, a, lane, height - tall["B"] - 8 - _HEAD)
        _matrix(ax, c, lane, height - tall["B"] - 8 - _HEAD, right)
    alt = " ".join(_alt(held, lane) for held in maps) + " " + " ".join(says)
    return style.finish(fig, alt=alt, evidence=evidence)


def _formulae(maps: Sequence[Held]) -> list[str]:
    """Where an element lies, in words for who writes the kernel."""
    warp = any(held.warp.any() for held in maps)
    lines = ["Lane 4 g + t (so g = lane / 4, t = lane mod 4),",
             "register m, half h of it; / rounds down" + ("; warp w" if warp else "")]
    for held in maps:
        row, column = formulae(held)
        registers = "1 register" if held.registers == 1 else f"{held.registers} registers"
        lines += [f"{'C and D' if held.operand == 'C' else held.operand}: {registers} of "
                  + ("two halves" if held.packed == 2 else "one float"),
                  f"    row {row}, column {column}"]
    return lines


def _matrix(ax: Axes, held: Held, lane: int, top: float, at: float = 0.0, cell: float = _CELL
            ) -> None:
    name = "C and D" if held.operand == "C" else held.operand
    ax.text(at, top + _HEAD - 2, f"{name}, {held.shape[0]} × {held.shape[1]}", size=style.NORMAL,
            weight="bold", va="top")
    left = at + _LEFT
    down, across = (min(size, _WINDOW) for size in held.shape)
    colour = style.PHASE["compute" if held.operand == "C" else "load"]
    for column in range(0, across, 2):
        ax.text(left + (column + 0.5) * cell, top + 2, f"{column}", ha="center", va="bottom")
    for row in range(down):
        ax.text(left - 5, top - (row + 0.5) * _ROW, f"{row}", ha="right", va="center")
    pair = (2, 1) if held.operand == "B" else (1, 2)  # a register's elements lie so
    boxes: dict[str, list[tuple[float, float, float, float]]] = {"own": [], "group": []}
    for row in range(0, down, pair[0]):
        for column in range(0, across, pair[1]):
            x, y = left + column * cell, top - (row + pair[0]) * _ROW
            box = (x, y, pair[1] * cell, pair[0] * _ROW)
            holder = int(held.lane[row, column])
            if holder == lane:
                boxes["own"].append(box)
            elif holder // 4 == lane // 4:
                boxes["group"].append(box)
            text = f"{holder}"
            if holder == lane:
                first, last = (
                    held.register[row, column],
                    held.register[row + pair[0] - 1, column + pair[1] - 1],
                )
                text = f"r{first}" if first == last else f"r{first} r{last}"
            ax.text(x + box[2] / 2, y + box[3] / 2 - 0.5, text, ha="center", va="center",
                    color=style.on(colour) if holder == lane else style.INK,
                    weight="bold" if holder == lane else "normal", zorder=3)
    shapes.rectangles(ax, boxes["group"], facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, boxes["own"], facecolor=colour)
    shapes.grid(ax, left, top, (down, across), (_ROW, cell), every=pair, alpha=0.5)


def _registers(ax: Axes, held: Held, lane: int, at: float, top: float) -> None:
    """One lane's registers, written out."""
    each = "two halves" if held.packed == 2 else "a float"
    ax.text(at, top - 2, f"lane {lane}: {style.plural(held.registers, 'register')} of {each}",
            size=style.NORMAL, weight="bold", va="top")
    y = top - 18
    ax.text(at, y, f"g = lane / 4 = {lane // 4}, t = lane mod 4 = {lane % 4}", va="top")
    y -= 18
    places: dict[int, list[str]] = {}
    for register, _, row, column in held.of(lane):
        places.setdefault(register, []).append(f"({row}, {column})")
    for register in list(places)[:_LINES]:
        ax.text(at, y, f"r{register}", weight="bold", va="top")
        ax.text(at + 24, y, " ".join(places[register]), va="top")
        y -= 13
    if len(places) > _LINES:
        ax.text(at, y, f"… r{_LINES} to r{len(places) - 1}: further columns", va="top")
        y -= 13
    for text in _remarks(held) + _mapped(held):
        ax.text(at, y - 6, text, va="top")
        y -= 13


def _remarks(held: Held) -> list[str]:
    if held.warp.any():
        return ["drawn: warp 0's rows and 16 columns.", "warp w has rows 16 w to 16 w + 15"]
    if held.operand == "B":
        return ["(row, column) of B, which has K rows"]
    return ["(row, column); pale: lanes with the", "same g"]


def _mapped(held: Held) -> list[str]:
    """Register m, half h of lane 4 g + t; wmma's layout is left open by PTX."""
    if held.instruction.startswith("wmma "):
        return []
    row, column = formulae(held)
    each = "register m, half h" if held.packed == 2 else "register m"
    return [f"{each}:", f"row {row}", f"column {column}"]


def _finding(held: Held, lane: int) -> str:
    name = "C" if held.operand == "C" else held.operand
    own = held.of(lane)
    rows = len({row for _, _, row, _ in own})
    columns = len({column for *_, column in own})
    return (
        f"{held.instruction}: lane {lane} holds {len(own)} elements of {name}: "
        f"{style.plural(rows, 'row')}, {style.plural(columns, 'column')}"
    )


def _alt(held: Held, lane: int) -> str:
    own = held.of(lane)
    listed = ", ".join(f"r{register} ({row}, {column})" for register, _, row, column in own[:16])
    more = f" and {len(own) - 16} more" if len(own) > 16 else ""
    return (
        f"{held.operand} of {held.instruction}, {held.shape[0]} by {held.shape[1]} elements, with "
        f"the lane that holds each. Lane {lane} has {style.plural(held.registers, 'register')}: "
        f"{listed}{more}, as (row, column)."
    )


@style.styled
def absent(operand: str, *, rows: int = 16, narrow: bool = False) -> Figure:
    """Say that no lane holds an operand of wgmma: the frame of an explorer.

    Parameters
    ----------
    operand : {"B"}
    rows : int
    narrow : bool
        As in `draw`.
    """
    height = _HEAD + _ROW * rows + (8 + _UNDER if narrow else 16)
    fig, ax = style.canvas(f"wgmma.m64n64k16: no lane holds {operand}", height, narrow)
    text = (f"{operand} stays in shared memory. The instruction gets a descriptor of it: where it "
            "begins, how its rows lie, and the swizzle.")
    said = "\n".join(textwrap.wrap(text, 40 if narrow else 72))
    ax.text(0, height - 20, said, size=style.NORMAL, va="top", linespacing=1.2)
    return style.finish(fig, alt=f"wgmma.m64n64k16: {text}", evidence="modelled: PTX ISA 9.7.15")
