"""wgmma in flight: fences, commit groups, waits, and who touches a register too early.

The accumulators of an MMA are in flight from ``wgmma.mma_async`` to the ``wgmma.wait_group`` that
covers its commit group. Until then their values are held here; the registers themselves get them at
once, or hold NaN until the wait, as the launch's `landing` says. Every other instruction that
touches such a register is watched, for it must not.

PTX ISA 9.7.15.7.1 asks for a ``wgmma.fence`` before the first MMA of a warpgroup, and between an
access to a register and an MMA that has it as an accumulator or as part of A. It makes one
exception, MMAs of the same shape on the same accumulators, which are in order by themselves; so
MMAs of two shapes, or one that takes as A what another one accumulated, need the fence as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray

from ..core.analysis import registers_of, slots_of
from ..core.batch import Batch, Run, Step
from ..core.decode import DECODE_PASSES
from ..core.masks import Mask, any_in_warp, by_warpgroup, over_lanes, spread
from ..core.scheduler import Waiter, join
from ..core.syntax import Immediate, Instruction, Register, Vector


@dataclass(eq=False)
class WgmmaInFlight:
    """The results of an MMA, not waited for yet, in some lanes."""

    instruction: Instruction
    slots: tuple[int, ...]
    values: ndarray  # ndarray, shape (registers, blocks, threads), what the registers will hold
    lanes: ndarray  # ndarray of bool, shape (blocks, threads), where
    group: ndarray  # commit group of each warp
    reads: set[int] = field(default_factory=set)  # slots of the registers that hold A


@dataclass(eq=False)
class Unfenced:
    """Accumulators that an MMA of one shape has used, with no wgmma.fence since in some lanes."""

    shape: str
    slots: set[int]
    lanes: ndarray
    instruction: Instruction


class WgmmaGroups(Waiter):
    """What the warpgroups of a batch have in flight."""

    says = "Waiting for the other warps of the warpgroup"

    def __init__(self, f: Batch) -> None:
        super().__init__(f)
        shape = (f.blocks, f.warps)
        self.in_flight: list[WgmmaInFlight] = []
        self.holders: dict[
            int, list[tuple[WgmmaInFlight, int]]
        ] = {}  # slot -> where its values are
        self.committed = np.zeros(shape, np.int64)
        self.fenced = np.zeros(shape, bool)
        self.dirty: dict[int, ndarray] = {}  # slot -> lanes that touched it since their fence
        self.touchers: dict[int, Instruction] = {}  # slot -> the instruction that touched it last
        self.unfenced: dict[tuple[int, ...], Unfenced] = {}
        self.issued = np.zeros(shape, np.int64)

    def shown(self, row: int) -> list[str]:
        """Say which MMAs of a block are in flight, by warpgroup."""
        said = []
        for group in range(-(-self.f.warps // 4)):
            lanes = slice(group * 128, group * 128 + 128)
            found = [mma for mma in self.in_flight if mma.lanes[row, lanes].any()]
            if found:
                many = len({int(mma.group[row, group * 4]) for mma in found})
                said.append(f"warpgroup {group}: wgmma in flight, "
                            f"{many} commit group{'s' * (many > 1)}")
        return said

    # -- registers ------------------------------------------------------------------------------

    def value(self, slot: int, dtype: np.dtype) -> ndarray:
        """Return what a register holds, or will hold when all MMAs are done."""
        f = self.f
        value = over_lanes(f.r[slot], f.shape)
        value = value if value.dtype == dtype else value.view(dtype)
        for mma, row in self.holders.get(slot, ()):
            value = np.where(mma.lanes, mma.values[row], value)
        return value

    def accumulators(self, slots: tuple[int, ...], dtype: np.dtype) -> ndarray:
        """Return the registers as (registers, blocks, threads)."""
        held = self.holders.get(slots[0])
        if held and len(held) == 1:
            mma = held[0][0]
            if mma.slots == slots and self._whole(mma, slots):
                return mma.values
        return np.stack([self.value(slot, dtype) for slot in slots])

    def _whole(self, mma: WgmmaInFlight, slots: Sequence[int]) -> bool:
        f = self.f
        if f.active is not None and (f.active.array & ~mma.lanes).any():
            return False
        return all(self.holders.get(s) == [(mma, i)] for i, s in enumerate(slots))

    def issue(
        self, instruction: Instruction, slots: tuple[int, ...], values: ndarray, reads: set[int]
    ) -> None:
        """Put the results of the active lanes in flight."""
        f = self.f
        active = f.active_lanes
        for mma in list(self.in_flight):
            if set(mma.slots) & set(slots) and (mma.lanes & active).any():
                reads = reads | mma.reads
                mma.lanes = mma.lanes & ~active
        mma = WgmmaInFlight(
            instruction, slots, values, active.copy(), self.committed + 1, set(reads)
        )
        self._tidy()
        self.in_flight.append(mma)
        self._leave_unfenced(instruction, slots, active)
        for row, slot in enumerate(slots):
            self.holders.setdefault(slot, []).append((mma, row))
        if f.late:
            poison = np.full((1, 1), -1, f"i{values.dtype.itemsize}").view(values.dtype)
            self._set([(slot, poison) for slot in slots], active)
        elif _whole_groups(active):
            # Elsewhere the values are those that the registers hold.
            for row, slot in enumerate(slots):
                f.r[slot] = values[row]
        else:
            self._set(list(zip(slots, values, strict=True)), active)

    def _leave_unfenced(
        self, instruction: Instruction, slots: tuple[int, ...], active: ndarray
    ) -> None:
        """Remember which accumulators an MMA has used."""
        shape, old = _shape_of(instruction), self.unfenced.get(slots)
        if old is None or old.shape != shape or len(old.slots) != len(slots):
            self.unfenced[slots] = Unfenced(shape, set(slots), active.copy(), instruction)
        else:
            old.lanes, old.instruction = old.lanes | active, instruction

    def _set(self, values: list[tuple[int, ndarray]], lanes: ndarray) -> None:
        """Write registers, by their slots, in some lanes."""
        f, every = self.f, bool(lanes.all())
        for slot, value in values:
            if every:
                f.r[slot] = np.broadcast_to(value, lanes.shape)
                continue
            old = f.r[slot]
            old = old if old.dtype == value.dtype else old.view(value.dtype)
            f.r[slot] = np.where(lanes, value, old)

    def _tidy(self) -> None:
        """Forget the MMAs that no lane has any more."""
        there = [mma for mma in self.in_flight if mma.lanes.any()]
        if len(there) < len(self.in_flight):
            self.in_flight, flying = there, set(map(id, there))
            for slot in list(self.holders):
                left = [h for h in self.holders[slot] if id(h[0]) in flying]
                if left:
                    self.holders[slot] = left
                else:
                    del self.holders[slot]

    def renamed(self, to: int, source: int | None) -> None:
        """mov renames: what is in flight comes along, and no constant needs a fence.

        Compilers put such copies between wgmma.fence and an MMA; ptxas makes nothing of them.
        """
        f = self.f
        active = f.active_lanes
        for used in self.unfenced.values():
            used.slots.discard(to)
        old = self.holders.pop(to, [])
        in_flight = [h for h in old if (h[0].lanes & ~active).any()]
        held = [] if source is None else self.holders.get(source, [])
        in_flight += [h for h in held if (h[0].lanes & active).any()]
        if in_flight:
            self.holders[to] = in_flight
        dirt = None if source is None else self.dirty.get(source)
        if source is not None and source in self.touchers:
            self.touchers[to] = self.touchers[source]
        here = self.dirty.get(to, np.zeros_like(active)) & ~active
        self.dirty[to] = here if dirt is None else here | (dirt & active)

    # -- order ----------------------------------------------------------------------------------

    def fence(self) -> None:
        """wgmma.fence: registers touched before may be used by products behind it."""
        f = self.f
        active = f.active_lanes
        self.fenced = self.fenced | any_in_warp(active)
        for slot in list(self.dirty):
            left = self.dirty[slot] & ~active
            if left.any():
                self.dirty[slot] = left
            else:
                del self.dirty[slot]
        for slots, used in list(self.unfenced.items()):
            used.lanes = used.lanes & ~active
            if not used.lanes.any():
                del self.unfenced[slots]

    def touched(self, slots: Iterable[int], written: set[int], instruction: Instruction) -> None:
        """Look at an instruction that uses registers which products use as well."""
        f = self.f
        active = f.active_lanes
        for slot in slots:
            for mma, _ in self.holders.get(slot, ()):
                self._early(mma, mma.lanes & active, instruction, "an accumulator")
            self.dirty[slot] = self.dirty[slot] | active if slot in self.dirty else active
            self.touchers[slot] = instruction
        for mma in self.in_flight:
            if mma.reads & written:
                self._early(mma, mma.lanes & active, instruction, "a register of A")
        for slot in written & self.holders.keys():
            for mma, row in self.holders[slot]:  # what is written now stays
                value = np.broadcast_to(f.r[slot], active.shape)
                value = value if value.dtype == mma.values.dtype else value.view(
                    mma.values.dtype)
                # Registers may be rows of these, and are never changed in place.
                mma.values = mma.values.copy()
                mma.values[row] = np.where(active, value, mma.values[row])

    def overwritten(self, slot: int, instruction: Instruction) -> None:
        """Look at a mov into a register that an MMA may still read or write."""
        f = self.f
        if not self.in_flight:
            return
        active = f.active_lanes
        for mma in self.in_flight:
            if slot in mma.reads:
                self._early(mma, mma.lanes & active, instruction, "a register of A")
            elif slot in mma.slots and slot in self.holders:
                self._early(mma, mma.lanes & active, instruction, "an accumulator")

    def _early(
        self, mma: WgmmaInFlight, lanes: ndarray, instruction: Instruction, what: str
    ) -> None:
        if lanes.any():
            f = self.f
            f.hazard(
                "wgmma in flight",
                f"{f.place(instruction)}: {what} of the product at {f.place(mma.instruction)} "
                f"is used before wgmma.wait_group: {f.lane_names(lanes)}",
                instruction, lanes, mma.instruction,
            )

    def check_fence(
        self, instruction: Instruction, slots: tuple[int, ...], reads: set[int]
    ) -> None:
        """Report an MMA whose registers were touched behind the last wgmma.fence.

        `slots`: its accumulators. `reads`: registers that hold A.
        """
        f = self.f
        active = f.active_lanes
        bad = active & spread(~self.fenced, f.threads)
        both = (*slots, *reads)
        toucher = next(map(self.touchers.get, both), None)
        for slot in both:
            if slot in self.dirty and (self.dirty[slot] & active).any():
                bad, toucher = bad | (self.dirty[slot] & active), self.touchers.get(slot)
        if bad.any():
            before = f" ({f.place(toucher)})" if toucher is not None else ""
            f.hazard(
                "missing wgmma.fence",
                f"{f.place(instruction)}: no wgmma.fence between this product and what touched "
                f"its registers before{before}: {f.lane_names(bad)}",
                instruction, bad, toucher,
            )
        for slot in reads & self.holders.keys():
            for mma, _ in self.holders[slot]:
                self._early(mma, mma.lanes & active, instruction, "an accumulator")
        self._check_shapes(instruction, slots, reads)

    def _check_shapes(
        self, instruction: Instruction, slots: tuple[int, ...], reads: set[int]
    ) -> None:
        """Report registers that MMAs use in a way which only a wgmma.fence puts in order."""
        f, shape = self.f, _shape_of(instruction)
        active = f.active_lanes
        for of, used in self.unfenced.items():
            as_a = reads & used.slots
            if not as_a and (used.shape == shape or of != slots and used.slots.isdisjoint(slots)):
                continue
            bad = used.lanes & active
            if bad.any() and used.slots:
                what = "takes as A the accumulators" if as_a else f"of {shape} has the accumulators"
                f.hazard(
                    "missing wgmma.fence",
                    f"{f.place(instruction)}: this product {what} of one of {used.shape} "
                    f"({f.place(used.instruction)}), with no wgmma.fence in between: only products "
                    f"of one shape on the same accumulators are in order: {f.lane_names(bad)}",
                    instruction, bad, used.instruction,
                )

    def commit(self) -> None:
        """wgmma.commit_group: the MMAs issued so far form a group."""
        f = self.f
        active = f.active_lanes
        self.committed = self.committed + any_in_warp(active)

    def wait(self, instruction: Instruction, following: int, pending: int) -> None:
        """Let the active warps wait until at most `pending` groups are in flight.

        An MMA is the whole warpgroup's, so its warps go on together.
        """
        f = self.f
        active = f.active_lanes
        party = join(self.parties, instruction, following, active)
        live = f.live_lanes
        came, need = any_in_warp(party.lanes), any_in_warp(live)
        came, need = by_warpgroup(came), by_warpgroup(need)
        full = (came | ~need).all(axis=2) & came.any(axis=2)
        ready = party.lanes & spread(np.repeat(full, 4, axis=1)[:, : f.warps], f.threads)
        if ready.any():
            party.lanes = party.lanes & ~ready
            if not party.lanes.any():
                self.parties.remove(party)
            self._land(ready, pending)
            f.go(following, Mask(ready) if not ready.all() else None)

    def _land(self, lanes: ndarray, pending: int) -> None:
        f = self.f
        done = spread(self.committed - pending, f.threads)
        for mma in self.in_flight:
            landing = mma.lanes & lanes & (spread(mma.group, f.threads) <= done)
            if not landing.any():
                continue
            if f.late:
                held = [(slot, mma.values[row]) for slot, holders in self.holders.items()
                        for holder, row in holders if holder is mma]
                self._set(held, landing)
            mma.lanes = mma.lanes & ~landing
        self._tidy()
        if f.races is not None:
            for row, group in np.argwhere(by_warpgroup(any_in_warp(lanes)).any(axis=2)).tolist():
                f.races.agents.waits_meet(row, slice(4 * group, 4 * group + 4))
            for row, warp in np.argwhere(any_in_warp(lanes)).tolist():
                time = int(self.committed[row, warp]) - pending
                f.races.agents.learn(row, warp, f.races.agents.warpgroup(row, warp), time)


def _shape_of(instruction: Instruction) -> str:
    """Return an MMA's shape, such as ``"m64n8k16"``."""
    return next(part for part in instruction.parts if part.startswith("m64n"))


