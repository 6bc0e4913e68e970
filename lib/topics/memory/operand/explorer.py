"""Tiles in shared memory: reader, type, direction, swizzle and size against what follows."""

from __future__ import annotations

from pathlib import Path

from lib.plotting.frames import Control
from lib.plotting.live import Live
from lib.topics.memory.operand import figure as operand_figure
from lib.topics.memory.operand.model import ATOMS_OF_32, DEPTHS, ROWS, SIDES, TYPES, Tile, choices

# What a swizzle is to a descriptor, and to cuTensorMapEncodeTiled.
SAID = {"128": "128 bytes", "64": "64 bytes", "32": "32 bytes",
        "none": "none: core matrices of 8 rows of 16 bytes",
        ATOMS_OF_32: "128 bytes, 32-byte atomicity"}
MAPS = {"128": "CU_TENSOR_MAP_SWIZZLE_128B", "64": "CU_TENSOR_MAP_SWIZZLE_64B",
        "32": "CU_TENSOR_MAP_SWIZZLE_32B", "none": "CU_TENSOR_MAP_SWIZZLE_NONE",
        ATOMS_OF_32: "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B"}


def tiles() -> Live:
    """Choose a tile in shared memory: see its descriptor, and where each of its elements lies."""
    first = Tile()
    controls = [
        Control("Read by", [("wgmma", "wgmma"), ("tcgen05.mma", "tcgen05"),
                            ("ldmatrix", "ldmatrix")]),
        Control("Type", list(TYPES.items())),
        Control("Contiguous along", [("K", "K"), ("M or N", "MN")]),
        Control("Swizzle", [("128 B", "128"), ("64 B", "64"), ("32 B", "32"), ("none", "none"),
                            ("128 B, 32 B atomicity", ATOMS_OF_32),
                            ("none, rows padded", "padded")]),
        Control.of("Operand", SIDES), Control.of("Rows of M or N", ROWS),
        Control.of("Bytes of K", DEPTHS, DEPTHS.index(first.k_bytes)),
    ]
    return Live(controls, {**choices(), "modes": SAID, "maps": MAPS},
                Path(__file__).with_suffix(".js"), "A tile in shared memory",
                operand_figure.draw(first, 13, 5),
                "modelled: the emulator's layouts, PTX ISA 9.7.15.5 and 9.7.16.4; 32 banks of 4 "
                "bytes, eight chunks of 16 bytes read at a time")
