"""mma.sync: the tensor cores' own instruction, for all warps of the batch at once.

The model of the arithmetic: the products and their sum with C are formed in float64, and rounded
once to the type of the accumulator. Products of f16, bf16 and tf32 are exact in it. The ISA leaves
order and rounding of the sums open, and hardware truncates some of them; so a tensor core's result
may differ from this one in the last bits, and both lie within the error of an FP32 (or FP16) sum.
Whole numbers are exact; they wrap, or clamp under .satfinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.alternate_formats import to_float32
from ..core.decode import Decoding, opcode
from ..core.machine import WARP
from ..core.registers import DTYPES
from ..core.rounding import from_bf16
from ..core.step import Fusible
from ..core.syntax import SIZES
from .fragments import accumulator, assembled, gather, left, right, scatter, whole_warps
from .mma_tile import ProductTile

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Compute, Registers, Run
    from .fragments import Fragment

U32, F64 = np.dtype("u4"), np.dtype("f8")
# Bits of one element of A and B.
ELEMENT_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "s8": 8,
    "u8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "f64": 64,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
TINY = ("s4", "u4", "b1")
SHAPES = {
    (8, 8, 4): ("f16", "f64"),
    (16, 8, 4): ("tf32", "f64"),
    (16, 8, 8): ("f16", "bf16", "tf32", "f64"),
    (16, 8, 16): ("f16", "bf16", "s8", "u8", "e4m3", "e5m2", "f64"),
    (16, 8, 32): ("s8", "u8", "e4m3", "e5m2", "s4", "u4"),
    (8, 8, 16): ("s8", "u8"),
    (8, 8, 32): ("s4", "u4"),
    (16, 8, 64): ("s4", "u4"),
    (8, 8, 128): ("b1",),
    (16, 8, 128): ("b1",),
    (16, 8, 256): ("b1",),
}


# The elements of A and B in float64, from matrices of the registers that hold them.


def _f16(words: np.ndarray) -> np.ndarray:
    return words.view(np.dtype("f2")).astype(F64)


def _bf16(words: np.ndarray) -> np.ndarray:
    return from_bf16(words.view(np.dtype("u2"))).astype(F64)


def _tf32(words: np.ndarray) -> np.ndarray:
    # The low 13 bits of a register do not belong to the number.
    return (words & np.uint32(0xFFFFE000)).view(np.dtype("f4")).astype(F64)


def _s8(words: np.ndarray) -> np.ndarray:
    return words.view(np.dtype("i1")).astype(F64)


def _u8(words: np.ndarray) -> np.ndarray:
    return words.view(np.dtype("u1")).astype(F64)


def _e4m3(words: np.ndarray) -> np.ndarray:
    return to_float32(words.view(np.dtype("u1")), "e4m3").astype(F64)


def _e5m2(words: np.ndarray) -> np.ndarray:
    return to_float32(words.view(np.dtype("u1")), "e5m2").astype(F64)


def _fields(bits: int, signed: bool) -> Compute:
    """Make the function for elements of less than a byte."""

    def widen(words: np.ndarray) -> np.ndarray:
        shifts = np.arange(0, 32, bits, dtype=np.uint32)
        parts = (words[..., None] >> shifts) & np.uint32((1 << bits) - 1)
        values = parts.reshape(*words.shape[:-1], -1).astype(F64)
        return np.where(values >= 1 << bits - 1, values - (1 << bits), values) if signed else values

    return widen


def _f64(words: np.ndarray) -> np.ndarray:
    return words


WIDEN = {
    "f16": _f16, "bf16": _bf16, "tf32": _tf32, "s8": _s8, "u8": _u8, "e4m3": _e4m3, "e5m2": _e5m2,
    "f64": _f64, "s4": _fields(4, True), "u4": _fields(4, False), "b1": _fields(1, False),
}
# Types that A and B may have beside each other.
MIXED = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})


def shape_of(d: Decoding) -> tuple[int, int, int]:
    """Read m, n and k from a modifier like m16n8k16."""
    for part in d.parts[1:]:
        head, _, k = part.partition("k")
        m, _, n = head.partition("n")
        if m[:1] == "m" and m[1:].isdigit() and n.isdigit() and k.isdigit():
            return int(m[1:]), int(n), int(k)
    d.unsupported("the shape of the matrices (such as .m16n8k16) is missing")


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply (warps, m, k) by (warps, n, k), transposed: (warps, m, n)."""
    return np.matmul(a, b.swapaxes(1, 2))


