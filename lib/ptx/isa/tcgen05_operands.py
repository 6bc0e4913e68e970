"""What tcgen05.mma and cp read of shared memory: where it lies, and its elements.

Descriptors and canonical layouts are those of PTX ISA 9.7.16.3.3 and 9.7.16.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy import ndarray

from ..core.batch import Batch, Issuer
from ..core.constant import read_only
from ..core.errors import Error, UnsupportedInstruction
from ..core.syntax import Instruction
from ..core.tensor_memory import lanes_from
from ..race.clocks import EPOCH
from .matrix_descriptor import (
    ATOMS_OF_32,
    Descriptor,
    cells_of,
    chunk_addresses,
    chunks_in_shared,
    fields_of,
    read_chunks,
)

# Descriptors of tcgen05: what an MMA multiplies, and where its operands lie in shared memory.


# Kind -> types of A and B by their code, of D by its code; with block scales it is f32.
KINDS = {
    "f16": ({0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}),
    "tf32": ({2: "tf32"}, {1: "f32"}),
    "f8f6f4": ({0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}, {0: "f16", 1: "f32"}),
    "i8": ({0: "u8", 1: "s8"}, {2: "s32"}),
}
# Kinds with block scales -> scales of a row, by what the opcode says; "" where it may leave that
# out.
SCALES = {
    "mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
K_BYTES = 32  # of a row of A, a column of B, in all of these kinds
# Swizzle of a tcgen05 descriptor -> that of a wgmma descriptor (PTX ISA table 40).
_MODES = {0: 0, 1: ATOMS_OF_32, 2: 1, 4: 2, 6: 3}
_MAX_SHIFT = (0, 8, 16, 32)  # columns, by bits 30 and 31 of an instruction descriptor


def bytes_of(kind: str) -> int:
    """Return the bytes of an element, those of less than a byte as 1."""
    return {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)


@dataclass(frozen=True)
class MmaDescriptor:
    """What an instruction descriptor says (PTX ISA 9.7.16.4.2), and the opcode with it."""

    kind: str
    types: tuple[str, str, str]  # of A, B and D
    # m, n: of all blocks together.
    m: int
    n: int
    blocks: int  # 1 or 2
    majors: tuple[str, str]  # of A and B, "k" or "mn"
    negates: bool  # whether A or B, not both, are negated
    stationary: bool = False
    saturate: bool = False  # of whole numbers
    max_shift: int = 0  # by how many columns a zero-column mask may shift B; for ``.ws`` alone
    ids: tuple[int, int] = (0, 0)  # first byte of A's and of B's scales
    scale_type: str = ""

    @property
    def packed(self) -> bool:
        """Whether A and B in shared memory have two elements a byte."""
        return self.kind in ("mxf4", "mxf4nvf4")

    @property
    def rows(self) -> int:
        """Rows of A, and of D, that a block has."""
        return self.m // self.blocks

    @property
    def folded(self) -> bool:
        """Whether a block's rows of D lie in all lanes, part of the columns in each part."""
        return self.stationary or self.blocks == 2 and self.rows == 64


