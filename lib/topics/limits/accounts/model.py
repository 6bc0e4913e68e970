"""The book's two accounts of a kernel's speed: what caps it, and how busy that was.

01 to 13. The L1's data stage serves one wavefront per cycle and SM. A kernel that needs w of them
per 32 multiply-adds, on units that do P multiply-adds per cycle and SM, can reach at most

    cap = 32 / (P · w)

of the peak: at the peak 32 multiply-adds take 32 / P cycles, and their w wavefronts take w. Its
share of the peak is cap × busy, where busy is the share of cycles in which the stage served one.
That is so by definition, since wavefronts cancel: it explains nothing. What the account predicts
is w, and that no kernel passes its cap; why the stage idles needs another counter.

w is predicted from emulated counters: the wavefronts of shared memory, and the 128-byte lines of
each access of global memory, which takes one for each. An asynchronous copy takes those of its
write to shared memory alone: on the H100 a kernel that fills its tiles by copies has hardly a
wavefront besides those of shared memory.

From 10 on, on tensor cores, the share of the peak has three factors:

    rate of the instruction / peak rate × tensor cores busy × active / elapsed cycles

The rate is what an SM does in a cycle in which its tensor cores are busy: a constant of the
instruction (`RATES`). Busy is the share of the cycles of SMs at work,
``sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active``: how well loads keep up. Active
over elapsed cycles is ``smsp__cycles_active.sum`` / (4 · SMs · ``sm__cycles_elapsed.max``): the
others are of SMs without work, at the start, in the last wave, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from lib.gpus import Gpu
from lib.kernels import catalogue
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES, Problem
from lib.ptx.core.machine import LINE, WARP
from lib.run import runner
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.limits.bottleneck import scaling
from lib.topics.limits.issue_slots.model import SLOTS_PER_SM
from lib.topics.limits.roofline.model import FP8


@dataclass(frozen=True)
class Wavefronts:
    """The first account, of one kernel at one size.

    Attributes
    ----------
    each : float
        w: wavefronts per 32 multiply-adds.
    cap : float
        Share of the peak that w allows; above 1 it is no limit.
    busy : float
        Share of the SMs' cycles in which the stage served a wavefront.
    share : float
        Of the peak, reached.
    """

    each: float
    cap: float
    busy: float
    share: float


@dataclass(frozen=True)
class Tensor:
    """The second account, of one kernel at one size.

    Attributes
    ----------
    busy : float
        Share of the cycles of SMs at work in which their tensor cores are busy.
    active : float
        Share of the elapsed cycles in which an SM is at work: mean over all SMs.
    share : float
        Of the peak, reached.
    """

    busy: float
    active: float
    share: float


RATES = {"mma.m16n8k8": 2048.0, "mma.m16n8k16": 4096 * 4 / 6, "wgmma": 4096.0, FP8: 8192.0}
"""FLOP of an SM per cycle in which its tensor cores are busy.

