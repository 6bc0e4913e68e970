"""Tell which arithmetic of PTX ptxas makes single-precision multiply-adds of, and which fma not.

A division is five FFMA behind a reciprocal, a square root two; a product and the sum that takes it
become one. An fma whose result nothing uses is left out, and one by a constant may become a sum or
a product. A GPU's counter of FFMA counts all of them, and the emulator runs the PTX.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from lib.compiler.merging import statements, unused
from lib.compiler.sass import Instruction

_ARITHMETIC = ("add", "sub", "mul", "fma", "div", "rcp", "sqrt")
_SUMS = ("add", "sub", "mul")


def ffma_of_others(ptx: str, instructions: Iterable[Instruction], function: str) -> dict[int, int]:
    """Count the FFMA that each execution of a PTX line takes, where they aren't one for an fma.

    Of divisions and roots it is those that all operands take. What ptxas's subroutine adds for
    denormal, huge and infinite ones is left out.

    `ptx`: the PTX that the machine code was made from. `instructions`: the machine code.
    `function`: mangled name of the entry. Returns by PTX line; 0 for an fma of which the machine
    code makes none. Lines of which some copies (of an unrolled loop) are FFMA and others are not
    are left out.
    """
    made: dict[int, Counter[str]] = defaultdict(Counter)
    for i in instructions:
        if i.ptx_line is not None:
            made[i.ptx_line][i.base] += 1
    found = {}
    gone = unused(ptx, function)
    for one in statements(ptx, function):
        line, name = one.line, one.parts[0]
        if name not in _ARITHMETIC or one.parts[-1] != "f32":
            continue
        if name == "fma" and not made[line]["FFMA"] and (
                line in gone or made[line]["FADD"] or made[line]["FMUL"]):
            found[line] = 0
        if name == "fma" or not made[line]["FFMA"]:
            continue
        # A line stands there as often as ptxas unrolled its loop: a sum is one instruction each
        # time, a division or root has one approximation.
        bases = ("FADD", "FMUL", "FFMA") if name in _SUMS else ("MUFU",)
        copies = sum(made[line][base] for base in bases)
        if copies and made[line]["FFMA"] % copies == 0:
            found[line] = made[line]["FFMA"] // copies
    return found