@lru_cache(maxsize=256)
def mma_descriptor(
    bits: int, kind: str, stationary: bool = False, blocks: int = 1, scales: int = 0
) -> MmaDescriptor:
    """Take an instruction descriptor's 32 bits apart, of one block's mma or of a pair's.

    `scales`: of a row, if the mma has block scales. Raises Error if it names a type, a shape
    or scales that the kind has not (PTX ISA 9.7.16.2.1, table 39); UnsupportedInstruction if A is
    sparse, and for K = 96.
    """

    field, name = fields_of(bits), f"the instruction descriptor {bits:#010x}"
    packed = kind.startswith("mxf4")
    if field(2, 1):
        raise UnsupportedInstruction(f"{name} says that A is sparse")
    if scales and field(31, 1):
        raise UnsupportedInstruction(f"{name} asks for K = 96, which sm_103a alone has")
    if not scales and (field(6, 1) or field(23, 1) or field(29, 1)):
        raise Error(f"{name} has a reserved bit set (6, 23 or 29)")
    known, results = ({1: "e2m1"}, {}) if packed else KINDS[kind.removeprefix("mx")]
    codes = [("A", field(7, 3), known), ("B", field(10, 2 if packed else 3), known)]
    codes += [("D", field(4, 2), results)] * (not scales)
    for what, code, each in codes:
        if code not in each:
            raise Error(
                f"{name} gives {what} the type {code}; kind::{kind} has "
                f"{', '.join(f'{c} ({of})' for c, of in each.items())}"
            )
    a, b, d, *_ = *(each[code] for _, code, each in codes), "f32"
    if kind == "f16" and (a != b or (d == "f16" and a != "f16")):
        raise Error(f"there is no kind::f16 of {a} and {b} into {d}")
    m, n = field(24, 5) << 4, field(17, 6) << 3
    if stationary:
        right = m in (32, 64, 128) and n in (64, 128, 256)
    else:
        least = 8 * blocks
        right = m in (64 * blocks, 128 * blocks)[scales > 0 and blocks == 1 :]
        step = 32 if (kind, blocks) == ("i8", 2) else least
        right = right and least <= n <= 256 and n % step == 0
        right = right and (kind != "i8" or n <= 32 or n % 16 == 0)
    if not right:
        raise Error(
            f"{name} asks for M = {m}, N = {n}, which kind::{kind}"
            f"{' with .ws' if stationary else ' with .cta_group::2' if blocks == 2 else ''} has not"
        )
    ids, scale_type = (0, 0), ""
    if scales:
        ids, scale_type = (field(29, 2), field(4, 2)), "ue8m0" if field(23, 1) else "ue4m3"
        if scale_type == "ue4m3" and (kind != "mxf4nvf4" or scales != 4):
            raise Error(f"{name} names scales of type UE4M3 (bit 23 is 0), which are those of "
                        "kind::mxf4nvf4 with scale_vec::4X alone")
        if any(each % scales for each in ids):
            raise Error(f"{name} has the scale ids {ids[0]} and {ids[1]}; with {scales} scales of "
                        f"a row they must be multiples of {scales}")
    if kind == "i8" and (field(13, 1) or field(14, 1)):
        raise Error("kind::i8 negates neither A nor B")
    if not scales and kind != "i8" and field(3, 1):
        raise Error("only kind::i8 saturates")
    of_a, of_b = ("mn" if field(bit, 1) else "k" for bit in (15, 16))
    if packed and (of_a, of_b) != ("k", "k"):
        raise Error(f"{name} transposes A or B, which kind::{kind} does not")
    if not scales and of_b == "mn" and kind in ("f8f6f4", "i8") and n % 16:  # table 50
        raise Error(f"B of 8 bits with N = {n}, transposed: N must be a multiple of 16")
    return MmaDescriptor(
        kind, (a, b, d), m, n, blocks, (of_a, of_b), field(13, 1) != field(14, 1), stationary,
        bool(field(3, 1)), _MAX_SHIFT[field(30, 2)] if stationary else 0, ids, scale_type,
    )


def zero_columns(bits: int, says: MmaDescriptor) -> tuple[ndarray, int]:
    """Take a zero-column mask descriptor's 64 bits apart (PTX ISA 9.7.16.4.3, tables 43 and 44).

    The spans are as in the examples there, which have it the other way round than the table: "use
    span" counts the columns of B that are used, "skip span" those that are zero.

    Returns `zero`, ndarray of bool, shape (N,), which columns of B are zero. Returns `shift`, B's
    first column is this one. Raises Error if a reserved bit is set, or B would be shifted by more
    than M and the instruction descriptor allow; UnsupportedInstruction if a part begins beyond its
    first span, of which the ISA says nothing.
    """

    field = fields_of(bits)
    if field(36, 3) or field(62, 2):
        raise Error(f"the zero-column mask {bits:#018x} has a reserved bit set (36 to 38, 62, 63)")
    shift, limit = field(56, 6), min(says.max_shift, 16 if says.m == 32 else 32)
    if shift > limit:
        raise Error(
            f"the zero-column mask {bits:#018x} shifts B by {shift} columns; M = {says.m} and bits "
            f"30 and 31 of the instruction descriptor allow {limit}"
        )
    zero = np.zeros(says.n, bool)
    if not field(39, 1):
        return zero, shift
    parts, used, zeros = 128 // says.m, field(48, 8) + 1, field(40, 8) + 1
    wide = says.n // parts
    for part in range(parts):
        start, begins_zero = field(8 * part, 8), bool(field(32 + part, 1))
        first = zeros if begins_zero else used
        if start >= first:
            raise UnsupportedInstruction(
                f"the zero-column mask {bits:#018x} begins part {part} at {start}, beyond its "
                f"first span of {first}"
            )
        at = (np.arange(wide) + start) % (used + zeros)
        zero[part * wide : part * wide + wide] = (at < first) == begins_zero
    return zero, shift


