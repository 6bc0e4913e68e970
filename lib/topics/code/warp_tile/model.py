"""What a warp's rectangle of C, and the order of its lanes, cost in shared memory.

For each k a warp reads a column of As and a row of Bs, four floats a load. Which lanes want the
same four decides how many wavefronts such a load takes: two quarters of a warp go together only
if every lane has a neighbour, one or two places away, that wants the same
(`lib.show.banks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lib import gpus
from lib.gpus import Gpu
from lib.ptx.core.machine import WARP
from lib.show import banks

GROUP = 4
"""A lane's elements lie in groups of 4 × 4: four floats of As and four of Bs are one load each."""


@dataclass(frozen=True)
class WarpTile:
    """WM × WN elements of C a warp, its lanes `lanes` down and 32 / `lanes` across.

    Attributes
    ----------
    WM, WN : int
    lanes : int
        Lanes along M.
    paired : bool
        Lane bit 0 counts columns and bit 1 rows; otherwise lanes are counted row by row.
    """

    WM: int
    WN: int
    lanes: int = 8
    paired: bool = True

    def __post_init__(self) -> None:
        for size, lanes in ((self.WM, self.lanes), (self.WN, self.across)):
            if size % (GROUP * lanes):
                raise ValueError(f"{size} elements are no groups of {GROUP} for {lanes} lanes")

    @property
    def across(self) -> int:
        """Lanes along N."""
        return WARP // self.lanes

    @property
    def TM(self) -> int:
        """Rows of C that a lane computes."""
        return self.WM // self.lanes

    @property
    def TN(self) -> int:
        """Columns of C that a lane computes."""
        return self.WN // self.across

    @property
    def accumulators(self) -> int:
        """Registers of a lane that hold sums, and multiply-adds of the warp for each k."""
        return self.TM * self.TN

    @property
    def fragments(self) -> int:
        """Registers of a lane that hold the floats of one k."""
        return self.TM + self.TN

    @property
    def loads(self) -> tuple[int, int]:
        """128-bit loads of As and of Bs for each k."""
        return self.TM // GROUP, self.TN // GROUP

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Row and column of each lane among the warp's lanes (``x`` and ``y`` of 08's source)."""
        across = self.across
        if not self.paired:
            return [(lane // across, lane % across) for lane in range(WARP)]
        return [
            (lane // 2 % 2 + lane // (2 * across) * 2, lane % 2 + lane // 4 % (across // 2) * 2)
            for lane in range(WARP)
        ]

    @cached_property
    def wavefronts_a_load(self) -> tuple[int, int]:
        """Wavefronts of one load of As and of one of Bs."""
        everyone = np.ones(WARP, dtype=bool)
        found = []
        for axis in (0, 1):
            addresses = np.array([place[axis] for place in self.places]) * 4 * GROUP
            found.append(len(banks.wavefronts(addresses, everyone, 4 * GROUP)))
        return found[0], found[1]

    @property
    def wavefronts(self) -> int:
        """Wavefronts that the warp's loads take for each k."""
        return sum(n * each for n, each in zip(self.loads, self.wavefronts_a_load, strict=True))

    @property
    def wavefronts_per_fma(self) -> float:
        """Wavefronts for one multiply-add of the warp."""
        return self.wavefronts / self.accumulators

    def load(self, gpu: Gpu) -> float:
        """Return how long shared memory works for each unit of time that the FMA lanes do.

        Above 1 shared memory is the limit. A wavefront is 128 bytes (`gpus.data_bytes_per_clock`),
        a multiply-add of a warp takes 32 / lanes cycles of an SM.
        """
        shared = self.wavefronts_per_fma * 128 / gpus.data_bytes_per_clock(gpu)
        return shared / (WARP / gpu.fp32_lanes_per_sm)
