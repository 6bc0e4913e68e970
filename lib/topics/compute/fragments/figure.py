"""Which lane holds what? A matrix with lane numbers in its cells, and one lane's registers."""

from __future__ import annotations

from collections.abc import Sequence

from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import plural
from lib.topics.compute.fragments.model import Held, formulae

_CELL = (19.0, 16.0)  # px
_WINDOW = 16  # rows and columns that are drawn of a larger matrix
_LINES = 8  # registers that are written out


def draw(held: Held, *, lane: int = 5,
         evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.14") -> Scene:
    """Draw one operand of one instruction.

    Parameters
    ----------
    held : Held
        What `lib.topics.compute.fragments.model.held` returns.
    lane : int
        The lane whose elements are filled, with its registers in their cells; those of the other
        lanes of its group of four are pale.
    """
    own = held.of(lane)
    rows, columns = (len({element[at] for element in own}) for at in (2, 3))
    return Scene(
        f"{held.instruction}: lane {lane} holds {len(own)} elements of {held.operand}: "
        f"{plural(rows, 'row')}, {plural(columns, 'column')}",
        row(_matrix(held, lane), _registers(held, lane)), evidence)


def product(maps: Sequence[Held], *, lane: int = 5,
            evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.14") -> Scene:
    """Draw A, B and C of one mma as they meet in a product, and the formulae of their maps."""
    a, b, c = maps
    return Scene(f"{a.instruction}: lane {lane} holds {len(a.of(lane))} elements of A, "
                 f"{len(b.of(lane))} of B, {len(c.of(lane))} of C",
                 row(column(*map(words, _formulae(maps)),
                            words(f"filled: lane {lane}; pale: the others of its four"), width=340),
                     _matrix(b, lane)) + row(_matrix(a, lane), _matrix(c, lane)), evidence)


def _formulae(maps: Sequence[Held]) -> list[str]:
    """Where an element lies, in words for who writes the kernel."""
    warp = any(held.warp.any() for held in maps)
    lines = ["Lane 4 g + t (so g = lane / 4, t = lane mod 4), register m, half h of it; / rounds "
             "down" + ("; warp w" if warp else "")]
    for held in maps:
        at_row, at_column = formulae(held)
        lines.append(f"{_name(held)}: {plural(held.registers, 'register')} of "
                     f"{'two halves' if held.packed == 2 else 'one float'}, row {at_row}, "
                     f"column {at_column}")
    return lines


def _name(held: Held) -> str:
    return "C and D" if held.operand == "C" else held.operand


def _matrix(held: Held, lane: int) -> str:
    down, across = (min(size, _WINDOW) for size in held.shape)
    grid = Grid(down, across, _CELL, across={at: at for at in range(0, across, 2)},
                down={at: at for at in range(down)})
    colour = "compute" if held.operand == "C" else "load"
    tall, wide = (2, 1) if held.operand == "B" else (1, 2)  # a register's elements lie so
    boxes: dict[str, list[Box]] = {"own": [], "group": []}
    for at_row in range(0, down, tall):
        for at_column in range(0, across, wide):
            box = grid.box(at_row, at_column, tall, wide)
            holder = int(held.lane[at_row, at_column])
            text = f"{holder}"
            if holder == lane:
                first, last = (held.register[at_row, at_column],
                               held.register[at_row + tall - 1, at_column + wide - 1])
                text = f"r{first}" if first == last else f"r{first} r{last}"
            if holder // 4 == lane // 4:
                boxes["own" if holder == lane else "group"].append(box)
            grid.label(box, text, over=colour if holder == lane else "", bold=holder == lane)
    grid.boxes(boxes["group"], colour, pale=True).boxes(boxes["own"], colour)
    return column(words(f"{_name(held)}, {held.shape[0]} × {held.shape[1]}", bold=True),
                  grid.ruled(tall, wide).html())


def _registers(held: Held, lane: int) -> str:
    """One lane's registers, written out."""
    each = "two halves" if held.packed == 2 else "a float"
    places: dict[int, list[str]] = {}
    for register, _, at_row, at_column in held.of(lane):
        places.setdefault(register, []).append(f"({at_row}, {at_column})")
    lines = [f"r{register} {' '.join(places[register])}" for register in list(places)[:_LINES]]
    if len(places) > _LINES:
        lines.append(f"… r{_LINES} to r{len(places) - 1}: further columns")
    return column(
        words(f"lane {lane}: {plural(held.registers, 'register')} of {each}", bold=True),
        words(f"g = lane / 4 = {lane // 4}, t = lane mod 4 = {lane % 4}"), *map(words, lines),
        *map(words, (_remark(held), *_mapped(held))), width=300)


def _remark(held: Held) -> str:
    if held.warp.any():
        return "drawn: warp 0's rows and 16 columns. Warp w has rows 16 w to 16 w + 15"
    if held.operand == "B":
        return "(row, column) of B, which has K rows"
    return "(row, column); pale: lanes with the same g"


def _mapped(held: Held) -> list[str]:
    """Register m, half h of lane 4 g + t; wmma's layout is left open by PTX."""
    if held.instruction.startswith("wmma "):
        return []
    at_row, at_column = formulae(held)
    each = "register m, half h" if held.packed == 2 else "register m"
    return [f"{each}: row {at_row}, column {at_column}"]


def absent(operand: str) -> Scene:
    """Say that no lane holds an operand of wgmma: the frame of an explorer."""
    return Scene(f"wgmma.m64n64k16: no lane holds {operand}", words(
        f"{operand} stays in shared memory. The instruction gets a descriptor of it: where it "
        "begins, how its rows lie, and the swizzle."), "modelled: PTX ISA 9.7.15")
