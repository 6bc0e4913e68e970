"""wgmma: MMAs of a warpgroup, with operands in shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray

from ..core.analysis import registers_of, slots_of
from ..core.batch import Batch, Issuer, Reader, Run, Step
from ..core.decode import DECODE_PASSES, Decoding, opcode, predicated_end
from ..core.errors import Divergence, Error
from ..core.machine import BANKS, WARP
from ..core.masks import Mask, any_in_warp, by_warpgroup, over_lanes, spread
from ..core.registers import DTYPES, joined, parted
from ..core.rounding import to_float32
from ..core.scheduler import Waiter, join
from ..core.syntax import Immediate, Instruction, Register, Vector
from . import wgmma_fp8
from .fragments import (
    ACCUMULATORS,
    ELEMENT_BITS,
    MIXED,
    ROWS,
    Sparsity,
    accumulator,
    by_lanes,
    gather,
    left,
    whole_warps,
)
from .matrix_descriptor import (
    SPANS,
    Descriptor,
    cells_of,
    chunk_addresses,
    chunks_in_shared,
    read_chunks,
)

# -- wgmma in flight: fences, commit groups, waits, and who touches a register too early. ----------
#
# The accumulators of an MMA are in flight from ``wgmma.mma_async`` to the ``wgmma.wait_group`` that
# covers its commit group. Until then their values are held here; the registers themselves get them
# at once, or hold NaN until the wait, as the launch's `landing` says. Every other instruction that
# touches such a register is watched, for it must not.
#
# PTX ISA 9.7.15.7.1 asks for a ``wgmma.fence`` before the first MMA of a warpgroup, and between an
# access to a register and an MMA that has it as an accumulator or as part of A. It makes one
# exception, MMAs of the same shape on the same accumulators, which are in order by themselves; so
# MMAs of two shapes, or one that takes as A what another one accumulated, need the fence as well.


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

    def begin(self) -> None:
        shape = (self.f.blocks, self.f.warps)
        self.in_flight: list[WgmmaInFlight] = []
        # slot -> where its values are
        self.holders: dict[int, list[tuple[WgmmaInFlight, int]]] = {}
        self.committed = np.zeros(shape, np.int64)
        self.fenced = np.zeros(shape, bool)
        self.dirty: dict[int, ndarray] = {}  # slot -> lanes that touched it since their fence
        self.touchers: dict[int, Instruction] = {}  # slot -> the instruction that touched it last
        self.unfenced: dict[tuple[int, ...], Unfenced] = {}

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
        value = over_lanes(f.r[slot], f.shape).view(dtype)
        for mma, row in self.holders.get(slot, ()):
            value = np.where(mma.lanes, mma.values[row], value)
        return value

    def accumulators(self, slots: tuple[int, ...], dtype: np.dtype) -> ndarray:
        """Return the registers as (registers, blocks, threads)."""
        f, held = self.f, [mma for mma, _ in self.holders.get(slots[0], ())]
        if any(self.holders.get(slot, []) != [(mma, i) for mma in held]
               for i, slot in enumerate(slots)):
            return np.stack([self.value(slot, dtype) for slot in slots])
        if len(held) == 1 and not (f.active_lanes & ~held[0].lanes).any():
            return held[0].values[: len(slots)]
        found = np.stack([over_lanes(f.r[slot], f.shape).view(dtype) for slot in slots])
        for mma in held:
            np.copyto(found, mma.values[: len(slots)].view(dtype), where=mma.lanes)
        return found

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
            f.r[slot] = np.where(lanes, value, f.r[slot].view(value.dtype))

    def _tidy(self) -> None:
        """Forget the MMAs that no lane has any more."""
        there = [mma for mma in self.in_flight if mma.lanes.any()]
        if len(there) < len(self.in_flight):
            self.in_flight, flying = there, set(map(id, there))
            left = {slot: [h for h in holders if id(h[0]) in flying]
                    for slot, holders in self.holders.items()}
            self.holders = {slot: holders for slot, holders in left.items() if holders}

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
        left = {slot: lanes & ~active for slot, lanes in self.dirty.items()}
        self.dirty = {slot: lanes for slot, lanes in left.items() if lanes.any()}
        for used in self.unfenced.values():
            used.lanes = used.lanes & ~active
        self.unfenced = {at: used for at, used in self.unfenced.items() if used.lanes.any()}

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
                value = f.full(f.r[slot].view(mma.values.dtype))
                # Registers may be rows of these, and are never changed in place.
                mma.values = mma.values.copy()
                mma.values[row] = np.where(active, value, mma.values[row])

    def overwritten(self, slot: int, instruction: Instruction) -> None:
        """Look at a mov into a register that an MMA may still read or write."""
        for mma in self.in_flight:
            lanes = mma.lanes & self.f.active_lanes
            if slot in mma.reads:
                self._early(mma, lanes, instruction, "a register of A")
            elif slot in mma.slots and slot in self.holders:
                self._early(mma, lanes, instruction, "an accumulator")

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
        self.committed = self.committed + any_in_warp(self.f.active_lanes)

    def wait(self, instruction: Instruction, following: int, pending: int) -> None:
        """Let the active warps wait until at most `pending` groups are in flight.

        An MMA is the whole warpgroup's, so its warps go on together.
        """
        f = self.f
        active = f.active_lanes
        party = join(self.parties, instruction, following, active)
        came, need = (by_warpgroup(any_in_warp(lanes)) for lanes in (party.lanes, f.live_lanes))
        full = (came | ~need).all(axis=2)
        ready = party.lanes & np.repeat(full, GROUP, axis=1)[:, : f.threads]
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
        if f.proxy is not None:
            for row, group in np.argwhere(by_warpgroup(any_in_warp(lanes)).any(axis=2)).tolist():
                f.proxy.waits_meet(row, slice(4 * group, 4 * group + 4))
            for warp in map(tuple, np.argwhere(any_in_warp(lanes)).tolist()):
                time = int(self.committed[warp]) - pending
                f.proxy.learn(warp, f.proxy.warpgroup(warp), time)


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


# -- What wgmma multiplies: matrices in shared memory, by their descriptors, or A in registers. ---


GROUP = 4 * WARP  # threads of a warpgroup
CHUNK = 16  # bytes that a descriptor's layout keeps together


@dataclass(frozen=True)
class Operand:
    """A or B in shared memory."""

    rows: int  # M of A, N of B
    major: str  # which of its dimensions is contiguous, ``"k"`` or ``"mn"``
    kind: str  # type of its elements, such as ``"bf16"``
    chunks: int  # of 16 bytes, along K: 2, or 4 of a B beside a sparse A
    instruction: Instruction

    def addresses(self, f: Batch, bits: int) -> ndarray:
        """Return where its chunks lie, of a descriptor's bits; see `chunk_addresses`."""
        descriptor = Descriptor.of(bits)
        if self.major == "k" and descriptor.mode and SPANS[descriptor.mode] < CHUNK * self.chunks:
            raise Error(
                f"{f.place(self.instruction)}: the descriptor {bits:#x} has a swizzle of "
                f"{SPANS[descriptor.mode]} bytes, and K is {CHUNK * self.chunks} bytes long; PTX "
                "says nothing of where the rest lies: use a swizzle of 64 or 128 bytes, or none"
            )
        return chunk_addresses(descriptor, self.rows, self.major, self.chunks)

    def read(self, f: Batch, groups: list[tuple[int, int]], known: list[int]) -> ndarray:
        """Return the operand of each warpgroup, (groups, rows, K), as float32.

        `groups`: row and warpgroup. `known`: the descriptor of each.
        """
        found = np.empty(0, np.float32)
        of_bits: dict[int, list[int]] = {}
        for i, bits in enumerate(known):
            of_bits.setdefault(bits, []).append(i)
        for bits, which in of_bits.items():
            start = Descriptor.of(bits).start
            blocks = list(dict.fromkeys(groups[i][0] for i in which))  # groups of one share B
            place = chunks_in_shared(
                f, blocks[0], start, self.addresses(f, bits), "the operand", self.instruction)
            raw = read_chunks(f, blocks, place, f"the operand at {start:#x}", self.instruction)
            value = to_float32(raw.reshape(len(blocks), len(place), -1), self.kind)
            if self.major != "k":
                value = value.swapaxes(1, 2)
            if len(which) > len(blocks):
                number = {row: j for j, row in enumerate(blocks)}
                value = value[[number[groups[i][0]] for i in which]]
            if len(of_bits) == 1:
                return value
            if not found.size:
                found = np.empty((len(groups), *value.shape[1:]), np.float32)
            found[which] = value
        return found

    def report(self, f: Batch, by: Issuer, time: int, bits: int) -> None:
        """Tell the race detector that a warpgroup reads it.

        `by`: its first active warp. `time`: among the MMAs of that warp. `bits`: the descriptor.
        """
        place = self.addresses(f, bits) - f.memory.shared.base
        f.proxy.reads(cells_of(f, by.row, place), by, f.proxy.warpgroup(by.warp), time)


