"""ldmatrix and stmatrix: 8 x 8 matrices of 16-bit elements between shared memory and registers.

Lane 8m + r gives the address of row r of matrix m, 16 bytes. Of matrix m, lane l holds row l / 4,
elements 2 (l % 4) and the next, in its m-th register; .trans holds the transpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from ..core.access_pattern import AccessPattern
from ..core.addressing import address_operand, segment_of, space_of
from ..core.batch import Batch, Run
from ..core.decode import Decoding, opcode
from ..core.errors import OutOfBounds
from ..core.machine import WARP
from ..core.masks import Mask
from ..core.registers import UNSIGNED
from ..core.segment import Segment
from ..core.syntax import MemoryAccess
from .fragments import gather, scatter, whole_warps

ROW = 16  # bytes of one row
NUMBERS = {"x1": 1, "x2": 2, "x4": 4}


@dataclass(slots=True, eq=False)
class MatrixRows:
    """The rows that the lanes of an access name: their pattern, and where they lie in memory."""

    source: AccessPattern | None
    pattern: AccessPattern
    segment: Segment
    index: ndarray


def first_lanes(f: Batch, count: int) -> Mask | None:
    """Return the active lanes among the first `count` of each warp; None if that is all lanes."""
    if count == WARP:
        return f.active
    few = f.full(np.arange(f.threads)[None, :] % WARP < count)
    return Mask(few & f.active_lanes)


def rows_of(
    f: Batch, addresses: ndarray, number: int, access: MemoryAccess,
    source: AccessPattern | None = None,
) -> MatrixRows:
    """Find the rows of `number` matrices a warp; (number, blocks * warps, 8) as the index."""
    if number == 4 and source is not None:
        pattern = source
    else:
        pattern = AccessPattern(addresses, first_lanes(f, 8 * number), f)
    segment = segment_of(f, pattern, access)
    if segment is None or segment.space != "shared":  # a generic address may be anywhere
        raise OutOfBounds(
            f"{f.place(access.instruction)}: the rows must lie in the block's shared memory"
        )
    start = (pattern.low + access.offset - segment.base) // ROW
    key, known = ("matrices", number, id(segment.rows)), pattern.shape.index
    if key not in known:
        index = f.full(pattern.index(ROW, segment.rows))
        parts = gather(f, [index], np.dtype(np.intp)).reshape(-1, 4, 8)[:, :number]
        known[key] = np.ascontiguousarray(parts.swapaxes(0, 1))
    return MatrixRows(source, pattern, segment, known[key] + start)


def transposed(words: ndarray) -> ndarray:
    """Transpose matrices that lie in registers, each of shape (..., 8, 4) in words of 32 bits."""
    halves = np.ascontiguousarray(words).view(np.uint16)
    return np.ascontiguousarray(halves.swapaxes(-1, -2)).view(np.uint32)


def read_rows(f: Batch, rows: MatrixRows, number: int, transpose: bool) -> list[ndarray]:
    """Load `number` matrices of each warp: one register of all lanes a matrix."""
    words = rows.segment.view(UNSIGNED[4], 4).take(rows.index, axis=0)
    if transpose:
        words = transposed(words)
    return scatter(f, words.reshape(number, -1))


def report_rows(
    f: Batch, access: MemoryAccess, rows: MatrixRows, values: list[ndarray] | None = None
) -> None:
    """Report rows to the trace and to the race detector, each as its lane's 16 bytes."""
    segment = rows.segment
    if f.trace is not None:
        f.trace.access(f, access, rows.pattern, segment.space)
    if f.races is not None:
        outer, f.active = f.active, rows.pattern.active
        f.races.access(f, access, rows.pattern, segment, values)
        f.active = outer


def _decode(d: Decoding, memory: int, registers: int) -> tuple[int, int, MemoryAccess]:
    """Check the modifiers; return how many matrices, the slot of the address, and the access."""
    d.only(".sync.aligned.m8n8", *NUMBERS, ".trans.shared.shared::cta").needs("b16")
    d.count(2)
    if not d.has("m8n8") or not d.has(*NUMBERS) or not d.has("sync"):
        d.unsupported(f"{d.parts[0]}.sync.aligned.m8n8.{{x1,x2,x4}}{{.trans}}.shared.b16")
    number = NUMBERS[d.one_of(NUMBERS)]
    d.vector(registers, number, f"{{}} registers for {number} matrices")
    space = space_of(d)
    base, offset = address_operand(d, memory)
    return number, base, MemoryAccess(d.index, d.instruction, d.parts[0], space, offset, ROW)


@opcode("ldmatrix")
def load_matrix(d: Decoding) -> Run:
    """ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p]"""
    number, base, access = _decode(d, 1, 0)
    put = d.write_all(0, "b32")
    transpose = d.has("trans")
    # On sm_75 the addresses of all lanes must be valid, also of those whose rows are not read.
    strict = number < 4 and d.registers.program.target.startswith("sm_7")

    def step(f: Batch) -> None:
        whole_warps(f, d.instruction)
        source = f.pattern(f.r[base])
        rows = f.resolved[d.index]
        if rows is None or rows.source is not source:
            if strict:
                segment_of(f, source, access)
            rows = rows_of(f, f.r[base], number, access, source)
            f.memory.check_valid(f, access, rows.pattern, rows.segment)
            f.resolved[d.index] = rows
        put(f.r, read_rows(f, rows, number, transpose))
        if f.observed:
            report_rows(f, access, rows)

    return step


@opcode("stmatrix")
def store_matrix(d: Decoding) -> Run:
    """stmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 [p], r"""
    number, base, access = _decode(d, 0, 1)
    read = d.read_all(1, "b32")
    transpose = d.has("trans")

    def step(f: Batch) -> None:
        whole_warps(f, d.instruction)
        source = f.pattern(f.r[base])
        rows = f.resolved[d.index]
        if rows is None or rows.source is not source:
            rows = rows_of(f, f.r[base], number, access, source)
            f.resolved[d.index] = rows
        words = gather(f, read(f.r), UNSIGNED[4]).reshape(number, -1, 8, 4)
        if transpose:
            words = transposed(words)
        values = by_lane(f, words)
        if f.observed:
            report_rows(f, access, rows, values)
        f.memory.write(rows.segment, rows.pattern, access.offset, values)

    return step


@opcode("movmatrix")
def transpose_matrix(d: Decoding) -> Run:
    """movmatrix.sync.aligned.m8n8.trans.b16 d, a: the transpose of a matrix that a warp holds"""
    put, a = d.only(".sync.aligned.m8n8.trans").needs("b16").accessors("b32", "b32")

    def step(f: Batch) -> None:
        whole_warps(f, d.instruction)
        words = gather(f, [a(f.r)], UNSIGNED[4]).reshape(-1, 8, 4)
        put(f.r, scatter(f, transposed(words).reshape(1, -1))[0])

    return step


def by_lane(f: Batch, words: ndarray) -> list[ndarray]:
    """Give each lane the row that it addresses: four words of (number, warps, 8, 4)."""
    number, warps = words.shape[:2]
    rows = np.zeros((4, warps, 4, 8), np.uint32)
    rows[:, :, :number] = words.transpose(3, 1, 0, 2)
    return scatter(f, rows.reshape(4, -1))