def finished(total: np.ndarray, kind: str, clamp: bool) -> np.ndarray:
    """Round the float64 sums to the type of the accumulator, as its bits."""
    if kind != "s32":
        result = total.astype(DTYPES[kind])
        if clamp:
            largest = np.finfo(result.dtype).max
            result = np.where(
                np.isnan(result), result.dtype.type(0), np.clip(result, -largest, largest))
        return result
    if clamp:
        total = np.clip(total, -(2.0**31), 2.0**31 - 1)
    return total.astype(np.int64).astype(np.int32)


class MatrixMultiply(Fusible):
    """D = A B + C on fragments: the step of mma and of wmma.mma.

    Several behind each other, on accumulators of 32 bits, are one step: see `mma_tile`.

    `d`: the instruction; operands 0 to 3 are D, A, B and C. `fragments`: of A, of B (transposed),
    of C and of D. `kinds`: types of A, B, C and D. `copies`: how many registers of A and B there
    are for each one that counts: wmma repeats f16. `turned`: whether the transposes are multiplied:
    then B is the left factor.
    """

    def __init__(
        self, d: Decoding, fragments: tuple[Fragment, Fragment, Fragment, Fragment],
        kinds: tuple[str, str, str, str], copies: tuple[int, int] = (1, 1), turned: bool = False,
    ) -> None:
        self.place, self.fragments, self.kinds = d.place, fragments, kinds
        self.clamp, self.turned, self.differ = d.has("satfinite"), turned, d.has("xor")
        words = [_word(kind) for kind in kinds]
        counts = [f.registers for f in fragments[:3]]
        self.operands = []
        for i, (count, times) in enumerate(zip(counts, (*copies, 1), strict=True)):
            items = d.vector(i + 1)
            if len(items) != count * times:
                d.wrong(f"operand {i + 1} needs {count * times} registers, not {len(items)}")
            self.operands.append([d.read(item, words[i]) for item in items[:count]])
        targets = d.vector(0)
        if len(targets) != fragments[3].registers:
            d.wrong(f"D needs {fragments[3].registers} registers, not {len(targets)}")
        self.puts = [d.write(target, words[3]) for target in targets]
        self.types = [DTYPES[word] for word in words]
        slots = [
            tuple(d.slot(item, words[i]) for item in d.vector(i + 1)[:count])
            for i, count in enumerate(counts)
        ]
        self.writes, self.reads = tuple(d.writes), tuple(s for each in slots for s in each)
        self.order = (1, 0) if turned else (0, 1)  # which operand is the left factor
        self.factors = tuple(slots[i] for i in self.order)
        joins = words[2] == words[3] and words[3] in ("f32", "s32") and not self.differ
        what = (fragments, kinds, copies, turned, self.clamp)
        self.kind = what if joins else object()

    @staticmethod
    def fused(steps: list[MatrixMultiply]) -> ProductTile:
        """Make one step of several, none of which reads what another one writes."""
        return ProductTile(steps)

    def left_factor(self, f: Batch, registers: list[np.ndarray]) -> np.ndarray:
        """A of all warps, (warps, m, k), in float64, from its registers."""
        return assembled(f, registers, self.types[0], self.fragments[0], WIDEN[self.kinds[0]])

    def factor_words(self, r: Registers, side: int) -> list[np.ndarray]:
        """The registers of the left (0) or right (1) factor."""
        return [read(r) for read in self.operands[self.order[side]]]

    def widened(self, words: np.ndarray, side: int) -> np.ndarray:
        """The elements of a left or right factor in float64."""
        return WIDEN[self.kinds[self.order[side]]](words)

    def addends(self, r: Registers) -> list[np.ndarray]:
        """The registers of C."""
        return [read(r) for read in self.operands[2]]

    def rounded(self, total: np.ndarray) -> np.ndarray:
        """Sums in float64 as elements of D."""
        return finished(total, self.kinds[3], self.clamp)

    def __call__(self, f: Batch) -> None:
        """Execute it for the active warps."""
        whole_warps(f, self.place)
        r, (_, fb, fc, fd), types = f.r, self.fragments, self.types
        of_a, of_b, of_c = ([read(r) for read in reads] for reads in self.operands)
        a = self.left_factor(f, of_a)
        b = assembled(f, of_b, types[1], fb, WIDEN[self.kinds[1]])
        product = multiply(b, a) if self.turned else multiply(a, b)
        if self.differ:  # bits that are not the same
            product = a.sum(axis=2)[:, :, None] + b.sum(axis=2)[:, None, :] - 2 * product
        if fc is fd and fc.packed == 1:
            # C and D are held alike: add register by register, which saves one transposition.
            total = fd.split(product, F64)
            total += gather(f, of_c, DTYPES[self.kinds[2]])
            values = finished(total, self.kinds[3], self.clamp)
        else:
            before = fc.assemble(gather(f, of_c, types[2]), DTYPES[self.kinds[2]])
            values = fd.split(finished(product + before, self.kinds[3], self.clamp), types[3])
        for put, value in zip(self.puts, scatter(f, values), strict=True):
            put(r, value)


