"""Which lane holds which element of A, B and C: the fragments of mma, wmma and wgmma as tables.

The layouts of mma and wgmma are documented (PTX ISA 9.7.14.5 and 9.7.15.5); that of wmma is not,
and the one here is what ptxas makes of it. All of them are the emulator's
(`lib.ptx.isa.fragments`), so that what is drawn is what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lib.ptx.core.constant import read_only
from lib.ptx.isa import fragments as emulated
from lib.ptx.isa import tcgen05_operands, wmma
from lib.show.explorer import Live
from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import plural

# M, N and K of one product; a warpgroup's N can be any multiple of 8 up to 256.
SHAPES = {
    "mma.m16n8k8": (16, 8, 8), "mma.m16n8k16": (16, 8, 16), "wmma 16×16×16": (16, 16, 16),
    "wgmma.m64n64k16": (64, 64, 16),
}
OPERANDS = ("A", "B", "C")
_WGMMA = re.compile(r"wgmma\.m64n(\d+)k16")


@dataclass(frozen=True)
class Held:
    """A matrix, and who holds each of its elements.

    Attributes
    ----------
    instruction : str
        A key of `SHAPES`.
    operand : str
        "A", "B" or "C"; the layout of C is also that of D.
    lane, register, half : ndarray of int, shape (rows, columns)
        The lane that holds an element, which of its registers, and which half of that register
        (always 0 where a register holds one float). B has K rows and N columns.
    warp : ndarray of int, shape (rows, columns)
        Of a warpgroup's four; zeros elsewhere.
    """

    instruction: str
    operand: str
    lane: np.ndarray
    register: np.ndarray
    half: np.ndarray
    warp: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lane.shape

    @property
    def registers(self) -> int:
        """Registers a lane."""
        return int(self.register.max()) + 1

    @property
    def packed(self) -> int:
        """Elements a register."""
        return int(self.half.max()) + 1

    def of(self, lane: int, warp: int = 0) -> list[tuple[int, int, int, int]]:
        """What one lane holds: (register, half, row, column), by register."""
        rows, columns = np.nonzero((self.lane == lane) & (self.warp == warp))
        return sorted(
            (int(self.register[r, c]), int(self.half[r, c]), int(r), int(c))
            for r, c in zip(rows, columns, strict=True)
        )


@cache
@read_only
def held(instruction: str, operand: str) -> Held:
    """Return who holds the elements of an operand.

    Parameters
    ----------
    instruction : str
        A key of `SHAPES`, or ``"wgmma.m64nNk16"`` with an N that there is.
    operand : {"A", "B", "C"}
        A of wgmma is that of the form which takes it from registers.

    Raises
    ------
    ValueError
        If there is no such instruction or operand; or for B of wgmma, which always lies in shared
        memory, so that no lane holds it.
    """
    if operand not in OPERANDS:
        raise ValueError(f"no fragment {operand!r} of {instruction!r}; there are "
                         f"{', '.join(OPERANDS)} of {', '.join(SHAPES)}")
    M, N, K = shape_of(instruction)
    if instruction.startswith("wgmma"):
        if operand == "B":
            raise ValueError(f"wgmma reads {operand} from shared memory: no lane holds it")
        # Each of the four warps has 16 rows, as in an mma of 16 rows.
        one = _table(emulated.left(16, K, 2) if operand == "A" else
                     emulated.accumulator(16, N, 1), False)
        lane, register, half = (np.tile(part, (4, 1)) for part in one)
        return Held(instruction, operand, lane, register, half,
                    np.repeat(np.arange(4), 16)[:, None].repeat(one[0].shape[1], axis=1))
    if instruction.startswith("wmma"):
        fragment = wmma.fragment_of(operand.lower(), (M, N, K), "f32" if operand == "C" else "f16")
    elif operand == "C":
        fragment = emulated.accumulator(M, N, 1)
    else:
        fragment = emulated.left(M, K, 2) if operand == "A" else emulated.right(N, K, 2)
    lane, register, half = _table(fragment, operand == "B")
    return Held(instruction, operand, lane, register, half, np.zeros_like(lane))


def shape_of(instruction: str) -> tuple[int, int, int]:
    """M, N and K of an instruction.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if match := _WGMMA.fullmatch(instruction):
        if int(match[1]) in range(8, 257, 8):
            return 64, int(match[1]), 16
    elif instruction in SHAPES:
        return SHAPES[instruction]
    raise ValueError(f"no fragments of {instruction!r}; there are {', '.join(SHAPES)}, and wgmma's "
                     "with any N that is a multiple of 8, up to 256")


