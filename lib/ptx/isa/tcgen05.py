"""tcgen05, but for mma: tensor memory allocated, loaded, stored, copied (PTX ISA 9.7.16).

alloc, dealloc and relinquish_alloc_permit are 9.7.16.7; ld, st and wait 9.7.16.8; fence 9.7.16.11.
What multiplies is in `tcgen05_mma`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy import ndarray

from ..core.addressing import locate, shared_address
from ..core.batch import Batch, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Error, UninitialisedRead, UnsupportedInstruction
from ..core.machine import WARP
from ..core.segment import PEER_BYTES, peer_window
from ..core.syntax import Address, Register
from ..core.tensor_memory import COLUMNS, EVERY_LANE, LANES, UNWRITTEN, Area, lanes_from
from ..race.clocks import EPOCH
from ..race.tensor_order import TensorAccess
from .cp_async_bulk import ranks_of
from .fragments import whole_warps
from .mbarrier import Mbarrier, Mbarriers
from .tcgen05_operands import (
    BITS64,
    MAX_REGISTERS,
    SHAPES,
    chunks_in_shared,
    copied,
    fragment,
    operand_chunks,
    operand_descriptor,
    placed,
    read_chunks,
    registers_of,
    report_chunks,
)
from .tcgen05_state import (
    TensorMemories,
    Waiting,
    check_pairs,
    one_for_warp,
    reached_blocks,
    report_order,
    tensor_address,
)

_MANAGEMENT = ("alloc", "dealloc", "relinquish_alloc_permit")


@opcode("tcgen05")
def tcgen05(d: Decoding) -> Run:
    """tcgen05.{alloc,dealloc,relinquish_alloc_permit,ld,st,wait::ld,wait::st,fence::...}"""
    what = "".join(d.parts[1:2])
    if what in _MANAGEMENT:
        return _manage(d, what)
    if what in ("ld", "st"):
        return _move(d, what)
    if what in ("wait::ld", "wait::st"):
        return _wait(d, what[-2:])
    if what in ("fence::before_thread_sync", "fence::after_thread_sync"):
        return _fence(d, what.startswith("fence::before"))
    d.unsupported(
        "tcgen05.{alloc,dealloc,relinquish_alloc_permit,ld,st,wait,fence,mma,cp,shift,commit}"
    )


def check_group(d: Decoding) -> int:
    """Return how many blocks do it together; in a kernel it is the same everywhere (9.7.16.5)."""
    if not d.has("cta_group::1", "cta_group::2"):
        d.wrong("a .cta_group is missing")
    group = "cta_group::2" if d.has("cta_group::2") else "cta_group::1"
    for each in d.registers.entry.instructions:
        others = [p for p in each.parts if p.startswith("cta_group::") and p != group]
        if others and each.parts[0] == "tcgen05":
            d.wrong(
                f".{group} here and .{others[0]} at {d.registers.place(each)}: all of a kernel's "
                "tcgen05 instructions must have the same"
            )
    return int(group[-1])


def each_warp(f: Batch, d: Decoding) -> list[Issuer]:
    """List the active warps, by their first lanes.

    Raises Divergence if only part of one runs an .aligned instruction.
    """
    whole_warps(f, d.instruction)
    return [Issuer(row, warp * WARP, d.instruction, d.index)
            for row, warp in np.argwhere(f.active_warps).tolist()]


def same_in_warp(f: Batch, values: ndarray, by: Issuer, what: str) -> int:
    """Return a value that all lanes of a warp must have. Raises Error if they have not."""
    found = one_for_warp(f, values, by)
    if (found != found[0]).any():
        raise Error(
            f"{f.place(by.instruction)}: lanes of a warp have different {what}, block "
            f"{f.geometry.block_name(by.row)} warp {by.warp[1]}"
        )
    return int(found[0])


def tensor_operand(d: Decoding, operand: int) -> Callable[[Batch], ndarray]:
    """Make the function that reads an address of tensor memory in square brackets."""
    address = d.operands[operand]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        d.wrong("an address of tensor memory in square brackets is missing")
    base, offset = d.read(address.base, "u32"), address.offset & 0xFFFFFFFF
    return lambda f: base(f.r) + offset


# -- allocation ---------------------------------------------------------------------------------


def _manage(d: Decoding, what: str) -> Run:
    d.only(*_MANAGEMENT, ".cta_group::1.cta_group::2.sync.aligned.shared::cta")
    pair = check_group(d) == 2
    if what == "relinquish_alloc_permit":
        d.count(0)

        def relinquish(f: Batch) -> None:
            for by in each_warp(f, d):
                f.waiter(TensorMemories).of(by.row).relinquished = d.instruction

        return relinquish
    d.count(2)
    columns = d.read(1, "u32")
    if what == "dealloc":
        address = d.read(0, "u32")

        def dealloc(f: Batch) -> None:
            for by in each_warp(f, d):
                at = same_in_warp(f, address(f.r), by, "addresses")
                many = same_in_warp(f, columns(f.r), by, "columns")
                f.waiter(TensorMemories).dealloc(by, at, many, pair)

        return dealloc
    put = shared_address(d, 0)

    def alloc(f: Batch) -> None:
        warps = each_warp(f, d)  # before any of them goes on
        places, many = put(f), columns(f.r)
        for by in warps:
            at = same_in_warp(f, places, by, "addresses")
            lanes = np.zeros(f.shape, bool)
            lanes[by.row, by.thread : by.thread + WARP] = True
            f.waiter(TensorMemories).alloc(Waiting(
                by, d.index + 1, same_in_warp(f, many, by, "columns"), lanes, _teller(f, by, at),
                pair))

    return predicated_end(d, alloc)


def _teller(f: Batch, by: Issuer, address: int) -> Callable[[int], None]:
    """Make the function that writes the address of an allocation to shared memory."""

    def tell(first: int) -> None:
        there = locate(f, by, address, 4, 4)
        there.data.view(np.uint32)[0] = first
        there.mark_valid()
        if f.races is not None:
            f.races.access_of_lane(f.memory.shared, there.part.start, 4, by, "store")

    return tell


# -- between registers and tensor memory --------------------------------------------------------


def _move(d: Decoding, what: str) -> Run:
    """tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r, [taddr]{, split}; st the other way"""
    narrow = "pack::16b" if what == "ld" else "unpack::16b"
    counts = [m for m in (re.fullmatch(r"x(\d+)", p) for p in d.parts) if m]
    d.only(what, ".sync.aligned", narrow, *SHAPES, *(m.group() for m in counts))
    shape = d.one_of(SHAPES)
    repeats = int(counts[0].group(1)) if len(counts) == 1 else 0
    if repeats not in (1, 2, 4, 8, 16, 32, 64, 128):
        d.wrong("a number of repetitions, .x1 to .x128, is missing")
    many = registers_of(shape, repeats)
    if many > MAX_REGISTERS:
        d.wrong(f".{shape}.x{repeats} would need {many} registers")
    halves = shape == "16x32bx2"
    d.count(3 if halves else 2)
    at, data = (1, 0) if what == "ld" else (0, len(d.operands) - 1)
    split = d.constant(2 if what == "ld" else 1, "the offset of the second half") if halves else 0
    items = d.vector(data, many, f".{shape}.x{repeats} has {many} registers, not {{}}")
    address = tensor_operand(d, at)
    wide = 2 if d.has(narrow) else 1
    lane, word = fragment(shape, repeats)
    column = word * wide
    if halves:
        column = np.where(word < repeats, column, split + (word - repeats) * wide)
    reach = Reach(int(lane.max()) + 1, lane, column, wide)

    if what == "ld":
        put = d.write_all(items, "b32")
        slots = [item.slot if isinstance(item, Register) else None for item in items]

        def load(f: Batch) -> None:
            found = np.zeros((many, f.blocks, f.threads), np.uint32)
            addresses = address(f)
            warps = each_warp(f, d)
            _tell_unwritten(f, reach, warps, addresses, slots)
            for by in warps:
                place = reach.at(f, by, addresses, "ld")
                values: ndarray | int = UNWRITTEN
                if place is not None:
                    values = reach.read(f, by.row, place)
                    if f.late:
                        f.waiter(TensorMemories).load(by.warp, slots, values)
                        values = UNWRITTEN
                found[:, by.row, by.thread : by.thread + WARP] = values
            put(f.r, found)

        return load
    take = d.read_all(items, "b32")

    def store(f: Batch) -> None:
        given, addresses = take(f.r), address(f)
        for by in each_warp(f, d):
            place = reach.at(f, by, addresses, "st")
            if place is not None:
                values = np.stack([one_for_warp(f, v, by) for v in given]).view(np.uint32)
                write = reach.writer(f, by.row, place, values)
                f.waiter(TensorMemories).store(by.warp, write)

    return store


def _tell_unwritten(
    f: Batch, reach: Reach, warps: list[Issuer], addresses: ndarray, slots: list[int | None]
) -> None:
    """Tell `core.unwritten` of a load, before it has any effect, which of its words nobody wrote.

    Under late landing a load is of words that are not there yet, too: that they are in flight is
    another finding, and the better one.
    """
    missing = np.zeros((len(slots), f.blocks, f.threads), bool)
    for by in warps:
        place = tensor_address(same_in_warp(f, addresses, by, "addresses"))
        missing[:, by.row, by.thread : by.thread + WARP] = reach.unwritten(f, by, place)
    if not missing.any() or (f.late and f.races is not None):
        return
    instruction = warps[0].instruction
    text = (f"{f.place(instruction)}: tensor memory was read before anybody wrote it: "
            f"{f.lane_names(np.logical_or.reduce(missing, axis=0))}")
    if f.unwritten is None:
        raise UninitialisedRead(text, instruction)
    f.unwritten.undefined_words(
        {slot: m for slot, m in zip(slots, missing, strict=True) if slot is not None}, text)


class Reach:
    """Which words of tensor memory a warp's load or store moves.

    `lanes`: 16 or 32. `lane`, `column` (ndarray of int, shape (registers, 32)): from the address
    on. `wide`: 2 if a register holds the lower halves of two columns, else 1.
    """

    def __init__(self, lanes: int, lane: ndarray, column: ndarray, wide: int) -> None:
        self.lanes, self.lane, self.column, self.wide = lanes, lane, column, wide
        self.columns = np.unique(column)

    def at(
        self, f: Batch, by: Issuer, addresses: ndarray, what: str
    ) -> tuple[int, int] | None:
        """Check an access and report it; None if it is at no lanes that a warp can have.

        PTX ISA 9.7.16.8.1 (Access restrictions): warp w of a warpgroup reaches lanes 32 w to
        32 w + 31. What happens to others is undefined. Here it is what public kernels rely on, as
        DeepGEMM's source says and as pairs of learn-cuda, which count their lanes on to 255, are
        right on a B200: of the lane its lowest five bits count, within the warp's own lanes.
        """
        lane, column = tensor_address(same_in_warp(f, addresses, by, "addresses"))
        memories = f.waiter(TensorMemories)
        bits = lanes_from(lane, self.lanes) if lane < 1 << 12 else 1 << 12
        areas = [Area(bits, column + int(run[0]), column + int(run[-1]) + self.wide)
                 for run in self._runs()]
        home = by.warp[1] % 4 * 32
        if not home <= lane <= home + 32 - self.lanes or lane % 16:
            past = f", of which a block has {LANES}" if lane >= LANES else ""
            memories.hazard(
                by,
                f"accesses {areas[0]} of tensor memory{past}; warp {by.warp[1]} reaches lanes "
                f"{home}-{home + 31} only: add (warp % 4 * 32) << 16 to the address, and nothing "
                "else",
            )
            if lane % 32 > 32 - self.lanes or lane % 16:
                return None
            lane = home + lane % 32
            areas = [Area(lanes_from(lane, self.lanes), a.first, a.last) for a in areas]
        for area in areas:
            memories.check(area, by)
        report_order(f, [TensorAccess(what, area, what == "st", by) for area in areas])
        return lane, column

    def _runs(self) -> list[ndarray]:
        """Part the columns where they don't follow on each other."""
        apart = np.flatnonzero(np.diff(self.columns) > self.wide) + 1
        return list(np.split(self.columns, apart))

    def read(self, f: Batch, row: int, place: tuple[int, int]) -> ndarray:
        """Return what the registers of a warp get, (registers, 32)."""
        words = f.waiter(TensorMemories).of(row).words
        lane, column = self.lane + place[0], self.column + place[1]
        if self.wide == 1:
            return words[lane, column]
        low, high = words[lane, column], words[lane, column + 1]
        return low & 0xFFFF | high << 16

    def unwritten(self, f: Batch, by: Issuer, place: tuple[int, int]) -> ndarray:
        """Tell which registers of a warp get words that nobody wrote, bool (registers, 32)."""
        written = f.waiter(TensorMemories).of(by.row).written
        lane, column = self.lane + by.warp[1] % 4 * 32 + place[0] % 32, self.column + place[1]
        there = (lane < LANES) & (column + self.wide <= COLUMNS)
        lane, column = lane * there, column * there
        whole = written[lane, column] & written[lane, column + self.wide - 1]
        return there & ~whole

    def writer(
        self, f: Batch, row: int, place: tuple[int, int], values: ndarray
    ) -> Callable[[], None]:
        """Make the function that stores a warp's registers."""
        memory = f.waiter(TensorMemories).of(row)
        lane, column = self.lane + place[0], self.column + place[1]

        def write() -> None:
            parts = [values] if self.wide == 1 else [values & 0xFFFF, values >> 16]
            for i, part in enumerate(parts):
                memory.words[lane, column + i] = part
                memory.written[lane, column + i] = True

        return write


