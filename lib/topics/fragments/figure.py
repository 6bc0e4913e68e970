"""Which lane holds what? A matrix with lane numbers in its cells, and one lane's registers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.fragments.model import Held

_CELL, _ROW, _LEFT, _HEAD = 17.0, 12.5, 24.0, 34.0
_TEXT = _LEFT + 16 * _CELL + 22
_WINDOW = 16  # rows and columns that are drawn of a larger matrix
_LINES = 8  # registers that are written out


@style.styled
def draw(
    held: Held, *, lane: int = 5, evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.14",
    rows: int = 16,
) -> Figure:
    """Draw one operand of one instruction.

    Parameters
    ----------
    held : Held
        ``models.fragments.held``.
    lane : int
        The lane whose elements are filled, with its registers in their cells; those of the other
        lanes of its group of four are pale.
    evidence : str
    rows : int
        Room for that many rows: the frames of an explorer have one height.
    """
    height = _HEAD + _ROW * rows + 16
    fig = style.figure(_finding(held, lane), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    _matrix(ax, held, lane, height - _HEAD)
    _registers(ax, held, lane, height)
    return style.finish(fig, alt=_alt(held, lane), evidence=evidence)


def _matrix(ax: Axes, held: Held, lane: int, top: float) -> None:
    name = "C and D" if held.operand == "C" else held.operand
    ax.text(0, top + _HEAD - 2, f"{name}, {held.shape[0]} × {held.shape[1]}", size=style.NORMAL,
            weight="bold", va="top")
    down, across = (min(size, _WINDOW) for size in held.shape)
    colour = style.PHASE["compute" if held.operand == "C" else "load"]
    for column in range(0, across, 2):
        ax.text(_LEFT + (column + 0.5) * _CELL, top + 2, f"{column}", size=style.SMALL,
                ha="center", va="bottom")
    for row in range(down):
        ax.text(_LEFT - 5, top - (row + 0.5) * _ROW, f"{row}", size=style.SMALL, ha="right",
                va="center")
    pair = (2, 1) if held.operand == "B" else (1, 2)  # a register's elements lie so
    boxes: dict[str, list[tuple[float, float, float, float]]] = {"own": [], "group": []}
    for row in range(0, down, pair[0]):
        for column in range(0, across, pair[1]):
            x, y = _LEFT + column * _CELL, top - (row + pair[0]) * _ROW
            box = (x, y, pair[1] * _CELL, pair[0] * _ROW)
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
            ax.text(x + box[2] / 2, y + box[3] / 2 - 0.5, text, size=style.SMALL, ha="center",
                    va="center", color=style.on(colour) if holder == lane else style.INK,
                    weight="bold" if holder == lane else "normal", zorder=3)
    shapes.rectangles(ax, boxes["group"], facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, boxes["own"], facecolor=colour)
    right, bottom = _LEFT + across * _CELL, top - down * _ROW
    shapes.strokes(
        ax,
        [((_LEFT, top - row * _ROW), (right, top - row * _ROW))
         for row in range(0, down + 1, pair[0])]
        + [((_LEFT + column * _CELL, top), (_LEFT + column * _CELL, bottom))
           for column in range(0, across + 1, pair[1])],
        edgecolor=style.INK, linewidth=0.4, alpha=0.5,
    )


def _registers(ax: Axes, held: Held, lane: int, top: float) -> None:
    """One lane's registers, written out."""
    each = "two halves" if held.packed == 2 else "a float"
    ax.text(_TEXT, top - 2, f"lane {lane}: {style.plural(held.registers, 'register')} of {each}",
            size=style.NORMAL, weight="bold", va="top")
    y = top - 18
    ax.text(_TEXT, y, f"g = lane / 4 = {lane // 4}, t = lane mod 4 = {lane % 4}",
            size=style.SMALL, va="top")
    y -= 18
    places: dict[int, list[str]] = {}
    for register, _, row, column in held.of(lane):
        places.setdefault(register, []).append(f"({row}, {column})")
    for register in list(places)[:_LINES]:
        ax.text(_TEXT, y, f"r{register}", size=style.SMALL, weight="bold", va="top")
        ax.text(_TEXT + 24, y, " ".join(places[register]), size=style.SMALL, va="top")
        y -= 13
    if len(places) > _LINES:
        ax.text(_TEXT, y, f"… r{_LINES} to r{len(places) - 1}: further columns", size=style.SMALL,
                va="top")
        y -= 13
    for text in _remarks(held):
        ax.text(_TEXT, y - 6, text, size=style.SMALL, va="top")
        y -= 13


def _remarks(held: Held) -> list[str]:
    if held.warp.any():
        return ["drawn: warp 0's rows and 16 columns.", "warp w has rows 16 w to 16 w + 15"]
    if held.operand == "B":
        return ["(row, column) of B, which has K rows"]
    return ["(row, column); pale: lanes with the", "same g"]


def _finding(held: Held, lane: int) -> str:
    name = "C" if held.operand == "C" else held.operand
    own = held.of(lane)
    rows = len({row for _, _, row, _ in own})
    columns = len({column for *_, column in own})
    return (
        f"{held.instruction}: lane {lane} holds {len(own)} elements of {name}, in "
        f"{style.plural(rows, 'row')} and {style.plural(columns, 'column')}"
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
def absent(operand: str, *, rows: int = 16) -> Figure:
    """Say that no lane holds A or B of wgmma: the frame of an explorer.

    Parameters
    ----------
    operand : {"A", "B"}
    rows : int
        As in `draw`.
    """
    height = _HEAD + _ROW * rows + 16
    fig = style.figure(f"wgmma.m64n64k16: no lane holds {operand}", height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    text = (f"{operand} stays in shared memory. The instruction gets a descriptor of it: where it "
            "begins, how its rows lie, and the swizzle.")
    ax.text(0, height - 20, text[:72].rsplit(" ", 1)[0], size=style.NORMAL, va="top")
    ax.text(0, height - 34, text[len(text[:72].rsplit(" ", 1)[0]) + 1:], size=style.NORMAL,
            va="top")
    return style.finish(fig, alt=f"wgmma.m64n64k16: {text}", evidence="modelled: PTX ISA 9.7.15")
