"""What one wmma instruction of PTX becomes in the machine code.

PTX has one instruction for a whole fragment; the machine has not. ptxas keeps the PTX line that
each machine instruction came from (`lib.compiler.sass`), so the two can be laid side by side. Only
what touches memory, multiplies or moves elements between lanes is counted: the arithmetic of
addresses depends on what surrounds it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from lib import gpus
from lib.compiler.sass import Instruction
from lib.gpus import Gpu
from lib.ptx.launch import parsed

_COUNTED = {"HMMA", "LDG", "STG", "LDS", "STS", "LDSM", "MOVM"}
_PRODUCT = re.compile(r"^HMMA\.(?P<shape>1688|16816)\b")
# M, N and K of the machine's products, from their names.
_SHAPES = {"1688": (16, 8, 8), "16816": (16, 8, 16)}


def expansions(ptx: str, sass: Iterable[Instruction]) -> dict[str, Counter[str]]:
    """Return the machine instructions of one wmma, by what it does and where.

    Parameters
    ----------
    ptx : str
        PTX text.
    sass : iterable of Instruction
        What ptxas made of it, tied to its lines.

    Returns
    -------
    dict of str to Counter
        By ``"load a, global"``, ``"mma"``, ``"store d, shared"`` and so on; opcodes without the
        modifiers that only old architectures print.

    Raises
    ------
    ValueError
        If two wmma of one kind became different things.
    """
    program = parsed(ptx)
    names = {one.line: _name(one.parts) for entry in program.entries.values()
             for one in entry.instructions if one.parts[0] == "wmma"}
    by_line: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for one in sass:
        if one.base in _COUNTED and one.ptx_line in names:
            by_line[one.ptx_line, names[one.ptx_line]][one.opcode.removesuffix(".SYS")] += 1
    found: dict[str, Counter[str]] = {}
    for (line, name), counts in sorted(by_line.items()):
        if found.setdefault(name, counts) != counts:
            raise ValueError(f"PTX line {line}, {name}: {dict(counts)}, elsewhere "
                             f"{dict(found[name])}")
    return found


def _name(parts: Sequence[str]) -> str:
    """What a wmma does and where, from its opcode: ``"load a, global"``."""
    what = " ".join(parts[1:2] if parts[1] == "mma" else parts[1:3])
    return ", ".join([what, *(word for word in parts if word in ("global", "shared"))])


def flops(opcode: str) -> int:
    """Return the operations of one HMMA of a warp: 2·m·n·k.

    Raises
    ------
    ValueError
        If it is no HMMA whose shape is known.
    """
    match = _PRODUCT.match(opcode)
    if not match:
        raise ValueError(f"{opcode} is no product of {', '.join(_SHAPES)}")
    m, n, k = _SHAPES[match["shape"]]
    return 2 * m * n * k


def tensor_cycles(gpu: Gpu, work: float) -> float:
    """Return the cycles that a sub-partition's tensor cores need for `work` FLOP of FP16.

    What an SM does per cycle, spread over its four sub-partitions: data sheets give the peaks of
    tensor cores and of FP32 lanes at clocks of their own.
    """
    return work / (gpu.flops_per_cycle("float16") / gpus.ISSUE_SLOTS)
