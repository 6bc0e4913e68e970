"""Where the sums of a tile lie: in registers of warpgroups, or in tensor memory."""

from __future__ import annotations

from dataclasses import dataclass

from lib.kernels.spec import Variant
from lib.ptx.core.machine import WARP, WARPGROUP
from lib.ptx.core.tensor_memory import COLUMNS, LANES

LANE_BIT = 16  # of an address in tensor memory, from which on the lane stands


@dataclass(frozen=True)
class InRegisters:
    """A tile that consumers hold in their registers.

    Attributes
    ----------
    groups : int
        Warpgroups that share it, by rows.
    rows, columns : int
        Of each warpgroup.
    each : int
        Registers of each thread.
    """

    groups: int
    rows: int
    columns: int
    each: int


@dataclass(frozen=True)
class InTensorMemory:
    """Tiles that lie in tensor memory beside each other.

    Attributes
    ----------
    tiles, columns : int
        How many, and the columns of each.
    lanes : int
        That a warp reaches.
    """

    tiles: int
    columns: int
    lanes: int = WARP

    def address(self, lane: int, column: int) -> int:
        """Of one sum, from the first allocated column on.

        Raises
        ------
        ValueError
            If tensor memory has no such place.
        """
        if not (0 <= lane < LANES and 0 <= column < COLUMNS):
            raise ValueError(f"tensor memory has {LANES} lanes and {COLUMNS} columns, no ({lane}, "
                             f"{column})")
        return lane << LANE_BIT | column


def in_registers(variant: Variant) -> InRegisters:
    """Where a version with WGMMA has its sums."""
    warps, (rows, columns) = dict(variant.roles.warps)["consumers"], variant.tile
    groups = warps // WARPGROUP
    return InRegisters(groups, rows // groups, columns, rows * columns // (warps * WARP))


def in_tensor_memory(variant: Variant) -> InTensorMemory:
    """Where a version with tcgen05 has them."""
    return InTensorMemory(int(variant.constants["ACCUMULATORS"]), variant.tile[1])
