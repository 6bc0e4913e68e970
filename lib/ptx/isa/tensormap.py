"""tensormap.replace and tensormap.cp_fenceproxy: maps that the device makes, as grouped GEMMs do.

The field's units are those of ptxas from CUDA 12.5 on: ``.global_stride`` in bytes, ``.rank`` the
number of dimensions less one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.addressing import address_operand, lane_bytes, space_of
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UninitialisedRead
from ..core.lanes import each_lane, lane_groups
from ..core.segment import Segment
from ..core.syntax import Immediate, Instruction
from ..core.tensormap import CONSTANTS, FIELDS, TENSOR_MAP_BYTES, replaced
from .fragments import whole_warps

ALIGNMENT = 64
SCOPES = ("cta", "cluster", "gpu", "sys")


def map_address(d: Decoding, operand: int, space: str) -> Callable[[Batch], np.ndarray]:
    """Make the function that reads the address of a map, as int64."""
    slot, offset = address_operand(d, operand, space)
    return lambda f: f.r[slot].astype(np.int64) + offset


def _read(
    f: Batch, segment: Segment, start: int, instruction: Instruction, row: int, thread: int
) -> bytes:
    """The bytes of a map, all of which somebody wrote."""
    there = slice(start, start + TENSOR_MAP_BYTES)
    if segment.tracked and not (segment.valid[there] == 1).all():
        raise UninitialisedRead(
            f"{f.place(instruction)}: the {TENSOR_MAP_BYTES} bytes of a tensor map in "
            f"{segment.name} were read before anybody wrote them: "
            f"{f.geometry.thread_name(row, thread)}", instruction,
        )
    return segment.storage[there].tobytes()


@opcode("tensormap.replace")
def replace(d: Decoding) -> Run:
    """tensormap.replace.tile.field{.space}.b1024.type [map]{, ordinal}, value"""
    d.only("replace", "tile", "b1024", "global", "shared::cta", *FIELDS, *CONSTANTS)
    field = d.pick({**FIELDS, **CONSTANTS}, "")
    if not d.has("tile") or not field:
        d.unsupported(f"tensormap.replace.tile of .{' .'.join((*FIELDS, *CONSTANTS))}")
    many = FIELDS.get(field, 0)
    d.count(3 if many else 2)
    ordinal = d.constant(1, f"the ordinal of .{field}") if many else 0
    if many and ordinal >= many:
        d.wrong(f"the ordinal {ordinal} of .{field}, of which there are {many}")
    last = d.operands[-1]
    if field in CONSTANTS:
        number = d.constant(len(d.operands) - 1, f"the value of .{field}")
        if number >= CONSTANTS[field]:
            d.wrong(f"{number} is no .{field}; there are 0 to {CONSTANTS[field] - 1}")
    value = d.read(last, d.type if not isinstance(last, Immediate) else "b64")
    space, instruction, index = space_of(d), d.instruction, d.index
    address = map_address(d, 0, space)

    def step(f: Batch) -> None:
        for row, thread, (at, number) in each_lane(f, address(f), value(f.r)):
            segment, start = lane_bytes(
                f, space, row, thread, at, TENSOR_MAP_BYTES, ALIGNMENT, instruction, True)
            before = _read(f, segment, start, instruction, row, thread)
            try:
                after = replaced(before, field, ordinal, number, f.memory.device)
            except ValueError as error:
                raise Error(f"{f.place(instruction)}: {error}") from None
            if f.races is not None:
                f.races.access_of_lane(
                    segment, start, TENSOR_MAP_BYTES, row, thread, index, "store")
            segment.storage[start : start + TENSOR_MAP_BYTES] = np.frombuffer(after, np.uint8)

    return step


@opcode("tensormap.cp_fenceproxy")
def copy_and_release(d: Decoding) -> Run:
    """tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned"""
    d.only("cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", "sync",
           "aligned", *SCOPES).count(3)
    if d.constant(2, "the size") != TENSOR_MAP_BYTES:
        d.wrong(f"the size is {TENSOR_MAP_BYTES}")
    to, source = map_address(d, 0, "global"), map_address(d, 1, "shared")
    instruction, index, place = d.instruction, d.index, d.place

    def step(f: Batch) -> None:
        whole_warps(f, place)
        warps = f.full(np.arange(f.threads) // 32)
        for row, (at, old, _), threads in lane_groups(f, to(f), source(f), warps):
            thread = int(threads[0])
            read, begin = lane_bytes(f, "shared", row, thread, old, TENSOR_MAP_BYTES, ALIGNMENT,
                                     instruction, False)
            data = _read(f, read, begin, instruction, row, thread)
            segment, start = lane_bytes(f, "global", row, thread, at, TENSOR_MAP_BYTES, ALIGNMENT,
                                        instruction, True)
            if f.races is not None:
                f.races.access_of_lane(read, begin, TENSOR_MAP_BYTES, row, thread, index, "load")
                f.races.access_of_lane(
                    segment, start, TENSOR_MAP_BYTES, row, thread, index, "store")
            segment.storage[start : start + TENSOR_MAP_BYTES] = np.frombuffer(data, np.uint8)

    return step