def _wait(d: Decoding, what: str) -> Run:
    d.only(f"wait::{what}", ".sync.aligned").count(0)

    def step(f: Batch) -> None:
        memories = f.waiter(TensorMemories)
        for by in each_warp(f, d):
            (memories.waited if what == "st" else memories.loaded)(by.warp)
            if f.proxy is not None:
                f.proxy.tensors.waited(by.warp, what)

    return step


def _fence(d: Decoding, before: bool) -> Run:
    d.only(".fence::before_thread_sync.fence::after_thread_sync").count(0)

    def step(f: Batch) -> None:
        if f.proxy is not None:
            order = f.proxy.tensors
            for warp in map(tuple, np.argwhere(f.active_warps).tolist()):
                order.before(warp) if before else order.after(warp)

    return step


# -- What one thread issues beside mma, for its block or for both of a pair: cp, shift, commit. ----
#
# PTX ISA 9.7.16.9.2 (cp), 9.7.16.9.3 (shift); what orders them is in `race.tensor_order`. Of a
# pair, each block copies from its own shared memory to its own tensor memory, from and to the same
# places.


@opcode("tcgen05.cp")
def copy(d: Decoding) -> Run:
    """tcgen05.cp.cta_group.shape{.multicast} [taddr], s-desc"""
    shapes = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
    casts = ("warpx2::02_13", "warpx2::01_23", "warpx4")
    if any(part.startswith("b8x16") for part in d.parts):
        d.unsupported("no decompression")
    d.only(".cp.cta_group::1.cta_group::2", *shapes, *casts).count(2)
    pair = check_group(d) == 2
    shape, cast = d.one_of(shapes), d.pick(casts, "")
    need = {"64x128b": casts[:2], "32x128b": casts[2:]}.get(shape, ("",))
    if cast not in need:
        d.wrong(f".{shape} goes with {' or '.join('.' + n for n in need if n) or 'no multicast'}")
    rows, chunks = int(shape.split("x")[0]), int(shape.split("x")[1][:-1]) // 128
    runs = copied(shape, cast)
    lanes = sum({first: lanes_from(first, many) for _, many, first in runs}.values())

    def issue(f: Batch, by: Issuer, at: int, bits: int) -> None:
        memories, (lane, column) = f.waiter(TensorMemories), tensor_address(at)
        if lane >= (32 if rows == 4 else 1):
            raise Error(
                f"{f.place(d.instruction)}: the copy begins at lane {lane}; it must be "
                + ("one of 0 to 31, of each warp's" if rows == 4 else "0")
            )
        area = Area(lanes << lane, column, column + 4 * chunks)
        blocks = reached_blocks(f, by, area, pair)
        with placed(f, d.instruction):
            descriptor = operand_descriptor(bits & BITS64)
            chosen = operand_chunks(descriptor, rows, "k", 1, chunks)
        place = chunks_in_shared(f, by.row, descriptor.start, chosen, "the source", d.instruction)
        parts = [TensorAccess("cp", area, True, by, (shape,), peer=block) for block in blocks]
        report_order(f, parts)

        def move(block: int) -> None:
            words = read_chunks(f, [block], place, "the source", d.instruction)[0]
            words = words.reshape(len(words), -1).view(np.uint32)
            memory, columns = memories.of(block), slice(column, column + words.shape[1])
            for first, many, start in runs:
                there = slice(start + lane, start + lane + many)
                memory.words[there, columns] = words[first : first + many]
                memory.written[there, columns] = True

        for block in blocks:
            report_chunks(f, by, [place], parts[0].number, block)
            memories.issue(by.row, partial(move, block))

    return for_each_lane(d, issue, tensor_operand(d, 0), d.of_batch(1, "b64"))


