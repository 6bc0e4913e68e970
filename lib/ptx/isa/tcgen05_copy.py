"""tcgen05.cp and shift: what one thread issues beside mma, for its block or for both of a pair.

PTX ISA 9.7.16.9.2 (cp), 9.7.16.9.3 (shift); what orders them is in `race.tensor_order`. Of a pair,
each block copies from its own shared memory to its own tensor memory, from and to the same places.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..core.addressing import shared_address
from ..core.batch import Batch, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.segment import PEER_BYTES, peer_window
from ..core.tensor_memory import EVERY_LANE, Area, lanes_from
from ..race.clocks import EPOCH
from ..race.tensor_order import TensorAccess
from .cp_async_bulk import ranks_of
from .mbarrier import Mbarrier, Mbarriers
from .tcgen05 import check_group, tensor_operand
from .tcgen05_operands import (
    BITS64,
    chunks_in_shared,
    copied,
    operand_chunks,
    operand_descriptor,
    placed,
    read_chunks,
    report_chunks,
)
from .tcgen05_state import TensorMemories, check_pairs, reached_blocks, report_order, tensor_address


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
