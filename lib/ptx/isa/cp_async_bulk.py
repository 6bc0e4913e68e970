"""cp.async.bulk: runs of bytes between global and shared memory, and the groups they form.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; ``wait_group.read`` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from ..core.addressing import SharedBytes, lane_address, locate, shared_address
from ..core.batch import Batch, Issuer, Run, for_each_lane
from ..core.decode import Decoding, opcode
from ..core.errors import Error, Misaligned, OutOfBounds, UninitialisedRead
from ..core.hazards import access
from ..core.machine import SECTOR, WARP
from ..core.registers import DTYPES
from ..core.scheduler import Waiter
from ..core.segment import PEER_BYTES, Segment, peer_window, rank_at
from ..core.syntax import SIZES, Address, Instruction, Operand, Register
from ..core.tensormap import TENSOR_MAP_BYTES, ChangedMap, Im2colMap, TensorMap, decoded, swizzled
from ..core.tensormap import bound as bound_map
from ..race.clocks import EPOCH, FENCED, INITS
from .ld_st import ATOMIC, VECTORS, in_bf16
from .mbarrier import Mbarrier, Mbarriers
from .tcgen05_state import check_pairs

# -- What bulk copies share: bulk groups, destinations, what trace and races hear. ----------------


BULK_HINTS = ("L2::cache_hint", "weak")


@dataclass(eq=False)
class BulkCopy:
    """A copy out of shared memory: `read` takes the bytes, `write` puts them.

    `known`, if given, is called when the thread has waited until the bytes are written.
    """

    instruction: Instruction
    read: Callable[[], ndarray]
    write: Callable[[ndarray], None]
    known: Callable[[], None] | None = None
    data: ndarray | None = None
    landed: bool = False

    def fetch(self) -> ndarray:
        """Read the source, if that has not been done."""
        if self.data is None:
            self.data = self.read()
        return self.data

    def land(self) -> None:
        """Write the destination, if that has not been done."""
        if not self.landed:
            self.write(self.fetch())
            self.landed = True


@dataclass(eq=False)
class ThreadGroups:
    """The bulk groups of one thread, oldest first; the last one is not committed yet."""

    groups: list[list[BulkCopy]] = field(default_factory=lambda: [[]])
    committed: int = 0
    read: int = 0  # groups whose sources are known to be read

    @property
    def first(self) -> int:
        """How many groups came before the oldest that is kept."""
        return self.committed + 1 - len(self.groups)


class BulkGroups(Waiter):
    """The bulk groups of all threads of a batch."""

    def begin(self) -> None:
        self.threads: dict[tuple[int, int], ThreadGroups] = {}

    def add(self, by: Issuer, copy: BulkCopy) -> None:
        """Start a copy for a thread."""
        if not self.f.late:
            copy.land()
        self.threads.setdefault((by.row, by.thread), ThreadGroups()).groups[-1].append(copy)

    def report_read(self, by: Issuer, source: SharedBytes) -> None:
        """Tell the race detector of bytes that the thread's next group will read."""
        if self.f.races is not None:
            proxy, groups = self.f.proxy, self.threads.get((by.row, by.thread))
            time = 1 if groups is None else groups.committed + 1
            proxy.reads(source.cells, by, proxy.bulk(by.warp), time)

    def commit(self) -> None:
        """Close the group of each active lane that has copies; others have an empty one."""
        active = self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if active[row, thread]:
                groups.groups.append([])
                groups.committed += 1

    def wait(self, pending: int, read: bool) -> None:
        """Let all but the newest `pending` groups of the active lanes be read, or be complete."""
        f, active = self.f, self.f.active_lanes
        for (row, thread), groups in self.threads.items():
            if not active[row, thread]:
                continue
            done = max(0, groups.committed - pending)
            ready = groups.groups[: max(0, done - groups.first)]
            for group in ready:
                for copy in group:
                    copy.fetch() if read else copy.land()
                    if not read and copy.known is not None:
                        copy.known()
            if not read:
                del groups.groups[: len(ready)]
            groups.read = max(groups.read, done)
            if f.races is not None:
                warp = row, thread // WARP
                f.proxy.learn(warp, f.proxy.bulk(warp), done)

    def finish(self) -> None:
        """Land what nobody waited for; report copies that may have read a dead block's memory."""
        for (row, thread), groups in self.threads.items():
            for number, group in enumerate(groups.groups, groups.first + 1):
                for copy in group:
                    if number > groups.read:
                        self.f.hazards.add(
                            "block exited",
                            f"{self.f.place(copy.instruction)}: the thread exited without waiting "
                            "until this copy had read its shared memory "
                            f"(cp.async.bulk.wait_group.read): {self.f.exit_of(row, thread)}",
                            access(copy.instruction, row, thread, self.f),
                            self.f.exit_of(row, thread),
                        )
                    copy.land()


