"""wgmma: MMAs of a warpgroup, with operands in shared memory; `wgmma_groups` lands them."""

from __future__ import annotations

import re

import numpy as np

from ..core.alternate_formats import to_float32
from ..core.decode import Decoding, opcode
from ..core.errors import Divergence, Error, OutOfBounds, UninitialisedRead
from ..core.masks import WARP, Mask, any_in_warp, by_warpgroup, spread
from ..core.predication import predicated_end
from ..core.syntax import Immediate, Register, Vector
from ..count.banks import BANKS
from .matrix_descriptor import Descriptor, chunk_addresses
from .wgmma_groups import WgmmaGroups

GROUP = 4 * WARP  # threads of a warpgroup
K_BYTES = 32  # of one row of A, one column of B, in every type
# Type of A and B -> bytes, what the accumulator may be.
TYPES = {
    "f16": (2, ("f16", "f32")), "bf16": (2, ("f32",)), "tf32": (4, ("f32",)),
    "s8": (1, ("s32",)), "u8": (1, ("s32",)), "e4m3": (1, ("f16", "f32")),
    "e5m2": (1, ("f16", "f32")),
}  # fmt: skip


def _operands(f, groups, known, rows: int, major: str, kind: str, instruction) -> np.ndarray:
    """Return an operand of each warpgroup, (groups, rows, K), as float32.

    Parameters
    ----------
    groups : list of (int, int)
        Row and warpgroup.
    known : list of int
        The descriptor of each.
    """
    shared, found = f.memory.shared, None
    of_bits: dict[int, list[int]] = {}
    for i, bits in enumerate(known):
        of_bits.setdefault(bits, []).append(i)
    for bits, which in of_bits.items():
        descriptor = Descriptor.of(bits)
        place = chunk_addresses(descriptor, rows, major) - shared.base
        if int(place.min()) < 0 or int(place.max()) + 16 > shared.nbytes:
            raise OutOfBounds(
                f"{f.place(instruction)}: the operand at {descriptor.start:#x} reaches from byte "
                f"{int(place.min())} to {int(place.max()) + 16} of shared memory, which has "
                f"{shared.nbytes}"
            )
        blocks = list(dict.fromkeys(groups[i][0] for i in which))  # groups of one share B
        index = (place >> 4) + (shared.rows[blocks, 0] >> 4)[:, None, None]
        index = index.astype(np.intp, copy=False)
        if not shared.complete:
            _check_written(f, index, place, descriptor, blocks, instruction)
        raw = shared.view(np.dtype("u8"), 2).take(index, axis=0)
        value = to_float32(raw.view(np.uint8).reshape(len(blocks), len(place), -1), kind)
        if major != "k":
            value = value.swapaxes(1, 2)
        if len(which) > len(blocks):
            number = {row: j for j, row in enumerate(blocks)}
            value = value[[number[groups[i][0]] for i in which]]
        if len(of_bits) == 1:
            return value
        if found is None:
            found = np.empty((len(groups), *value.shape[1:]), np.float32)
        found[which] = value
    return found


def _check_written(f, index, place, descriptor: Descriptor, blocks: list[int], instruction):
    """Raise UninitialisedRead where an operand has shared memory that nobody wrote."""
    valid = f.memory.shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
    bad = (valid != 0x0101010101010101).any(axis=-1)
    if bad.any():
        at = int(bad.any(axis=(1, 2)).argmax())
        raise UninitialisedRead(
            f"{f.place(instruction)}: the operand at {descriptor.start:#x} has shared memory that "
            f"nobody wrote, at {f.memory.shared.base + int(place[bad[at]][0]):#x}, block "
            f"{f.geometry.block_name(blocks[at])}"
        )


# -- instructions -------------------------------------------------------------------------------


@opcode("wgmma")
def wgmma(d: Decoding):
    """wgmma.{fence,commit_group,wait_group,mma_async}.sync.aligned"""
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
        most, following = d.operands[0].bits, d.index + 1

        def wait(f):
            _check_warps(f, instruction)
            f.waiter(WgmmaGroups).wait(instruction, following, most)

        return predicated_end(d, wait)

    def step(f):
        _check_warps(f, instruction)
        products = f.waiter(WgmmaGroups)
        products.fence() if what == "fence" else products.commit()

    return step


def _check_warps(f, instruction):
    """Raise Divergence unless whole warps run an .aligned instruction."""
    if f.threads % GROUP and f.threads % WARP:
        raise Divergence(f"{f.place(instruction)}: needs whole warps, in a block of {f.threads}")
    if f.active is not None and not f.active.whole_warps:
        active = f.active.array
        lacking = spread(any_in_warp(active), f.threads) & ~active
        raise Divergence(
            f"{f.place(instruction)}: only part of a warp runs it; lacking: {f.lane_names(lacking)}"
        )


