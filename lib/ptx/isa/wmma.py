"""wmma: matrices of a warp loaded, multiplied and stored as opaque fragments.

PTX leaves open which lane holds which element. The layout here is the one that ptxas chooses, that
of mma.sync: A in tiles of 16 rows, B in tiles of 8 columns; m8n32k16 is computed as its transpose,
and where PTX has more registers than a fragment of f16 needs, the rest repeat the first ones.

A load or store is done, and counted, as the accesses that ptxas makes of it (seen in the SASS for
sm_75, sm_80 and sm_90a, alike but for the width of LDSM):

* 16-bit A and B, and 8-bit ones along k, from `.shared`: ldmatrix, x2 up to sm_75 and x4 later;
  from other spaces one 32-bit load for each register. Against the grain of memory the same
  accesses follow, and the registers are transposed.
* 32-bit accumulators along their rows: one 64-bit access for two registers; f16: one of 32 bits.
* All else: one access for each element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern
from ..core.addressing import SPACES, address_operand, by_segment, report_access, space_of
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode
from ..core.errors import Error, Misaligned
from ..core.machine import WARP
from ..core.masks import Mask, by_warp
from ..core.registers import UNSIGNED, unstacked
from ..core.segment import Segment
from ..core.syntax import SIZES, MemoryAccess
from .fragments import (
    ACCUMULATORS,
    ELEMENT_BITS,
    Fragment,
    accumulator,
    gather,
    left,
    right,
    scatter,
    whole_warps,
)
from .ldmatrix import MatrixRows, read_rows, report_rows, rows_of, transposed
from .mma import MatrixMultiply, accumulator_kinds, shape_of

FLOAT_SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
SHAPES = {
    "f16": FLOAT_SHAPES, "bf16": FLOAT_SHAPES, "s8": FLOAT_SHAPES, "u8": FLOAT_SHAPES,
    "tf32": ((16, 16, 8),), "f64": ((8, 8, 4),),
}
F16_REGISTERS = 8  # of A or B in f16, for every shape


def fragment_of(use: str, shape: tuple[int, int, int], kind: str) -> Fragment:
    """Return how a warp holds A, B (as its transpose) or C (transposed for m8n32k16)."""
    m, n, k = shape
    turned = m < n
    if use in ("c", "d"):
        rows, columns = (n, m) if turned else (m, n)
        return accumulator(rows, columns, 2 if kind == "f16" else 1)
    packed = max(1, 32 // ELEMENT_BITS[kind])
    if use == "a":
        return right(m, k, packed) if turned else left(m, k, packed)
    return left(n, k, packed) if turned else right(n, k, packed)


def repeats(use: str, kind: str, fragment: Fragment) -> int:
    """Return how often PTX's registers repeat the fragment."""
    return F16_REGISTERS // fragment.registers if kind == "f16" and use in "ab" else 1


@opcode("wmma.mma")
def wmma_multiply(d: Decoding) -> Run:
    """wmma.mma.sync.aligned.alayout.blayout.shape.dtype{.atype.btype}.ctype d, a, b, c"""
    m, n, k = shape = shape_of(d)
    d.only(".mma.sync.aligned.row.col.satfinite.rn", f"m{m}n{n}k{k}").count(4)
    if len(d.types) not in (2, 4):
        d.wrong("wmma.mma needs the types of D and C, and those of A and B unless they are f16")
    kind = d.types[1] if len(d.types) == 4 else "f16"
    if shape not in SHAPES.get(kind, ()):
        _no_shape(d)
    before, after = accumulator_kinds(d, kind, d.types)
    a, b = (fragment_of(use, shape, kind) for use in "ab")
    times = repeats("a", kind, a), repeats("b", kind, b)
    fragments = (a, b, fragment_of("c", shape, before), fragment_of("d", shape, after))
    kinds = (kind, kind, before, after)
    return MatrixMultiply(d, fragments, kinds, times, turned=m < n)


def _no_shape(d: Decoding) -> None:
    d.unsupported("the shapes are " + "; ".join(
        f"{kind}: {' '.join(f'm{m}n{n}k{k}' for m, n, k in shapes)}"
        for kind, shapes in SHAPES.items()
    ))


