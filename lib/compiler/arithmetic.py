"""Tell which arithmetic of PTX ptxas makes single-precision multiply-adds of, besides its fma.

A division is five FFMA behind a reciprocal, a square root two; a product and the sum that takes it
become one. A GPU's counter of FFMA counts all of them, and the emulator runs the PTX.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from lib.compiler.merging import rows_of
from lib.compiler.sass import Instruction

_ARITHMETIC = re.compile(
    r"^\s*(?:@!?%?\w+\s+)?(?P<name>add|sub|mul|div|rcp|sqrt)\.(?:[a-z]+\.)*f32\s"
)
_SUMS = ("add", "sub", "mul")


def ffma_of_others(ptx: str, instructions: Iterable[Instruction], function: str) -> dict[int, int]:
    """Count the FFMA that each execution of a PTX line takes, where the line is no fma.

    Of divisions and roots it is those that all operands take. What ptxas's subroutine adds for
    denormal, huge and infinite ones is left out.

    Parameters
    ----------
    ptx : str
        The PTX that the machine code was made from.
    instructions : iterable of Instruction
        The machine code.
    function : str
        Mangled name of the entry.

    Returns
    -------
    dict
        By PTX line. Lines of which some copies (of an unrolled loop) are FFMA and others are not
        are left out.
    """
    made: dict[int, Counter[str]] = defaultdict(Counter)
    for i in instructions:
        if i.ptx_line is not None:
            made[i.ptx_line][i.base] += 1
    found = {}
    for line, row in rows_of(ptx, function):
        arithmetic = _ARITHMETIC.match(row)
        if not arithmetic or not made[line]["FFMA"]:
            continue
        # A line stands there as often as ptxas unrolled its loop: a sum is one instruction each
        # time, a division or root has one approximation.
        bases = ("FADD", "FMUL", "FFMA") if arithmetic["name"] in _SUMS else ("MUFU",)
        copies = sum(made[line][base] for base in bases)
        if copies and made[line]["FFMA"] % copies == 0:
            found[line] = made[line]["FFMA"] // copies
    return found
