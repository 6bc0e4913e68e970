"""wgmma: MMAs of a warpgroup, with operands in shared memory; `wgmma_groups` lands them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Races, Reader, Run
from ..core.decode import Decoding, opcode, predicated_end
from ..core.errors import Divergence, Error, OutOfBounds, UninitialisedRead
from ..core.machine import BANKS, WARP
from ..core.masks import Mask, by_warpgroup, spread
from ..core.rounding import to_float32
from ..core.syntax import Immediate, Instruction, Register, Vector
from . import wgmma_fp8
from .fragments import ROWS, Sparsity, check_warps
from .matrix_descriptor import SPANS, Descriptor, chunk_addresses
from .wgmma_groups import WgmmaGroups

# -- What wgmma multiplies: matrices in shared memory, by their descriptors, or A in registers. ---


GROUP = 4 * WARP  # threads of a warpgroup
CHUNK = 16  # bytes that a descriptor's layout keeps together


@dataclass(frozen=True)
class Operand:
    """A or B in shared memory."""

    rows: int  # M of A, N of B
    major: str  # which of its dimensions is contiguous, ``"k"`` or ``"mn"``
    kind: str  # type of its elements, such as ``"bf16"``
    chunks: int  # of 16 bytes, along K: 2, or 4 of a B beside a sparse A
    instruction: Instruction

    def addresses(self, f: Batch, bits: int) -> ndarray:
        """Return where its chunks lie, of a descriptor's bits; see `chunk_addresses`."""
        descriptor = Descriptor.of(bits)
        if self.major == "k" and descriptor.mode and SPANS[descriptor.mode] < CHUNK * self.chunks:
            raise Error(
                f"{f.place(self.instruction)}: the descriptor {bits:#x} has a swizzle of "
                f"{SPANS[descriptor.mode]} bytes, and K is {CHUNK * self.chunks} bytes long; PTX "
                "says nothing of where the rest lies: use a swizzle of 64 or 128 bytes, or none"
            )
        return chunk_addresses(descriptor, self.rows, self.major, self.chunks)

    def read(self, f: Batch, groups: list[tuple[int, int]], known: list[int]) -> ndarray:
        """Return the operand of each warpgroup, (groups, rows, K), as float32.

        `groups`: row and warpgroup. `known`: the descriptor of each.
        """
        shared = f.memory.shared
        found = np.empty(0, np.float32)
        of_bits: dict[int, list[int]] = {}
        for i, bits in enumerate(known):
            of_bits.setdefault(bits, []).append(i)
        for bits, which in of_bits.items():
            start = Descriptor.of(bits).start
            place = self.addresses(f, bits) - shared.base
            if int(place.min()) < 0 or int(place.max()) + CHUNK > shared.nbytes:
                raise OutOfBounds(
                    f"{f.place(self.instruction)}: the operand at {start:#x} reaches from byte "
                    f"{int(place.min())} to {int(place.max()) + CHUNK} of shared memory, which has "
                    f"{shared.nbytes}"
                )
            blocks = list(dict.fromkeys(groups[i][0] for i in which))  # groups of one share B
            starts = np.array([shared.start_of(row) for row in blocks], np.int64)
            index = (place >> 4) + (starts >> 4)[:, None, None]
            index = index.astype(np.intp, copy=False)
            if not shared.complete:
                self._check_written(f, index, place, start, blocks)
            raw = shared.view(np.dtype("u8"), 2).take(index, axis=0)
            raw = raw.view(np.uint8).reshape(len(blocks), len(place), -1)
            value = to_float32(raw, self.kind)
            if self.major != "k":
                value = value.swapaxes(1, 2)
            if len(which) > len(blocks):
                number = {row: j for j, row in enumerate(blocks)}
                value = value[[number[groups[i][0]] for i in which]]
            if len(of_bits) == 1:
                return value
            if not found.size:
                found = np.empty((len(groups), *value.shape[1:]), np.float32)
            found[which] = value
        return found

    def _check_written(
        self, f: Batch, index: ndarray, place: ndarray, start: int, blocks: list[int]
    ) -> None:
        """Raise UninitialisedRead where it has shared memory that nobody wrote."""
        valid = f.memory.shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
        bad = (valid != 0x0101010101010101).any(axis=-1)
        if bad.any():
            at = int(bad.any(axis=(1, 2)).argmax())
            raise UninitialisedRead(
                f"{f.place(self.instruction)}: the operand at {start:#x} has shared memory that "
                f"nobody wrote, at {f.memory.shared.base + int(place[bad[at]][0]):#x}, block "
                f"{f.geometry.block_name(blocks[at])}"
            )

    def report(
        self, f: Batch, races: Races, group: tuple[int, int], reader: tuple[int, int], bits: int,
        index: int,
    ) -> None:
        """Tell the race detector that a warpgroup reads it.

        `group`: row and warpgroup. `reader`: its first active warp, and its time among the MMAs of
        that warp. `bits`: the descriptor. `index`: of the instruction.
        """
        row, (warp, time) = group[0], reader
        base = f.memory.shared.start_of(row) - f.memory.shared.base
        place = base + np.unique(self.addresses(f, bits))
        granule = races.granule
        cells = (place[:, None] // granule + np.arange(CHUNK // granule)).ravel()
        agents = races.agents
        agents.reads(cells, row, warp * WARP, agents.warpgroup(row, warp), time, index)


def from_registers(whole: ndarray, row: int, group: int, kind: str) -> ndarray:
    """Gather A, (64, K): register r of a lane has row lane/4 + 8 (r % 2), byte 16 (r/2) + ..."""
    part = np.zeros((4, GROUP), np.uint32)
    lanes = whole[:, row, group * GROUP : group * GROUP + GROUP]
    part[:, : lanes.shape[1]] = lanes
    # (column half, row half, warp, g, t) -> (warp, row half, g, column half, t)
    parts = part.reshape(2, 2, 4, 8, 4).transpose(2, 1, 3, 0, 4)
    return to_float32(np.ascontiguousarray(parts).reshape(64, 8).view(np.uint8), kind)


Keep = ndarray | bool  # whether accumulators are added to: of all lanes, or of each
K_BYTES = 32  # of one row of A as it is stored, in every type; of a sparse A, half of K
# Type of A and B -> bytes, what the accumulator may be.
TYPES = {
    "f16": (2, ("f16", "f32")), "bf16": (2, ("f32",)), "tf32": (4, ("f32",)),
    "s8": (1, ("s32",)), "u8": (1, ("s32",)), "e4m3": (1, ("f16", "f32")),
    "e5m2": (1, ("f16", "f32")),
}


# -- instructions -------------------------------------------------------------------------------


@opcode("wgmma")
def wgmma(d: Decoding) -> Run:
    """wgmma.{fence,commit_group,wait_group,mma_async{.sp}}.sync.aligned"""
    what = d.parts[1] if len(d.parts) > 1 else ""
    if what == "mma_async":
        return _product(d)
    if what not in ("fence", "commit_group", "wait_group"):
        d.unsupported("wgmma.{fence,commit_group,wait_group,mma_async}")
    d.only(what, "sync", "aligned").count(1 if what == "wait_group" else 0)
    instruction = d.instruction
    if what == "wait_group":
        if not isinstance(d.operands[0], Immediate):
            d.wrong("the number of groups must be a constant")
        pending, following = d.operands[0].bits, d.index + 1

        def wait(f: Batch) -> None:
            check_warps(f, instruction)
            f.waiter(WgmmaGroups).wait(instruction, following, pending)

        return predicated_end(d, wait)

    def step(f: Batch) -> None:
        check_warps(f, instruction)
        products = f.waiter(WgmmaGroups)
        products.fence() if what == "fence" else products.commit()

    return step


def _check_groups(f: Batch, groups: list[tuple[int, int]], instruction: Instruction) -> None:
    """Raise Divergence where a block has no four warps for a warpgroup."""
    short = [group for _, group in groups if (group + 1) * GROUP > f.threads]
    if short:
        raise Divergence(
            f"{f.place(instruction)}: needs a warpgroup of {GROUP} threads; the block of "
            f"{f.threads} has only {f.threads - short[0] * GROUP} from warp {4 * short[0]} on"
        )


def _shape(d: Decoding) -> tuple[str, str, str, int]:
    """Return the types of D, A and B, and N."""
    kinds = [p for p in d.parts[2:] if p in (*TYPES, "f32", "s32")]
    sizes = [m for m in (re.fullmatch(r"m64n(\d+)k(\d+)", p) for p in d.parts) if m]
    if len(kinds) != 3 or len(sizes) != 1:
        d.unsupported(f"wgmma.mma_async.m64nNkK.dtype.atype.btype of {' '.join(TYPES)}")
    dtype, a, b = kinds
    n, k = map(int, sizes[0].groups())
    if a not in TYPES or b not in TYPES or dtype not in TYPES[a][1]:
        d.unsupported(f"wgmma of {' '.join(TYPES)}; not .{dtype}.{a}.{b}")
    depth = 2 * K_BYTES if d.has("sp") else K_BYTES
    same = a == b or {a, b} in ({"s8", "u8"}, {"e4m3", "e5m2"})
    if not same or k * TYPES[a][0] != depth or not 8 <= n <= 256 or n % 8:
        sparse = ", sparse" if d.has("sp") else ""
        d.wrong(f"there is no m64n{n}k{k} of .{a} and .{b}{sparse}")
    if dtype == "s32" and n not in (8, 16, 24) and n % 16:
        d.wrong(f"N = {n}: whole numbers have 8, 16, 24 and multiples of 16")
    return dtype, a, b, n


def _product(d: Decoding) -> Run:
    """d, a-desc|{a}, b-desc, scale-d{, scale-a, scale-b{, trans-a}{, trans-b}}

    Of .sp, where A is stored by half, metadata and selector stand behind b-desc (PTX ISA 9.7.15.6).
    """
    dtype, a_kind, b_kind, n = _shape(d)
    saturate = d.has("satfinite")
    register = "b32" if dtype == "f16" else dtype
    targets = d.vector(0)
    count = n // 4 if dtype == "f16" else n // 2
    if len(targets) != count or not all(isinstance(t, Register) for t in targets):
        d.wrong(f"the accumulators are {count} registers, not {len(targets)}")
    for target in targets:
        d.write(target, register)
    d.writes.clear()  # merged here, for the lanes that are not active
    slots = tuple(t.slot for t in targets)
    in_registers = isinstance(d.operands[1], Vector)
    a_parts = [d.read(item, "b32") for item in d.vector(1)] if in_registers else []
    if in_registers and len(a_parts) != 4:
        d.wrong("A in registers has 4 of them")
    reads = {i.slot for i in d.vector(1) if isinstance(i, Register)} if in_registers else set()
    descriptors = [d.read(i, "b64") for i in ((2,) if in_registers else (1, 2))]
    sparse = _sparsity(d, a_kind) if d.has("sp") else None
    after = 3 if sparse is None else 5
    scale: Reader | bool = True
    if len(d.operands) > after:
        given = d.operands[after]
        scale = bool(given.bits) if isinstance(given, Immediate) else d.read(given, "pred")
    metadata = d.read(3, "b32") if sparse is not None else None
    flags = [d.constant(i, "a scale or a transposition") for i in range(after + 1, len(d.operands))]
    floating = dtype != "s32"
    signs = [-1.0 if f < 0 or f == (1 << 64) - 1 else 1.0 for f in flags[:2]] if floating else []
    trans = flags[2:] if floating else []
    if trans and TYPES[a_kind][0] != 2:
        d.wrong("only elements of 2 bytes can be transposed")
    majors = [("mn" if t else "k") for t in trans]
    a_major = "k" if in_registers or not majors else majors[0]
    b_major = majors[-1] if majors else "k"
    sign = signs[0] * signs[1] if len(signs) == 2 else 1.0
    instruction, index = d.instruction, d.index
    chunks = K_BYTES // CHUNK
    of_a = Operand(64, a_major, a_kind, chunks, instruction)
    of_b = Operand(n, b_major, b_kind, chunks if sparse is None else 2 * chunks, instruction)
    # Bytes of both, where they lie in shared memory.
    wavefronts = CHUNK * (n * of_b.chunks + (0 if in_registers else 64 * chunks)) // (4 * BANKS)

    def step(f: Batch) -> None:
        check_warps(f, instruction)
        outer = f.active
        for part in _in_step(f, descriptors):
            f.active = part
            issue(f)
        f.active = outer

    def issue(f: Batch) -> None:
        products = f.waiter(WgmmaGroups)
        products.check_fence(instruction, slots, reads)
        here = f.active_warps
        groups = _warpgroups(here)
        _check_groups(f, groups, instruction)
        if f.trace is not None:
            f.trace.multiplied(index, instruction, 4 * len(groups), wavefronts * len(groups))
        known_b = _uniform(f, descriptors[-1](f.r), groups, here, instruction)
        b = of_b.read(f, groups, known_b)
        if in_registers:
            whole = np.stack([f.full(p(f.r)) for p in a_parts])
            a = np.stack([from_registers(whole, row, group, a_kind) for row, group in groups])
        else:
            known_a = _uniform(f, descriptors[0](f.r), groups, here, instruction)
            a = of_a.read(f, groups, known_a)
        if sparse is not None and metadata is not None:
            a = _with_zeros(f, sparse, a, f.full(metadata(f.r)), groups)
        if f.races is not None:
            for i, (row, group) in enumerate(groups):
                warp = group * 4 + int(here[row, group * 4 : group * 4 + 4].argmax())
                reader = warp, int(products.committed[row, warp]) + 1
                of_b.report(f, f.races, (row, group), reader, known_b[i], index)
                if not in_registers:
                    of_a.report(f, f.races, (row, group), reader, known_a[i], index)
        old = products.accumulators(slots, _DTYPES[dtype])
        keep = scale if isinstance(scale, bool) else scale(f.r)
        if a_kind in wgmma_fp8.KINDS:
            values = _summed(old, a * np.float32(sign), b, groups, (dtype, a_kind, b_kind), keep)
        else:
            fresh = dealt_product(a, b)
            if sign != 1:
                fresh *= np.float32(sign)
            values = _combined(f, old, fresh, groups, dtype, saturate, keep)
        products.issue(instruction, slots, values, reads)

    return step


def _sparsity(d: Decoding, kind: str) -> Sparsity:
    """Take the selector of a sparse A, whose K is twice what is stored."""
    if len(d.operands) < 5:
        d.wrong("wgmma.mma_async.sp has metadata and a sparsity selector behind the operand B")
    size = TYPES[kind][0]
    return Sparsity.of(d, 4, 2 * K_BYTES // size, 8 * size, ordered=False)


def _with_zeros(
    f: Batch, sparse: Sparsity, stored: ndarray, metadata: ndarray,
    groups: list[tuple[int, int]],
) -> ndarray:
    """Return a sparse A, (groups, 64, K), of its stored half and each lane's metadata."""
    warps = np.array([row * f.warps + 4 * group + w for row, group in groups for w in range(4)])
    lanes = np.stack([metadata[row, group * GROUP : (group + 1) * GROUP] for row, group in groups])
    whole = sparse.whole(f, stored.reshape(len(warps), ROWS, -1), lanes.view(np.uint32), warps)
    return whole.reshape(len(groups), 4 * ROWS, -1)


_DTYPES = {"f16": np.dtype("u4"), "f32": np.dtype("f4"), "s32": np.dtype("i4")}


def _warpgroups(here: ndarray) -> list[tuple[int, int]]:
    """List (row, warpgroup) of the groups with an active warp."""
    found = np.argwhere(by_warpgroup(here).any(axis=2)).tolist()
    return [(row, group) for row, group in found]


def _in_step(f: Batch, descriptors: list[Reader]) -> list[Mask | None]:
    """Part the active warps so that those of one warpgroup have the same descriptors.

    Warps of a warpgroup need not run together: one may be ahead by turns of a loop.
    """
    bits = [read(f.r) for read in descriptors]
    if all(each.shape[1] == 1 for each in bits):
        return [f.active]
    firsts = np.stack([f.full(each)[:, ::WARP] for each in bits], axis=-1)
    here = f.active_warps
    padded, each = by_warpgroup(here), by_warpgroup(firsts)
    first = np.take_along_axis(each, padded.argmax(axis=2)[..., None, None], axis=2)
    if ((each == first).all(axis=-1) | ~padded).all():
        return [f.active]
    left = f.active_warps.copy()
    parts = []
    while left.any():
        chosen = np.zeros_like(left)
        for row, group in _warpgroups(left):
            warps = 4 * group + np.flatnonzero(left[row, 4 * group : 4 * group + 4])
            same = (firsts[row, warps] == firsts[row, warps[0]]).all(axis=-1)
            chosen[row, warps[same]] = True
        parts.append(chosen)
        left &= ~chosen
    if len(parts) == 1:
        return [f.active]
    active = f.active_lanes
    return [Mask(spread(chosen, f.threads) & active) for chosen in parts]


def _uniform(
    f: Batch, bits: ndarray, groups: list[tuple[int, int]], here: ndarray,
    instruction: Instruction,
) -> list[int]:
    """Return the descriptor of each warpgroup; all of its lanes must have the same."""
    if bits.shape[1] == 1:
        return [int(bits[row if len(bits) > 1 else 0, 0]) for row, _ in groups]
    full = f.full(bits)
    active = spread(here, f.threads)
    rows, first = np.array([
        (row, group * GROUP + WARP * int(here[row, group * 4 : group * 4 + 4].argmax()))
        for row, group in groups
    ]).T
    found = full[rows, first]
    lanes = np.array([group for _, group in groups])[:, None] * GROUP + np.arange(GROUP)
    other = (full[rows[:, None], lanes] != found[:, None]) & active[rows[:, None], lanes]
    if other.any():
        row, group = groups[int(other.any(axis=1).argmax())]
        raise Error(
            f"{f.place(instruction)}: lanes of a warpgroup have different descriptors, block "
            f"{f.geometry.block_name(row)} warps {4 * group} to {4 * group + 3}"
        )
    return found.tolist()


def dealt_product(a: ndarray, b: ndarray) -> ndarray:
    """Multiply (groups, 64, K) by (groups, N, K), transposed, and deal it to the lanes.

    Lane 4 g + t of a warp w holds of row 16 w + 8 half + g, in register 4 block + 2 half + e, the
    column 8 block + 2 t + e. Columns are multiplied with t counting fastest, so that the floats of
    four lanes move as one.

    Returns ndarray of float32, shape (N / 2, groups * 128).
    """
    many, n, k = b.shape
    b = b.reshape(many, n // 8, 4, 2, k).swapaxes(2, 3).reshape(many, n, k)
    return _dealt(np.matmul(a, b.swapaxes(1, 2)))


def _dealt(product: ndarray) -> ndarray:
    """Deal matrices, (groups, 64, N), of such columns to the lanes."""
    many, _, n = product.shape
    # (group, warp, half, g, block, e) of four t -> (block, half, e, group, warp, g)
    parts = product.view(np.complex128).reshape(many, 4, 2, 8, n // 8, 2)
    parts = np.ascontiguousarray(parts.transpose(4, 2, 5, 0, 1, 3))
    return parts.view(np.float32).reshape(n // 2, many * GROUP)


def _gathered(values: ndarray) -> ndarray:
    """Undo `_dealt`: registers of lanes, (N / 2, groups, 128), to matrices, (groups, 64, N)."""
    n, many = 2 * len(values), values.shape[1]
    # (block, half, e, group, warp, g) of four t -> (group, warp, half, g, block, e)
    parts = np.ascontiguousarray(values).view(np.complex128).reshape(n // 8, 2, 2, many, 4, 8)
    parts = np.ascontiguousarray(parts.transpose(3, 4, 1, 5, 0, 2))
    return parts.view(np.float32).reshape(many, 64, n)


def _summed(
    old: ndarray, a: ndarray, b: ndarray, groups: list[tuple[int, int]],
    kinds: tuple[str, str, str], keep: Keep,
) -> ndarray:
    """Return the accumulators with products of 8-bit floats added, as `wgmma_fp8` says."""
    many, n, k = b.shape
    narrow = kinds[0] == "f16"
    lanes = [slice(group * GROUP, group * GROUP + GROUP) for _, group in groups]
    before = np.stack([old[:, row, part] for (row, _), part in zip(groups, lanes, strict=True)],
                      axis=1)
    if narrow:
        before = np.moveaxis(before[..., None].view(np.float16), -1, 1).astype(np.float32)
        before = before.reshape(n // 2, many, GROUP)
    live = [_live(keep, row, part) for (row, _), part in zip(groups, lanes, strict=True)]
    if keep is not True:
        rows = np.stack([np.broadcast_to(np.asarray(one), GROUP) for one in live])
        before = np.where(rows, before, np.float32(0))
    b = b.reshape(many, n // 8, 4, 2, k).swapaxes(2, 3).reshape(many, n, k)
    found = wgmma_fp8.sums(a, b, _gathered(before), kinds[1:], narrow)
    dealt = _dealt(found).reshape(n // 2, many, GROUP)
    if narrow:
        halves = np.moveaxis(dealt.reshape(n // 4, 2, many, GROUP), 1, -1).astype(np.float16)
        dealt = np.ascontiguousarray(halves).view(np.uint32)[..., 0]
    values = old.copy()
    for i, ((row, _), part) in enumerate(zip(groups, lanes, strict=True)):
        values[:, row, part] = dealt[:, i]
    return values


def _combined(
    f: Batch, old: ndarray, fresh: ndarray, groups: list[tuple[int, int]],
    dtype: str, saturate: bool, keep: Keep,
) -> ndarray:
    """Add the products to the accumulators, where scale-d says so."""
    first, last = groups[0][1], groups[-1][1] + 1
    per_row = last - first
    if groups == [(row, group) for row in range(f.blocks) for group in range(first, last)]:
        # The same warpgroups of every block take part.
        lanes = slice(first * GROUP, last * GROUP)
        fresh = fresh.reshape(len(fresh), f.blocks, per_row * GROUP)
        part = _added(old[..., lanes], fresh, dtype, saturate, _live(keep, None, lanes))
        if part.shape == old.shape:
            return part
        values = old.copy()
        values[..., lanes] = part
        return values
    values, fresh = old.copy(), fresh.reshape(len(fresh), len(groups), GROUP)
    for i, (row, group) in enumerate(groups):
        lanes = slice(group * GROUP, group * GROUP + GROUP)
        live = _live(keep, row, lanes)
        values[:, row, lanes] = _added(old[:, row, lanes], fresh[:, i], dtype, saturate, live)
    return values


def _live(keep: Keep, row: int | None, lanes: slice) -> Keep:
    """Take what concerns some lanes of a row, or of all rows."""
    if isinstance(keep, bool):
        return keep
    if keep.size == 1:
        return bool(keep[0, 0])
    rows = keep if row is None else keep[row if len(keep) > 1 else 0]
    return rows[..., lanes] if rows.shape[-1] > 1 else rows


def _added(
    old: ndarray, fresh: ndarray, dtype: str, saturate: bool, keep: Keep
) -> ndarray:
    """Return old + fresh in the registers' format; fresh alone where keep is false."""
    if dtype == "f32":
        return old + fresh if keep is True else np.where(keep, old, np.float32(0)) + fresh
    if dtype == "s32":
        total = np.where(keep, old, 0).astype(np.int64) + fresh.astype(np.int64)
        if saturate:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    halves = np.ascontiguousarray(old).reshape(*old.shape, 1).view(np.float16)
    pairs = np.moveaxis(fresh.reshape(-1, 2, *fresh.shape[1:]), 1, -1)
    live = True if keep is True else np.asarray(keep)[..., None]
    total = np.where(live, halves, np.float16(0)).astype(np.float32) + pairs
    return np.ascontiguousarray(total.astype(np.float16)).view(np.uint32)[..., 0]
