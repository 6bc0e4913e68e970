"""cp.async.bulk: runs of bytes between global and shared memory, and the groups they form.

A copy into shared memory completes on an mbarrier. A copy out of it belongs to a bulk group of the
thread that issued it; ``wait_group.read`` waits until its source is read, `wait_group` until it is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from ..core.addressing import address_operand, locate, shared_address
from ..core.batch import Batch, Races, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error, Misaligned, OutOfBounds, UninitialisedRead
from ..core.lanes import each_lane
from ..core.registers import DTYPES
from ..core.segment import Segment
from ..core.syntax import SIZES, Address, Immediate, Instruction, Operand, Register, Vector
from ..core.tensormap import TENSOR_MAP_BYTES, ChangedMap, Im2colMap, TensorMap, decoded, swizzled
from ..core.tensormap import bound as bound_map
from .atom_red import VECTORS, in_bf16
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
from .mbarrier_object import Mbarriers
from .tcgen05_state import check_pairs

# -- cp.async.bulk.tensor: boxes of arrays, or pixels of images (im2col), by tensor maps. ---------


DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
BOX_ALIGNMENT = 128


def tensor_copy(d: Decoding) -> Run:
    """cp.async.bulk.tensor.Nd and cp.reduce.async.bulk.tensor.Nd, in tile and in im2col mode"""
    d.only(
        "async", "bulk", "reduce", "tensor", "global", "shared::cta", "shared::cluster", "tile",
        "im2col", "im2col_no_offs", "bulk_group", "mbarrier::complete_tx::bytes",
        "multicast::cluster", "cta_group::1", "cta_group::2", *DIMENSIONS, *BULK_HINTS, *REDUCTIONS,
    )
    spaces = [p for p in d.parts if p.partition("::")[0] in ("shared", "global")]
    rank = DIMENSIONS.index(d.pick(DIMENSIONS, "none")) + 1
    if len(spaces) != 2:
        d.wrong("the state spaces of destination and source are needed")
    into = spaces[0] != "global"
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
    items = inside.items if isinstance(inside, Vector) else (inside,)
    if len(items) != rank:
        d.wrong(f"{len(items)} coordinates for {rank} dimensions")
    reads = [d.read(item, "s32") for item in items] + [d.read(item, "u16") for item in offsets]
    im2col, into = d.has("im2col", "im2col_no_offs"), d.has("im2col")
    base = given.base
    slot = base.slot if isinstance(base, Register) else d.slot(base, "u64")
    offset, instruction, index = given.offset, d.instruction, d.index

    def tensor(f: Batch, row: int, thread: int) -> tuple[BoundTensorMap, list[int]]:
        def of(array: ndarray) -> int:
            return int(array[row if len(array) > 1 else 0, thread if array.shape[1] > 1 else 0])

        bound = find_map(f, of(f.r[slot]) + offset, row, thread, index, instruction)
        tensor_map = bound.map
        if tensor_map.array.ndim != rank:
            raise Error(
                f"{f.place(instruction)}: a copy of {rank} dimensions by a tensor map of "
                f"{tensor_map.array.ndim}"
            )
        if isinstance(tensor_map, Im2colMap) != im2col:
            raise Error(
                f"{f.place(instruction)}: the instruction is in {'im2col' if im2col else 'tile'} "
                "mode, the tensor map is not"
            )
        coordinates = [of(read(f.r)) for read in reads]
        if isinstance(tensor_map, Im2colMap):
            _check_pixels(f, tensor_map, coordinates, into, instruction)
        _check_box(f, tensor_map, coordinates, instruction)
        if isinstance(tensor_map, ChangedMap):
            room = bound.segment.end - bound.segment.base - bound.start
            last = tensor_map.beyond(coordinates, room)
            if last is not None:
                raise OutOfBounds(
                    f"{f.place(instruction)}: by the tensor map that was changed on the device the "
                    f"box ends {last} bytes behind its address, of which {room} lie in "
                    f"{bound.segment.name}: {f.geometry.thread_name(row, thread)}"
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


def _check_pixels(
    f: Batch, tensor_map: Im2colMap, coordinates: list[int], into: bool,
    instruction: Instruction,
) -> None:
    """Refuse a filter's place that PTX leaves undefined."""
    wrong = tensor_map.misplaced(coordinates)
    if not (wrong or into):
        corners = *tensor_map.lower, *(-high for high in tensor_map.upper)
        if min(*corners, *coordinates) < 0:
            wrong = "a store needs a bounding box and coordinates inside of the tensor"
    if wrong:
        raise Error(f"{f.place(instruction)}: {wrong}")


class BoundTensorMap(NamedTuple):
    """A tensor map of a launch, the array's segment, and where in it the array begins."""

    map: TensorMap
    segment: Segment
    start: int


Tensor = Callable[["Batch", int, int], tuple[BoundTensorMap, list[int]]]


