"""cp.async.bulk: runs of bytes between global and shared memory, and the groups they form.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; ``wait_group.read`` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.addressing import address_operand, locate, shared_address
from ..core.decode import Decoding, opcode
from ..core.errors import Error, Misaligned, OutOfBounds
from ..core.lane_groups import each_lane
from ..core.registers import DTYPES
from ..core.segment import Segment
from ..core.syntax import Immediate
from .bulk_copy import (
    BULK_HINTS,
    REDUCTIONS,
    BulkCopy,
    BulkGroups,
    Destination,
    Issuer,
    cells,
    check_valid,
    count_global,
    destinations,
    reduction,
    report_read,
    report_write,
    shared_bytes,
)
from .cp_async_bulk_tensor import tensor_copy
from .mbarrier_object import Mbarriers

if TYPE_CHECKING:
    from ..core.batch import Batch, Races
    from ..core.step import Run
    from ..core.syntax import Instruction


def global_bytes(
    f: Batch, address: int, nbytes: int, instruction: Instruction, writes: bool = False
) -> tuple[Segment, int]:
    """Return the array that bytes lie in, and where in it they begin."""
    segment = f.memory.locate("global", address, address + nbytes)
    if address % 16:
        raise Misaligned(f"{f.place(instruction)}: address {address:#x} is no multiple of 16 bytes")
    if segment is None:
        near = f.memory.near("global", address)
        raise OutOfBounds(
            f"{f.place(instruction)}: {nbytes} bytes at {address:#x} lie outside of every global "
            f"allocation{near}"
        )
    if writes and not segment.writeable:
        raise OutOfBounds(f"{f.place(instruction)}: {segment.name} may not be written")
    return segment, address - segment.base


def global_cells(races: Races, start: int, nbytes: int) -> np.ndarray:
    """Return the race detector's cells of a run of an array, from its byte `start` on."""
    granule = races.granule
    return np.arange(start // granule, -(-(start + nbytes) // granule))


@opcode("cp.async.bulk", "cp.reduce.async")
def bulk(d: Decoding) -> Run:
    """cp.async.bulk and cp.reduce.async.bulk: copies, prefetches, commit_group, wait_group"""
    if d.parts[0] == "cp" and d.parts[1] == "reduce" and not d.has("bulk"):
        d.unsupported("cp.reduce.async.bulk")
    if d.has("commit_group"):
        d.only("async", "bulk", "commit_group").count(0)
        return lambda f: f.waiter(BulkGroups).commit()
    if d.has("wait_group"):
        d.only("async", "bulk", "wait_group", "read").count(1)
        if not isinstance(d.operands[0], Immediate):
            d.wrong("the number of groups must be a constant")
        pending, read = d.operands[0].bits, d.has("read")
        return lambda f: f.waiter(BulkGroups).wait(pending, read)
    if d.has("prefetch"):
        return lambda f: None
    if d.has("tensor"):
        return tensor_copy(d)
    spaces = [p for p in d.parts if p.partition("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        d.wrong("the state spaces of destination and source are needed")
    d.only(
        "async", "bulk", "reduce", "global", "shared::cta", "shared::cluster", "bulk_group",
        "mbarrier::complete_tx::bytes", "multicast::cluster", *BULK_HINTS, *REDUCTIONS, "noftz",
    )
    if spaces[0] == "global":
        return _out(d)
    return _into(d, from_shared=spaces[1] != "global")


def global_address(d: Decoding, operand: int) -> Callable[[Batch], np.ndarray]:
    """Make the function that reads a 64-bit address of global memory, as int64."""
    slot, offset = address_operand(d, operand, "global")
    return lambda f: f.r[slot].astype(np.int64) + offset


def _size(f: Batch, n: int, instruction: Instruction) -> None:
    if n % 16 or n < 0:
        raise Error(f"{f.place(instruction)}: {n} bytes; a bulk copy moves a multiple of 16")


def _into(d: Decoding, from_shared: bool) -> Run:
    """[dst], [src], size, [mbar]{, mask}{, policy}: into shared memory, of several blocks"""
    multicast = d.has("multicast::cluster")
    d.count(4 + multicast + d.has("L2::cache_hint"))
    combine, kind = reduction(d), d.type
    to, number = shared_address(d, 0), d.read(2, "u32")
    source = shared_address(d, 1) if from_shared else global_address(d, 1)
    bar, mask = shared_address(d, 3), d.read(4, "u16") if multicast else None
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        barriers = f.waiter(Mbarriers)
        full = np.broadcast_to(source(f), (f.blocks, f.threads))
        for row, thread, (at, n, b) in each_lane(f, to(f), number(f.r), bar(f)):
            _size(f, n, instruction)
            address = int(full[row, thread])
            if from_shared:
                home, start = locate(f, row, address, n, 16, instruction)
                check_valid(f, home, start, n, instruction)
                data = shared_bytes(f, home, start, n)
            else:
                segment, start = global_bytes(f, address, n, instruction)
                data = segment.storage[start : start + n]
            chosen = None
            if mask is not None:
                chosen = int(np.broadcast_to(mask(f.r), full.shape)[row, thread])
            if f.races is not None:
                if from_shared:
                    f.races.agents.checks(cells(f, f.races, home, start, n), row, thread, index)
                else:
                    read = global_cells(f.races, start, n)
                    f.races.agents.global_access(segment, read, row, thread, index, "load")
            if f.trace is not None and not from_shared:
                count_global(f.trace, index, instruction, "load", start, n, n)
            by = Issuer(row, thread, instruction, index)
            for there in destinations(f, by, at, b, n, 16, chosen):
                report_write(f, there, by)

                def land(there: Destination = there, data: np.ndarray = data) -> None:
                    here = there.bytes(f)
                    if combine is None:
                        here[:] = data
                    else:
                        typed = _typed(here, kind)
                        typed[:] = combine(typed, _typed(data, kind))
                    there.mark_valid(f)

                barriers.fly(there.barrier, n, land, instruction)

    return step


def _typed(data: np.ndarray, kind: str) -> np.ndarray:
    return data.view(DTYPES[kind])


def _out(d: Decoding) -> Run:
    """[dst], [src], size{, policy}: from shared memory to global memory, in a bulk group"""
    d.count(3 + d.has("L2::cache_hint"))
    combine, kind = reduction(d), d.type
    to, source, number = global_address(d, 0), shared_address(d, 1), d.read(2, "u32")
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        groups = f.waiter(BulkGroups)
        full = np.broadcast_to(to(f), (f.blocks, f.threads))
        for row, thread, (at, n) in each_lane(f, source(f), number(f.r)):
            _size(f, n, instruction)
            home, offset = locate(f, row, at, n, 16, instruction)
            check_valid(f, home, offset, n, instruction)
            segment, start = global_bytes(f, int(full[row, thread]), n, instruction, True)
            known = None
            if f.races is not None:
                report_read(f, home, offset, n, thread, index, groups.time(row, thread))
                known = f.races.agents.global_access(
                    segment, global_cells(f.races, start, n), row, thread, index, "store"
                )
            if f.trace is not None:
                count_global(f.trace, index, instruction, "store", start, n, n)
            there = segment.storage[start : start + n]

            def write(data: np.ndarray, there: np.ndarray = there) -> None:
                if combine is None:
                    there[:] = data
                else:
                    typed = _typed(there, kind)
                    typed[:] = combine(typed, _typed(data, kind))

            def read(home: int = home, offset: int = offset, n: int = n) -> np.ndarray:
                return shared_bytes(f, home, offset, n).copy()

            groups.add(row, thread, BulkCopy(instruction, read, write, known))

    return step