@opcode("tcgen05.shift")
def shift(d: Decoding) -> Run:
    """tcgen05.shift.cta_group.down [taddr]: all lanes, 32 bytes of each

    PTX ISA 9.7.16.9.3 moves all rows but the last by one, "for a warp": lane i gets what lane i + 1
    holds, and lanes 31, 63, 95 and 127 keep what they have, which a cp.4x256b, that may follow in
    order, renews. One instruction does so for all four warps' lanes: read back on a B200
    (``cicuvc/nvidia-sass-document``, ``notes/sm100/instr/utcshift.md``) from lane 0.
    """
    d.only(".shift.cta_group::1.cta_group::2.down").count(1)
    pair = check_group(d) == 2

    def issue(f: Batch, by: Issuer, at: int) -> None:
        memories, (lane, column) = f.waiter(TensorMemories), tensor_address(at)
        if lane % 32:
            raise Error(f"{f.place(d.instruction)}: lane {lane} is no multiple of 32")
        if lane:
            raise UnsupportedInstruction(
                f"{f.place(d.instruction)}: a shift from lane {lane}: which lanes it moves is "
                "documented nowhere"
            )
        area = Area(EVERY_LANE, column, column + 8)
        blocks = reached_blocks(f, by, area, pair)
        report_order(f, [TensorAccess("shift", area, True, by, peer=b) for b in blocks])

        def move(block: int) -> None:
            for each in (memories.of(block).words, memories.of(block).written):
                warps = each[:, column : column + 8].reshape(4, 32, 8)
                each[:, column : column + 8] = np.concatenate(
                    [warps[:, 1:], warps[:, -1:]], axis=1).reshape(-1, 8)

        for block in blocks:
            memories.issue(by.row, partial(move, block))

    return for_each_lane(d, issue, tensor_operand(d, 0))



