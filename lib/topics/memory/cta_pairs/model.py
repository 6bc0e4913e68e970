"""What each block of a pair has of A, of B and of the sums, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES


@dataclass(frozen=True)
class Share:
    """What one block of a cluster has of one step of K, in elements.

    Attributes
    ----------
    rows : range
        Of A, and of the sums: from the cluster's first row on.
    held : range
        Columns of B in its shared memory.
    summed : range
        Columns of the sums in its tensor memory.
    stage_bytes : int
        Shared memory of a stage, B.
    """

    rows: range
    held: range
    summed: range
    stage_bytes: int


def shares(variant: Variant, blocks: int = 2) -> list[Share]:
    """What each of two blocks below each other has: of a pair, or of neighbours without one."""
    (rows, columns), step = variant.tile, variant.step
    pair = variant.grid.cluster
    part = columns // pair
    item = ITEM_BYTES[variant.dtype]
    found = []
    for rank in range(blocks):
        first = rank % pair * part
        held = range(first, first + part)
        found.append(Share(range(rank * rows, (rank + 1) * rows), held, range(columns),
                           (rows + len(held)) * step * item))
    return found


@dataclass(frozen=True)
class Handover:
    """An mbarrier of the pair.

    Attributes
    ----------
    name : str
        What its address is called in the source.
    says : str
        What a completed phase says.
    home : str
        In whose shared memory it is used.
    arrivals : int
        That complete a phase.
    by : str
        Who arrives, and bytes that are expected.
    waits : str
    """

    name: str
    says: str
    home: str
    arrivals: int
    by: str
    waits: str


def handovers(variant: Variant) -> list[Handover]:
    """The mbarriers of 28, in the order in which a tile meets them."""
    warps = dict(variant.roles.warps)
    storing, pair = 32 * warps["epilogue"], variant.grid.cluster
    nbytes = sum(one.stage_bytes for one in shares(variant, pair))
    found = [
        Handover("filled", "a stage of both blocks is there", "leader", 1,
                 f"the leader's producer, and {nbytes:,} bytes: TMA of both blocks",
                 "the thread that multiplies"),
        Handover("freed", "the MMAs have read the stage", "each block", 1,
                 "a commit to both blocks", "each block's producer"),
        Handover("ready", "a tile of sums is complete", "each block", 1,
                 "a commit to both blocks", "each block's epilogue"),
        Handover("drained", "both halves of the tile are read", "leader",
                 pair * storing, f"{storing} threads of each epilogue",
                 "the thread that multiplies"),
    ]
    if variant.constants["CONTROL"]:
        readers = pair * storing + pair + 1
        found += [
            Handover("told", "the next tile is known", "each block", 1,
                     "the block's producer, and 16 bytes: the answer",
                     "all who walk through tiles"),
            Handover("read", "all have read the answer", "leader", readers,
                     f"{readers} threads of both blocks", "the leader's producer"),
        ]
    return found


@dataclass(frozen=True)
class Pending:
    """What the leader's `filled` of a stage still waits for behind an event of a phase.

    Attributes
    ----------
    event : str
    arrivals, nbytes : int
        Bytes are negative where some have come that nobody has expected yet.
    """

    event: str
    arrivals: int
    nbytes: int


def phase(variant: Variant) -> list[Pending]:
    """A phase of `filled` in which the second block's bytes come first."""
    leader, second = (one.stage_bytes for one in shares(variant))
    both = leader + second
    return [
        Pending("the phase before has ended", 1, 0),
        Pending(f"TMA of the second block: {second:,} bytes", 1, -second),
        Pending(f"the leader's producer expects {both:,}, arrives", 0, both - second),
        Pending(f"TMA of the leader: {leader:,} bytes", 0, 0),
        Pending("both are 0: the phase ends", 1, 0),
    ]
