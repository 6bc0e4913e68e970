"""Tell which arithmetic of PTX ptxas makes single-precision multiply-adds of, and which fma not.

A division is five FFMA behind a reciprocal, a square root two; a product and the sum that takes it
become one. An fma whose result nothing uses is left out, and one by a constant may become a sum or
a product. A GPU's counter of FFMA counts all of them, and the emulator runs the PTX.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from lib.compiler.merging import rows_of
from lib.compiler.sass import Instruction
from lib.compiler.unused import unused

_ARITHMETIC = re.compile(
    r"^\s*(?:@!?%?\w+\s+)?(?P<name>add|sub|mul|fma|div|rcp|sqrt)\.(?:[a-z]+\.)*f32\s"
)
_SUMS = ("add", "sub", "mul")


def ffma_of_others(ptx: str, instructions: Iterable[Instruction], function: str) -> dict[int, int]:
    """Count the FFMA that each execution of a PTX line takes, where they aren't one for an fma.

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
        By PTX line; 0 for an fma of which the machine code makes none. Lines of which some copies
        (of an unrolled loop) are FFMA and others are not are left out.
    """
    made: dict[int, Counter[str]] = defaultdict(Counter)
    for i in instructions:
        if i.ptx_line is not None:
            made[i.ptx_line][i.base] += 1
    found = {}
    rows = list(rows_of(ptx, function))
    gone = unused(rows)
    for line, row in rows:
        arithmetic = _ARITHMETIC.match(row)
        if arithmetic and arithmetic["name"] == "fma" and not made[line]["FFMA"] and (
                line in gone or made[line]["FADD"] or made[line]["FMUL"]):
            found[line] = 0
        if not arithmetic or arithmetic["name"] == "fma" or not made[line]["FFMA"]:
            continue
        # A line stands there as often as ptxas unrolled its loop: a sum is one instruction each
        # time, a division or root has one approximation.
        bases = ("FADD", "FMUL", "FFMA") if arithmetic["name"] in _SUMS else ("MUFU",)
        copies = sum(made[line][base] for base in bases)
        if copies and made[line]["FFMA"] % copies == 0:
            found[line] = made[line]["FFMA"] // copies
    return found
