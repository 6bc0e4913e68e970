"""tcgen05.cp and shift: what one thread issues beside mma, for its block or for both of a pair.

PTX ISA 9.7.16.9.2 (cp), 9.7.16.9.3 (shift); what orders them is in `race.tensor_order`. Of a pair,
each block copies from its own shared memory to its own tensor memory, from and to the same places.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..core.addressing import shared_address
from ..core.batch import Batch, Issuer, Run, each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.segment import PEER_BYTES, peer_window
from ..core.syntax import Instruction
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
    d.only("cp", "cta_group::1", "cta_group::2", *shapes, *casts).count(2)
    pair = check_group(d) == 2
    shape, cast = d.one_of(shapes), d.pick(casts, "")
    need = {"64x128b": casts[:2], "32x128b": casts[2:]}.get(shape, ("",))
    if cast not in need:
        d.wrong(f".{shape} goes with {' or '.join('.' + n for n in need if n) or 'no multicast'}")
    rows, chunks = int(shape.split("x")[0]), int(shape.split("x")[1][:-1]) // 128
    to, source = tensor_operand(d, 0), d.read(1, "b64")
    runs = copied(shape, cast)
    lanes = sum({first: lanes_from(first, many) for _, many, first in runs}.values())

    def step(f: Batch) -> None:
        memories = f.waiter(TensorMemories)
        for by, (at, bits) in each_lane(f, d, to(f), source(f.r)):
            lane, column = tensor_address(at)
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
            place = chunks_in_shared(
                f, by.row, descriptor.start, chosen, "the source", d.instruction)
            parts = [TensorAccess("cp", area, True, by, (shape,), peer=block) for block in blocks]
            report_order(f, parts)
            to_lanes = [(first, many, start + lane) for first, many, start in runs]
            for block in blocks:
                report_chunks(f, by, [place], parts[0].number, block)
                memories.issue(by.row, _copier(f, block, place, column, to_lanes, d.instruction))

    return step


def _copier(
    f: Batch, row: int, place: np.ndarray, column: int, runs: list[tuple[int, int, int]],
    instruction: Instruction,
) -> Callable[[], None]:
    memory = f.waiter(TensorMemories).of(row)

    def run() -> None:
        words = read_chunks(f, [row], place, "the source", instruction)[0]
        words = words.reshape(len(words), -1).view(np.uint32)
        columns = slice(column, column + words.shape[1])
        for first, many, lane in runs:
            memory.words[lane : lane + many, columns] = words[first : first + many]
            memory.written[lane : lane + many, columns] = True

    return run


@opcode("tcgen05.shift")
def shift(d: Decoding) -> Run:
    """tcgen05.shift.cta_group.down [taddr]: all lanes, 32 bytes of each

    PTX ISA 9.7.16.9.3 moves all rows but the last by one, "for a warp": lane i gets what lane i + 1
    holds, and lanes 31, 63, 95 and 127 keep what they have, which a cp.4x256b, that may follow in
    order, renews. One instruction does so for all four warps' lanes: read back on a B200
    (``cicuvc/nvidia-sass-document``, ``notes/sm100/instr/utcshift.md``) from lane 0.
    """
    d.only("shift", "cta_group::1", "cta_group::2", "down").count(1)
    pair = check_group(d) == 2
    to = tensor_operand(d, 0)

    def step(f: Batch) -> None:
        memories = f.waiter(TensorMemories)
        for by, (at,) in each_lane(f, d, to(f)):
            lane, column = tensor_address(at)
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
            for block in blocks:
                memories.issue(by.row, _shifter(f, block, column))

    return step


def _shifter(f: Batch, row: int, column: int) -> Callable[[], None]:
    memory = f.waiter(TensorMemories).of(row)

    def run() -> None:
        for each in (memory.words, memory.written):
            part = each[:, column : column + 8].reshape(4, 32, 8).copy()
            part[:, :-1] = part[:, 1:].copy()
            each[:, column : column + 8] = part.reshape(-1, 8)

    return run



# tcgen05.commit: an mbarrier, or one in each block of a cluster, hears that work is complete.
#
# PTX ISA 9.7.16.12.1. What a thread has issued so far, mma, cp and shift, is tracked: when all of
# it is done, each of the mbarriers has one arrival more.


@opcode("tcgen05.commit")
def commit(d: Decoding) -> Run:
    """tcgen05.commit.cta_group.mbarrier::arrive::one{.multicast::cluster}.b64 [mbar]{, mask}"""
    cast = d.has("multicast::cluster")
    d.only(
        "commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
        "multicast::cluster",
    ).count(1 + cast)
    pair = check_group(d) == 2
    address = shared_address(d, 0)
    mask = d.read(1, "u16") if cast else None

    def step(f: Batch) -> None:
        barriers, memories = f.waiter(Mbarriers), f.waiter(TensorMemories)
        if pair:
            check_pairs(f, d.instruction)
        masks = np.zeros((1, 1), np.int64) if mask is None else mask(f.r)
        for by, (at, ranks) in each_lane(f, d, address(f), masks):
            places = [at]
            if mask is not None:
                places = [peer_window(rank) + at % PEER_BYTES for rank in ranks_of(f, by, ranks)]
            found = [barriers.find(by, place) for place in places]
            until, clocks, behind = memories.so_far(by.row), None, np.zeros(0, np.int64)
            if f.races is not None:
                proxy, warp = f.races.proxy, by.warp
                clocks = proxy.tensors.committed(warp, proxy.tensor(warp))
                behind = proxy.waits_known(warp)
                # Who waits for a later commit knows that the work is done, and not that the arrival
                # of this one has come: PTX orders those of one thread nowhere.
                for barrier in found:
                    if barrier.row != by.row:
                        writer = proxy.mbarrier(barrier.row, barrier.offset)
                        proxy.uses(barrier.row, writer, EPOCH + barrier.time + 1, by)

            def signal(
                barrier: Mbarrier, by: Issuer = by, until: int = until,
                clocks: np.ndarray | None = clocks, behind: np.ndarray = behind,
            ) -> None:
                memories.land(by.row, until)
                if clocks is not None:
                    barrier.gather(clocks)
                    barrier.waits.arrive(behind)
                    barrier.last = by
                barriers.arrive(barrier, 1, by.instruction)

            for barrier in found:
                barriers.track(barrier, partial(signal, barrier), by.instruction)

    return step
