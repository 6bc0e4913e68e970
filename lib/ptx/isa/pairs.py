"""Pairs of blocks: two neighbours of a cluster whose ranks differ in the last bit alone.

PTX ISA 9.7.16.5 (CTA pair). The first of the two has the even rank. Rows of a batch are blocks,
clusters one behind the other: so the peer of a row is the row whose number differs in its last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import Error

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.syntax import Instruction


def check_pairs(f: Batch, instruction: Instruction) -> None:
    """Refuse ``.cta_group::2`` where blocks have no peers.

    Raises Error if the cluster has an odd number of blocks.
    """
    if f.geometry.peers % 2:
        raise Error(
            f"{f.place(instruction)}: .cta_group::2 needs clusters of an even number of blocks, "
            f"these have {f.geometry.peers}: launch with cluster=2"
        )


def pair_of(row: int) -> tuple[int, int]:
    """Return the rows of a row's pair, the first block's first."""
    return row & ~1, row | 1
