"""26's rival: cublasLt on 8-bit operands with the same scaling mode.

Modes and layouts of scales, of CUDA 12.9 and later, for compute capability 9.0 (cuBLAS, "1D and 2D
block scaling for FP8"; PyTorch's `torch._scaled_mm` asks for the same strides): of A, a row of M
scales for each 128 of K; of B, for each 128 columns a row of ⌈K/128⌉ scales, whose stride is that
number rounded up to a multiple of 4: with another the result is wrong and nobody says so. M must
be a multiple of 4. Scales are brought into these layouts before anything is timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lib.measure import cublaslt
from lib.problem import Problem
from lib.problem.scales import Operands

# What rows of scales of B are padded to, and what M must be a multiple of.
PADDED = 4


def lacking() -> str:
    """What must be installed for 8-bit floats to be timed; empty if nothing."""
    lt = cublaslt.binding()
    if lt is None or not hasattr(lt, "MatmulMatrixScale"):
        return "8-bit floats have no rival without cublasLt's scales: pip install -U nvmath-python"
    return ""


def laid(problem: Problem, given: Operands, xp: Any = np) -> Operands:
    """The same operands, their scales as cublasLt's modes have them.

    `xp`: ``numpy`` or ``cupy``: where they live. Raises ValueError if cublasLt takes no such shape.
    """
    if problem.scaling != "blocks":
        return given._replace(scale_a=xp.ascontiguousarray(given.scale_a),
                              scale_b=xp.ascontiguousarray(given.scale_b))
    if problem.M % PADDED:
        raise ValueError(
            f"cublasLt's VEC128_32F takes M that are multiples of {PADDED}, not {problem.M}"
        )
    along, across = given.scale_b.shape
    room = xp.zeros((across, -(-along // PADDED) * PADDED), "float32")
    room[:, :along] = given.scale_b.T
    return given._replace(scale_a=xp.ascontiguousarray(given.scale_a.T), scale_b=room)