def _whole_groups(lanes: ndarray) -> bool:
    """Tell whether each warpgroup has all of its 128 lanes here or none."""
    groups = by_warpgroup(any_in_warp(lanes)).any(axis=2)
    return 128 * np.count_nonzero(groups) == np.count_nonzero(lanes)


# -- watching registers -------------------------------------------------------------------------


def watch(steps: list[Step]) -> None:
    """Let every step report that uses registers of MMAs; called when all are decoded."""
    products = [s for s in steps if s.instruction.opcode.startswith("wgmma.mma_async")]
    used: set[int] = set()
    for step in products:
        to, a = step.instruction.operands[:2]
        used.update(registers_of(to), registers_of(a) if isinstance(a, Vector) else ())
    if not used:
        return
    all_slots = [slots_of(step.instruction) for step in steps]
    copies = [slots for step, slots in zip(steps, all_slots, strict=True)
              if _is_move(step) and len(slots) == 2]
    moves = True
    while moves:  # registers that are copies of those
        moves = False
        for slots in copies:
            if len(slots & used) == 1:
                used |= slots
                moves = True
    for step, slots in zip(steps, all_slots, strict=True):
        if step.instruction.parts[0] == "wgmma" or slots.isdisjoint(used):
            continue
        to, *given = step.instruction.operands
        if _is_move(step) and isinstance(to, Register):
            source = given[0].slot if isinstance(given[0], Register) else None
            step.run = _moving(step.run, step.instruction, to.slot, source)
        else:
            step.run = _watched(step, slots & used)


def _is_move(step: Step) -> bool:
    operands = step.instruction.operands
    return (
        step.instruction.parts[0] == "mov"
        and isinstance(operands[0], Register)
        and isinstance(operands[1], Register | Immediate)
    )


def _moving(run: Run, instruction: Instruction, to: int, source: int | None) -> Run:
    def step(f: Batch) -> None:
        run(f)
        products = f.waiter(WgmmaGroups)
        products.overwritten(to, instruction)
        products.renamed(to, source)

    return step


def _watched(step: Step, slots: set[int]) -> Run:
    run, instruction = step.run, step.instruction
    written = set(step.writes)

    def watched(f: Batch) -> None:
        run(f)
        f.waiter(WgmmaGroups).touched(slots, written, instruction)

    return watched


DECODE_PASSES.append(watch)