def _word(kind: str) -> str:
    """The register that holds an element: a word, but for f64, f32 and s32."""
    return kind if kind in ("f64", "f32", "s32") else "b32"


def accumulator_kinds(d: Decoding, kind: str, types: list[str]) -> tuple[str, str]:
    """Check the types of D and C, given first and last, against the type of A."""
    allowed = {
        "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "s8": ("s32",), "u8": ("s32",),
        "s4": ("s32",), "u4": ("s32",), "b1": ("s32",),
        "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"), "f64": ("f64",),
    }[kind]
    if types[0] not in allowed or types[-1] not in allowed:
        d.unsupported(f"with .{kind}, C and D are {' or '.join('.' + a for a in allowed)}")
    return types[-1], types[0]


def types_of(
    d: Decoding, name: str, shape: tuple[int, int, int],
    shapes: Mapping[tuple[int, int, int], Sequence[str]],
) -> list[str]:
    """The types of D, A, B and C, where an instruction has that shape for A's."""
    types = [part for part in d.parts[1:] if part in SIZES or part in ("e4m3", "e5m2", *TINY)]
    if len(types) != 4:
        d.wrong(f"{name} needs the types of D, A, B and C")
    if types[1] not in shapes.get(shape, ()):
        d.unsupported("the shapes are " + ", ".join(
            f"m{m}n{n}k{k} ({' '.join(kinds)})" for (m, n, k), kinds in shapes.items()
        ))
    return types


@opcode("mma")
def mma(d: Decoding) -> Run:
    """mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c"""
    m, n, k = shape = shape_of(d)
    d.only("sync", "aligned", "row", "col", "satfinite", "rn", "e4m3", "e5m2", *TINY,
           "xor", "and", "popc", f"m{m}n{n}k{k}")
    d.count(4)
    if not d.has("sync"):
        d.unsupported("mma.sync.aligned")
    types = types_of(d, "mma", shape, SHAPES)
    kind, other = types[1:3]
    if kind != other and {kind, other} not in MIXED:
        d.unsupported("A and B of one type, s8 with u8, or e4m3 with e5m2")
    if (kind == "b1") != d.has("xor", "and") or (kind == "b1") != d.has("popc"):
        d.wrong("b1, and b1 alone, has .xor.popc or .and.popc")
    if d.has("satfinite") and kind not in ("s8", "u8", "s4", "u4"):
        d.wrong(".satfinite is for whole numbers")
    before, after = accumulator_kinds(d, kind, types)
    if kind == "f16" and shape == (8, 8, 4):
        return QuadPairs(d, before, after)
    if d.parts.index("row") + 1 != d.parts.index("col"):
        d.unsupported("mma.row.col")
    packed = 1 if kind == "f64" else 32 // ELEMENT_BITS[kind]
    if kind in TINY:  # a word is an element of its own, until it is taken apart
        k, packed = k // packed, 1
    fragments = (
        left(m, k, packed), right(n, k, packed),
        accumulator(m, n, 2 if before == "f16" else 1),
        accumulator(m, n, 2 if after == "f16" else 1),
    )
    return MatrixMultiply(d, fragments, (kind, other, before, after))


