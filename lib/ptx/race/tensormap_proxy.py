"""The proxy through which copies read tensor maps: what a map needs that the device changed.

The writes are released (``tensormap.cp_fenceproxy`` does so itself, else the writing thread runs
``fence.proxy.tensormap::generic.release``), and ``….acquire [map], 128`` stands between them and
the copy: in the thread that issues it, or in one that the clocks order before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .stamps import INDEX, LARGEST_INDEX, THREAD

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.segment import Segment
    from .clocks import Detector


class TensormapProxy:
    """What a launch's fences of the tensormap proxy have released and acquired."""

    def __init__(self, races: Detector) -> None:
        self.races = races
        self._released: dict[tuple[int, int], int] = {}  # first block, warp -> the last time
        # By the map's place: first block, warp, time, and who had written it last.
        self._acquired: dict[tuple[int, int], list[tuple[int, int, int, bytes]]] = {}

    def release(self, f: Batch) -> None:
        """fence.proxy.tensormap::generic.release by the active lanes."""
        races = self.races
        came = f.active_warps
        for row, warp in np.argwhere(came).tolist():
            at = int(races.linear(np.array([row]))[0]), int(races.own[row % len(races.own), warp])
            self._released[at] = int(races.clock[row, warp])
        races.clock = races.clock + came

    def acquire(self, segment: Segment, start: int, row: int, thread: int, index: int) -> None:
        """fence.proxy.tensormap::generic.acquire of a map by a thread."""
        races = self.races
        cluster, column = self._warp(row, thread)
        self._acquired.setdefault((segment.base, start), []).append(
            (cluster, column, int(races.clock[row, thread // 32]),
             self._writers(segment, start, index).tobytes())
        )

    def use(self, segment: Segment, start: int, row: int, thread: int, index: int) -> None:
        """Compare a copy by a map with what changed the map in this launch."""
        races = self.races
        if segment.space != "global" or segment.base not in races.global_shadows:
            return
        races.access_of_lane(segment, start, 128, row, thread, index, "load")
        writers = self._writers(segment, start, index)
        who, when = writers
        changed = who >= 0
        if not changed.any():
            return
        mine, column = self._warp(row, thread)
        known = races.known[row, thread // 32]
        now = writers.tobytes()
        acquired = any(
            seen == now and cluster == mine and (other == column or time <= known[other])
            for cluster, other, time, seen in self._acquired.get((segment.base, start), ())
        )
        first = (when & LARGEST_INDEX).astype(np.intp, copy=False)
        released = [
            races.code.steps[step].instruction.parts[0] == "tensormap"
            or self._released.get((writer >> INDEX, (writer & THREAD) >> 5), -1) >= time
            for step, writer, time in zip(
                first.tolist(), who.tolist(), (when >> 20).tolist(), strict=True)
        ]
        bad = changed & (np.zeros_like(changed) if acquired else changed) | (
            changed & ~np.array(released))
        if bad.any():
            lacking = "acquire" if not acquired else "release"
            many = int(bad.sum())
            number = thread + row % races.peers * 32 * races.f.warps
            races.report(
                "missing proxy fence",
                "a copy by a tensor map that was changed on the device, without "
                f"fence.proxy.tensormap::generic.{lacking} in between",
                (first[bad], who[bad] >> INDEX, who[bad] & THREAD),
                (np.full(many, index), np.full(many, int(races.linear(np.array([row]))[0])),
                 np.full(many, number)),
            )

    def _warp(self, row: int, thread: int) -> tuple[int, int]:
        """The first block of a lane's cluster, and its warp's column in the clocks."""
        races = self.races
        return (int(races.linear(np.array([row]))[0]),
                int(races.own[row % len(races.own), thread // 32]))

    def _writers(self, segment: Segment, start: int, index: int) -> np.ndarray:
        """Who wrote each word of a map last, and when; -1 is nobody."""
        granule = self.races.granule
        cells = np.arange(start // granule, (start + 128) // granule)
        return self.races.global_shadow(segment).writers(cells, index)