def _touch(
    f: Batch, bound: BoundTensorMap, coordinates: Sequence[int], by: Issuer, way: str
) -> Callable[[], None] | None:
    """Report which global memory a box covers; see `AsyncProxy.global_access`."""
    if f.trace is None and f.races is None:
        return None
    starts, length = bound.map.runs(coordinates)
    starts = starts + bound.start
    if f.trace is not None:
        count_global(f.trace, by.index, by.instruction, way, starts, length, bound.map.nbytes)
    if f.races is None:
        return None
    granule = f.races.granule
    # Runs begin at a multiple of 16 bytes, which every granule divides.
    cells = (starts[:, None] // granule + np.arange(-(-length // granule))).ravel()
    cells = cells.astype(np.intp, copy=False)
    return f.races.agents.global_access(bound.segment, cells, by.row, by.thread, by.index, way)


def find_map(
    f: Batch, address: int, row: int, thread: int, index: int, instruction: Instruction
) -> BoundTensorMap:
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
                raise Error(f"{f.place(instruction)}: the tensor map that was changed on the "
                            f"device: {error}") from None
            if changed is None and found is not None:
                changed = f.memory.device.bind(found)
            if changed is not None:
                if f.races is not None:
                    f.races.maps.use(segment, at, row, thread, index)
                return BoundTensorMap(*changed)
    local = f.memory.locate("generic", address, address + TENSOR_MAP_BYTES)
    if local is not None and local.space == "local":
        raise Error(
            f"{f.place(instruction)}: the tensor map's address {address:#x} is of the thread's "
            "local memory: the kernel's parameter is passed by value, so taking its address copies "
            "it; declare it const __grid_constant__ CUtensorMap"
        )
    raise Error(
        f"{f.place(instruction)}: there is no tensor map at address {address:#x}; pass one as a "
        "__grid_constant__ parameter, or put bytes(tensor_map), aligned to 64, where the kernel "
        "looks for it, and keep the tensor map"
    )


def _load(d: Decoding, rank: int) -> Run:
    """[dst], [map, {coordinates}], [mbar]{, {im2col offsets}}{, mask}{, policy}"""
    multicast, im2col = d.has("multicast::cluster"), d.has("im2col")
    d.count(3 + im2col + multicast + d.has("L2::cache_hint"))
    to, bar = shared_address(d, 0), shared_address(d, 2)
    offsets = d.vector(3) if im2col else ()
    if im2col and len(offsets) != rank - 2:
        d.wrong(f"{len(offsets)} im2col offsets for {rank} dimensions, which have {rank - 2}")
    mask = d.read(3 + im2col, "u16") if multicast else None
    tensor, instruction, index = _tensor(d, 1, rank, offsets), d.instruction, d.index
    pair = d.has("cta_group::2")

    def step(f: Batch) -> None:
        if pair:
            check_pairs(f, instruction)
        barriers = f.waiter(Mbarriers)
        for row, thread, (at, b) in each_lane(f, to(f), bar(f)):
            bound, coordinates = tensor(f, row, thread)
            tensor_map, n = bound.map, bound.map.nbytes
            by = Issuer(row, thread, instruction, index)
            _touch(f, bound, coordinates, by, "load")
            chosen = None
            if mask is not None:
                chosen = int(f.full(mask(f.r))[row, thread])
            for there in destinations(f, by, at, b, n, BOX_ALIGNMENT, chosen, pair):
                report_write(f, there, by)

                def land(
                    there: Destination = there, map: TensorMap = tensor_map,
                    at: Sequence[int] = coordinates,
                ) -> None:
                    places = _places(f, there.row, there.offset, map)
                    _chunks(f)[places] = map.load(at).view(np.uint64).reshape(-1, 2)
                    there.mark_valid(f)

                barriers.fly(there.barrier, n, land, instruction)

    return step


def _chunks(f: Batch) -> ndarray:
    """Show shared memory in chunks of 16 bytes."""
    return f.memory.shared.view(np.dtype("u8"), 2)


def _places(f: Batch, row: int, offset: int, tensor_map: TensorMap) -> ndarray:
    """Return where a box's chunks lie in the shared memory of all blocks."""
    base = f.memory.shared.start_of(row) >> 4
    return base + swizzled(offset, tensor_map.nbytes // 16, tensor_map.swizzle)


def _check_written(
    f: Batch, row: int, offset: int, tensor_map: TensorMap, coordinates: Sequence[int],
    instruction: Instruction,
) -> None:
    """Raise UninitialisedRead if a store takes bytes that nobody wrote.

    What lies beyond the tensor's edge isn't stored, so it need not have been written.
    """
    n = tensor_map.nbytes
    start = f.memory.shared.start_of(row) + offset
    if (f.memory.shared.valid[start : start + n] == 1).all():
        return
    stored = tensor_map.covered(coordinates)
    stored = np.repeat(stored.reshape(-1), tensor_map.array.dtype.itemsize).reshape(-1, 16)
    places = _places(f, row, offset, tensor_map)
    missing = stored & (f.memory.shared.valid.reshape(-1, 16)[places] != 1)
    if missing.any():
        chunk, byte = np.argwhere(missing)[0]
        at = int(places[chunk]) * 16 + int(byte) - start + offset
        raise UninitialisedRead(
            f"{f.place(instruction)}: a box of {n} bytes of shared memory from {offset:#x} is "
            f"stored, but byte {at:#x} was never written, block {f.geometry.block_name(row)}"
        )


def _store(d: Decoding, rank: int) -> Run:
    """[map, {coordinates}], [src]{, policy}"""
    d.count(2 + d.has("L2::cache_hint"))
    source, tensor = shared_address(d, 1), _tensor(d, 0, rank)
    combine, instruction, index = reduction(d), d.instruction, d.index

    def step(f: Batch) -> None:
        groups = f.waiter(BulkGroups)
        for row, thread, (at,) in each_lane(f, source(f)):
            bound, coordinates = tensor(f, row, thread)
            tensor_map, n = bound.map, bound.map.nbytes
            home, offset = locate(f, row, at, n, BOX_ALIGNMENT, instruction)
            _check_written(f, home, offset, tensor_map, coordinates, instruction)
            report_read(f, home, offset, n, thread, index, groups.time(row, thread))
            by = Issuer(row, thread, instruction, index)
            known = _touch(f, bound, coordinates, by, "store")
            places = _places(f, home, offset, tensor_map)

            def read(places: ndarray = places) -> ndarray:
                return np.ascontiguousarray(_chunks(f)[places]).reshape(-1).view(np.uint8)

            def write(
                data: ndarray, map: TensorMap = tensor_map, at: Sequence[int] = coordinates
            ) -> None:
                if combine is not None and isinstance(map, ChangedMap) and map.bf16:
                    map.store(at, data, in_bf16(combine))
                else:
                    map.store(at, data, combine)

            groups.add(row, thread, BulkCopy(instruction, read, write, known))

    return step


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


def global_cells(races: Races, start: int, nbytes: int) -> ndarray:
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


def global_address(d: Decoding, operand: int) -> Callable[[Batch], ndarray]:
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
        full = f.full(source(f))
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

                def land(there: Destination = there, data: ndarray = data) -> None:
                    here = there.bytes(f)
                    if combine is None:
                        here[:] = data
                    else:
                        typed = _typed(here, kind)
                        typed[:] = combine(typed, _typed(data, kind))
                    there.mark_valid(f)

                barriers.fly(there.barrier, n, land, instruction)

    return step


def _typed(data: ndarray, kind: str) -> ndarray:
    return data.view(DTYPES[kind])


def _out(d: Decoding) -> Run:
    """[dst], [src], size{, policy}: from shared memory to global memory, in a bulk group"""
    d.count(3 + d.has("L2::cache_hint"))
    combine, kind = reduction(d), d.type
    to, source, number = global_address(d, 0), shared_address(d, 1), d.read(2, "u32")
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        groups = f.waiter(BulkGroups)
        full = f.full(to(f))
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

            def write(data: ndarray, there: ndarray = there) -> None:
                if combine is None:
                    there[:] = data
                else:
                    typed = _typed(there, kind)
                    typed[:] = combine(typed, _typed(data, kind))

            def read(home: int = home, offset: int = offset, n: int = n) -> ndarray:
                return shared_bytes(f, home, offset, n).copy()

            groups.add(row, thread, BulkCopy(instruction, read, write, known))

    return step



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
    operation = d.pick(_REDUCED) if reduces else None
    d.only(*_WORDS, *(_REDUCED if reduces else VECTORS[:2])).count(3)
    if reduces and operation is None:
        d.unsupported(f"the operations are {' '.join(_REDUCED)}")
    d.needs(*(_STORED if operation is None else _REDUCED[operation]))
    kind, combine = d.type, None if operation is None else REDUCTIONS[operation]
    items, many = d.vector(1), int((d.pick(VECTORS) or "v1")[1])
    if len(items) != many:
        d.wrong(f"{many} registers are needed in braces")
    reads = [d.read(item, kind) for item in items]
    to, bar, size = shared_address(d, 0), shared_address(d, 2), SIZES[kind] * many
    instruction, index = d.instruction, d.index

    def step(f: Batch) -> None:
        barriers, shape = f.waiter(Mbarriers), f.shape
        values = np.stack([np.broadcast_to(read(f.r), shape) for read in reads], axis=-1)
        for row, thread, (at, b) in each_lane(f, to(f), bar(f)):
            given = values[row, thread].copy()
            by = Issuer(row, thread, instruction, index)
            for there in destinations(f, by, at, b, size, size):
                report_write(f, there, by, asynchronous=False)

                def land(there: Destination = there, given: ndarray = given) -> None:
                    here = there.bytes(f).view(DTYPES[kind])
                    here[:] = given if combine is None else combine(here, given)
                    there.mark_valid(f)

                barriers.fly(there.barrier, size, land, instruction)

    return step
