"""membar, fence; tensormap.replace and cp_fenceproxy: maps that the device makes.

The field's units are those of ptxas from CUDA 12.5 on: ``.global_stride`` in bytes, ``.rank`` the
number of dimensions less one.
"""

from __future__ import annotations

import numpy as np

from ..core.addressing import lane_address, lane_bytes, space_of
from ..core.analysis import WEAK, fence_scope
from ..core.batch import Batch, Issuer, Run, for_each_lane, lane_groups
from ..core.decode import Decoding, opcode
from ..core.errors import Error, UninitialisedRead
from ..core.segment import Segment
from ..core.syntax import Immediate
from ..core.tensormap import CONSTANTS, FIELDS, TENSOR_MAP_BYTES, replaced
from .fragments import whole_warps

ALIGNMENT = 64
SCOPES = ("cta", "cluster", "gpu", "sys")


def _place_of(f: Batch, space: str, by: Issuer, at: int, writes: bool) -> tuple[Segment, int]:
    """Return the segment that a map lies in, and where."""
    return lane_bytes(f, space, by, at, TENSOR_MAP_BYTES, ALIGNMENT, writes)


def _read(f: Batch, segment: Segment, start: int, by: Issuer) -> bytes:
    """The bytes of a map, all of which somebody wrote."""
    there = slice(start, start + TENSOR_MAP_BYTES)
    if segment.tracked and not (segment.valid[there] == 1).all():
        raise UninitialisedRead(
            f"{f.place(by.instruction)}: the {TENSOR_MAP_BYTES} bytes of a tensor map in "
            f"{segment.name} were read before anybody wrote them: "
            f"{f.geometry.thread_name(by.row, by.thread)}", by.instruction,
        )
    return segment.storage[there].tobytes()


def _write(f: Batch, segment: Segment, start: int, by: Issuer, data: bytes) -> None:
    if f.races is not None:
        f.races.access_of_lane(segment, start, TENSOR_MAP_BYTES, by, "store")
    segment.storage[start : start + TENSOR_MAP_BYTES] = np.frombuffer(data, np.uint8)


@opcode("tensormap.replace")
def replace(d: Decoding) -> Run:
    """tensormap.replace.tile.field{.space}.b1024.type [map]{, ordinal}, value"""
    d.only(".replace.tile.b1024.global.shared::cta", *FIELDS, *CONSTANTS)
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
    value = d.of_batch(last, d.type if not isinstance(last, Immediate) else "b64")
    space = space_of(d)

    def change(f: Batch, by: Issuer, at: int, number: int) -> None:
        place = _place_of(f, space, by, at, True)
        before = _read(f, *place, by)
        try:
            after = replaced(before, field, ordinal, number, f.memory.device)
        except ValueError as error:
            raise Error(f"{d.place}: {error}") from None
        _write(f, *place, by, after)

    return for_each_lane(d, change, lane_address(d, 0), value)


@opcode("tensormap.cp_fenceproxy")
def copy_and_release(d: Decoding) -> Run:
    """tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned"""
    d.only(".cp_fenceproxy.global.shared::cta.tensormap::generic.release.sync.aligned", *SCOPES)
    d.count(3)
    if d.constant(2, "the size") != TENSOR_MAP_BYTES:
        d.wrong(f"the size is {TENSOR_MAP_BYTES}")
    to, source = lane_address(d, 0), lane_address(d, 1)

    def step(f: Batch) -> None:
        whole_warps(f, d.instruction)
        warps = f.full(np.arange(f.threads) // 32)
        for by, (at, old, _), _ in lane_groups(f, d, to(f), source(f), warps):
            read, begin = _place_of(f, "shared", by, old, False)
            data, place = _read(f, read, begin, by), _place_of(f, "global", by, at, True)
            if f.races is not None:
                f.races.access_of_lane(read, begin, TENSOR_MAP_BYTES, by, "load")
            _write(f, *place, by, data)

    return step


# -- membar and fence. --------------------------------------------------------------------------


@opcode("membar", "fence")
def fence(d: Decoding) -> Run:
    """Fences order what the emulator runs in order anyway; the race detector is told of them."""
    d.only(
        ".cta.gl.gpu.sys.cluster.sc.acq_rel.acquire.release.proxy.alias.async.global.shared::cta.async::generic.shared::cluster.mbarrier_init.sync_restrict::shared::cluster.sync_restrict::shared::cta.tensormap::generic",
    )
    scope = fence_scope(d.instruction)
    if scope != WEAK:

        def publish(f: Batch) -> None:
            if f.races is not None:
                f.races.fence(f, scope)

        return publish
    if d.has("tensormap::generic"):
        return _of_maps(d)
    if not d.has("async", "async::generic", "mbarrier_init"):
        return lambda f: None

    of_inits = d.has("mbarrier_init")

    def step(f: Batch) -> None:
        if f.races is not None:
            f.races.proxy_fence(f, of_inits)

    return step


def _of_maps(d: Decoding) -> Run:
    """fence.proxy.tensormap::generic.release.scope, or .acquire.scope [map], 128"""
    if d.has("release"):
        d.count(0)

        def release(f: Batch) -> None:
            if f.races is not None:
                f.races.maps.release(f)

        return release
    if not d.has("acquire"):
        d.unsupported("fence.proxy.tensormap::generic.{release,acquire}")
    d.count(2)
    if d.constant(1, "the size") != TENSOR_MAP_BYTES:
        d.wrong(f"the size is {TENSOR_MAP_BYTES}")

    def acquire(f: Batch, by: Issuer, at: int) -> None:
        if f.races is not None:
            segment, start = _place_of(f, "generic", by, at, False)
            if segment.space == "global":
                f.races.maps.acquire(segment, start, by)

    return for_each_lane(d, acquire, lane_address(d, 0))
