"""setmaxnreg: registers that the warps of a block hand to each other.

A block has what its threads are launched with: as many as fit with ``.maxntid`` and
``.minnctapersm``, or ``.maxnreg``. ``dec`` gives some back, ``inc`` waits until enough are there
(PTX ISA 9.7.20.5); where they never will be, that is a deadlock. An exit gives none back: PTX names
``dec`` alone. Without such a directive the pool is not known, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode, predicated_end
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.scheduler import Waiter
from ..core.syntax import Instruction

OF_SM, LARGEST = 1 << 16, 256  # 32-bit registers of an SM; of a thread, as the hardware allots them
UNIT = 8


@opcode("setmaxnreg")
def set_registers(d: Decoding) -> Run:
    """setmaxnreg.{inc,dec}.sync.aligned.u32 n"""
    d.only("inc", "dec", "sync", "aligned").needs("u32").count(1)
    many = d.constant(0, "the number of registers")
    if not 24 <= many <= 256 or many % UNIT:
        d.wrong(f"{many} registers; the number must be a multiple of 8 from 24 to 256")
    launched = at_launch(d.registers.entry.limits)
    if launched is None:
        return lambda f: None
    instruction, following, grows = d.instruction, d.index + 1, d.has("inc")

    def step(f: Batch) -> None:
        pools = f.waiter(RegisterPools)
        pools.begin(*launched)
        if not grows and not pools.parties:
            pools.held = np.where(f.active_warps, np.minimum(pools.held, many), pools.held)
            f.go(following, f.active)
            return
        for row, warp in np.argwhere(f.active_warps).tolist():
            if grows and pools.held[row, warp] < many:
                pools.parties.append(_Wait(instruction, following, row, warp, many, _lanes(
                    f.active_lanes, row, warp)))
            else:
                if not grows:
                    pools.held[row, warp] = min(pools.held[row, warp], many)
                f.go(following, Mask(_lanes(f.active_lanes, row, warp)))
        pools.give()

    return predicated_end(d, step)


def _lanes(active: np.ndarray, row: int, warp: int) -> np.ndarray:
    """The active lanes of a warp."""
    found = np.zeros_like(active)
    part = slice(warp * WARP, warp * WARP + WARP)
    found[row, part] = active[row, part]
    return found


def at_launch(limits: Mapping[str, tuple[int, ...]]) -> tuple[int, str] | None:
    """How many registers a thread is launched with, and by which directives; None if by none."""
    if "maxnreg" in limits:
        return limits["maxnreg"][0], f".maxnreg {limits['maxnreg'][0]}"
    name = next((each for each in ("reqntid", "maxntid") if each in limits), None)
    if name is None:
        return None
    threads, blocks = int(np.prod(limits[name])), limits.get("minnctapersm", (1,))[0]
    many = min(OF_SM // (threads * max(1, blocks)) // UNIT * UNIT, LARGEST)
    return many, f".{name} {threads}, .minnctapersm {blocks}"


@dataclass(eq=False)
class _Wait:
    """A warp that waits for registers."""

    instruction: Instruction
    next: int
    row: int
    warp: int
    many: int
    lanes: np.ndarray


class RegisterPools(Waiter):
    """How many registers each warp holds, of each of its threads, and who waits for more."""

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        self.held = np.zeros((f.blocks, f.warps), np.int64)
        self.each, self.why = 0, ""

    def begin(self, each: int, why: str) -> None:
        """Let all warps have what they are launched with."""
        if not self.each:
            self.held[:], self.each, self.why = each, each, why

    def give(self) -> None:
        """Give registers to those that wait, in order, if there are enough."""
        waits, self.parties = self.parties, []
        for each in waits:
            free = self.each * self.f.warps - int(self.held[each.row].sum())
            if each.many - self.held[each.row, each.warp] > free:
                self.parties.append(each)
                continue
            self.held[each.row, each.warp] = each.many
            self.f.go(each.next, Mask(each.lanes))

    def describe(self) -> str:
        """Say who waits for how many, and what the sum is."""
        said = []
        for row in dict.fromkeys(each.row for each in self.parties):
            waits = [each for each in self.parties if each.row == row]
            wanted = self.held[row].copy()
            for each in waits:
                wanted[each.warp] = each.many
            sums = [" + ".join(f"{count} x {WARP} x {many}" for many, count in zip(
                *(part.tolist() for part in np.unique(of, return_counts=True)), strict=True))
                for of in (self.held[row], wanted)]
            block, pool = self.f.geometry.block_name(row), self.each * self.f.warps * WARP
            said.append(
                f"Block {block} has {pool:,} registers, {self.each} a thread ({self.why}); its "
                f"warps hold {sums[0]} = {int(self.held[row].sum()) * WARP:,}, and with what "
                f"warp {', '.join(str(each.warp) for each in waits)} waits for at "
                f"{self.f.place(waits[0].instruction)} it would be {sums[1]} = "
                f"{int(wanted.sum()) * WARP:,}."
            )
        return " ".join(said)
