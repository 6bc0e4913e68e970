"""What tcgen05.mma and cp read of shared memory: where it lies, and its elements.

Descriptors and canonical layouts are those of PTX ISA 9.7.16.3.3 and 9.7.16.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import ndarray

from ..core.batch import Batch
from ..core.constant import read_only
from ..core.errors import Error, OutOfBounds, UninitialisedRead, UnsupportedInstruction
from ..core.machine import WARP
from ..core.syntax import Instruction
from ..race.clocks import EPOCH
from .matrix_descriptor import Descriptor, chunk_addresses, fields_of

# Descriptors of tcgen05: what an MMA multiplies, and where its operands lie in shared memory.


# Kind -> types of A and B by their code, of D by its code, bytes of an element of A.
KINDS = {
    "f16": ({0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 2),
    "tf32": ({2: "tf32"}, {1: "f32"}, 4),
    "f8f6f4": ({0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}, {0: "f16", 1: "f32"}, 1),
    "i8": ({0: "u8", 1: "s8"}, {2: "s32"}, 1),
}
K_BYTES = 32  # of a row of A, a column of B, in all of these kinds
# Swizzle of a tcgen05 descriptor -> that of a wgmma descriptor (PTX ISA table 40), which has none
# of 128 bytes with atoms of 32.
ATOMS_OF_32 = 4
_MODES = {0: 0, 1: ATOMS_OF_32, 2: 1, 4: 2, 6: 3}
_MAX_SHIFT = (0, 8, 16, 32)  # columns, by bits 30 and 31 of an instruction descriptor


def bytes_of(kind: str) -> int:
    """Return the bytes of an element, those of less than a byte as 1."""
    return {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)


@dataclass(frozen=True)
class MmaDescriptor:
    """What an instruction descriptor says (PTX ISA 9.7.16.4.2, table 42)."""

    # a, b, d: types.
    a: str
    b: str
    d: str
    m: int
    n: int
    majors: tuple[str, str]  # of A and B, "k" or "mn"
    negated: tuple[bool, bool]  # of A and B
    saturate: bool  # of whole numbers
    max_shift: int = 0  # by how many columns a zero-column mask may shift B; for ``.ws`` alone

    @property
    def k(self) -> int:
        """Elements along K."""
        return K_BYTES // bytes_of(self.a)


@lru_cache(maxsize=256)
def mma_descriptor(bits: int, kind: str, stationary: bool, blocks: int = 1) -> MmaDescriptor:
    """Take an instruction descriptor's 32 bits apart, of one block's mma or of a pair's.

    Raises Error if it names a type or a shape that the kind has not (PTX ISA 9.7.16.2.1, table 39);
    UnsupportedInstruction if A is sparse.
    """

    field = fields_of(bits)
    operands, results, _ = KINDS[kind]
    if field(2, 1):
        raise UnsupportedInstruction("the instruction descriptor says that A is sparse")
    if field(6, 1) or field(23, 1) or field(29, 1):
        raise Error(f"the instruction descriptor {bits:#010x} has a reserved bit set (6, 23 or 29)")
    for what, code, known in (("A", field(7, 3), operands), ("B", field(10, 3), operands),
                              ("D", field(4, 2), results)):
        if code not in known:
            raise Error(
                f"the instruction descriptor {bits:#010x} gives {what} the type {code}; kind::"
                f"{kind} has {', '.join(f'{c} ({name})' for c, name in known.items())}"
            )
    a, b, d = operands[field(7, 3)], operands[field(10, 3)], results[field(4, 2)]
    if kind == "f16" and (a != b or (d == "f16" and a != "f16")):
        raise Error(f"there is no kind::f16 of {a} and {b} into {d}")
    m, n = field(24, 5) << 4, field(17, 6) << 3
    if stationary:
        right = m in (32, 64, 128) and n in (64, 128, 256)
    elif blocks == 2:
        right = m in (128, 256) and 16 <= n <= 256 and n % (32 if kind == "i8" else 16) == 0
    else:
        right = m in (64, 128) and 8 <= n <= 256
        right = right and (kind != "i8" or n <= 32 and n != 0 or n % 16 == 0)
    if not right:
        raise Error(
            f"the instruction descriptor {bits:#010x} asks for M = {m}, N = {n}, which kind::{kind}"
            f"{' with .ws' if stationary else ' with .cta_group::2' if blocks == 2 else ''} has not"
        )
    if kind == "i8" and (field(13, 1) or field(14, 1)):
        raise Error("kind::i8 negates neither A nor B")
    if kind != "i8" and field(3, 1):
        raise Error("only kind::i8 saturates")
    majors = tuple("mn" if field(bit, 1) else "k" for bit in (15, 16))
    if majors[1] == "mn" and kind in ("f8f6f4", "i8") and n % 16:  # 9.7.16.10.1, table 50
        raise Error(f"B of 8 bits with N = {n}, transposed: N must be a multiple of 16")
    return MmaDescriptor(
        a, b, d, m, n, (majors[0], majors[1]), (bool(field(13, 1)), bool(field(14, 1))),
        bool(field(3, 1)), _MAX_SHIFT[field(30, 2)] if stationary else 0,
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
    mode = bits >> 61 & 7
    if bits >> 46 & 7 != 1:
        raise Error(
            f"the shared memory descriptor {bits:#018x} must have 0b001 in its bits 46 to 48"
        )
    if bits >> 53 & 0xFF:
        raise Error(f"the shared memory descriptor {bits:#018x} must have 0 in its bits 53 to 60")
    if mode in (3, 5, 7):
        raise Error(f"the shared memory descriptor {bits:#018x} has the swizzling mode {mode}")
    if bits >> 52 & 1:
        raise UnsupportedInstruction(
            f"the shared memory descriptor {bits:#018x} asks for an absolute leading address"
        )
    return Descriptor(
        (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4,
        bits >> 49 & 7, _MODES[mode],
    )


@lru_cache(maxsize=1024)
@read_only
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
        return _in_atoms_of_32(descriptor, rows, major, nbytes)
    if major == "mn" and nbytes == 4:
        raise Error(
            "transposed operands of 32-bit elements are swizzled by 128 bytes, 32-byte atomicity "
            "(mode 1)"
        )
    return chunk_addresses(descriptor, rows, major, chunks, nbytes)


def _in_atoms_of_32(descriptor: Descriptor, rows: int, major: str, nbytes: int) -> ndarray:
    """((8, n), (4, k)) : ((1, LBO), (8, SBO)) in 16 bytes, bits 5 and 6 swizzled by 7 and 8."""
    if major == "k":
        raise UnsupportedInstruction("128-byte swizzling with 32-byte atomicity along K")
    if nbytes != 4:
        raise Error("128-byte swizzling with 32-byte atomicity, transposed, is for 32-bit elements")
    k, chunk = np.arange(K_BYTES // nbytes)[:, None], np.arange(rows * nbytes // 16)[None, :]
    place = chunk % 8 * 16 + chunk // 8 * descriptor.leading
    place = descriptor.start + place + k % 4 * 128 + k // 4 * descriptor.stride
    return place ^ ((((place >> 7) - descriptor.base) & 3) << 5)


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
        self.place = chunks_in_shared(
            f, row, self.descriptor, operand_chunks(self.descriptor, rows, major, nbytes), name,
            instruction,
        )

    def codes(self) -> ndarray:
        """Return the encoded elements, (rows, K)."""
        raw = read_chunks(self.f, self.row, self.place, self.name, self.instruction)
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


def chunks_in_shared(
    f: Batch, row: int, descriptor: Descriptor, place: ndarray, name: str,
    instruction: Instruction,
) -> ndarray:
    """Return where 16-byte chunks lie in a block's shared memory.

    Raises OutOfBounds if the descriptor leaves it.
    """
    shared = f.memory.shared
    place = place - shared.base
    if int(place.min()) < 0 or int(place.max()) + 16 > shared.nbytes:
        raise OutOfBounds(
            f"{f.place(instruction)}: {name} at {descriptor.start:#x} reaches from byte "
            f"{int(place.min())} to {int(place.max()) + 16} of shared memory, which has "
            f"{shared.nbytes}, block {f.geometry.block_name(row)}: correct the descriptor's start, "
            "leading or stride byte offset"
        )
    return place


def read_chunks(
    f: Batch, row: int, place: ndarray, name: str, instruction: Instruction
) -> ndarray:
    """Return the bytes of 16-byte chunks of a block's shared memory, (..., 16).

    Raises UninitialisedRead if nobody wrote some of them.
    """
    shared = f.memory.shared
    index = ((place + shared.start_of(row)) >> 4).astype(np.intp, copy=False)
    if not shared.complete:
        valid = shared.valid.view(np.uint64).reshape(-1, 2).take(index, axis=0)
        bad = (valid != 0x0101010101010101).any(axis=-1)
        if bad.any():
            at = shared.base + int(place[bad][0])
            raise UninitialisedRead(
                f"{f.place(instruction)}: {name} has shared memory that nobody wrote, at {at:#x}, "
                f"block {f.geometry.block_name(row)}"
            )
    return shared.view(np.dtype("u8"), 2).take(index, axis=0).view(np.uint8)


def report_chunks(
    f: Batch, row: int, thread: int, places: list[ndarray], number: int, index: int,
    block: int | None = None,
) -> None:
    """Tell the race detector which shared memory an operation of this number reads.

    That of the thread's block, or of another one.
    """
    races = f.races
    if races is None:
        return
    proxy, granule = races.agents, races.granule
    column = proxy.tensor(row, thread // WARP)
    for place in places:
        first = np.unique(place) + f.memory.shared.start_of(row if block is None else block)
        found = (first[:, None] // granule + np.arange(16 // granule)).ravel()
        proxy.tensors.reads_shared(found, row, thread, index)
        proxy.reads(found, row, thread, column, number, index)
    if block is not None and block != row:
        proxy.uses(block, column, EPOCH + number, index, row, thread)
