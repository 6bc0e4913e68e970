"""membar and fence."""

from __future__ import annotations

from ..core.addressing import lane_bytes
from ..core.analysis import WEAK, fence_scope
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode
from ..core.lanes import each_lane
from ..core.tensormap import TENSOR_MAP_BYTES
from .tensormap import ALIGNMENT, map_address


@opcode("membar", "fence")
def fence(d: Decoding) -> Run:
    """Fences order what the emulator runs in order anyway; the race detector is told of them."""
    d.only(
        "cta", "gl", "gpu", "sys", "cluster", "sc", "acq_rel", "acquire", "release", "proxy",
        "alias", "async", "global", "shared::cta", "async::generic", "shared::cluster",
        "mbarrier_init", "sync_restrict::shared::cluster", "sync_restrict::shared::cta",
        "tensormap::generic",
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
        if f.races is not None and of_inits:
            f.races.init_fence(f)
        elif f.races is not None:
            f.races.proxy_fence(f)

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
    address, instruction, index = map_address(d, 0, "generic"), d.instruction, d.index

    def acquire(f: Batch) -> None:
        if f.races is None:
            return
        for row, thread, (at,) in each_lane(f, address(f)):
            segment, start = lane_bytes(
                f, "generic", row, thread, at, TENSOR_MAP_BYTES, ALIGNMENT, instruction, False)
            if segment.space == "global":
                f.races.maps.acquire(segment, start, row, thread, index)

    return acquire
