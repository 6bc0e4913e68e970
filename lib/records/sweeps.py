"""Series of measurements for one question: one thing is varied, all else is held.

``double_buffer``: when does loading ahead pay? 08's kernel in three forms, tile by tile, and for
each tile with fewer and fewer blocks on an SM. The machine code of a form is the same however many
blocks there are: what keeps the others away is shared memory that the launch asks for and that
nobody touches.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.compiler.fingerprint import fingerprint_of
from lib.kernels.catalogue import find
from lib.kernels.families import warp_tile
from lib.kernels.source import edited
from lib.kernels.spec import Variant
from lib.ptx.files import text_of
from lib.records.schema import Sweep, Swept

DOUBLE_BUFFER = "double_buffer"
STEM = "08_warp_tile"

# The forms: a tile is asked for when the one before is done with; it is asked for before that and
# waits in registers; it has a buffer of its own besides.
LATE, STAGED, DOUBLE = "late", "staged", "double"
FORMS = (LATE, STAGED, DOUBLE)
_BUFFERS = {LATE: 1, STAGED: 1, DOUBLE: 2}

# The lines of 08's source that ask for a tile, and the one before which `loading_late` asks for it.
_FIRST, _NEXT = "    fetch(K);\n", "        fetch(left - BK);\n"
_NEEDED = "        MARK_ARRIVAL(a, b);\n"


@dataclass(frozen=True)
class Tile:
    """Sizes of a block's and a warp's tile, and blocks that registers are left for on an SM."""

    block: tuple[int, int, int]
    warp: tuple[int, int]
    max_blocks: int

    @property
    def name(self) -> str:
        """``"128×128×8"``."""
        return "×".join(map(str, self.block))


# From 8 to 43 FLOP a byte. As many blocks as no form has to spill registers for.
TILES = (
    Tile((32, 32, 8), (32, 16), 16), Tile((64, 64, 8), (32, 32), 5),
    Tile((64, 64, 16), (32, 32), 5), Tile((128, 64, 8), (64, 32), 3),
    Tile((128, 128, 8), (64, 32), 2), Tile((128, 128, 16), (64, 32), 1),
    Tile((128, 256, 8), (64, 64), 1),
)


def loading_late(text: str) -> str:
    """08's source with each tile asked for directly before it is stored to shared memory.

    Behind the computation, as the source goes, would not be late enough: the compiler lets half of
    the multiply-adds, which touch registers only, wait until the loads have been asked for.

    Raises ValueError if the source no longer has the lines that are moved.
    """
    if any(text.count(line) != 1 for line in (_FIRST, _NEXT, _NEEDED)):
        raise ValueError(f"cuda/{STEM}.cu has changed: mend lib.records.sweeps.loading_late")
    text = edited(edited(text, _NEXT, ""), _FIRST, "")
    return edited(text, _NEEDED, f"        fetch(left);\n{_NEEDED}")


def source(form: str) -> str:
    """The CUDA text of a form."""
    text = text_of(find(STEM).source)
    return loading_late(text) if form == LATE else text


def variant(tile: Tile, form: str) -> Variant:
    """A form of a tile, as an instantiation of 08's template."""
    return warp_tile(form, "", block=tile.block, warp=tile.warp, blocks=tile.max_blocks,
                             buffers=_BUFFERS[form])


def hashes(tile: Tile) -> dict[str, str]:
    """Fingerprint of each form's source and constants (see `Kernel.hash`)."""
    kernel = find(STEM)
    return {
        form: fingerprint_of(source(form), kernel.source, kernel.expression(variant(tile, form)))
        for form in FORMS
    }


def stale(sweep: Sweep) -> bool:
    """Whether the source, or a tile's constants, have changed since a sweep was recorded."""
    today = {(tile.block, tile.warp): hashes(tile) for tile in TILES}
    return any(today.get((row.block, row.warp)) != row.hashes for row in sweep.rows)


def gain(row: Swept, form: str = DOUBLE, over: str = LATE) -> float:
    """How much faster one form is than another in a row of ``double_buffer``: 0.1 is 10 %."""
    return row.seconds[over] / row.seconds[form] - 1


def intensity(row: Swept) -> float:
    """FLOP for each byte that a block loads: 2·BM·BN / (4·(BM + BN)), for any BK."""
    rows, columns, _ = row.block
    return 2 * rows * columns / (4 * (rows + columns))


def tile_of(row: Swept) -> str:
    """``"128×128×8"``."""
    return "×".join(map(str, row.block))