def from_registers(f: Batch, registers: list[ndarray], warps: ndarray, kind: str) -> ndarray:
    """Gather A of some warps, (warps, 16, K), from its four registers, as float32."""
    words = left(ROWS, K_BYTES // 4, 1).words(gather(f, registers, np.dtype("u4")))
    return to_float32(words[warps].view(np.uint8), kind)


Keep = ndarray | bool  # whether accumulators are added to: of all lanes, or of each
K_BYTES = 32  # of one row of A as it is stored, in every type; of a sparse A, half of K
TYPES = ("f16", "bf16", "tf32", "s8", "u8", "e4m3", "e5m2")  # of A and B


# -- instructions -------------------------------------------------------------------------------


@opcode("wgmma")
def wgmma(d: Decoding) -> Run:
    """wgmma.{fence,commit_group,wait_group,mma_async{.sp}}.sync.aligned"""
    what = "".join(d.parts[1:2])
    if what == "mma_async":
        return _product(d)
    if what not in ("fence", "commit_group", "wait_group"):
        d.unsupported("wgmma.{fence,commit_group,wait_group,mma_async}")
    d.only(what, ".sync.aligned").count(1 if what == "wait_group" else 0)
    instruction = d.instruction
    if what == "wait_group":
        pending, following = d.constant(0, "the number of groups"), d.index + 1

        def wait(f: Batch) -> None:
            whole_warps(f, instruction)
            f.waiter(WgmmaGroups).wait(instruction, following, pending)

        return predicated_end(d, wait)

    def step(f: Batch) -> None:
        whole_warps(f, instruction)
        products = f.waiter(WgmmaGroups)
        products.fence() if what == "fence" else products.commit()

    return step


def _check_groups(f: Batch, groups: list[tuple[int, int]], instruction: Instruction) -> None:
    """Raise Divergence where a block has no four warps for a warpgroup."""
    short = [group for _, group in groups if (group + 1) * GROUP > f.threads]
    if short:
        raise Divergence(
            f"{f.place(instruction)}: needs a warpgroup of {GROUP} threads; the block of "
            f"{f.threads} has only {f.threads - short[0] * GROUP} from warp {4 * short[0]} on"
        )


def _shape(d: Decoding) -> tuple[str, str, str, int]:
    """Return the types of D, A and B, and N."""
    kinds = [p for p in d.parts[2:] if p in (*TYPES, "f32", "s32")]
    sizes = [m for m in (re.fullmatch(r"m64n(\d+)k(\d+)", p) for p in d.parts) if m]
    if len(kinds) != 3 or len(sizes) != 1:
        d.unsupported(f"wgmma.mma_async.m64nNkK.dtype.atype.btype of {' '.join(TYPES)}")
    dtype, a, b = kinds
    n, k = map(int, sizes[0].groups())
    if a not in TYPES or b not in TYPES or dtype not in ACCUMULATORS[a]:
        d.unsupported(f"wgmma of {' '.join(TYPES)}; not .{dtype}.{a}.{b}")
    depth = 2 * K_BYTES if d.has("sp") else K_BYTES
    same = a == b or {a, b} in MIXED
    if not same or k * ELEMENT_BITS[a] != 8 * depth or not 8 <= n <= 256 or n % 8:
        sparse = ", sparse" if d.has("sp") else ""
        d.wrong(f"there is no m64n{n}k{k} of .{a} and .{b}{sparse}")
    if dtype == "s32" and n not in (8, 16, 24) and n % 16:
        d.wrong(f"N = {n}: whole numbers have 8, 16, 24 and multiples of 16")
    return dtype, a, b, n


def _product(d: Decoding) -> Run:
    """d, a-desc|{a}, b-desc, scale-d{, scale-a, scale-b{, trans-a}{, trans-b}}

    Of .sp, where A is stored by half, metadata and selector stand behind b-desc (PTX ISA 9.7.15.6).
    """
    dtype, a_kind, b_kind, n = _shape(d)
    saturate = d.has("satfinite")
    register = "b32" if dtype == "f16" else dtype
    targets = d.vector(0)
    count = n // 4 if dtype == "f16" else n // 2
    if len(targets) != count or not all(isinstance(t, Register) for t in targets):
        d.wrong(f"the accumulators are {count} registers, not {len(targets)}")
    for target in targets:
        d.write(target, register)
    d.writes.clear()  # merged here, for the lanes that are not active
    slots = tuple(t.slot for t in targets)
    in_registers = isinstance(d.operands[1], Vector)
    parts_of_a = d.vector(1, 4, "A in registers has 4 of them") if in_registers else ()
    a_registers = d.read_all(parts_of_a, "b32")
    reads = {i.slot for i in parts_of_a if isinstance(i, Register)}
    descriptors = [d.read(i, "b64") for i in ((2,) if in_registers else (1, 2))]
    sparse = _sparsity(d, a_kind) if d.has("sp") else None
    after = 3 if sparse is None else 5
    scale: Reader | bool = True
    if len(d.operands) > after:
        given = d.operands[after]
        scale = bool(given.bits) if isinstance(given, Immediate) else d.read(given, "pred")
    metadata = d.read(3, "b32") if sparse is not None else None
    flags = [d.constant(i, "a scale or a transposition") for i in range(after + 1, len(d.operands))]
    flags = flags if dtype != "s32" else []
    negated = sum(flag < 0 or flag == (1 << 64) - 1 for flag in flags[:2])
    sign = -1 if negated == 1 else 1
    if flags[2:] and ELEMENT_BITS[a_kind] != 16:
        d.wrong("only elements of 2 bytes can be transposed")
    majors = [("mn" if flag else "k") for flag in flags[2:]] or ["k"]
    a_major, b_major = "k" if in_registers else majors[0], majors[-1]
    instruction = d.instruction
    chunks = K_BYTES // CHUNK
    of_a = Operand(64, a_major, a_kind, chunks, instruction)
    of_b = Operand(n, b_major, b_kind, chunks if sparse is None else 2 * chunks, instruction)
    # Bytes of both, where they lie in shared memory.
    wavefronts = CHUNK * (n * of_b.chunks + (0 if in_registers else 64 * chunks)) // (4 * BANKS)

    def step(f: Batch) -> None:
        whole_warps(f, instruction)
        outer = f.active
        for part in _in_step(f, descriptors):
            f.active = part
            issue(f)
        f.active = outer

    def issue(f: Batch) -> None:
        products = f.waiter(WgmmaGroups)
        products.check_fence(instruction, slots, reads)
        here = f.active_warps
        groups = _warpgroups(here)
        leaders = [4 * group + int(here[row, 4 * group : 4 * group + 4].argmax())
                   for row, group in groups]
        _check_groups(f, groups, instruction)
        if f.trace is not None:
            f.trace.multiplied(d.index, instruction, 4 * len(groups), wavefronts * len(groups))
        known_b = _uniform(f, descriptors[-1](f.r), groups, leaders, instruction)
        b = of_b.read(f, groups, known_b)
        warps = np.array([row * f.warps + 4 * group + w for row, group in groups for w in range(4)])
        if in_registers:
            a = from_registers(f, a_registers(f.r), warps, a_kind)
        else:
            known_a = _uniform(f, descriptors[0](f.r), groups, leaders, instruction)
            a = of_a.read(f, groups, known_a)
        if sparse is not None and metadata is not None:
            words = gather(f, [metadata(f.r)], np.dtype("u4")).reshape(-1, WARP)[warps]
            a = sparse.whole(f, a.reshape(len(warps), ROWS, -1), words, warps)
        a = a.reshape(len(groups), 4 * ROWS, -1)
        if f.proxy is not None:
            for i, ((row, _), warp) in enumerate(zip(groups, leaders, strict=True)):
                by, time = Issuer(row, warp * WARP, instruction, d.index), products.committed + 1
                of_b.report(f, by, int(time[row, warp]), known_b[i])
                if not in_registers:
                    of_a.report(f, by, int(time[row, warp]), known_a[i])
        old, at = products.accumulators(slots, DTYPES[register]), _lanes_of(f, groups)
        part = old[at]
        keep = scale if isinstance(scale, bool) else scale(f.r)
        if not isinstance(keep, bool):
            keep = bool(keep[0, 0]) if keep.size == 1 else f.full(keep)[at]
        if a_kind in wgmma_fp8.KINDS:
            before = part if keep is True else np.where(keep, part, 0)
            values = _summed(before, a * sign, b, (dtype, a_kind, b_kind))
        else:
            fresh = dealt_product(a, b)
            if sign != 1:
                fresh *= sign
            values = _added(part, fresh.reshape(-1, *part.shape[1:]), dtype, saturate, keep)
        if part.shape != old.shape:
            whole = old.copy()
            whole[at] = values.reshape(part.shape)
            values = whole
        values = values.reshape(old.shape)
        products.issue(instruction, slots, values, reads)

    return step


def _sparsity(d: Decoding, kind: str) -> Sparsity:
    """Take the selector of a sparse A, whose K is twice what is stored."""
    if len(d.operands) < 5:
        d.wrong("wgmma.mma_async.sp has metadata and a sparsity selector behind the operand B")
    bits = ELEMENT_BITS[kind]
    return Sparsity.of(d, 4, 16 * K_BYTES // bits, bits, ordered=False)


def _warpgroups(here: ndarray) -> list[tuple[int, int]]:
    """List (row, warpgroup) of the groups with an active warp."""
    found = np.argwhere(by_warpgroup(here).any(axis=2)).tolist()
    return [(row, group) for row, group in found]


def _in_step(f: Batch, descriptors: list[Reader]) -> list[Mask | None]:
    """Part the active warps so that those of one warpgroup have the same descriptors.

    Warps of a warpgroup need not run together: one may be ahead by turns of a loop.
    """
    bits = [read(f.r) for read in descriptors]
    if all(each.shape[1] == 1 for each in bits):
        return [f.active]
    each = by_warpgroup(np.stack([f.full(values)[:, ::WARP] for values in bits], axis=-1))
    parts, left = [], by_warpgroup(f.active_warps)
    while left.any():
        first = np.take_along_axis(each, left.argmax(axis=2)[..., None, None], axis=2)
        parts.append(left & (each == first).all(axis=-1))
        left = left & ~parts[-1]
    if len(parts) == 1:
        return [f.active]
    warps = [part.reshape(f.blocks, -1)[:, : f.warps] for part in parts]
    return [Mask(spread(some, f.threads) & f.active_lanes) for some in warps]


def _uniform(
    f: Batch, bits: ndarray, groups: list[tuple[int, int]], leaders: list[int],
    instruction: Instruction,
) -> list[int]:
    """Return the descriptor of each warpgroup; all of its lanes must have the same.

    `leaders`: the first active warp of each.
    """
    full, (rows, numbers) = f.full(bits), np.array(groups).T[..., None]
    found = full[rows[:, 0], np.array(leaders) * WARP]
    lanes = rows, numbers * GROUP + np.arange(GROUP)
    other = (full[lanes] != found[:, None]) & f.active_lanes[lanes]
    if other.any():
        row, group = groups[int(other.any(axis=1).argmax())]
        raise Error(
            f"{f.place(instruction)}: lanes of a warpgroup have different descriptors, block "
            f"{f.geometry.block_name(row)} warps {4 * group} to {4 * group + 3}"
        )
    return found.tolist()


def dealt_product(a: ndarray, b: ndarray) -> ndarray:
    """Multiply (groups, 64, K) by (groups, N, K), transposed, and deal it to the lanes.

    Lane 4 g + t of a warp w holds of row 16 w + 8 half + g, in register 4 block + 2 half + e, the
    column 8 block + 2 t + e. Columns are multiplied with t counting fastest, so that the floats of
    four lanes move as one.

    Returns ndarray of float32, shape (N / 2, groups * 128).
    """
    return _dealt(np.matmul(a, by_lanes(b).swapaxes(1, 2)))


def _dealt(product: ndarray) -> ndarray:
    """Deal matrices, (groups, 64, N), of such columns to the lanes."""
    n = product.shape[2]
    return accumulator(ROWS, n, 1).dealt(product.reshape(-1, ROWS, n))


def _lanes_of(f: Batch, groups: list[tuple[int, int]]) -> tuple:
    """Index the lanes of warpgroups in (..., blocks, threads)."""
    first, last = groups[0][1], groups[-1][1] + 1
    if groups == [(row, group) for row in range(f.blocks) for group in range(first, last)]:
        return ..., slice(first * GROUP, last * GROUP)  # the same of every block
    rows, numbers = np.array(groups).T[..., None]
    return ..., rows, numbers * GROUP + np.arange(GROUP)


def _summed(old: ndarray, a: ndarray, b: ndarray, kinds: tuple[str, str, str]) -> ndarray:
    """Return accumulators, (registers, groups, lanes), with products of 8-bit floats added."""
    many, n, _ = b.shape
    narrow = kinds[0] == "f16"
    if narrow:
        old = np.moveaxis(parted(old, np.float16), -1, 1).astype(np.float32)
    before = accumulator(ROWS, n, 1).gathered(np.ascontiguousarray(old).reshape(n // 2, -1))
    dealt = _dealt(wgmma_fp8.sums(
        a, by_lanes(b), before.reshape(many, 4 * ROWS, n), kinds[1:], narrow))
    if narrow:
        halves = np.moveaxis(dealt.reshape(n // 4, 2, -1), 1, -1).astype(np.float16)
        return joined(halves + np.float16(0), np.uint32)  # what is rounded to nothing is +0
    return dealt


def _added(
    old: ndarray, fresh: ndarray, dtype: str, saturate: bool, keep: Keep
) -> ndarray:
    """Return old + fresh in the registers' format; fresh alone where keep is false."""
    if dtype == "f32":
        return old + fresh if keep is True else np.where(keep, old, 0) + fresh
    if dtype == "s32":
        total = np.where(keep, old, 0).astype(np.int64) + fresh.astype(np.int64)
        if saturate:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    halves = parted(old, np.float16)
    pairs = np.moveaxis(fresh.reshape(-1, 2, *fresh.shape[1:]), 1, -1)
    live = np.asarray(keep)[..., None]
    total = np.where(live, halves, 0).astype(np.float32) + pairs
    return joined(total.astype(np.float16), np.uint32)