def count_global(
    f: Batch, by: Issuer, way: str, starts: ndarray | int, length: int, nbytes: int
) -> None:
    """Count a copy's global memory: one request, and the sectors that its runs of bytes touch.

    `way`: "load" or "store". `starts`: where each run begins, in an array that begins with a
    sector. `length`: bytes of each run. `nbytes`: bytes that the copy moves in shared memory.
    """
    if f.trace is None:
        return
    site = f.trace.site(by.at, by.instruction, f"bulk {way}", "global", nbytes)
    site.requests += 1
    site.lanes += 1
    starts = np.sort(np.atleast_1d(starts))
    if not length or not len(starts):
        return
    # A sector that two runs touch counts once.
    last = np.maximum.accumulate((starts + length - 1) // SECTOR)
    site.sectors += int(last[0] - starts[0] // SECTOR) + 1
    if len(starts) > 1:
        site.sectors += int((last[1:] - np.maximum(starts[1:] // SECTOR - 1, last[:-1])).sum())


REDUCTIONS = {name: compute for name, compute in ATOMIC.items() if name not in ("exch", "cas")}


def reduction(d: Decoding) -> Callable | None:
    """Return what a cp.reduce does with old and new elements, None for a plain copy."""
    if d.parts[1] != "reduce":
        return None
    name = d.one_of(REDUCTIONS, "operations")
    return in_bf16(REDUCTIONS[name]) if d.type == "bf16" else REDUCTIONS[name]


def _put(d: Decoding) -> Callable[[ndarray, ndarray], None]:
    """Make the function that puts bytes in the place of others, or combines them."""
    combine, dtype = reduction(d), DTYPES.get(d.type, np.dtype("u1"))

    def put(there: ndarray, data: ndarray) -> None:
        typed, data = there.view(dtype), data.view(dtype)
        typed[:] = data if combine is None else combine(typed, data)

    return put


def destinations(
    f: Batch, by: Issuer, at: int, bar: int, nbytes: int, align: int, mask: int | None = None,
    pair: bool = False,
) -> Iterator[tuple[SharedBytes, Mbarrier]]:
    """Yield what a copy into shared memory goes to in every block, and the mbarrier that counts it.

    `at`, `bar`: addresses of destination and mbarrier in the shared::cluster window. `nbytes`,
    `align`: what the destination must hold, and be a multiple of. `mask`: for a multicast: which
    ranks of the cluster receive the bytes. `pair`: ``.cta_group::2``: the mbarrier may lie in the
    other block of the destination's pair; of a multicast, each destination signals the block of its
    pair whose rank is even, or odd, as that is in which `bar` lies (PTX ISA, cp.async.bulk.tensor,
    ``.cta_group``).
    """
    barriers, there = f.waiter(Mbarriers), locate(f, by, at, nbytes, align)
    if mask is None:
        barrier = barriers.find(by, bar)
        if barrier.row != there.row and not (pair and barrier.row ^ 1 == there.row):
            raise Error(
                f"{f.place(by.instruction)}: the bytes go to block "
                f"{f.geometry.block_name(there.row)}, the mbarrier lies in block "
                f"{f.geometry.block_name(barrier.row)}: it must be the same "
                "block, or with .cta_group::2 the other one of its pair"
            )
        yield there, barrier
        return
    odd = (by.row if bar < PEER_BYTES else rank_at(bar)) & 1
    for rank in ranks_of(f, by, mask):
        signalled = peer_window(rank & ~1 | odd if pair else rank) + bar % PEER_BYTES
        place = peer_window(rank) + f.memory.shared.base + there.offset
        yield locate(f, by, place, nbytes, align), barriers.find(by, signalled)


def ranks_of(f: Batch, by: Issuer, mask: int) -> list[int]:
    """Return the ranks of a cluster that a multicast's mask names."""
    peers = f.geometry.peers
    if mask >> peers or not mask:
        raise Error(
            f"{f.place(by.instruction)}: the mask {mask:#x} names blocks that the cluster of "
            f"{peers} has not, or none"
        )
    return [rank for rank in range(peers) if mask >> rank & 1]


def bring(
    f: Batch, by: Issuer, write: Callable[[SharedBytes], None], at: int, bar: int, nbytes: int,
    align: int, mask: int | None = None, pair: bool = False, asynchronous: bool = True,
    behind_reads: bool = False,
) -> None:
    """Let bytes come that complete on an mbarrier: `write` puts them, now or as late as can be.

    The parameters in between are those of `destinations`. `asynchronous` is not what st.async
    writes, which is of no other proxy; with `behind_reads` ordinary reads of before need a proxy
    fence.
    """
    proxy = f.proxy
    for there, barrier in destinations(f, by, at, bar, nbytes, align, mask, pair):
        if proxy is not None:
            of_peer = not asynchronous and by.row != barrier.row
            agent = proxy.remote_stores if of_peer else proxy.mbarrier
            barrier.remote |= of_peer
            column, time = agent(barrier.row, barrier.offset), barrier.time + 1
            proxy.writes(there.cells, by, column, time, asynchronous, behind_reads)
            proxy.uses(there.row, column, EPOCH + time, by)
            barrier.gather(proxy.tell_phases(by.warp))
            barrier.waits.arrive(proxy.waits_known(by.warp))
            if asynchronous:
                _check_init(f, barrier, by)
        f.waiter(Mbarriers).fly(barrier, nbytes, partial(_land, there, write), by.instruction)


def _land(there: SharedBytes, write: Callable[[SharedBytes], None]) -> None:
    write(there)
    there.mark_valid()


def _check_init(f: Batch, barrier: Mbarrier, by: Issuer) -> None:
    """Warn of an mbarrier that no fence made known to the asynchronous proxy."""
    column, time = barrier.born
    if max(f.races.of(by.warp)[[FENCED, INITS], column]) >= time:
        return
    if any("/cuda/__memcpy_async/" in file for file, _ in by.instruction.callers):
        return  # cuda::memcpy_async on a cuda::barrier, which CUDA's library makes without one
    f.hazards.add_pair(
        "warning", "a copy completes on an mbarrier, but neither fence.proxy.async nor "
        "fence.mbarrier_init stands between its initialisation and the copy",
        f.side(barrier.init), f.side(by),
    )



# -- cp.async.bulk.tensor: boxes of arrays, or pixels of images (im2col), by tensor maps. ---------


DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
BOX_ALIGNMENT = 128


_COPIES = (
    ".async.bulk.reduce.global.shared::cta.shared::cluster.bulk_group.multicast::cluster",
    "mbarrier::complete_tx::bytes", *BULK_HINTS, *REDUCTIONS,
)


def _spaces(d: Decoding) -> list[str]:
    """The state spaces of a copy's destination and source."""
    spaces = [p for p in d.parts if p.partition("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        d.wrong("the state spaces of destination and source are needed")
    return spaces


def tensor_copy(d: Decoding) -> Run:
    """cp.async.bulk.tensor.Nd and cp.reduce.async.bulk.tensor.Nd, in tile and in im2col mode"""
    d.only(
        *_COPIES, ".tensor.tile.im2col.im2col_no_offs.cta_group::1.cta_group::2", *DIMENSIONS)
    rank = DIMENSIONS.index(d.pick(DIMENSIONS, "none")) + 1
    into = _spaces(d)[0] != "global"
    mode = "im2col" if into else "im2col_no_offs"
    if d.has("im2col", "im2col_no_offs") and (not d.has(mode) or rank < 3):
        d.wrong("im2col mode is .im2col of loads, .im2col_no_offs of stores, in 3 to 5 dimensions")
    return _load(d, rank) if into else _store(d, rank)


def _tensor(
    d: Decoding, operand: int, rank: int, offsets: tuple[Operand, ...] = ()
) -> Tensor:
    """Make the function that gives a lane's map and coordinates, [map, {x, y, ...}].

    In im2col mode the offsets are behind the coordinates.
    """
    given = d.operands[operand]
    if not isinstance(given, Address) or len(given.coordinates) != 1:
        d.wrong("a tensor map with coordinates is missing")
    (inside,) = given.coordinates
    items = d.vector(inside, rank, f"{{}} coordinates for {rank} dimensions")
    first, behind = d.read_all(items, "s32"), d.read_all(offsets, "u16")
    im2col = d.has("im2col", "im2col_no_offs")
    base = given.base
    slot = base.slot if isinstance(base, Register) else d.slot(base, "u64")
    offset = given.offset

    def tensor(f: Batch, by: Issuer) -> tuple[BoundTensorMap, list[int]]:
        def of(array: ndarray) -> int:
            return int(f.full(array)[by.row, by.thread])

        bound = find_map(f, of(f.r[slot]) + offset, by)
        tensor_map = bound.map
        if tensor_map.array.ndim != rank:
            raise Error(
                f"{f.place(d.instruction)}: a copy of {rank} dimensions by a tensor map of "
                f"{tensor_map.array.ndim}"
            )
        if isinstance(tensor_map, Im2colMap) != im2col:
            raise Error(
                f"{f.place(d.instruction)}: the instruction is in "
                f"{'im2col' if im2col else 'tile'} mode, the tensor map is not"
            )
        coordinates = [of(each) for each in (*first(f.r), *behind(f.r))]
        if isinstance(tensor_map, Im2colMap):
            wrong = tensor_map.misplaced(coordinates, d.has("im2col"))
            if wrong:
                raise Error(f"{f.place(d.instruction)}: {wrong}")
        _check_box(f, tensor_map, coordinates, d.instruction)
        if isinstance(tensor_map, ChangedMap):
            room = bound.segment.end - bound.segment.base - bound.start
            last = tensor_map.beyond(coordinates, room)
            if last is not None:
                raise OutOfBounds(
                    f"{f.place(d.instruction)}: by the tensor map that was changed on the "
                    f"device the box ends {last} bytes behind its address, of which {room} lie in "
                    f"{bound.segment.name}: {f.geometry.thread_name(by.row, by.thread)}"
                )
        return bound, coordinates

    return tensor


def _check_box(
    f: Batch, tensor_map: TensorMap, coordinates: list[int], instruction: Instruction
) -> None:
    """Refuse what an H100 and an H200 trap at, though the driver takes the map."""
    size, swizzle = tensor_map.array.dtype.itemsize, tensor_map.swizzle
    if coordinates[0] * size % 16:
        raise Misaligned(
            f"{f.place(instruction)}: the box begins {coordinates[0]} elements of {size} bytes "
            "along the fastest axis; that must be a multiple of 16 bytes"
        )
    inner = tensor_map.box[-1] * size
    if swizzle and inner != swizzle:
        raise Error(
            f"{f.place(instruction)}: rows of {inner} bytes with a swizzle of {swizzle} bytes; the "
            "emulator needs them to be equal"
        )


class BoundTensorMap(NamedTuple):
    """A tensor map of a launch, the array's segment, and where in it the array begins."""

    map: TensorMap
    segment: Segment
    start: int


Tensor = Callable[["Batch", Issuer], tuple[BoundTensorMap, list[int]]]


def _touch(
    f: Batch, bound: BoundTensorMap, coordinates: Sequence[int], by: Issuer, way: str
) -> Callable[[], None] | None:
    """Report which global memory a box covers; see `AsyncProxy.global_access`."""
    if not f.observed:
        return None
    starts, length = bound.map.runs(coordinates)
    starts = starts + bound.start
    count_global(f, by, way, starts, length, bound.map.nbytes)
    if f.races is None:
        return None
    granule = f.races.granule
    # Runs begin at a multiple of 16 bytes, which every granule divides.
    cells = (starts[:, None] // granule + np.arange(-(-length // granule))).ravel()
    cells = cells.astype(np.intp, copy=False)
    return f.proxy.global_access(bound.segment, cells, by, way)


def find_map(f: Batch, address: int, by: Issuer) -> BoundTensorMap:
    """Return the tensor map at an address, for a copy that a lane issues."""
    for space in ("generic", "param"):
        segment = f.memory.locate(space, address, address + TENSOR_MAP_BYTES)
        if segment is not None and segment.rows is None:
            at = address - segment.base
            data = segment.storage[at : at + TENSOR_MAP_BYTES].tobytes()
            found = decoded(data)
            if address % 64:
                continue
            try:
                changed = bound_map(data, f.memory.device)
            except ValueError as error:
                raise Error(f"{f.place(by.instruction)}: the tensor map that was changed on the "
                            f"device: {error}") from None
            if changed is None and found is not None:
                changed = f.memory.device.bind(found)
            if changed is not None:
                if f.races is not None:
                    f.races.maps.use(segment, at, by)
                return BoundTensorMap(*changed)
    local = f.memory.locate("generic", address, address + TENSOR_MAP_BYTES)
    if local is not None and local.space == "local":
        raise Error(
            f"{f.place(by.instruction)}: the tensor map's address {address:#x} is of the thread's "
            "local memory: the kernel's parameter is passed by value, so taking its address copies "
            "it; declare it const __grid_constant__ CUtensorMap"
        )
    raise Error(
        f"{f.place(by.instruction)}: there is no tensor map at address {address:#x}; pass one as a "
        "__grid_constant__ parameter, or put bytes(tensor_map), aligned to 64, where the kernel "
        "looks for it, and keep the tensor map"
    )


def _load(d: Decoding, rank: int) -> Run:
    """[dst], [map, {coordinates}], [mbar]{, {im2col offsets}}{, mask}{, policy}"""
    multicast, im2col = d.has("multicast::cluster"), d.has("im2col")
    d.count(3 + im2col + multicast + d.has("L2::cache_hint"))
    to, bar = shared_address(d, 0), shared_address(d, 2)
    offsets = d.vector(
        3, rank - 2, f"{{}} im2col offsets for {rank} dimensions, which have {rank - 2}",
    ) if im2col else ()
    mask, pair = _mask(d, 3 + im2col), d.has("cta_group::2")
    tensor = _tensor(d, 1, rank, offsets)

    def issue(f: Batch, by: Issuer, at: int, b: int) -> None:
        if pair:
            check_pairs(f, d.instruction)
        bound, coordinates = tensor(f, by)
        tensor_map = bound.map
        _touch(f, bound, coordinates, by, "load")

        def write(there: SharedBytes) -> None:
            data = tensor_map.load(coordinates).view(np.uint64).reshape(-1, 2)
            _chunks(f)[_places(there, tensor_map)] = data

        bring(f, by, write, at, b, tensor_map.nbytes, BOX_ALIGNMENT, mask(f, by), pair)

    return for_each_lane(d, issue, to, bar)


def _chunks(f: Batch) -> ndarray:
    """Show shared memory in chunks of 16 bytes."""
    return f.memory.shared.view(np.dtype("u8"), 2)


def _places(there: SharedBytes, tensor_map: TensorMap) -> ndarray:
    """Return where a box's chunks lie in the shared memory of all blocks."""
    base = there.part.start - there.offset >> 4
    return base + swizzled(there.offset, there.nbytes // 16, tensor_map.swizzle)


def _check_written(
    f: Batch, there: SharedBytes, tensor_map: TensorMap, coordinates: Sequence[int],
    instruction: Instruction,
) -> None:
    """Raise UninitialisedRead if a store takes bytes that nobody wrote.

    What lies beyond the tensor's edge isn't stored, so it need not have been written.
    """
    valid, start = f.memory.shared.valid, there.part.start
    if (valid[there.part] == 1).all():
        return
    stored = tensor_map.covered(coordinates)
    stored = np.repeat(stored.reshape(-1), tensor_map.array.dtype.itemsize).reshape(-1, 16)
    places = _places(there, tensor_map)
    missing = stored & (valid.reshape(-1, 16)[places] != 1)
    if missing.any():
        chunk, byte = np.argwhere(missing)[0]
        at = int(places[chunk]) * 16 + int(byte) - start + there.offset
        raise UninitialisedRead(
            f"{f.place(instruction)}: a box of {there.nbytes} bytes of shared memory from "
            f"{there.offset:#x} is stored, but byte {at:#x} was never written, block "
            f"{f.geometry.block_name(there.row)}"
        )


def _store(d: Decoding, rank: int) -> Run:
    """[map, {coordinates}], [src]{, policy}"""
    d.count(2 + d.has("L2::cache_hint"))
    source, tensor = shared_address(d, 1), _tensor(d, 0, rank)
    combine = reduction(d)

    def issue(f: Batch, by: Issuer, at: int) -> None:
        groups = f.waiter(BulkGroups)
        bound, coordinates = tensor(f, by)
        tensor_map = bound.map
        there = locate(f, by, at, tensor_map.nbytes, BOX_ALIGNMENT)
        _check_written(f, there, tensor_map, coordinates, d.instruction)
        groups.report_read(by, there)
        known = _touch(f, bound, coordinates, by, "store")
        places, put = _places(there, tensor_map), combine
        if combine is not None and isinstance(tensor_map, ChangedMap) and tensor_map.bf16:
            put = in_bf16(combine)
        groups.add(by, BulkCopy(
            d.instruction,
            lambda: np.ascontiguousarray(_chunks(f)[places]).reshape(-1).view(np.uint8),
            lambda data: tensor_map.store(coordinates, data, put), known))

    return for_each_lane(d, issue, source)


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


@opcode("cp.async.bulk", "cp.reduce.async")
def bulk(d: Decoding) -> Run:
    """cp.async.bulk and cp.reduce.async.bulk: copies, prefetches, commit_group, wait_group"""
    if d.parts[0] == "cp" and d.parts[1] == "reduce" and not d.has("bulk"):
        d.unsupported("cp.reduce.async.bulk")
    if d.has("commit_group"):
        d.only(".async.bulk.commit_group").count(0)
        return lambda f: f.waiter(BulkGroups).commit()
    if d.has("wait_group"):
        d.only(".async.bulk.wait_group.read").count(1)
        pending, read = d.constant(0, "the number of groups"), d.has("read")
        return lambda f: f.waiter(BulkGroups).wait(pending, read)
    if d.has("prefetch"):
        return lambda f: None
    if d.has("tensor"):
        return tensor_copy(d)
    to, source = _spaces(d)
    d.only(*_COPIES, "noftz")
    return _out(d) if to == "global" else _into(d, from_shared=source != "global")


def _size(f: Batch, n: int, instruction: Instruction) -> None:
    if n % 16 or n < 0:
        raise Error(f"{f.place(instruction)}: {n} bytes; a bulk copy moves a multiple of 16")


def _mask(d: Decoding, operand: int) -> Callable[[Batch, Issuer], int | None]:
    """Make the function that reads a multicast's mask; None for a copy to one block."""
    if not d.has("multicast::cluster"):
        return lambda f, by: None
    mask = d.read(operand, "u16")
    return lambda f, by: int(f.full(mask(f.r))[by.row, by.thread])


def _into(d: Decoding, from_shared: bool) -> Run:
    """[dst], [src], size, [mbar]{, mask}{, policy}: into shared memory, of several blocks"""
    d.count(4 + d.has("multicast::cluster") + d.has("L2::cache_hint"))
    put, mask = _put(d), _mask(d, 4)
    to, number, bar = shared_address(d, 0), d.of_batch(2, "u32"), shared_address(d, 3)
    source = shared_address(d, 1) if from_shared else lane_address(d, 1)

    def issue(f: Batch, by: Issuer, at: int, n: int, b: int, address: int) -> None:
        _size(f, n, d.instruction)
        if from_shared:
            there = locate(f, by, address, n, 16)
            there.check_valid(d.instruction)
            data = there.data
            if f.proxy is not None:
                f.proxy.compare(there.cells, by)
        else:
            segment, start = global_bytes(f, address, n, d.instruction)
            data = segment.storage[start : start + n]
            if f.proxy is not None:
                f.proxy.global_access(segment, f.races.cells(start, n), by, "load")
            count_global(f, by, "load", start, n, n)
        bring(f, by, lambda there: put(there.data, data), at, b, n, 16, mask(f, by))

    return for_each_lane(d, issue, to, number, bar, source)


def _out(d: Decoding) -> Run:
    """[dst], [src], size{, policy}: from shared memory to global memory, in a bulk group"""
    d.count(3 + d.has("L2::cache_hint"))
    put, to = _put(d), lane_address(d, 0)
    source, number = shared_address(d, 1), d.of_batch(2, "u32")

    def issue(f: Batch, by: Issuer, at: int, n: int, address: int) -> None:
        groups, known = f.waiter(BulkGroups), None
        _size(f, n, d.instruction)
        there = locate(f, by, at, n, 16)
        there.check_valid(d.instruction)
        segment, start = global_bytes(f, address, n, d.instruction, True)
        groups.report_read(by, there)
        if f.proxy is not None:
            known = f.proxy.global_access(segment, f.races.cells(start, n), by, "store")
        count_global(f, by, "store", start, n, n)
        groups.add(by, BulkCopy(
            d.instruction, lambda: there.data.copy(),
            lambda data: put(segment.storage[start : start + n], data), known))

    return for_each_lane(d, issue, source, number, to)



# st.async and red.async: what a lane stores into a peer, and an mbarrier there counts as bytes.


_STORED = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_REDUCED = {
    "inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",), "add": ("u32", "s32", "u64"),
}
_WORDS = (
    "async", "weak", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes",
)


@opcode("st.async", "red.async")
def store_async(d: Decoding) -> Run:
    """st.async{.vec}.type [a], b, [mbar]; red.async.op.type [a], b, [mbar]: to shared::cluster"""
    reduces = d.parts[0] == "red"
    d.only(*_WORDS, *(_REDUCED if reduces else VECTORS[:2])).count(3)
    operation = d.one_of(_REDUCED, "operations") if reduces else None
    d.needs(*(_STORED if operation is None else _REDUCED[operation]))
    kind, combine = d.type, None if operation is None else REDUCTIONS[operation]
    items = d.vector(1, d.many, f"{d.many} registers are needed in braces")
    values, size = d.read_all(items, kind), SIZES[kind] * d.many

    def issue(f: Batch, by: Issuer, at: int, b: int) -> None:
        given = np.stack([f.full(value)[by.row, by.thread] for value in values(f.r)])

        def write(there: SharedBytes) -> None:
            here = there.data.view(DTYPES[kind])
            here[:] = given if combine is None else combine(here, given)

        bring(f, by, write, at, b, size, size, asynchronous=False)

    return for_each_lane(d, issue, shared_address(d, 0), shared_address(d, 2))
