"""How far a kernel's sums of 8-bit products are off, on a GPU or in the emulator, for several K.

Drawn by `lib.show.fp8`, and recorded with the calibration, which loads nothing that draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lib.kernels.catalogue import find
from lib.problem import Problem
from lib.problem.scales import Operands
from lib.run import runner

RANDOM, ONE_SIGN = "random signs", "one sign"
SIGNS = (RANDOM, ONE_SIGN)
# Rows and columns of C: enough for a norm, and few enough to emulate many K.
SIDE = 64
DEPTHS = (128, 512, 2048, 8192)
# Without promotion and with it, C in FP32.
STEM, COMPARED = "26_fp8", ("no_promotion_float", "tensor_float")
_SIGN = np.uint8(0x80)


def drawn(problem: Problem, signs: str, seed: int = 0) -> Operands:
    """A problem's inputs, of random signs or all positive."""
    given = problem.inputs(seed)
    if signs == RANDOM:
        return given
    return given._replace(A=given.A & ~_SIGN, B=given.B & ~_SIGN)


def errors_by_depth(
    stem: str, name: str, signs: str, backend: str, depths: Sequence[int] = DEPTHS
) -> list[tuple[int, float]]:
    """K, and the error of an instantiation there, on a GPU or in the emulator."""
    kernel = find(stem)
    variant, measured = kernel.variant(name), []
    for K in depths:
        problem = variant.problem(SIDE, SIDE, K)
        where: dict[str, Any] = {"trace": False, "sms": 1} if backend == "emulator" else {}
        done = runner.run(kernel, problem, variant=variant, backend=backend,
                          given=drawn(problem, signs), **where)
        measured.append((K, done.verdict.error))
    return measured