class QuadPairs:
    """mma.m8n8k4 of f16: four products at once, one for lanes 4q to 4q+3 and 16+4q to 19+4q."""

    def __init__(self, d: Decoding, before: str, after: str) -> None:
        layouts = [part for part in d.parts if part in ("row", "col")]
        if len(layouts) != 2:
            d.wrong("the layouts of A and B are missing")
        self.place, self.kinds = d.place, (before, after)
        counts = [2, 2, 4 if before == "f16" else 8]
        words = ["b32", "b32", _c_word(before)]
        self.reads = []
        for i, (count, word) in enumerate(zip(counts, words, strict=True)):
            items = d.vector(i + 1)
            if len(items) != count:
                d.wrong(f"operand {i + 1} needs {count} registers, not {len(items)}")
            self.reads.append([d.read(item, word) for item in items])
        targets = d.vector(0)
        if len(targets) != (4 if after == "f16" else 8):
            d.wrong(f"D of .{after} has {len(targets)} registers")
        self.puts = [d.write(target, _c_word(after)) for target in targets]
        self.a, self.b = _quad_operand(layouts[0] == "row"), _quad_operand(layouts[1] == "col")
        self.c, self.d = _quad_accumulator(before), _quad_accumulator(after)

    def __call__(self, f: Batch) -> None:
        """Execute it for the active warps."""
        whole_warps(f, self.place)
        half = np.dtype("f2")
        a = _pick(f, [read(f.r) for read in self.reads[0]], half, self.a, (8, 4))
        b = _pick(f, [read(f.r) for read in self.reads[1]], half, self.b, (8, 4))
        before, after = self.kinds
        c = _pick(f, [read(f.r) for read in self.reads[2]], DTYPES[before], self.c, (8, 8))
        total = np.matmul(a.astype(F64), b.astype(F64).swapaxes(2, 3)) + c
        total = total.astype(DTYPES[after]).reshape(len(total), -1)
        elements = np.empty((len(total), WARP * 8), total.dtype)
        elements[:, self.d] = total
        words = elements.reshape(-1, 8).view(U32 if after == "f16" else np.dtype("f4"))
        for put, value in zip(self.puts, scatter(f, np.ascontiguousarray(words.T)), strict=True):
            put(f.r, value)


def _c_word(kind: str) -> str:
    return "f32" if kind == "f32" else "b32"


def _pick(
    f: Batch, registers: list[np.ndarray], dtype: np.dtype, where: np.ndarray,
    shape: tuple[int, ...],
) -> np.ndarray:
    """Make (warps, 4 quad pairs, rows, columns) of registers by a table of places."""
    words = gather(f, registers, registers[0].dtype if dtype.itemsize == 4 else U32)
    lanes = np.ascontiguousarray(words.T).view(dtype).reshape(len(words[0]) // WARP, -1)
    return lanes[:, where].reshape(-1, 4, *shape)


def _quad_operand(along_k: bool) -> np.ndarray:
    """Place of each element (quad pair, row, k) among lane * 4 + element, flat."""
    quad, row, k = np.meshgrid(np.arange(4), np.arange(8), np.arange(4), indexing="ij")
    if along_k:  # a lane holds four neighbours in k of one row
        lane, element = 4 * quad + row % 4 + 16 * (row // 4), k
    else:  # a lane holds four neighbouring rows of one k
        lane, element = 4 * quad + k + 16 * (row // 4), row % 4
    return (lane * 4 + element).reshape(-1)


def _quad_accumulator(kind: str) -> np.ndarray:
    """Place of each element (quad pair, row, column) among lane * 8 + element, flat."""
    quad, row, column = np.meshgrid(np.arange(4), np.arange(8), np.arange(8), indexing="ij")
    if kind == "f16":
        lane, element = 4 * quad + row % 4 + 16 * (row // 4), column
    else:
        lane = 4 * quad + (row & 1) + (column & 2) + 16 * (row // 4)
        element = (column & 1) + (row & 2) + (column & 4)
    return (lane * 8 + element).reshape(-1)