WGMMA's are the data sheet's peaks. Each sub-partition is busy for 4 cycles with an m16n8k8, of
2,048 FLOP, and for 6 with an m16n8k16, of 4,096; wmma is compiled to the latter.
"""


def cap(each: float, multiply_adds: float) -> float:
    """Share of the peak that w wavefronts per 32 multiply-adds allow; above 1 they cap nothing.

    Parameters
    ----------
    each : float
        w; positive.
    multiply_adds : float
        P: per cycle and SM.
    """
    return WARP / (multiply_adds * each)


def wavefronts(found: Mapping[str, float], size: int, sms: int, flops_per_cycle: float
               ) -> Wavefronts:
    """Take recorded counters apart.

    Parameters
    ----------
    found : mapping of str to float
        Of one launch (`lib.measure.counters`): `cycles`, and `l1_wavefronts`, or in records that
        lack it `l1_data_percent`.
    size : int
        M = N = K.
    sms : int
    flops_per_cycle : float
        Of one SM at its peak: 2 P.
    """
    cycles = found["cycles"] * sms
    served = found.get("l1_wavefronts")
    if served is None:
        served = found["l1_data_percent"] / 100 * cycles
    each = WARP * served / size**3
    return Wavefronts(each, cap(each, flops_per_cycle / 2), served / cycles,
                      2 * size**3 / (cycles * flops_per_cycle))


def share(cycles: float, size: int, sms: int, flops_per_cycle: float) -> float:
    """Share of the peak that a product of M = N = K = `size` reaches in so many cycles."""
    return 2 * size**3 / (cycles * sms * flops_per_cycle)


def tensor(found: Mapping[str, float], size: int, sms: int, flops_per_cycle: float) -> Tensor:
    """Take recorded counters apart: `cycles`, `active_cycles` and `tensor_pipe_percent`.

    Raises
    ------
    ValueError
        If the tensor cores did nothing.
    """
    busy = found["tensor_pipe_percent"] / 100
    if busy <= 0:
        raise ValueError("the tensor cores of this launch did nothing: it has no such account")
    active = found["active_cycles"] / (SLOTS_PER_SM * sms * found["cycles"])
    return Tensor(busy, active, share(found["cycles"], size, sms, flops_per_cycle))


def rate(found: Mapping[str, float], flops: float) -> float:
    """FLOP of an SM per cycle in which its tensor cores were busy, by counters of one launch.

    `flops` are those of all whole tiles: at an edge tensor cores multiply zeros too.
    """
    active = found["active_cycles"] / SLOTS_PER_SM
    return flops / (active * found["tensor_pipe_percent"] / 100)


def instruction(found: Mapping[str, float], flops: float, dtype: str) -> str:
    """Name the instruction that a launch on tensor cores multiplied with, by what it counted.

    An m16n8k8 of a warp does 2,048 FLOP, an m16n8k16 twice as many.
    """
    if found["gmma_instructions"]:
        return FP8 if dtype.startswith("float8") else "wgmma"
    return "mma.m16n8k16" if flops / found["hmma_instructions"] > 3000 else "mma.m16n8k8"


@cache
def predicted(stem: str, name: str, gpu: Gpu, size: int) -> float:
    """w of a variant at a size, from two emulated launches of one block (see `scaling`).

    Parameters
    ----------
    stem, name : str
        Version and variant.
    gpu : Gpu
        What it is compiled for.
    size : int
        M = N = K: a multiple of the tile.

    Raises
    ------
    ValueError
        If tiles don't divide the problem.
    """
    kernel = catalogue.find(stem)
    variant = kernel.variant(name)
    M, N = variant.tile
    if size % M or size % N or size % variant.step:
        raise ValueError(f"{size} is no multiple of {variant.name}'s tile {M}×{N}×{variant.step}")
    # Rows of A are at least a line long, as they are in the large problem.
    line = LINE // ITEM_BYTES[variant.dtype]
    depth = -(-max(4 * variant.step, line) // variant.step) * variant.step
    depths = (depth, 2 * depth)
    counted = []
    for K in depths:
        traces = [
            runner.run(kernel, variant.typed(Problem(M, N, K)), variant=variant, exact=True,
                       backend="emulator", arch=gpu.arch, watch=(0, warp)).trace
            for warp in _first_of_each_role(variant)]
        watched = {line: seen for trace in traces
                   for line, seen in trace.watched.items() if seen}
        trace = traces[0]
        counted.append({"shared": trace.counters()["shared_wavefronts"],
                        "lines": busiest.lines(
                            [site for site in trace.sites if site.kind != "copy"], watched)})
    one, other = counted
    found = scaling.scaled(one, other, depths, K=size, blocks=size // M * (size // N))
    return WARP * (found["shared"] + found["lines"]) / size**3


def _first_of_each_role(variant: Variant) -> list[int]:
    """Warps of a block that between them do all that its warps do: one of each role."""
    sizes = [size for _, size in variant.roles.warps]
    return list(accumulate(sizes[:-1], initial=0))