def _check_groups(f, groups, instruction):
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
    sizes = [re.fullmatch(r"m64n(\d+)k(\d+)", p) for p in d.parts]
    sizes = [m for m in sizes if m]
    if len(kinds) != 3 or len(sizes) != 1:
        d.unsupported(f"wgmma.mma_async.m64nNkK.dtype.atype.btype of {' '.join(TYPES)}")
    dtype, a, b = kinds
    n, k = map(int, sizes[0].groups())
    if a not in TYPES or b not in TYPES or dtype not in TYPES[a][1]:
        d.unsupported(f"wgmma of {' '.join(TYPES)}; not .{dtype}.{a}.{b}")
    same = a == b or {a, b} in ({"s8", "u8"}, {"e4m3", "e5m2"})
    if not same or k * TYPES[a][0] != K_BYTES or not 8 <= n <= 256 or n % 8:
        d.wrong(f"there is no m64n{n}k{k} of .{a} and .{b}")
    if dtype == "s32" and n not in (8, 16, 24) and n % 16:
        d.wrong(f"N = {n}: whole numbers have 8, 16, 24 and multiples of 16")
    return dtype, a, b, n


def _product(d: Decoding):
    """d, a-desc|{a}, b-desc, scale-d{, scale-a, scale-b{, trans-a}{, trans-b}}"""
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
    a_parts = [d.read(item, "b32") for item in d.vector(1)] if in_registers else None
    if in_registers and len(a_parts) != 4:
        d.wrong("A in registers has 4 of them")
    reads = {i.slot for i in d.vector(1) if isinstance(i, Register)} if in_registers else set()
    a_bits = None if in_registers else d.read(1, "b64")
    b_bits, scale = d.read(2, "b64"), None
    given = d.operands[3:]
    keep = given[0] if given else None
    if isinstance(keep, Immediate):
        scale = bool(keep.bits)
    elif keep is not None:
        keep = d.read(keep, "pred")
    flags = [g.bits for g in given[1:]]
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
    # A row of K is 32 bytes in every type.
    wavefronts = K_BYTES * (n + (0 if in_registers else 64)) // (4 * BANKS)

    descriptors = [b_bits] if in_registers else [a_bits, b_bits]

    def step(f):
        _check_warps(f, instruction)
        outer = f.active
        for part in _in_step(f, descriptors):
            f.active = part
            issue(f)
        f.active = outer

    def issue(f):
        products = f.waiter(WgmmaGroups)
        products.check_fence(instruction, (*slots, *reads))
        shape = (f.blocks, f.threads)
        here = f.active_warps
        groups = _warpgroups(here)
        _check_groups(f, groups, instruction)
        if f.trace is not None:
            f.trace.multiplied(index, instruction, 4 * len(groups), wavefronts * len(groups))
        known_b = _uniform(f, b_bits(f.r), groups, here, instruction)
        b = _operands(f, groups, known_b, n, b_major, b_kind, instruction)
        if in_registers:
            whole = np.stack([np.broadcast_to(p(f.r), shape) for p in a_parts])
            a = np.stack([_from_registers(whole, row, group, a_kind) for row, group in groups])
        else:
            known_a = _uniform(f, a_bits(f.r), groups, here, instruction)
            a = _operands(f, groups, known_a, 64, a_major, a_kind, instruction)
        if f.races is not None:
            for i, (row, group) in enumerate(groups):
                pairs = [(known_b[i], n, b_major)]
                if not in_registers:
                    pairs.append((known_a[i], 64, a_major))
                _report_operands(f, products, row, group, here, pairs, index)
        fresh = dealt_product(a, b)
        if sign != 1:
            fresh *= np.float32(sign)
        old = products.accumulators(slots, _DTYPES[dtype])
        values = _combined(f, old, fresh, groups, dtype, saturate,
                           scale if scale is not None or keep is None else keep(f.r))  # fmt: skip
        products.issue(instruction, slots, values, reads)

    return step


_DTYPES = {"f16": np.dtype("u4"), "f32": np.dtype("f4"), "s32": np.dtype("i4")}


def _warpgroups(here: np.ndarray) -> list[tuple[int, int]]:
    """List (row, warpgroup) of the groups with an active warp."""
    return [tuple(g) for g in np.argwhere(by_warpgroup(here).any(axis=2)).tolist()]


def _in_step(f, descriptors) -> list[Mask | None]:
    """Part the active warps so that those of one warpgroup have the same descriptors.

    Warps of a warpgroup need not run together: one may be ahead by turns of a loop.
    """
    bits = [read(f.r) for read in descriptors]
    if all(each.shape[1] == 1 for each in bits):
        return [f.active]
    shape = (f.blocks, f.threads)
    firsts = np.stack([np.broadcast_to(each, shape)[:, ::WARP] for each in bits], axis=-1)
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


