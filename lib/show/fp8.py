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
from matplotlib.figure import Figure

from lib import gpus
from lib.gpus import Gpu
from lib.kernels.catalogue import find
from lib.problem import Problem, with_scales
from lib.problem.scales import DTYPE, Operands, decoded
from lib.ptx.isa import wgmma_fp8
from lib.show import chart as style
from lib.show.display import both, table
from lib.show.fp8_errors import DEPTHS, ONE_SIGN, SIDE, SIGNS, drawn, errors_by_depth
from lib.show.version import RECORDED_ON, Version

INTERVALS = (32, 64, 128, 256, 512)
_KINDS = ("e4m3", "e4m3")


@dataclass(frozen=True)
class Curve:
    """Errors of one instantiation on inputs of one kind.

    Attributes
    ----------
    promoted : bool
    signs : str
        Of `SIGNS`.
    errors : tuple of (int, float)
        K, and the distance from float64's product, relative in norm.
    """

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


@lru_cache(maxsize=32)
def emulated(stem: str, name: str, signs: str, depths: Sequence[int] = DEPTHS) -> Curve:
    """Run an instantiation with FP32 C in the emulator, for several K."""
    measured = errors_by_depth(stem, name, signs, "emulator", depths)
    return Curve(find(stem).variant(name).promotes, signs, tuple(measured))


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
def sums_by_interval(K: int, gpu: Gpu) -> tuple[Interval, ...]:
    """What each of `INTERVALS` costs in error and in time, and no promotion at all."""
    return tuple(
        Interval(one, tuple(error(K, one, signs) for signs in SIGNS), share(one, gpu))
        for one in (*INTERVALS, None))


def stops_growing(product: float) -> float:
    """The sum from which on products of this size, or of less, are cut off whole.

    A term is cut off at a multiple of 2^(E − 13), E the exponent of the largest.
    """
    return float(2.0 ** (np.floor(np.log2(product)) + 1 + wgmma_fp8.FRACTION))


_LABEL, _NARROW_LABEL = 1.8, 1.12


@style.styled
def draw(curves: Sequence[Curve], *, evidence: str, narrow: bool = False) -> Figure:
    """Draw errors over K, a line a curve; promoted ones in colour, one sign dashed.

    Parameters
    ----------
    curves : sequence of Curve
        All of the same K; with promotion and without it, of one sign among them.
    """
    across, height, room = ((style.NARROW, 3.2, _NARROW_LABEL) if narrow
                            else (style.WIDTH, 3.2, _LABEL))
    fig = style.figure(finding(curves), height, across)
    ax = style.axes(fig, 0.62, 0.45, across - 0.72 - room, height - 0.62)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    depths = [K for K, _ in curves[0].errors]
    ax.set_xticks(depths, [f"{K:,}" for K in depths])
    ax.minorticks_off()
    ax.grid(True)
    ax.set_xlabel("K")
    every = [error for curve in curves for _, error in curve.errors]
    low, high = np.floor(np.log10(min(every))), np.ceil(np.log10(max(every)))
    ax.set_ylim(10.0 ** (low - 0.2), 10.0 ** high)
    ticks = [10.0 ** power for power in np.arange(low, high + 1)]
    ax.set_yticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
    ax.text(0, 1.02, "error", transform=ax.transAxes, ha="right", va="bottom")
    for curve in curves:
        colour = style.FOCUS if curve.promoted else style.OTHER
        ax.plot(*zip(*curve.errors, strict=True), color=colour, marker="o", markersize=3.5,
                linestyle="--" if curve.signs == ONE_SIGN else "-")
        what = "promoted" if curve.promoted else "not promoted"
        text = f"{what},\n{curve.signs}" if narrow else f"{what}, {curve.signs}"
        ax.annotate(text, curve.errors[-1], (6, 0), textcoords="offset points", va="center",
                    annotation_clip=False)
    return style.finish(fig, alt=_alt(curves), evidence=evidence,
                        note="error: relative to float64, in norm")