@dataclass(frozen=True)
class Part:
    """One access that a load or store consists of."""

    registers: tuple[int, ...]  # what it fills or stores
    # "lines": ldmatrix; "block": 4 bytes a lane of 8 lines of 16 bytes; "direct": as `rows` and
    # `columns` say.
    form: str
    # rows, columns: ndarray of int, shape (32,), the element that each lane's access begins with.
    rows: ndarray
    columns: ndarray
    nbytes: int  # bytes a lane
    extra: ndarray  # ndarray of int, shape (32,), bytes behind that element
    element: int = 0  # which of a register's elements a narrow access belongs to


def parts_of(fragment: Fragment, nbytes: int, natural: bool, matrix: int) -> list[Part]:
    """Cut a fragment into the accesses that ptxas makes.

    `nbytes`: of one element. `natural`: whether neighbours in a register are neighbours in memory.
    `matrix`: how many registers one ldmatrix fills; 0 if there is none.
    """
    rows, columns = fragment.positions
    lane, none = np.arange(WARP), np.zeros(WARP, np.intp)
    if nbytes == 2 or (nbytes == 1 and natural):
        first = [(int(rows[r, 0, 0]), int(columns[r, 0, 0])) for r in range(fragment.registers)]
        found = []
        step = matrix or 1
        for start in range(0, fragment.registers, step):
            some = tuple(range(start, min(start + step, fragment.registers)))
            if matrix:
                which, line, behind = np.minimum(lane // 8, len(some) - 1), lane % 8, none
            else:
                which, line, behind = none, lane // 4, lane % 4 * 4
            row, column = (np.array([first[r][i] for r in some])[which] for i in (0, 1))
            row, column = (row + line, column) if natural else (row, column + line)
            form, width = ("lines", 16) if matrix else ("block", 4)
            found.append(Part(some, form, row, column, width, behind))
        return found
    if natural and "J" in fragment.order:
        return [
            Part((r, r + 1), "direct", rows[r, :, 0], columns[r, :, 0], 2 * nbytes, none)
            for r in range(0, fragment.registers, 2)
        ]
    return [
        Part((r,), "direct", rows[r, :, j], columns[r, :, j], nbytes, none, j)
        for r in range(fragment.registers)
        for j in range(fragment.packed)
    ]

# Where a part lies in memory: rows where an ldmatrix loads it.
Placed = tuple[Segment, AccessPattern, MatrixRows | None]


class _Move:
    """What wmma.load and wmma.store have in common: where the parts lie."""

    def __init__(self, d: Decoding, use: str, memory: int, registers: int) -> None:
        m, n, k = shape = shape_of(d)
        d.only(
            ".load.store.a.b.c.d.sync.aligned.row.col.shared::cta",
            f"m{m}n{n}k{k}", *SPACES,
        )
        d.count(2, 3)
        if len(d.types) != 1 or use not in "abcd" or not d.has("row", "col"):
            d.wrong("one type, a, b, c or d, and row or col are needed")
        kind = d.type
        # Of accumulators, the types of A and B that have such.
        factors = [a for a in SHAPES if kind in ACCUMULATORS[a]] if use in "cd" else [kind]
        if not any(shape in SHAPES.get(a, ()) for a in factors):
            _no_shape(d)
        self.index, self.instruction = d.index, d.instruction
        self.place, self.space = d.place, space_of(d)
        self.fragment = fragment_of(use, shape, kind)
        self.nbytes = SIZES[kind]
        along_row = d.has("row")
        turned = use in "cd" and m < n
        self.natural = (along_row != turned) if use != "b" else not along_row
        default = {"a": (k, m), "b": (n, k)}.get(use, (n, m))[0 if along_row else 1]
        self.slot, self.offset = address_operand(d, memory)
        if len(d.operands) == 3:
            self.stride = d.read(2, "u32")
        else:
            fixed = np.full((1, 1), default, np.uint32)
            self.stride = lambda r: fixed
        self.repeats = repeats(use, kind, self.fragment)
        self.word = word = kind if kind in ("f32", "f64") else "b32"
        many = self.fragment.registers * self.repeats
        self.operands = d.vector(registers, many, f"{many} registers are needed")
        old = d.registers.program.machine.startswith("sm_7")
        matrix = (2 if old else 4) if self.space == "shared" and use in "ab" else 0
        self.parts = parts_of(self.fragment, self.nbytes, self.natural, matrix)
        # Their addresses have the offset added already.
        self.accesses = [
            MemoryAccess(d.index, d.instruction, "ldmatrix" if part.form == "lines" else d.parts[1],
                         self.space, 0, part.nbytes, number)
            for number, part in enumerate(self.parts)
        ]
        self.first_byte = MemoryAccess(
            d.index, d.instruction, d.parts[1], self.space, self.offset, 1
        )
        self.alignment = min(32, many * SIZES[word])

    def places(self, f: Batch) -> list[tuple[Mask | None, list[Placed]]]:
        """Return, for each array that warps access, its lanes and the parts' places in it."""
        base, stride = f.r[self.slot], self.stride(f.r)
        known = f.resolved[self.index]
        if known is not None and known[0] is base and known[2] is f.active:
            if known[1] is stride or np.array_equal(known[1], stride):
                return known[3]
        self._check_same(f, base, stride)
        addresses = [self._addresses(f, base, stride, part) for part in self.parts]
        patterns = [AccessPattern(each, f.active, f) for each in addresses]
        self._check_aligned(f, base, stride, patterns)
        first = min(p.low for p in patterns)
        end = max(p.high + part.nbytes for p, part in zip(patterns, self.parts, strict=True))
        segment = f.memory.locate(self.space, first, end)
        outer = f.active
        if segment is not None:
            found = [(outer, self._in(f, segment, patterns))]
        else:
            for pattern, access in zip(patterns, self.accesses, strict=True):
                f.memory.check(f, access, pattern, None)
            found = []
            whole = AccessPattern(base, outer, f)
            for segment, lanes in by_segment(f, whole, self.first_byte):
                f.active = lanes
                patterns = [AccessPattern(each, lanes, f) for each in addresses]
                for pattern, part in zip(patterns, self.parts, strict=True):
                    inside = f.memory.locate(self.space, pattern.low, pattern.high + part.nbytes)
                    if inside is not segment:
                        raise Error(f"{self.place}: a matrix lies in several arrays")
                found.append((lanes, self._in(f, segment, patterns)))
            f.active = outer
        f.resolved[self.index] = (base, stride, outer, found)
        return found

    def _check_same(self, f: Batch, base: ndarray, stride: ndarray) -> None:
        """Refuse addresses that differ within a warp."""
        active = by_warp(f.active_lanes, False)
        for value, name in ((base, "address"), (stride, "stride")):
            if value.shape[1] > 1:
                rows = by_warp(f.full(value))
                if ((rows != rows[..., :1]) & active).any():
                    raise Error(f"{self.place}: the {name} must be the same in all lanes of a warp")

    def _check_aligned(
        self, f: Batch, base: ndarray, stride: ndarray, patterns: list[AccessPattern]
    ) -> None:
        """Refuse accesses that are not aligned, and report what PTX leaves undefined.

        PTX wants rows (columns) to begin at multiples of a lane's share of the matrix in bytes, the
        CUDA guide the matrix at 32 bytes and its rows 16 apart. What is less, but enough for the
        accesses that ptxas makes, a GPU loads as if nothing were wrong.
        """
        whole = AccessPattern(base, f.active, f)
        unit = min(16, self.alignment) if self.nbytes != 1 or not self.natural else 16
        said = ""
        if (whole.low + self.offset | whole.bits) & (self.alignment - 1):
            said = (f"a matrix must begin at a multiple of {self.alignment} bytes: "
                    f"{whole.low + self.offset:#x}")
        elif ((stride.astype(np.int64) * self.nbytes) & (unit - 1)).any():
            said = f"the stride must be a multiple of {unit} bytes"
        if not said:
            return
        for pattern, part in zip(patterns, self.parts, strict=True):
            if (pattern.low | pattern.bits) & (part.nbytes - 1):
                raise Misaligned(f"{self.place}: {said}")
        f.hazard("alignment", f"{self.place}: {said}", self.instruction, f.active_lanes)

    def _addresses(
        self, f: Batch, base: ndarray, stride: ndarray, part: Part
    ) -> ndarray:
        repeat = np.arange(f.threads) % WARP
        row, column = part.rows[repeat], part.columns[repeat]
        if not self.natural:
            row, column = column, row
        away = (row * stride.astype(np.int64) + column) * self.nbytes + part.extra[repeat]
        whole = base.view(f"i{base.dtype.itemsize}").astype(np.int64) + self.offset
        return (whole + away).view(np.uint64)

    def _in(self, f: Batch, segment: Segment, patterns: list[AccessPattern]) -> list[Placed]:
        """Place the parts in a segment: rows for ldmatrix, patterns for the others."""
        found: list[Placed] = []
        for part, access, pattern in zip(self.parts, self.accesses, patterns, strict=True):
            rows = None
            if part.form == "lines":
                rows = rows_of(f, pattern.register, len(part.registers), access)
                pattern = rows.pattern
            found.append((segment, pattern, rows))
        return found


@opcode("wmma.load")
class Load(_Move):
    """wmma.load.{a,b,c}.sync.aligned.layout.shape{.space}.type r, [p]{, stride}"""

    def __init__(self, d: Decoding) -> None:
        super().__init__(d, d.parts[2], 1, 0)
        count = self.fragment.registers
        self.puts = [
            [d.write(self.operands[r + i * count], self.word) for i in range(self.repeats)]
            for r in range(count)
        ]
        self.writes = tuple(d.writes)

    def __call__(self, f: Batch) -> None:
        whole_warps(f, self.instruction)
        found = self.places(f)
        if len(found) == 1:
            self._load(f, found[0][1])
            return
        for lanes, places in found:
            f.of_lanes(lanes, partial(self._load, places=places), self.writes)

    def _load(self, f: Batch, places: list[Placed]) -> None:
        narrow: dict[int, ndarray] = {}
        for part, access, place in zip(self.parts, self.accesses, places, strict=True):
            segment, pattern, rows = place
            f.memory.check_valid(f, access, pattern, segment)
            if rows is not None:
                values = read_rows(f, rows, len(part.registers), not self.natural)
                if f.observed:
                    report_rows(f, access, rows)
            else:
                values = self._read(f, part, segment, pattern, narrow)
                if f.observed:
                    report_access(f, access, pattern, segment)
            for register, value in zip(part.registers, values, strict=False):
                for put in self.puts[register]:
                    put(f.r, value)

    def _read(
        self, f: Batch, part: Part, segment: Segment, pattern: AccessPattern,
        narrow: dict[int, ndarray],
    ) -> list[ndarray]:
        count = len(part.registers)
        dtype = UNSIGNED[part.nbytes // count]
        value = f.memory.read(segment, pattern, 0, dtype, count)
        if count == 2:
            return unstacked(value)
        if part.form == "block":
            return [value if self.natural else _turned(f, value)]
        if self.fragment.packed > 1:  # an element of a register: put it to the others
            register = part.registers[0]
            shifted = value.astype(np.uint32) << 8 * self.nbytes * part.element
            narrow[register] = narrow.get(register, 0) | shifted
            return [narrow[register]]
        return [value]


@opcode("wmma.store")
class Store(_Move):
    """wmma.store.d.sync.aligned.layout.shape{.space}.type [p], r{, stride}"""

    def __init__(self, d: Decoding) -> None:
        super().__init__(d, "d", 0, 1)
        self.reads = [d.read(operand, self.word) for operand in self.operands]

    def __call__(self, f: Batch) -> None:
        whole_warps(f, self.instruction)
        outer = f.active
        for lanes, places in self.places(f):
            f.active = lanes
            for part, access, place in zip(self.parts, self.accesses, places, strict=True):
                segment, pattern, _ = place
                if not segment.writeable:
                    raise Error(f"{self.place}: {segment.name} may not be written")
                values = [self.reads[register](f.r) for register in part.registers]
                if part.form == "block" and not self.natural:
                    values = [_turned(f, values[0])]
                if f.observed:
                    report_access(f, access, pattern, segment, values)
                f.memory.write(segment, pattern, 0, values)
        f.active = outer


def _turned(f: Batch, register: ndarray) -> ndarray:
    """Transpose the 8 x 8 matrix that each warp holds in a register (MOVM)."""
    words = gather(f, [f.full(register)], UNSIGNED[4])
    return scatter(f, transposed(words.reshape(1, -1, 8, 4)).reshape(1, -1))[0]
