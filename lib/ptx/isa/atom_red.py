"""Atomics and reductions: atom, red, on one element, on pairs of halves and on vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from ..core.addressing import (
    HINTS,
    SPACES,
    address_operand,
    by_segment,
    check_writeable,
    report_access,
    segment_of,
    space_of,
)
from ..core.batch import Batch, Compute, Reader, Run
from ..core.decode import Decoding, opcode
from ..core.masks import Mask
from ..core.registers import DTYPES
from ..core.rounding import from_bf16, odd_f32, to_bf16
from ..core.segment import Segment
from ..core.syntax import SIZES, MemoryAccess

TYPES = (
    "b16", "u16", "f16", "bf16", "b32", "u32", "s32", "f32", "f16x2", "bf16x2", "b64", "u64", "s64",
    "f64",
)
VECTORS = ("v2", "v4", "v8")


def _compare_and_swap(old: ndarray, b: ndarray, c: ndarray) -> ndarray:
    return np.where(old == b, c, old)


ATOMIC: dict[str, Compute] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1).astype(old.dtype),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1).astype(old.dtype),
    "cas": _compare_and_swap,
}


def in_bf16(compute: Compute) -> Compute:
    """Let an operation on numbers work on the bits of bfloat16, and round once."""

    def on_bits(old: ndarray, b: ndarray) -> ndarray:
        exact = compute(*(from_bf16(bits).astype(np.float64) for bits in (old, b)))
        return to_bf16(odd_f32(exact))

    return on_bits


@opcode("atom", "red")
def atomic(d: Decoding) -> Run:
    """atom{.space}.op{.vec}.type d, [a], b{, c}; red is the same without d."""
    space, returns = space_of(d), d.parts[0] == "atom"
    operation = d.pick(ATOMIC)
    if operation is None:
        d.unsupported(f"the operations are {' '.join(ATOMIC)}")
    for part in d.parts[1:]:
        name = part.partition("::")[0]
        known = name in SPACES or part in HINTS | set(ATOMIC) | set(SIZES) | {"noftz"}
        if not known and part not in VECTORS:
            d.unsupported(f"no modifier .{part}")
    if d.type not in TYPES:
        d.unsupported(f"atomics on {' '.join(TYPES)}")
    floating = d.type in ("f16", "bf16", "f16x2", "bf16x2")
    if floating and operation not in ("add", "min", "max"):
        d.unsupported(f".{d.type} has add, min and max")
    hinted = d.has("L2::cache_hint")
    d.count((3 if operation == "cas" else 2) + returns + hinted)
    many = int((d.pick(VECTORS) or "v1")[1])
    packed = 2 if d.type.endswith("x2") else 1
    kind = d.type.removesuffix("x2")
    if many > 1 and (kind not in ("f32", "f16", "bf16") or space not in ("global", "generic")):
        d.unsupported("vectors of f32 and of halves, in global memory")
    register = "b32" if packed == 2 else kind
    dtype, size = DTYPES[kind], SIZES[kind]
    given = [d.vector(operand) for operand in d.operands[1 + returns : len(d.operands) - hinted]]
    targets = d.vector(0) if returns else ()
    if any(len(items) != many for items in (*given, *([targets] if returns else ()))):
        d.wrong(f"{many} registers are needed in braces")
    puts = [d.write(target, register) for target in targets]
    reads = [[d.read(item, register) for item in items] for items in given]
    base, offset = address_operand(d, 1 if returns else 0, space)
    compute = in_bf16(ATOMIC[operation]) if kind == "bf16" else ATOMIC[operation]
    instruction = d.instruction
    access = MemoryAccess(d.index, instruction, "atomic", space, offset, size * many * packed)

    def step(f: Batch) -> None:
        # One lane after another where they meet at an address, as the hardware would.
        shape = f.shape
        pattern = f.pattern(f.r[base])
        whole = segment_of(f, pattern, access)
        parts: list[tuple[Segment, Mask | None]]
        parts = [*by_segment(f, pattern, access)] if whole is None else [(whole, pattern.active)]
        result = np.zeros((*shape, many * packed), dtype)
        outer = f.active
        for segment, active in parts:
            f.active = active
            part = f.pattern(f.r[base])
            check_writeable(f, segment, instruction)
            if segment.tracked:
                f.memory.check_valid(f, access, part, segment)
            report_access(f, access, part, segment)
            lanes = f.lanes_in(active)
            where = f.full(part.index(size, segment.rows))[lanes]
            view = segment.view(dtype, 1)[(part.low + offset - segment.base) // size :]
            for at in range(many * packed):
                values = [_element(f, each, at, packed, dtype, shape)[lanes] for each in reads]
                result[..., at][lanes] = _serially(view, where + at, values, compute)
        f.active = outer
        for i, put in enumerate(puts):
            if packed == 2:
                pair = np.ascontiguousarray(result[..., 2 * i : 2 * i + 2])
                put(f.r, pair.view(np.uint32)[..., 0])
            else:
                put(f.r, np.ascontiguousarray(result[..., i]))

    return step


def _element(
    f: Batch, reads: Sequence[Reader], at: int, packed: int, dtype: np.dtype,
    shape: tuple[int, ...],
) -> ndarray:
    """Return one element of an operand in all lanes."""
    value = np.broadcast_to(reads[at // packed](f.r), shape)
    if packed == 1:
        return value
    return np.ascontiguousarray(value)[..., None].view(dtype)[..., at % 2]


def _serially(
    view: ndarray, where: ndarray, values: list[ndarray], compute: Compute
) -> ndarray:
    """Apply an atomic for all lanes; lanes with one address go in lane order, in rounds."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    at = np.arange(len(ordered))
    rank = np.empty_like(at)
    rank[order] = at - np.maximum.accumulate(np.where(first, at, 0))
    old = np.empty(len(where), view.dtype)
    for turn in range(int(rank.max(initial=-1)) + 1):
        now = np.flatnonzero(rank == turn)
        old[now] = view[where[now]]
        view[where[now]] = compute(old[now], *(v[now] for v in values))
    return old