def finding(curves: Sequence[Curve]) -> str:
    """Where the worst of the curves ends, and where its like with promotion does."""
    worst = max(curves, key=lambda curve: curve.errors[-1][1])
    like = next(curve for curve in curves if curve.signs == worst.signs and curve.promoted)
    K, error = worst.errors[-1]
    return (f"At K = {K:,} a sum of {worst.signs} is off by {_percent(error)}; promoted every 128, "
            f"by {_percent(like.errors[-1][1])}")


def _alt(curves: Sequence[Curve]) -> str:
    return " ".join(
        f"{'Promoted' if curve.promoted else 'Not promoted'}, {curve.signs}: "
        + ", ".join(f"{_percent(error)} at K = {K:,}" for K, error in curve.errors) + "."
        for curve in curves)


def _percent(error: float) -> str:
    return f"{100 * error:.2g}%"


K = 4096


def errors(version: Version, plain: str, promoted: str) -> None:
    """Draw the error over K of two instantiations with FP32 C, for random signs and one sign.

    Parameters
    ----------
    plain, promoted : str
        Without promotion and with it.
    """
    curves = [emulated(version.kernel.stem, name, signs)
              for signs in SIGNS for name in (plain, promoted)]
    evidence = f"emulated: {version.kernel.min_arch} PTX, {SIDE}×{SIDE}×K"
    both(draw, curves, evidence=evidence)


def intervals() -> None:
    """Display what promotion after 32, 64, … of K costs, in error and in FP32 units' time."""
    sheet = gpus.GPUS[RECORDED_ON]
    rows = []
    for one in sums_by_interval(K, sheet):
        name = f"every {one.length}" if one.length else "never"
        if one.length == 128:
            name = f"**{name}**"
        rows.append((name, *(f"{error:.1e}" for error in one.errors), f"{one.share:.1%}"))
    table(("promoted", *(f"error, {signs}" for signs in SIGNS),
           "FP32 units' time over tensor cores'"), rows,
          f"modelled: the emulator's arithmetic, K = {K:,}; {sheet.fp32_lanes_per_sm} FFMA and "
          f"{sheet.flops_per_cycle(DTYPE):,} FLOP per cycle and SM, from the data sheet")


# Scales by which a mistake is told from another: what they are alike in, it can't be seen by.
ALIKE, BY_ROWS, BY_DEPTH, ALL = ("all 1", "by rows of A", "along K", "by both")
KINDS = (ALIKE, BY_ROWS, BY_DEPTH, ALL)


def scaled_by(problem: Problem, kind: str) -> Operands:
    """A problem's inputs, whose scales differ in one way alone, or not at all.

    Parameters
    ----------
    problem : Problem
        Scaled by blocks.
    kind : str
        Of `KINDS`.
    """
    given = problem.inputs()
    of_a, of_b = np.ones_like(given.scale_a), np.ones_like(given.scale_b)
    rows, depth = of_a.shape
    if kind in (BY_ROWS, ALL):
        of_a *= np.exp2(np.arange(rows, dtype=np.float32) % 3 - 1)[:, None]
    if kind in (BY_DEPTH, ALL):
        of_a *= np.exp2(np.arange(depth, dtype=np.float32) % 3 - 1)
    return given._replace(scale_a=of_a, scale_b=of_b)


def verdicts(version: Version, text: str) -> None:
    """Print whether a changed kernel is right, by what its scales differ in.

    Parameters
    ----------
    text : str
        The whole .cu file, changed; the first variant, scaled by blocks, is run.
    """
    variant = version.kernel.variants[0]
    problem = variant.problem(66, 128, 640)
    found = []
    for kind in KINDS:
        done = version.run(problem, variant.name, backend="emulator", trace=False, races=True,
                           sms=1, source=text, given=scaled_by(problem, kind))
        wrong = "wrong" if not done.verdict.ok else "right"
        found.append(f"{kind}: {'hazards' if done.emulated.hazards else wrong}")
    print("scales", "; ".join(found))
