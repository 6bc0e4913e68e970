"""Tiles dealt to SMs: whole ones in waves, or the last of them cut into equal shares.

Where each block has one tile, a GPU that holds `blocks` of them at once works in waves, and the
last one is as long as the others however few tiles it has. 09 deals the tiles that fill whole waves
but one, and cuts the others (fewer than two a block) along K into equal shares (Osama et al. 2023
call cutting along K stream-K). This is the arithmetic of ``cuda/09_fp32_limit.cu``, in steps of K.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deal:
    """How the tiles of a product are dealt.

    Attributes
    ----------
    tiles : int
    steps : int
        Steps of K that a tile takes.
    blocks : int
        Blocks that the GPU holds at once.
    """

    tiles: int
    steps: int
    blocks: int

    def __post_init__(self) -> None:
        if min(self.tiles, self.steps, self.blocks) < 1:
            raise ValueError("tiles, steps and blocks must be at least 1")

    @property
    def waves(self) -> int:
        """Rounds that uncut tiles take."""
        return -(-self.tiles // self.blocks)

    @property
    def uncut(self) -> float:
        """Share of the blocks' time that has work, where no tile is cut."""
        return self.tiles / (self.waves * self.blocks)

    @property
    def cut_tiles(self) -> int:
        """Tiles that are cut: all where they are fewer than two a block, else those of the last
        wave and of the whole one before it."""
        if self.tiles < 2 * self.blocks:
            return self.tiles
        return self.tiles % self.blocks + self.blocks

    @property
    def whole_tiles(self) -> int:
        """Tiles that each block computes whole."""
        return (self.tiles - self.cut_tiles) // self.blocks

    def share(self, block: int) -> range:
        """The steps of the cut tiles, counted through, that one block takes."""
        total = self.cut_tiles * self.steps
        return range(block * total // self.blocks, (block + 1) * total // self.blocks)

    @property
    def longest(self) -> int:
        """Steps of the block that has most to do, where tiles are cut."""
        return self.whole_tiles * self.steps + max(
            len(self.share(block)) for block in range(self.blocks)
        )

    @property
    def equal(self) -> float:
        """Share of the blocks' time that has work, where tiles are cut."""
        return self.tiles * self.steps / (self.blocks * self.longest)

    @property
    def parts(self) -> int:
        """Sums of a part of a tile that blocks leave in memory for another to add up."""
        found = 0
        for block in range(self.blocks):
            share = self.share(block)
            if not share:
                continue
            first, last = share[0] // self.steps, share[-1] // self.steps
            for tile in range(first, last + 1):
                whole = tile * self.steps >= share[0] and (tile + 1) * self.steps - 1 <= share[-1]
                found += not whole
        return found
