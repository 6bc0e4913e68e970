"""How far sums of 8-bit products are off, and what it costs to add them up in FP32.

Two distributions stand for what a layer multiplies: numbers of random signs, whose sums grow with
√K, and numbers of one sign, whose sums grow with K. The longer a sum grows, the more of each
product lies below the last bit that the tensor cores keep of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lib.gpus import Gpu
from lib.kernels.catalogue import find
from lib.problem import Problem, with_scales
from lib.problem.scales import DTYPE, Operands, decoded
from lib.ptx.isa import wgmma_fp8
from lib.run import runner

RANDOM, ONE_SIGN = "random signs", "one sign"
SIGNS = (RANDOM, ONE_SIGN)
# Rows and columns of C: enough for a norm, and few enough to emulate many K.
SIDE = 64
DEPTHS = (128, 512, 2048, 8192)
INTERVALS = (32, 64, 128, 256, 512)
_KINDS = ("e4m3", "e4m3")
_SIGN = np.uint8(0x80)


@dataclass(frozen=True)
class Curve:
    """Errors of one instantiation on inputs of one kind.

    Attributes
    ----------
    name : str
        What a figure calls it.
    promoted : bool
    signs : str
        Of `SIGNS`.
    errors : tuple of (int, float)
        K, and the distance from float64's product, relative in norm.
    """

    name: str
    promoted: bool
    signs: str
    errors: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Interval:
    """Promotion every so many of K.

    Attributes
    ----------
    length : int or None
        Of K; None where all of K stays in the tensor cores.
    errors : tuple of float
        For `SIGNS`, as `Curve` has them.
    share : float
        Time of the FP32 units' additions over that of the tensor cores' products.
    """

    length: int | None
    errors: tuple[float, ...]
    share: float


def drawn(problem: Problem, signs: str, seed: int = 0) -> Operands:
    """A problem's inputs, of random signs or all positive."""
    given = problem.inputs(seed)
    if signs == RANDOM:
        return given
    return given._replace(A=given.A & ~_SIGN, B=given.B & ~_SIGN)


@lru_cache(maxsize=32)
def emulated(stem: str, name: str, signs: str, depths: Sequence[int] = DEPTHS) -> Curve:
    """Run an instantiation with FP32 C in the emulator, for several K."""
    kernel = find(stem)
    variant = kernel.variant(name)
    errors = []
    for K in depths:
        problem = variant.problem(SIDE, SIDE, K)
        done = runner.run(kernel, problem, variant=variant, backend="emulator", trace=False, sms=1,
                          given=drawn(problem, signs))
        errors.append((K, done.verdict.error))
    return Curve(name, variant.promotes, signs, tuple(errors))


def summed(A: np.ndarray, B: np.ndarray, interval: int | None) -> np.ndarray:
    """A·Bᵀ as tensor cores add it up, promoted to FP32 after each interval of K.

    Parameters
    ----------
    A, B : ndarray of float32, shapes (M, K) and (N, K)
        Values of E4M3; K is a multiple of 32.
    interval : int or None
        A multiple of 32; None: all of K.

    Returns
    -------
    ndarray of float32, shape (M, N)
    """
    total = np.zeros((len(A), len(B)), np.float32)
    if interval is None:
        return wgmma_fp8.sums(A, B, total, _KINDS)
    for k in range(0, A.shape[1], interval):
        part = slice(k, k + interval)
        total = total + wgmma_fp8.sums(A[:, part], B[:, part], np.zeros_like(total), _KINDS)
    return total


def error(K: int, interval: int | None, signs: str) -> float:
    """The error of `summed` on inputs as the kernel gets them, relative in norm."""
    given = drawn(with_scales(SIDE, SIDE, K, scaling="tensor", out="float32"), signs)
    A, B = decoded(given.A), decoded(given.B)
    exact = A @ B.T
    found = summed(A.astype(np.float32), B.astype(np.float32), interval)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def share(interval: int | None, gpu: Gpu) -> float:
    """FP32 units' time for promotion over the tensor cores' for the products, both at their peak.

    An element of C is added to once in an interval, one FFMA of an FP32 lane, and takes 2·interval
    FLOP of the tensor cores.
    """
    if interval is None:
        return 0.0
    return gpu.flops_per_cycle(DTYPE) / gpu.fp32_lanes_per_sm / (2 * interval)


@lru_cache(maxsize=4)
def intervals(K: int, gpu: Gpu) -> tuple[Interval, ...]:
    """What each of `INTERVALS` costs in error and in time, and no promotion at all."""
    return tuple(
        Interval(one, tuple(error(K, one, signs) for signs in SIGNS), share(one, gpu))
        for one in (*INTERVALS, None))


def stops_growing(product: float) -> float:
    """The sum from which on products of this size, or of less, are cut off whole.

    A term is cut off at a multiple of 2^(E − 13), E the exponent of the largest.
    """
    return float(2.0 ** (np.floor(np.log2(product)) + 1 + wgmma_fp8.FRACTION))