def _uniform(f, bits: np.ndarray, groups, here, instruction) -> list[int]:
    """Return the descriptor of each warpgroup; all of its lanes must have the same."""
    if bits.shape[1] == 1:
        return [int(bits[row if len(bits) > 1 else 0, 0]) for row, _ in groups]
    full = np.broadcast_to(bits, (f.blocks, f.threads))
    active = spread(here, f.threads)
    rows, first = np.array([
        (row, group * GROUP + WARP * int(here[row, group * 4 : group * 4 + 4].argmax()))
        for row, group in groups
    ]).T  # fmt: skip
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


def _from_registers(whole: np.ndarray, row: int, group: int, kind: str) -> np.ndarray:
    """Gather A, (64, K): register r of a lane has row lane/4 + 8 (r % 2), byte 16 (r/2) + ..."""
    part = np.zeros((4, GROUP), np.uint32)
    lanes = whole[:, row, group * GROUP : group * GROUP + GROUP]
    part[:, : lanes.shape[1]] = lanes
    # (column half, row half, warp, g, t) -> (warp, row half, g, column half, t)
    parts = part.reshape(2, 2, 4, 8, 4).transpose(2, 1, 3, 0, 4)
    return to_float32(np.ascontiguousarray(parts).reshape(64, 8).view(np.uint8), kind)


def dealt_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply (groups, 64, K) by (groups, N, K), transposed, and deal it to the lanes.

    Lane 4 g + t of a warp w holds of row 16 w + 8 half + g, in register 4 block + 2 half + e, the
    column 8 block + 2 t + e. Columns are multiplied with t counting fastest, so that the floats of
    four lanes move as one.

    Returns
    -------
    ndarray of float32, shape (N / 2, groups * 128)
    """
    many, n, k = b.shape
    b = b.reshape(many, n // 8, 4, 2, k).swapaxes(2, 3).reshape(many, n, k)
    product = np.matmul(a, b.swapaxes(1, 2))
    # (group, warp, half, g, block, e) of four t -> (block, half, e, group, warp, g)
    parts = product.view(np.complex128).reshape(many, 4, 2, 8, n // 8, 2)
    parts = np.ascontiguousarray(parts.transpose(4, 2, 5, 0, 1, 3))
    return parts.view(np.float32).reshape(n // 2, many * GROUP)


def _combined(f, old, fresh, groups, dtype, saturate, keep) -> np.ndarray:
    """Add the products to the accumulators, where scale-d says so."""
    first, last = groups[0][1], groups[-1][1] + 1
    per_row = last - first
    if groups == [(row, group) for row in range(f.blocks) for group in range(first, last)]:
        # The same warpgroups of every block take part.
        lanes = slice(first * GROUP, last * GROUP)
        fresh = fresh.reshape(len(fresh), f.blocks, per_row * GROUP)
        part = _added(old[..., lanes], fresh, dtype, saturate, _kept(keep, slice(None), lanes))
        if part.shape == old.shape:
            return part
        values = old.copy()
        values[..., lanes] = part
        return values
    values, fresh = old.copy(), fresh.reshape(len(fresh), len(groups), GROUP)
    for i, (row, group) in enumerate(groups):
        lanes = slice(group * GROUP, group * GROUP + GROUP)
        kept = _kept(keep, row, lanes)
        values[:, row, lanes] = _added(old[:, row, lanes], fresh[:, i], dtype, saturate, kept)
    return values


def _kept(keep, row, lanes):
    if keep is None or isinstance(keep, bool):
        return keep if keep is not None else True
    if keep.size == 1:
        return bool(keep[0, 0])
    keep = keep[row if len(keep) > 1 or isinstance(row, slice) else 0]
    return keep[..., lanes] if keep.shape[-1] > 1 else keep


def _added(old, fresh, dtype, saturate, keep):
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
    kept = True if keep is True else np.asarray(keep)[..., None]
    total = np.where(kept, halves, np.float16(0)).astype(np.float32) + pairs
    return np.ascontiguousarray(total.astype(np.float16)).view(np.uint32)[..., 0]


def _report_operands(f, products, row, group, here, pairs, index):
    """Tell the race detector which shared memory a product reads."""
    proxy, granule = f.races.proxy, f.races.granule
    warp = group * 4 + int(here[row, group * 4 : group * 4 + 4].argmax())
    base = int(f.memory.shared.rows[row, 0]) - f.memory.shared.base
    time = int(products.committed[row, warp]) + 1
    for bits, rows, major in pairs:
        place = base + np.unique(chunk_addresses(Descriptor.of(bits), rows, major))
        cells = (place[:, None] // granule + np.arange(16 // granule)).ravel()
        proxy.reads(cells, row, warp * 32, proxy.warpgroup(row, warp), time, index)
