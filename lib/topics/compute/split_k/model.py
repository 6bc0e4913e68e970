"""Split-K inside a cluster: which steps of K a block takes, and which rows of the sum it adds up.

The arithmetic of ``cuda/22_few_tiles.cu`` and ``split_k.cuh``: the blocks take the steps in turn,
so that what they load together lies together; each leaves its partial sums in its own shared memory
and then adds up its share of the tile's rows from all of them, always in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOAT = 4


@dataclass(frozen=True)
class Part:
    """What one of the blocks that share a tile does.

    Attributes
    ----------
    rank : int
    steps : range
        Of K, that it multiplies.
    rows : range
        Of the tile, that it adds up and stores.
    left : int
        Bytes of partial sums that it leaves in its shared memory.
    read : int
        Bytes that it reads from other blocks' shared memory.
    """

    rank: int
    steps: range
    rows: range
    left: int
    read: int


def parts(tile: tuple[int, int], steps: int, blocks: int) -> tuple[Part, ...]:
    """What each of some blocks does for a tile of so many steps.

    Raises
    ------
    ValueError
        If the rows can't be shared equally.
    """
    rows, columns = tile
    if rows % blocks:
        raise ValueError(f"{rows} rows are no multiple of {blocks} blocks")
    share = rows // blocks
    return tuple(
        Part(rank, range(rank, steps, blocks), range(rank * share, (rank + 1) * share),
             rows * columns * FLOAT, (blocks - 1) * share * columns * FLOAT)
        for rank in range(blocks))