def operand_descriptor(bits: int) -> Descriptor:
    """Take a shared memory descriptor's 64 bits apart (PTX ISA 9.7.16.4.1, table 40).

    Raises Error if its constant bits are not what they must be; UnsupportedInstruction for an
    absolute leading address.
    """
    field = fields_of(bits)
    mode = field(61, 3)
    if field(46, 3) != 1:
        raise Error(
            f"the shared memory descriptor {bits:#018x} must have 0b001 in its bits 46 to 48"
        )
    if field(53, 8):
        raise Error(f"the shared memory descriptor {bits:#018x} must have 0 in its bits 53 to 60")
    if mode in (3, 5, 7):
        raise Error(f"the shared memory descriptor {bits:#018x} has the swizzling mode {mode}")
    if field(52, 1):
        raise UnsupportedInstruction(
            f"the shared memory descriptor {bits:#018x} asks for an absolute leading address"
        )
    return replace(Descriptor.of(bits), mode=_MODES[mode])


def operand_chunks(
    descriptor: Descriptor, rows: int, major: str, nbytes: int, chunks: int = 2
) -> ndarray:
    """Return where the 16-byte chunks of an operand lie in shared memory.

    The canonical layouts of PTX ISA 9.7.16.3.3, which are those of wgmma, and one more, of 128
    bytes with atoms of 32; the swizzle permutes absolute addresses. That layout is for 32-bit
    elements that run along M or N, which have no other; CUTLASS 4.2's ``mma_sm100_desc.hpp`` gives
    it, and has none of it along K.

    `rows`: of A, or columns of B. `major`: "k": (rows, chunks). "mn": (K, rows / elements of a
    chunk), where K = 32 / nbytes. `nbytes`: of an element. `chunks`: of a row, along K. Returns
    byte addresses. Raises Error if elements of this size have no such layout;
    UnsupportedInstruction for atoms of 32 bytes along K.
    """
    if descriptor.mode == ATOMS_OF_32:
        if major == "k":
            raise UnsupportedInstruction("128-byte swizzling with 32-byte atomicity along K")
        if nbytes != 4:
            raise Error(
                "128-byte swizzling with 32-byte atomicity, transposed, is for 32-bit elements")
    elif major == "mn" and nbytes == 4:
        raise Error(
            "transposed operands of 32-bit elements are swizzled by 128 bytes, 32-byte atomicity "
            "(mode 1)"
        )
    return chunk_addresses(descriptor, rows, major, chunks, nbytes)


BITS64 = (1 << 64) - 1  # of a descriptor
PACKED = {"e2m3": 6, "e3m2": 6, "e2m1": 4}  # bits of an element


@contextmanager
def placed(f: Batch, instruction: Instruction) -> Iterator[None]:
    """Put the instruction's place before what is wrong with its descriptors."""
    try:
        yield
    except (Error, UnsupportedInstruction) as error:
        if "PTX line" in str(error):
            raise
        raise type(error)(f"{f.place(instruction)}: {error}") from None


class Operand:
    """A or B in shared memory: where its chunks lie, and its elements once they are read."""

    def __init__(
        self, f: Batch, row: int, bits: int, rows: int, major: str, kind: str, name: str,
        instruction: Instruction,
    ) -> None:
        self.f, self.row, self.kind, self.major, self.name = f, row, kind, major, name
        self.instruction = instruction
        nbytes = bytes_of(kind)
        if major == "mn" and kind in PACKED:
            raise UnsupportedInstruction(f"no transposed {name} of {kind}")
        self.nbytes = nbytes
        self.descriptor = operand_descriptor(bits)
        chunks = operand_chunks(self.descriptor, rows, major, nbytes)
        self.place = chunks_in_shared(f, row, self.descriptor.start, chunks, name, instruction)

    def codes(self) -> ndarray:
        """Return the encoded elements, (rows, K)."""
        raw = read_chunks(self.f, [self.row], self.place, self.name, self.instruction)[0]
        if self.kind in PACKED:
            return _unpacked(raw, PACKED[self.kind])
        codes = raw.reshape(len(raw), -1).view(f"u{self.nbytes}")
        return codes if self.major == "k" else np.ascontiguousarray(codes.T)


