"""Memory: allocations with gaps between them, checked on every access.

A `Segment` is bytes at addresses: an argument's array, a module variable, the shared memory of all
blocks of a batch, the local memory of all lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .access_pattern import AccessPattern
from .arguments import Layout
from .errors import Misaligned, OutOfBounds, UninitialisedRead
from .geometry import Geometry
from .masks import over_lanes
from .segment import PARAMETER_BASE, WINDOWS, DeviceMemory, Segment, peer_window
from .syntax import MemoryAccess

LOADS = ("ld", "ldu", "ldmatrix")  # whose values may be followed: see `unwritten`
BELOW = 1 << 20  # bytes: how far before an array a wrapped index is looked for
MAX_WRAPPED = 16 << 31  # bytes: how far before an array a negative index of 32 bits can lie
# The validity pattern of a wholly written element, by its width.
WRITTEN = {n: int.from_bytes(b"\1" * min(n, 8), "little") for n in (1, 2, 4, 8, 16, 32)}


class Memory:
    """Everything addressable in one batch of blocks.

    `device`: arguments and module variables, which outlive the batch. `layout`: where variables lie
    in shared and local memory, and how many bytes these take. `geometry`: of the batch.
    """

    def __init__(
        self, device: DeviceMemory, layout: Layout, parameter_bytes: ndarray, geometry: Geometry
    ) -> None:
        self.device, self.layout = device, layout
        blocks, threads = geometry.blocks, geometry.threads
        self.segments: dict[str, list[Segment]] = {
            "global": device.segments,
            "const": device.constants,
        }
        nbytes = layout.shared_bytes
        padded = -(-nbytes // 16) * 16
        # All ones is NaN in every float type.
        shared = Segment(
            "shared memory", "shared", layout.shared_base, nbytes,
            np.full(blocks * padded, 255, np.uint8),
            (np.arange(blocks, dtype=np.int64) * padded)[:, None],
        )
        shared.track()
        if padded != nbytes:
            shared.valid.reshape(blocks, padded)[:, nbytes:] = 1
        self.follows = False  # whether reads of what nobody wrote are followed: see `unwritten`
        local_bytes = -(-layout.local_bytes // 16) * 16
        lanes = np.arange(blocks * threads, dtype=np.int64).reshape(blocks, threads)
        local = Segment(
            "local memory", "local", 0, layout.local_bytes,
            np.full(blocks * threads * local_bytes, 255, np.uint8), lanes * local_bytes,
        )
        local.track()
        parameter = Segment(
            "parameters", "param", PARAMETER_BASE, len(parameter_bytes), parameter_bytes,
            writeable=False,
        )
        # The parameters of functions are local memory of the caller and of the function.
        self.segments |= {"shared": [shared], "local": [local], "param": [parameter, local]}
        many = blocks * threads, local_bytes
        self.local_rows = local.storage.reshape(many), local.valid.reshape(many)
        windows = [each.seen_at(WINDOWS[each.space] + each.base, each.rows)
                   for each in (shared, local)]
        self.segments["generic"] = [*device.segments, *device.constants, parameter, *windows]
        self.shared = shared
        self.one_address: Any = None  # of `addressing`, where arrays share one
        self._add_peers(geometry.peers, blocks, padded)

    def _add_peers(self, peers: int, blocks: int, padded: int) -> None:
        """Place the shared memory of every block of a cluster in the shared::cluster window."""
        own = self.shared
        self.segments["shared::cluster"] = [own]
        home = np.arange(blocks, dtype=np.int64) // peers * peers
        for window, space in ((0, "shared::cluster"), (WINDOWS["shared"], "generic")):
            for rank in range(peers):
                peer = own.seen_at(
                    window + peer_window(rank) + own.base, ((home + rank) * padded)[:, None])
                peer.name, peer.rank = f"shared memory of rank {rank}", rank
                self.segments[space].append(peer)

    def locate(self, space: str, first: int, end: int) -> Segment | None:
        """Return the segment that holds all bytes from `first` to `end`, if one does."""
        for segment in self.segments[space]:
            if segment.first <= first and end <= segment.end:
                return segment
        return None

    def read(
        self, segment: Segment, pattern: AccessPattern, offset: int, dtype: np.dtype, count: int
    ) -> ndarray:
        """Gather elements: shape of the pattern, plus (count,) for vectors."""
        width = dtype.itemsize * count
        start = (pattern.low + offset - segment.base) // width
        index = pattern.index(width, segment.rows)
        view = segment.view(dtype, count)[start:]
        return view.take(index) if count == 1 else view.take(index, axis=0)

    def write(
        self, segment: Segment, pattern: AccessPattern, offset: int, values: list[ndarray]
    ) -> None:
        """Scatter values, one array an element of the vector; the highest lane wins."""
        count = len(values)
        width = values[0].dtype.itemsize * count
        start = (pattern.low + offset - segment.base) // width
        index = pattern.index(width, segment.rows)
        view = segment.view(values[0].dtype, count)[start:]
        shape = np.broadcast_shapes(index.shape, *(v.shape for v in values))
        if pattern.active is not None:
            mask = pattern.active.array
            index = over_lanes(index, mask.shape)[mask]
            values = [over_lanes(v, mask.shape)[mask] for v in values]
        elif index.shape != shape:
            index = np.broadcast_to(index, shape)
        if count == 1:
            view[index] = values[0]
        else:
            for i, value in enumerate(values):
                view[:, i][index] = value
        if segment.tracked and not segment.complete:
            segment.validity(width)[start:][index] = WRITTEN[width]

    def check(
        self, f: Any, access: MemoryAccess, pattern: AccessPattern, segment: Segment | None
    ) -> None:
        """Raise what is wrong with an access that fits no single segment, or is misaligned."""
        addresses = f.full(pattern.addresses(access.offset))
        active, width, space = pattern.active_lanes, access.nbytes, access.space
        odd = (addresses % width != 0) & active
        if odd.any():
            raise Misaligned(
                f"{f.place(access.instruction)}: address {_first(addresses, odd):#x} is no "
                f"multiple of {width} bytes: {f.lane_names(odd)}",
                addresses.copy(), access.instruction.line,
            )
        if segment is None:
            inside = np.zeros(f.shape, bool)
            for candidate in self.segments[space]:
                inside |= (addresses >= candidate.first) & (addresses + width <= candidate.end)
            outside = ~inside & active
            if outside.any():
                where = _first(addresses, outside)
                raise OutOfBounds(
                    f"{f.place(access.instruction)}: {width} bytes at {where:#x} lie outside of "
                    f"every {space} allocation{self.near(space, where)}: {f.lane_names(outside)}"
                )

    def check_valid(
        self, f: Any, access: MemoryAccess, pattern: AccessPattern, segment: Segment
    ) -> None:
        """Raise UninitialisedRead if an active lane reads bytes that nobody wrote."""
        if segment.complete:
            return
        if self.follows and access.instruction.parts[0] in LOADS:
            return
        # What was written once stays so.
        first, width = pattern.low + access.offset, access.nbytes
        place, known = (id(segment), first, width), pattern.shape.valid
        if place in known:
            return
        there = segment.validity(width)[(first - segment.base) // width :]
        bad = there.take(pattern.index(width, segment.rows), axis=0) != WRITTEN[width]
        if bad.any():
            bad = bad.any(axis=-1) & pattern.active_lanes
        if bad.any():
            addresses = f.full(pattern.addresses(access.offset))
            raise UninitialisedRead(
                f"{f.place(access.instruction)}: {width} bytes of {segment.name} at "
                f"{_first(addresses, bad):#x} were read before anybody wrote them: "
                f"{f.lane_names(bad)}",
                access.instruction,
            )
        known.add(place)
        if segment.valid.all():
            segment.complete = True

    def near(self, space: str, address: int) -> str:
        """Name the allocation that an address just misses."""
        best = min(
            (s for s in self.segments[space] if s.nbytes),
            key=lambda s: max(s.first - address, address - s.end),
            default=None,
        )
        if best is None:
            return ""
        before, behind = best.first - address, address - best.end
        if before > 1 << 30 and space in ("global", "generic") and before <= MAX_WRAPPED:
            return (f", {before:,} bytes before {best.name}: the index is negative, as one of 32 "
                    "bits becomes that runs over 2^31; compute it in 64 bits (size_t)")
        if before > 1 << 30 or behind > MAX_WRAPPED:
            return ""
        if behind > 1 << 30:
            if below := self._below_zero(space, address):
                return below
            return f", {behind:,} bytes behind {best.name}, which has {best.nbytes}"
        if before > 0:
            return f", {before} bytes before {best.name}: the index is negative"
        return f", at byte {address - best.first} of {best.name}, which has {best.nbytes}"

    def _below_zero(self, space: str, address: int) -> str:
        """Name the array before which an unsigned index of 32 bits would be, had it not wrapped."""
        for width in (1, 2, 4, 8, 16):
            for segment in self.segments[space]:
                before = segment.first - (address - (width << 32))
                if segment.nbytes and 0 < before <= BELOW:
                    return (f", {address - segment.first:,} bytes behind the begin of "
                            f"{segment.name}: an unsigned index of 32 bits went "
                            f"{-(-before // width):,} below 0")
        return ""


def _first(addresses: ndarray, where: ndarray) -> int:
    return int(addresses[where][0]) & ((1 << 64) - 1)
