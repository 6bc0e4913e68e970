"""The instructions of the tensor cores from Turing on, as each version's PTX has them.

What holds the sums, what gives the operands, who issues and who waits are read from the operands of
the instruction and from what stands beside it; how much one multiplies, from its name or, where the
name doesn't say, from the instruction descriptor that a run is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import find
from lib.kernels.spec import parted
from lib.ptx.core.machine import WARP, WARPGROUP
from lib.topics.code.instruction.model import statements
from lib.topics.memory.tensor_memory.model import followed, instruction_descriptor

_MULTIPLIES = ("mma.sync", "wgmma.mma_async", "tcgen05.mma")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True)
class Multiplies:
    """What multiplies in a version.

    Attributes
    ----------
    stem : str
    opcode : str
        Up to what names the types.
    shape : (int, int, int)
        M, N and K of one.
    issuers : int
        Threads that issue one together.
    blocks : int
        Whose tensor cores it runs on.
    sums : int
        Registers of a thread that its sums take; 0 where they lie in tensor memory.
    a, b : int
        Registers of a thread that hold A and B; 0 where these come from shared memory.
    waits : str
        The instruction by which somebody learns that it is complete; empty where the next
        instruction may use the result.
    """

    stem: str
    opcode: str
    shape: tuple[int, int, int]
    issuers: int
    blocks: int
    sums: int
    a: int
    b: int
    waits: str

    @property
    def flops(self) -> int:
        """Of one instruction, FLOP."""
        M, N, K = self.shape
        return 2 * M * N * K


def multiplies(name: str) -> Multiplies:
    """Read what multiplies in a version.

    Parameters
    ----------
    name : str
        ``"stem"`` or ``"stem/variant"``.

    Raises
    ------
    ValueError
        If its PTX has none of the instructions that this knows.
    """
    stem, which = parted(name)
    kernel = find(stem)
    variant = kernel.variant(which)
    text = compile_kernel(kernel, variant, kernel.oldest(variant), ptx_only=True).ptx
    opcodes = [one.opcode for one in statements(text)]
    found = next((one for one in statements(text) if one.opcode.startswith(_MULTIPLIES)), None)
    if found is None:
        raise ValueError(f"{name} multiplies by none of {', '.join(_MULTIPLIES)}")
    d, a, b = (_registers(one) for one in found.operands[:3])
    if found.opcode.startswith("tcgen05"):
        bits = followed(stem, variant.name).operands[3]
        sizes = {one.name: one.value for one in instruction_descriptor(bits)}
        return Multiplies(
            stem, found.opcode, (16 * sizes["M / 16"], 8 * sizes["N / 8"], 16), 1,
            int(found.opcode.partition("cta_group::")[2][0]), d, a, b, "tcgen05.commit")
    shape = _SHAPE.search(found.opcode)
    if shape is None:
        raise ValueError(f"{found.opcode} names no shape")
    M, N, K = map(int, shape.groups())
    of_group = found.opcode.startswith("wgmma")
    waits = next((each for each in opcodes if each.startswith("wgmma.wait_group")), "")
    return Multiplies(
        stem, found.opcode[: shape.end()], (M, N, K), WARP * WARPGROUP if of_group else WARP, 1,
        d, a, b, waits.removesuffix(".sync.aligned"))


def _registers(operand: str) -> int:
    """Registers that an operand lists; 0 of an address or a descriptor."""
    return operand.count(",") + 1 if operand.startswith("{") else 0
