"""tcgen05.mma.cta_group::2: a pair of blocks multiplies; `tcgen05_group` has what lies where."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..core.decode import Decoding, opcode
from ..core.errors import Error, UnsupportedInstruction
from ..core.lane_groups import each_lane
from ..core.syntax import Address, Vector
from .tcgen05 import check_group, tensor_operand
from .tcgen05_arithmetic import product, whole_product
from .tcgen05_descriptors import KINDS, MmaDescriptor, mma_descriptor
from .tcgen05_group import GroupMma, Issued, Shape
from .tcgen05_mma import COLLECTORS, predicate
from .tcgen05_operands import BITS64

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.batch import Batch
    from ..core.step import Reader, Run
    from ..core.syntax import Instruction


@opcode("tcgen05.mma.cta_group::2")
def pair_mma(d: Decoding) -> Run:
    """tcgen05.mma.cta_group::2.kind [d], a, b, idesc{, mask}, enable-input-d{, scale-input-d}"""
    if d.has("ashift"):
        d.unsupported("no .ashift")
    kinds = {f"kind::{kind}": kind for kind in KINDS}
    d.only("mma", "cta_group::2", *kinds, *COLLECTORS)
    check_group(d)
    kind = kinds[d.one_of(kinds)]
    d.count(5, 6, 7)
    operands = read_operands(d)
    rest = list(d.operands[4:])
    masked: list[Reader] = []
    if isinstance(rest[0], Vector):
        masked = [d.read(item, "b32") for item in d.vector(4)]
        if len(masked) != 8:
            d.wrong("disable-output-lane has 8 registers, 4 for each block")
        rest.pop(0)
    if not rest:
        d.wrong("enable-input-d is missing")
    enable, scale = predicate(d, rest.pop(0)), 0
    if rest:
        scale = d.constant(len(d.operands) - 1, "scale-input-d")
        if kind not in ("f16", "tf32") or not 0 <= scale <= 15:
            d.wrong("scale-input-d is a constant from 0 to 15, for kind::f16 and kind::tf32")
    instruction, index, in_tensor = d.instruction, d.index, isinstance(d.operands[1], Address)

    def step(f: Batch) -> None:
        masks = [np.broadcast_to(m(f.r), (f.blocks, f.threads)) for m in masked]
        for row, thread, (d_at, a, b, bits, adds) in each_lane(f, *operands(f), enable(f)):
            off = sum(int(m[row, thread]) << 32 * i for i, m in enumerate(masks))
            what = Issued(
                instruction, index, row, thread, d_at, None if in_tensor else a & BITS64, a,
                b & BITS64, bool(adds), off,
            )
            with_place(f, instruction, partial(_mma, f, what, kind, bits, scale))

    return step


def _mma(f: Batch, what: Issued, kind: str, bits: int, scale: int) -> GroupMma:
    says = mma_descriptor(bits & 0xFFFFFFFF, kind, False, 2)
    shape = Shape(
        says.m, says.n, 2, kind, (says.a, says.b), says.majors,
        says.negated[0] != says.negated[1],
    )
    return GroupMma(f, what, shape, partial(_sum, says, kind, scale))


def _sum(
    says: MmaDescriptor, kind: str, scale: int, a: np.ndarray, b: np.ndarray,
    old: np.ndarray | None, _: int,
) -> np.ndarray:
    kinds = says.a, says.b, says.d
    if kind == "i8":
        return whole_product(a, b, old, kinds, says.saturate)
    return product(a, b, old, kinds, scale)


def read_operands(d: Decoding) -> Callable[[Batch], tuple[np.ndarray, ...]]:
    """Make the function that reads D's address, A, and the descriptors of B and of the mma."""
    to = tensor_operand(d, 0)
    b_at, what = d.read(2, "b64"), d.read(3, "b32")
    if isinstance(d.operands[1], Address):
        in_tensor = tensor_operand(d, 1)
        return lambda f: (to(f), in_tensor(f), b_at(f.r), what(f.r))
    in_shared = d.read(1, "b64")
    return lambda f: (to(f), in_shared(f.r), b_at(f.r), what(f.r))


def with_place(f: Batch, instruction: Instruction, make: Callable[[], GroupMma]) -> None:
    """Make an mma and issue it; what is wrong with it is told with its place."""
    try:
        one = make()
    except (Error, UnsupportedInstruction) as error:
        if "PTX line" in str(error):
            raise
        raise type(error)(f"{f.place(instruction)}: {error}") from None
    one.issue()
