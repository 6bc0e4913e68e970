"""mma.sync: the tensor cores' own instruction, for all warps of the batch at once.

The model of the arithmetic: the products and their sum with C are formed in float64, and rounded
once to the type of the accumulator. Products of f16, bf16 and tf32 are exact in it. The ISA leaves
order and rounding of the sums open, and hardware truncates some of them; so a tensor core's result
may differ from this one in the last bits, and both lie within the error of an FP32 (or FP16) sum.
Whole numbers are exact; they wrap, or clamp under .satfinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from ..core.access_pattern import make_room
from ..core.batch import Batch, Compute, Fusible, Run
from ..core.decode import Decoding, opcode
from ..core.machine import WARP
from ..core.registers import DTYPES
from ..core.rounding import to_float32
from ..core.syntax import SIZES
from .fragments import (
    ACCUMULATORS,
    ELEMENT_BITS,
    FOUR,
    GROUP,
    MIXED,
    ROWS,
    Fragment,
    Sparsity,
    accumulator,
    assembled,
    gather,
    left,
    right,
    scatter,
    whole_warps,
)

# -- Several mma behind each other, of which none needs another's result, as one step. ------------
#
# A warp that owns a tile of C multiplies each of its fragments of A by each of its fragments of B.
# One by one, each product would be a call of BLAS a warp on matrices so small that calling costs
# more than multiplying; so they are one product of all rows by all columns. It is the same
# arithmetic: products and sums in float64, rounded once to the type of the accumulator.
#
# Rows and columns stand in an order in which four lanes that are neighbours (t = 0 to 3 of a
# fragment) hold neighbours in memory, so that a matrix is dealt out to registers 16 bytes at a
# time.


PRODUCTS = 8  # matrices of accumulators that are remembered


@dataclass(frozen=True)
class Block:
    """Fragments of A that are multiplied by the same fragments of B."""

    # left, right: places of the instructions whose left factors, and whose right ones, are
    # multiplied.
    left: tuple[int, ...]
    right: tuple[int, ...]
    steps: tuple[int, ...]  # which instruction is of which left and right factor, row by row


def blocks_of(pairs: list[tuple]) -> list[Block]:
    """Part products into blocks, each of all its left factors by all its right ones.

    `pairs`: what each instruction multiplies, hashable; equal means the same registers.
    """
    rows: dict = {}  # left factor -> right factor -> instruction
    again = []
    for i, (a, b) in enumerate(pairs):
        if b in rows.setdefault(a, {}):
            again.append(Block((i,), (i,), (i,)))
        else:
            rows[a][b] = i
    alike: dict = {}
    for row in rows.values():
        alike.setdefault(frozenset(row), []).append(row)
    found = []
    for group in alike.values():
        columns = list(group[0])
        found.append(
            Block(
                tuple(next(iter(row.values())) for row in group),
                tuple(group[0][column] for column in columns),
                tuple(row[column] for row in group for column in columns),
            )
        )
    return found + again


def _operand(fragment: Fragment, words: ndarray, many: int, dealt: bool) -> ndarray:
    """Put `many` fragments of each warp below each other: (warps, rows, words of a row).

    Rows stand as in the matrices; `dealt`: those of eight neighbours in the order 0 2 4 6 1 3 5 7.
    """
    rows, halves, along = (fragment.size(axis) for axis in "RHC")
    parts = words.view(FOUR).reshape(many, rows, along, halves, -1, GROUP)
    parts = parts.transpose(4, 0, 1, 3, 5, 2)
    if dealt:
        shape = parts.shape
        parts = parts.reshape(*shape[:4], 4, 2, along).swapaxes(4, 5)
    return np.ascontiguousarray(parts).view(words.dtype).reshape(-1, many * rows * halves * GROUP,
                                                                 4 * along)


class ProductTile:
    """The step of several instructions of one kind on fragments of 32-bit accumulators.

    `steps`: of one kind, none of which reads what another one writes.
    """

    def __init__(self, steps: list) -> None:
        self.steps = steps
        self.blocks = blocks_of([step.factors for step in steps])

    def __call__(self, f: Batch) -> None:
        """Execute them for the active warps."""
        one = self.steps[0]
        whole_warps(f, one.instruction)
        r = list(f.r)  # what they read is read before any of them writes
        for block in self.blocks:
            left, right = (self._factor(f, r, block, side) for side in (0, 1))
            total = np.matmul(left, right.swapaxes(1, 2))
            tiles = len(block.left), len(block.right)
            steps = [self.steps[i] for i in block.steps]
            before = [value for step in steps for value in step.operands[2](r)]
            np.add(total, self._addends(f, before, tiles), out=total)
            matrix = finished(total, one.kinds[3], one.clamp)
            values = scatter(f, one.fragments[3].dealt(matrix, tiles))
            puts = [put for step in steps for put in step.puts]
            for put, value in zip(puts, values, strict=True):
                put(f.r, value)
            make_room(f.products, PRODUCTS)
            f.products[id(values[0])] = values, tiles, matrix

    def _addends(
        self, f: Batch, registers: list[ndarray], tiles: tuple[int, int]
    ) -> ndarray:
        """Return C as matrices: those that an earlier tile left, if these are its registers."""
        values, shape, matrix = f.products.pop(id(registers[0]), ((), None, None))
        if shape == tiles and len(values) == len(registers):
            if all(a is b for a, b in zip(values, registers, strict=True)):
                return matrix
        one = self.steps[0]
        return one.fragments[3].gathered(gather(f, registers, one.types[2]), tiles)

    def _factor(self, f: Batch, r: list, block: Block, side: int) -> ndarray:
        """Return the factors of all warps, (warps, rows or columns, k), in float64."""
        one, places = self.steps[0], (block.left, block.right)[side]
        which = one.order[side]
        registers = [value for i in places for value in self.steps[i].operands[which](r)]
        words = gather(f, registers, one.types[0])
        return WIDEN[one.kinds[which]](
            _operand(one.fragments[which], words, len(places), side == 1))


U32, F64 = np.dtype("u4"), np.dtype("f8")
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


def _fields(bits: int, signed: bool) -> Compute:
    """Make the function for elements of less than a byte."""

    def widen(words: ndarray) -> ndarray:
        shifts = np.arange(0, 32, bits, dtype=np.uint32)
        parts = words[..., None] >> shifts & (1 << bits) - 1
        values = parts.reshape(*words.shape[:-1], -1).astype(F64)
        return np.where(values >= 1 << bits - 1, values - (1 << bits), values) if signed else values

    return widen


WIDEN: dict[str, Compute] = {
    kind: lambda words, kind=kind: to_float32(words, kind).astype(F64)
    for kind in ("f16", "bf16", "tf32", "s8", "u8", "e4m3", "e5m2")
} | {"f64": lambda words: words, "s4": _fields(4, True), "u4": _fields(4, False),
     "b1": _fields(1, False)}


def shape_of(d: Decoding) -> tuple[int, int, int]:
    """Read m, n and k from a modifier like m16n8k16."""
    for part in d.parts[1:]:
        head, _, k = part.partition("k")
        m, _, n = head.partition("n")
        if m[:1] == "m" and m[1:].isdigit() and n.isdigit() and k.isdigit():
            return int(m[1:]), int(n), int(k)
    d.unsupported("the shape of the matrices (such as .m16n8k16) is missing")


def finished(total: ndarray, kind: str, clamp: bool) -> ndarray:
    """Round the float64 sums to the type of the accumulator, as its bits."""
    if kind != "s32":
        result = total.astype(DTYPES[kind])
        if clamp:
            largest = np.finfo(result.dtype).max
            result = np.where(np.isnan(result), 0, np.clip(result, -largest, largest))
        return result
    if clamp:
        total = np.clip(total, -(2.0**31), 2.0**31 - 1)
    return total.astype(np.int64).astype(np.int32)


class MatrixMultiply(Fusible):
    """D = A B + C on fragments: the step of mma and of wmma.mma.

    Several behind each other, on accumulators of 32 bits, are one step: see `ProductTile`.

    `d`: the instruction; operands 0 to 3 are D, A, B and C. `fragments`: of A, of B (transposed),
    of C and of D. `kinds`: types of A, B, C and D. `copies`: how many registers of A and B there
    are for each one that counts: wmma repeats f16. `turned`: whether the transposes are multiplied:
    then B is the left factor.
    """

    def __init__(
        self, d: Decoding, fragments: tuple[Fragment, Fragment, Fragment, Fragment],
        kinds: tuple[str, str, str, str], copies: tuple[int, int] = (1, 1), turned: bool = False,
    ) -> None:
        self.instruction, self.fragments, self.kinds = d.instruction, fragments, kinds
        self.clamp, self.turned, self.differ = d.has("satfinite"), turned, d.has("xor")
        words = [_word(kind) for kind in kinds]
        counts = [f.registers for f in fragments[:3]]
        items = [_registers(d, i + 1, count * times)[:count]
                 for i, (count, times) in enumerate(zip(counts, (*copies, 1), strict=True))]
        self.operands = [*map(d.read_all, items, words)]
        self.puts = [d.write(each, words[3]) for each in _registers(d, 0, fragments[3].registers)]
        self.types = [DTYPES[word] for word in words]
        slots = [tuple(d.slot(item, word) for item in part)
                 for part, word in zip(items, words, strict=False)]
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

    def left_factor(self, f: Batch, registers: list[ndarray]) -> ndarray:
        """A of all warps, (warps, m, k), in float64, from its registers."""
        return assembled(f, registers, self.types[0], self.fragments[0], WIDEN[self.kinds[0]])

    def __call__(self, f: Batch) -> None:
        """Execute it for the active warps."""
        whole_warps(f, self.instruction)
        (_, fb, fc, fd), types = self.fragments, self.types
        of_a, of_b, of_c = (read(f.r) for read in self.operands)
        a = self.left_factor(f, of_a)
        b = assembled(f, of_b, types[1], fb, WIDEN[self.kinds[1]])
        one, other = (b, a) if self.turned else (a, b)
        product = np.matmul(one, other.swapaxes(1, 2))
        if self.differ:  # bits that are not the same
            product = a.sum(axis=2)[:, :, None] + b.sum(axis=2)[:, None, :] - 2 * product
        before = fc.assemble(gather(f, of_c, types[2]), DTYPES[self.kinds[2]])
        values = fd.split(finished(product + before, self.kinds[3], self.clamp), types[3])
        for put, value in zip(self.puts, scatter(f, values), strict=True):
            put(f.r, value)


def _registers(d: Decoding, operand: int, many: int) -> tuple:
    """The registers of an operand, which must be so many."""
    return d.vector(operand, many, f"{'DABC'[operand]} needs {many} registers, not {{}}")


def _word(kind: str) -> str:
    """The register that holds an element: a word, but for f64, f32 and s32."""
    return kind if kind in ("f64", "f32", "s32") else "b32"


def accumulator_kinds(d: Decoding, kind: str, types: list[str]) -> tuple[str, str]:
    """Check the types of D and C, given first and last, against the type of A."""
    allowed = ACCUMULATORS[kind]
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
    kind, other = types[1:3]
    if kind != other and {kind, other} not in MIXED:
        d.unsupported("A and B of one type, s8 with u8, s4 with u4, or e4m3 with e5m2")
    if d.has("satfinite") and kind not in ("s8", "u8", "s4", "u4"):
        d.wrong(".satfinite is for whole numbers")
    return types


@opcode("mma")
def mma(d: Decoding) -> Run:
    """mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c"""
    m, n, k = shape = shape_of(d)
    d.only(".sync.aligned.row.col.satfinite.rn.e4m3.e5m2", *TINY,
           ".xor.and.popc", f"m{m}n{n}k{k}")
    d.count(4)
    if not d.has("sync"):
        d.unsupported("mma.sync.aligned")
    types = types_of(d, "mma", shape, SHAPES)
    kind, other = types[1:3]
    if (kind == "b1") != d.has("xor", "and") or (kind == "b1") != d.has("popc"):
        d.wrong("b1, and b1 alone, has .xor.popc or .and.popc")
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
        self.instruction, self.kinds = d.instruction, (before, after)
        many = {"f16": 4, "f32": 8}
        self.reads = [
            d.read_all(_registers(d, i, count), word) for i, count, word in
            ((1, 2, "b32"), (2, 2, "b32"), (3, many[before], _word(before)))]
        self.put = d.write_all(_registers(d, 0, many[after]), _word(after))
        self.a, self.b = _quad_operand(layouts[0] == "row"), _quad_operand(layouts[1] == "col")
        self.c, self.d = _quad_accumulator(before), _quad_accumulator(after)

    def __call__(self, f: Batch) -> None:
        """Execute it for the active warps."""
        whole_warps(f, self.instruction)
        before, after = self.kinds
        of_a, of_b, of_c = (read(f.r) for read in self.reads)
        half = np.dtype("f2")
        a, b = _pick(f, of_a, half, self.a, (8, 4)), _pick(f, of_b, half, self.b, (8, 4))
        c = _pick(f, of_c, DTYPES[before], self.c, (8, 8))
        total = np.matmul(a.astype(F64), b.astype(F64).swapaxes(2, 3)) + c
        total = total.astype(DTYPES[after]).reshape(len(total), -1)
        elements = np.empty((len(total), WARP * 8), total.dtype)
        elements[:, self.d] = total
        words = elements.reshape(-1, 8).view(U32 if after == "f16" else np.dtype("f4"))
        self.put(f.r, scatter(f, np.ascontiguousarray(words.T)))


def _pick(
    f: Batch, registers: list[ndarray], dtype: np.dtype, where: ndarray,
    shape: tuple[int, ...],
) -> ndarray:
    """Make (warps, 4 quad pairs, rows, columns) of registers by a table of places."""
    words = gather(f, registers, registers[0].dtype if dtype.itemsize == 4 else U32)
    lanes = np.ascontiguousarray(words.T).view(dtype).reshape(len(words[0]) // WARP, -1)
    return lanes[:, where].reshape(-1, 4, *shape)


def _quad_operand(along_k: bool) -> ndarray:
    """Place of each element (quad pair, row, k) among lane * 4 + element, flat."""
    quad, row, k = np.meshgrid(np.arange(4), np.arange(8), np.arange(4), indexing="ij")
    if along_k:  # a lane holds four neighbours in k of one row
        lane, element = 4 * quad + row % 4 + 16 * (row // 4), k
    else:  # a lane holds four neighbouring rows of one k
        lane, element = 4 * quad + k + 16 * (row // 4), row % 4
    return (lane * 4 + element).reshape(-1)


def _quad_accumulator(kind: str) -> ndarray:
    """Place of each element (quad pair, row, column) among lane * 8 + element, flat."""
    quad, row, column = np.meshgrid(np.arange(4), np.arange(8), np.arange(8), indexing="ij")
    if kind == "f16":
        lane, element = 4 * quad + row % 4 + 16 * (row // 4), column
    else:
        lane = 4 * quad + (row & 1) + (column & 2) + 16 * (row // 4)
        element = (column & 1) + (row & 2) + (column & 4)
    return (lane * 8 + element).reshape(-1)



# mma.sp.sync: the product of a structured sparse A, of which half of the elements are stored.
#
# `fragments.Sparsity` says which half, and in which lanes that is told.


SPARSE_SHAPES = {
    (16, 8, 8): ("tf32",),
    (16, 8, 16): ("f16", "bf16", "tf32"),
    (16, 8, 32): ("f16", "bf16", "s8", "u8"),
    (16, 8, 64): ("s8", "u8", "e4m3", "e5m2", "s4", "u4"),
    (16, 8, 128): ("s4", "u4"),
}
ORDERED = "sp::ordered_metadata"


@opcode("mma.sp", f"mma.{ORDERED}")
def sparse(d: Decoding) -> Run:
    """mma.sp{::ordered_metadata}.sync.aligned.shape.row.col{.satfinite}.types d, a, b, c, e, f"""
    m, n, k = shape = shape_of(d)
    d.only("sp", ORDERED, ".sync.aligned.row.col.satfinite.e4m3.e5m2.s4.u4",
           f"m{m}n{n}k{k}").count(6)
    if not d.has("sync") or not d.has("aligned") or not d.has("row") or not d.has("col"):
        d.unsupported("mma.sp.sync.aligned.shape.row.col")
    types = types_of(d, "mma.sp", shape, SPARSE_SHAPES)
    kind, other = types[1:3]
    return SparseMultiply(d, k, (kind, other, *accumulator_kinds(d, kind, types)))


class SparseMultiply(MatrixMultiply):
    """D = A B + C with A in its packed form.

    `k`: columns of A, of which half are stored. `kinds`: types of A, B, C and D.
    """

    def __init__(self, d: Decoding, k: int, kinds: tuple[str, str, str, str]) -> None:
        bits = ELEMENT_BITS[kinds[0]]
        packed = 32 // bits
        # A word of elements of 4 bits is an element of its own, until it is taken apart.
        words, held = (packed, 1) if kinds[0] in TINY else (1, packed)
        fragments = (
            left(ROWS, k // 2 // words, held), right(8, k // words, held),
            accumulator(ROWS, 8, 2 if kinds[2] == "f16" else 1),
            accumulator(ROWS, 8, 2 if kinds[3] == "f16" else 1),
        )
        super().__init__(d, fragments, kinds)
        self.kind = object()  # joined with no other
        self.metadata = d.read(4, "b32")
        self.reads = (*self.reads, d.slot(4, "b32"))
        self.sparsity = Sparsity.of(d, 5, k, bits, d.has(ORDERED))

    def left_factor(self, f: Batch, registers: list[ndarray]) -> ndarray:
        """Return A with its zeros, (warps, 16, k), in float64."""
        words = self.fragments[0].words(gather(f, registers, self.types[0]))
        metadata = gather(f, [self.metadata(f.r)], np.dtype("u4"))
        return self.sparsity.whole(f, WIDEN[self.kinds[0]](words), metadata)
