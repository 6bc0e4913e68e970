"""The mask by which kernels of pairs turn a shared address into the first block's.

On a GPU a shared address holds the block's rank in the cluster from bit 24 on. CUTLASS clears that
bit (`Sm100MmaPeerBitMask`, 0xFEFFFFFF, in ``cute/arch/copy_sm100_tma.hpp``) to have the address in
the block of the pair whose rank is even; the compiler also clears any of the low bits that it knows
to be 0: of an mbarrier 64 or 72 bytes behind an aligned place it keeps bits 3 and 6 alone.
Here a block's own addresses begin at 0, whatever its rank: so in a kernel with ``.cta_group::2`` an
``and`` with this constant gives what it gives there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding
from ..core.segment import PEER_BYTES, peer_window
from ..core.syntax import Immediate

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run

PEER_BIT = 1 << 24  # that the constant clears
MAX_ALIGNED = 1 << 10  # bytes that an address may be known to be a multiple of


def is_leader_mask(d: Decoding) -> bool:
    """Tell whether an ``and`` takes an address to the first block of a pair."""
    if d.parts[0] != "and" or d.type != "b32" or len(d.operands) != 3:
        return False
    given = d.operands[2]
    if not isinstance(given, Immediate):
        return False
    low = (~given.bits & 0xFFFFFFFF) - PEER_BIT
    if not 0 <= low < MAX_ALIGNED:
        return False
    return any("cta_group::2" in each.parts for each in d.registers.entry.instructions)


def to_leader(d: Decoding) -> Run:
    """and.b32 d, a, 0xFEFFFFFF"""
    put, read = d.write(0, "b32"), d.read(1, "b32")
    mask = np.uint32(d.constant(2, "the mask") & 0xFFFFFFFF)

    def step(f: Batch) -> None:
        address = read(f.r)
        if f.geometry.peers == 1:
            return put(f.r, address & mask)
        first = np.arange(f.blocks) % f.geometry.peers & ~1
        windows = (peer_window(0) + first * PEER_BYTES).astype(np.uint32)[:, None]
        own = address < np.uint32(PEER_BYTES)
        put(f.r, np.where(own, address & mask | windows, address & mask))

    return step
