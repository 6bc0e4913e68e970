"""membar and fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.decode import Decoding, opcode
from ..core.memory_order import WEAK, fence_scope

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


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
    if not d.has("async", "async::generic", "mbarrier_init"):
        return lambda f: None

    of_inits = d.has("mbarrier_init")

    def step(f: Batch) -> None:
        if f.races is not None and of_inits:
            f.races.init_fence(f)
        elif f.races is not None:
            f.races.proxy_fence(f)

    return step