# tcgen05.commit: an mbarrier, or one in each block of a cluster, hears that work is complete.
#
# PTX ISA 9.7.16.12.1. What a thread has issued so far, mma, cp and shift, is tracked: when all of
# it is done, each of the mbarriers has one arrival more.


@opcode("tcgen05.commit")
def commit(d: Decoding) -> Run:
    """tcgen05.commit.cta_group.mbarrier::arrive::one{.multicast::cluster}.b64 [mbar]{, mask}"""
    cast = d.has("multicast::cluster")
    d.only(
        ".commit.cta_group::1.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster",
    ).count(1 + cast)
    pair = check_group(d) == 2

    def issue(f: Batch, by: Issuer, at: int, *masks: int) -> None:
        barriers, memories = f.waiter(Mbarriers), f.waiter(TensorMemories)
        if pair:
            check_pairs(f, d.instruction)
        places = [at]
        for mask in masks:
            places = [peer_window(rank) + at % PEER_BYTES for rank in ranks_of(f, by, mask)]
        found = [barriers.find(by, place) for place in places]
        until, proxy, warp = memories.so_far(by.row), f.proxy, by.warp
        if proxy is not None:
            clocks = proxy.tensors.committed(warp, proxy.tensor(warp))
            behind = proxy.waits_known(warp)
            # Who waits for a later commit knows that the work is done, and not that the arrival
            # of this one has come: PTX orders those of one thread nowhere.
            for barrier in found:
                if barrier.row != by.row:
                    writer = proxy.mbarrier(barrier.row, barrier.offset)
                    proxy.uses(barrier.row, writer, EPOCH + barrier.time + 1, by)

        def signal(barrier: Mbarrier) -> None:
            memories.land(by.row, until)
            if proxy is not None:
                barrier.gather(clocks)
                barrier.waits.arrive(behind)
                barrier.last = by
            barriers.arrive(barrier, 1, by.instruction)

        for barrier in found:
            barriers.track(barrier, partial(signal, barrier), by.instruction)

    masks = [d.of_batch(1, "u16")] if cast else []
    return for_each_lane(d, issue, shared_address(d, 0), *masks)
