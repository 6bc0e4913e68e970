"""What a chapter shows of where sums lie, and of the operands that are added up there."""

from __future__ import annotations

from lib.kernels.catalogue import find
from lib.kernels.spec import parted
from lib.plotting.display import show
from lib.problem import ITEM_BYTES
from lib.topics.memory.accumulators import figure, model
from lib.topics.memory.operand.model import Tile
from lib.topics.version import Version

_WORDS = {1: "one tile", 2: "two tiles"}
_PLACE = (40, 300)  # a lane and a column in the second tile, whose address is told


def where(version: Version, before: str) -> None:
    """Draw tensor memory with a version's sums, and the registers that hold those of another.

    Parameters
    ----------
    before : str
        ``"stem/variant"``, with WGMMA.
    """
    stem, name = parted(before)
    held = model.in_registers(find(stem).variant(name))
    now = model.in_tensor_memory(version.kernel.variants[0])
    show(figure.where(
        (f"{stem[:2]}, Hopper: one tile in registers", held),
        (f"{version.kernel.stem[:2]}, Blackwell: {_WORDS[now.tiles]} in tensor memory", now),
        _PLACE, title="The sums move out of the registers, and a second tile has room",
        evidence="modelled: from the tiles and roles of both versions"))


def atoms(version: Version) -> None:
    """Draw which part of a stage of A and of B one MMA reads, and both descriptors' distances."""
    variant = version.kernel.variants[0]
    rows, columns = variant.tile
    deep, item = variant.step * ITEM_BYTES[variant.dtype], ITEM_BYTES[variant.dtype]
    a = Tile("tcgen05", item, rows=rows, k_bytes=deep, side="A")
    b = Tile("tcgen05", item, "MN", rows=columns, k_bytes=deep, side="B")
    show(figure.atoms(
        a, b, title=f"The first of {a.k // a.piece[1]} MMAs reads {a.piece[1] * item} bytes of "
                    f"each row of A, and {b.piece[1] // b.atom} atoms of each slab of B",
        evidence="modelled: the layouts of PTX ISA 9.7.16.4; an atom is 1,024 bytes, swizzled"))