def formulae(of: Held) -> tuple[str, str]:
    """Say in which row and which column of the matrix an element lies.

    The sentences are read off the emulator's table, bit by bit, and give all of it again.

    Returns
    -------
    (str, str)
        Row and column of half h of register m of lane 4 g + t, of warp w: ``"g + 8·(m mod 2)"``.

    Raises
    ------
    ValueError
        If no sum of bits gives the table, or the layout is not documented: wmma's is not.
    """
    if of.instruction.startswith("wmma"):
        raise ValueError(f"PTX leaves the layout of {of.instruction} open")
    parts = {"g": of.lane // 4, "t": of.lane % 4, "m": of.register, "h": of.half, "w": of.warp}
    rows, columns = (_sum_of_bits(parts, at) for at in np.indices(of.shape))
    return rows, columns


def _sum_of_bits(parts: dict[str, np.ndarray], wanted: np.ndarray) -> str:
    """Write a coordinate as a sum of bits of the parts."""
    counts = {name: int(values.max()).bit_length() for name, values in parts.items()}
    weights = {
        name: [_alone(parts, wanted, name, 1 << bit) for bit in range(bits)]
        for name, bits in counts.items()
    }
    found = sum(
        weight * (values >> bit & 1) for name, values in parts.items()
        for bit, weight in enumerate(weights[name])
    )
    if not np.array_equal(found, wanted):
        raise ValueError("no sum of bits gives this layout")
    terms = [term for name, each in weights.items() for term in _terms(name, each)]
    return " + ".join(terms) or "0"


def _alone(parts: dict[str, np.ndarray], wanted: np.ndarray, name: str, value: int) -> int:
    """What a coordinate is where one part has a value, and all others are zero."""
    [at] = np.argwhere(np.logical_and.reduce(
        [values == (value if other == name else 0) for other, values in parts.items()]))
    return int(wanted[tuple(at)])


def _terms(name: str, weights: list[int]) -> Iterator[str]:
    """Write neighbouring bits whose weights double as one term."""
    bit = 0
    while bit < len(weights):
        first, weight = bit, weights[bit]
        bit += 1
        while bit < len(weights) and weight and weights[bit] == 2 * weights[bit - 1]:
            bit += 1
        if weight:
            part = f"{name} / {1 << first}" if first else name
            if bit < len(weights):
                part = f"{part} mod {1 << bit - first}"
            times = f"{weight}·" if weight > 1 else ""
            yield f"{times}({part})" if " " in part and (times or first or "mod" in part) else (
                f"{times}{part}")


def _table(fragment: emulated.Fragment, turned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn positions by (register, lane, half) into (lane, register, half) by position."""
    rows, columns = fragment.positions
    found = np.zeros((3, *fragment.shape), int)
    register, lane, half = np.indices(rows.shape)
    found[:, rows, columns] = np.stack([lane, register, half])
    if turned:  # the emulator holds B as (n, k)
        found = found.transpose(0, 2, 1)
    return found[0], found[1], found[2]


# -- every map, for the explorer -----------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """How the registers of a warp lie in a matrix.

    Attributes
    ----------
    matrix : str
        What it is, such as ``"A"`` or ``"D, FP32"``.
    kind : str
        What a register holds: ``"f32"``, ``"2 × f16"``.
    packed : int
        Elements of a register: neighbours in a row, or, of B, in a column.
    down : bool
        Whether they are neighbours in a column.
    rows, columns : ndarray of int, shape (registers, 32)
        Of the first element in a lane's register.
    note : str
        What the warp has of the whole.
    """

    matrix: str
    kind: str
    packed: int
    down: bool
    rows: np.ndarray
    columns: np.ndarray
    note: str

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of what the warp holds."""
        down, across = (self.packed, 1) if self.down else (1, self.packed)
        return int(self.rows.max()) + down, int(self.columns.max()) + across


_TYPED = {"FP16, BF16": (2, "2 × 16 bits"), "TF32": (1, "1 × TF32"), "FP8, INT8": (4, "4 × 8 bits")}
_MMA = {"mma.m16n8k8, FP16 or BF16": (8, "FP16, BF16"),
        "mma.m16n8k16, FP16 or BF16": (16, "FP16, BF16"), "mma.m16n8k8, TF32": (8, "TF32"),
        "mma.m16n8k32, FP8 or INT8": (32, "FP8, INT8")}
_OF_WARPGROUPS = {"wgmma.m64nNk16, FP16 or BF16": "FP16, BF16", "wgmma.m64nNk8, TF32": "TF32",
                  "wgmma.m64nNk32, FP8 or INT8": "FP8, INT8"}
WGMMA_COLUMNS = 256  # of the widest: a narrower one ends earlier
_WARP_OF = "Row r is row 16 w + r of the 64, in warp w of the warpgroup. "
_NARROWER = "Drawn for N = 256: a narrower D ends earlier and numbers its registers the same way."
LOADS = {"tcgen05.ld.32x32b.x16": ("32x32b", 16), "tcgen05.ld.16x64b.x8": ("16x64b", 8),
         "tcgen05.ld.16x128b.x4": ("16x128b", 4), "tcgen05.ld.16x256b.x2": ("16x256b", 2)}
_TENSOR_LANES = ("Rows are lanes of tensor memory, from the address on: a warp reaches the 32 of "
                 "its own quarter. Columns are words of 32 bits.")


@cache
def maps() -> Mapping[str, tuple[Map, ...]]:
    """The maps of registers that PTX documents, by instruction, as the emulator has them."""
    found: dict[str, tuple[Map, ...]] = {}
    for name, (k, typed) in _MMA.items():
        packed, kind = _TYPED[typed]
        made = [_map("A", kind, emulated.left(16, k, packed)),
                _map("B", kind, emulated.right(8, k, packed), down=True),
                _map("C and D, 32 bits", "1 × 32 bits", emulated.accumulator(16, 8, 1))]
        if typed == "FP16, BF16":
            made.append(_map("C and D, FP16", "2 × FP16", emulated.accumulator(16, 8, 2)))
        found[name] = tuple(made)
    for name, typed in _OF_WARPGROUPS.items():
        packed, kind = _TYPED[typed]
        made = [_map("A in registers", kind, emulated.left(16, 8 * packed, packed), _WARP_OF),
                _map("D, 32 bits", "1 × 32 bits", emulated.accumulator(16, WGMMA_COLUMNS, 1),
                     _WARP_OF + _NARROWER)]
        if typed != "TF32":
            made.append(_map("D, FP16", "2 × FP16", emulated.accumulator(16, WGMMA_COLUMNS, 2),
                             _WARP_OF + _NARROWER))
        found[name] = tuple(made)
    for name, (shape, repeats) in LOADS.items():
        rows, columns = tcgen05_operands.fragment(shape, repeats)
        found[name] = (Map("tensor memory", "1 × 32 bits", 1, False, rows, columns,
                           _TENSOR_LANES),)
    return MappingProxyType(found)


def _map(matrix: str, kind: str, fragment: emulated.Fragment, note: str = "", *,
         down: bool = False) -> Map:
    rows, columns = (positions[..., 0] for positions in fragment.positions)
    if down:  # the emulator holds B as (n, k)
        rows, columns = columns, rows
    return Map(matrix, kind, fragment.packed, down, rows, columns, note)


def choices() -> dict[str, list[dict[str, Any]]]:
    """`maps` as JSON has it: a row and a column are what the register adds and what the lane does.

    Raises
    ------
    ValueError
        If a map is no such sum.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for name, each in maps().items():
        found[name] = []
        for one in each:
            made: dict[str, Any] = {
                "matrix": one.matrix, "kind": one.kind, "packed": one.packed, "down": one.down,
                "shape": one.shape, "note": one.note}
            for axis, table in (("row", one.rows), ("column", one.columns)):
                by_register, by_lane = table[:, 0], table[0] - table[0, 0]
                if not np.array_equal(by_register[:, None] + by_lane, table):
                    raise ValueError(f"{name}, {one.matrix}: no sum of register and lane")
                made[axis] = [by_register.tolist(), by_lane.tolist()]
            found[name].append(made)
    return found


_CELL = (19.0, 16.0)  # px
_WINDOW = 16  # rows and columns that are drawn of a larger matrix


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


def registers() -> Live:
    """Choose an instruction and a matrix: see which lane and register hold each element."""
    still = "mma.m16n8k16"
    maps = [held(still, operand) for operand in OPERANDS]
    return Live([], {"maps": choices(), "first": (f"{still}, FP16 or BF16", 1, 2)},
                Path(__file__).with_suffix(".js"), "Registers of an instruction",
                product(maps, lane=5),
                "modelled: the emulator's layouts, PTX ISA 9.7.14, 9.7.15 and 9.7.16.2.3.1")
