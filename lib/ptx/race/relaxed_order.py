"""Fences beside what is relaxed at an mbarrier or at the barrier of the cluster.

A relaxed arrival behind a fence releases what the fence does, and a relaxed wait before a fence
acquires it (PTX ISA 8.8: release and acquire patterns); each reaches no farther than the smaller
scope of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.memory_order import BLOCK, CLUSTER

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Step

Warp = tuple[int, int]  # row and warp


def is_relaxed(step: Step) -> bool:
    """Tell whether a step arrives or waits, and orders nothing by itself."""
    parts = step.instruction.parts
    return "relaxed" in parts and (parts[0] == "mbarrier" or parts[:2] == ["barrier", "cluster"])


class RelaxedOrder:
    """What the fences of one batch publish, and what relaxed waits have seen."""

    def __init__(self, proxy: Any) -> None:
        self.proxy = proxy  # of `async_proxy`
        self._published: dict[tuple[int, int, int], list[np.ndarray]] = {}  # with a scope
        self._seen: dict[Warp, list[tuple[int, Callable[[], None]]]] = {}

    def fence(self, f: Batch, scope: int) -> None:
        """A fence by the active lanes, which orders as far as a scope."""
        for row, warp in np.argwhere(f.active_warps).tolist():
            waits = self._seen.pop((row, warp), [])
            for needs, learn in waits:
                if scope >= needs:
                    learn()
            self._seen[row, warp] = [each for each in waits if scope < each[0]]
            clocks = self.proxy.release(row, warp, None)
            for reached in (BLOCK, CLUSTER):
                if scope >= reached:
                    self._published[row, warp, reached] = clocks

    def published(self, row: int, warp: int, scope: int) -> list[np.ndarray] | None:
        """Return the clocks of a warp's last fence of a scope or a larger one."""
        return self._published.get((row, warp, scope))

    def see(self, row: int, warp: int, scope: int, learn: Callable[[], None]) -> None:
        """Remember what a warp is to learn behind its next fence of a scope."""
        self._seen.setdefault((row, warp), []).append((scope, learn))
