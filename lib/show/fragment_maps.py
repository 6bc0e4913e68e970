"""Which lane holds which element of A, B and C: the fragments of mma and wgmma as tables.

They are documented (PTX ISA 9.7.14.5 and 9.7.15.5), and the emulator's (`lib.ptx.isa.fragments`),
so that what is drawn is what runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lib.ptx.isa import fragments as emulated
from lib.ptx.isa import tcgen05_operands
from lib.show.explorer import Live
from lib.show.scene import Grid, Scene, column, row, words


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
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for name, each in maps().items():
        found[name] = []
        for one in each:
            made: dict[str, Any] = {
                "matrix": one.matrix, "kind": one.kind, "packed": one.packed, "down": one.down,
                "shape": one.shape, "note": one.note}
            for axis, table in (("row", one.rows), ("column", one.columns)):
                made[axis] = [table[:, 0].tolist(), (table[0] - table[0, 0]).tolist()]
            found[name].append(made)
    return found


def registers() -> Live:
    """Choose an instruction and a matrix: see which lane and register hold each element."""
    first, evidence = "mma.m16n8k16, FP16 or BF16", (
        "modelled: the emulator's layouts, PTX ISA 9.7.14, 9.7.15 and 9.7.16.2.3.1")
    return Live([], {"maps": choices(), "first": (first, 1, 2)}, Path(__file__).with_suffix(".js"),
                "Registers of an instruction", picture(first, evidence), evidence)


_LANE = 5  # of the first position: it holds row 1, column 2
_CELL = (19.0, 16.0)  # px


def picture(name: str, evidence: str) -> Scene:
    """Draw the matrices of an instruction, with the lane that holds each register."""
    held = [f"{one.packed * len(one.rows)} of {one.matrix}" for one in maps()[name]]
    return Scene(f"{name}: lane {_LANE} holds {'; '.join(held)}",
                 row(*(_matrix(one) for one in maps()[name])), evidence,
                 f"a cell is a register, with its lane; filled: those of lane {_LANE}")


def _matrix(one: Map) -> str:
    rows, columns = one.shape
    grid = Grid(rows, columns, _CELL, across={at: at for at in range(0, columns, 2)},
                down={at: at for at in range(rows)})
    tall, wide = (one.packed, 1) if one.down else (1, one.packed)
    for register, places in enumerate(zip(one.rows.tolist(), one.columns.tolist(), strict=True)):
        for lane, place in enumerate(zip(*places, strict=True)):
            box = grid.box(*place, tall, wide)
            if lane == _LANE:
                grid.boxes([box], "load").label(box, f"r{register}", over="load", bold=True)
            else:
                grid.label(box, lane)
    return column(words(f"{one.matrix}, {rows} × {columns}", bold=True),
                  grid.ruled(tall, wide).html())