def _unpacked(raw: ndarray, bits: int) -> ndarray:
    """Take elements of 4 or 6 bits out of chunks, 16 from the beginning of each.

    PTX ISA 9.7.16.10.4.4: 16 elements, contiguous, and padding to 16 bytes.
    """
    each = np.unpackbits(raw, axis=-1, bitorder="little")[..., : 16 * bits]
    each = each.reshape(*raw.shape[:-1], 16, bits)
    codes = (each.astype(np.uint8) << np.arange(bits, dtype=np.uint8)).sum(-1, dtype=np.uint8)
    return codes.reshape(len(raw), -1)


def report_chunks(
    f: Batch, by: Issuer, places: list[ndarray], number: int, block: int
) -> None:
    """Tell the race detector which shared memory of a block an operation of this number reads."""
    proxy = f.proxy
    if proxy is None:
        return
    column = proxy.tensor(by.warp)
    for place in places:
        cells = cells_of(f, block, place)
        proxy.tensors.reads_shared(cells, by)
        proxy.reads(cells, by, column, number)
    if block != by.row:
        proxy.uses(block, column, EPOCH + number, by)


# -- Where registers and matrices lie in tensor memory: ld, st, cp, accumulators and A. ------------
#
# The ISA shows these layouts in figures; the same maps stand as CuTe layouts in CUTLASS 4.2's
# ``cute/atom/copy_traits_sm100.hpp`` (loads, stores, cp) and ``mma_traits_sm100.hpp`` (`tmem_frg`).


# Shape -> lanes, and 32-bit words of a lane, that one repetition moves.
SHAPES = {
    "32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8),
    "16x32bx2": (16, 2),
}
MAX_REGISTERS = 128


def registers_of(shape: str, repeats: int) -> int:
    """Return how many registers a lane of a warp needs (tables 49 and 50 of the ISA)."""
    lanes, words = SHAPES[shape]
    return lanes * words * repeats // 32


@lru_cache(maxsize=64)
@read_only
def fragment(shape: str, repeats: int) -> tuple[ndarray, ndarray]:
    """Return lane and word of each register of a warp, both (registers, 32).

    PTX ISA 9.7.16.2.3.1 (Memory Layout). Words count along a lane; a repetition moves the next
    ones. For ``16x32bx2`` those of the second access follow on those of the first.
    """
    r, t = np.arange(registers_of(shape, repeats))[:, None], np.arange(32)[None, :]
    lane, word = {
        "32x32b": (t, r), "16x32bx2": (t % 16, r + t // 16 * repeats),
        "16x64b": (t // 4 + t % 2 * 8, 2 * r + t // 2 % 2),
        "16x128b": (t // 4 + r % 2 * 8, r // 2 * 4 + t % 4),
        "16x256b": (t // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2),
    }[shape]
    return lane + 0 * r, word + 0 * t


def accumulator(m: int, n: int, stationary: bool) -> tuple[ndarray, ndarray]:
    """Return lane and column of each element of D, broadcast to (M, N).

    PTX ISA 9.7.16.10.5 (Data Path Layout Organization), one CTA: layouts D (M = 128), F (M = 64),
    and with weights stationary E (M = 64) and G (M = 32).
    """
    row, column = np.arange(m)[:, None], np.arange(n)[None, :]
    if m == 128:
        return row, column
    if not stationary:
        return row // 16 * 32 + row % 16, column
    parts = 128 // m
    return row + column // (n // parts) * m, column % (n // parts)


def accumulator_lanes(m: int, stationary: bool) -> int:
    """Return the lanes that D has words in, a bit for each."""
    if m == 64 and not stationary:
        return sum(lanes_from(32 * i, 16) for i in range(4))
    return lanes_from(0, 128)


def copied(shape: str, multicast: str) -> list[tuple[int, int, int]]:
    """Return (first row, rows, first lane) of what tcgen05.cp copies.

    PTX ISA 9.7.16.9.2 (tcgen05.cp) and CUTLASS's `UTCCP` traits. The four rows of ``4x256b`` go to
    one lane of each warp, the one that the address names: they renew what a shift leaves behind.
    """
    if shape == "4x256b":
        return [(i, 1, 32 * i) for i in range(4)]
    if shape in ("128x256b", "128x128b"):
        return [(0, 128, 0)]
    if shape == "32x128b":
        return [(0, 32, 32 * warp) for warp in range(4)]
    if multicast == "warpx2::02_13":
        return [(0, 64, 0), (0, 64, 64)]
    return [(0, 32, 0), (0, 32, 32), (32, 32, 64), (32, 32, 96)]
