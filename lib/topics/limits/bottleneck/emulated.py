"""Which unit of a GPU a version would saturate, from the emulator's counters: no GPU is needed."""

from __future__ import annotations

from functools import cache

from lib import ptx
from lib.gpus import Gpu
from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.problem import ITEM_BYTES, Problem
from lib.ptx.core.machine import SECTOR
from lib.run import runner
from lib.topics.code.instruction_mix import model as mix
from lib.topics.limits.bottleneck import model as busiest
from lib.topics.limits.bottleneck import scaling


@cache
def _one_block(stem: str, name: str, arch: str) -> tuple[tuple[int, int], tuple[ptx.Trace, ...]]:
    """Two depths, and the trace of one block of a variant at each."""
    kernel = kernels.find(stem)
    variant = kernel.variant(name)
    depths = (4 * variant.step, 8 * variant.step)
    return depths, tuple(
        runner.run(kernel, variant.typed(Problem(*variant.tile, K)), variant=variant, exact=True,
                   backend="emulator", arch=arch, watch=(0, 0)).trace
        for K in depths)


def unit_times(
    stem: str, name: str, gpu: Gpu, size: int, lines: bool = False,
) -> tuple[dict[str, float], int]:
    """Return the least seconds of each unit for a version on tensor cores, and the L2's bytes.

    Counters are those of two emulated launches of one block, scaled
    (`lib.topics.limits.bottleneck.scaling`); warp instructions are those of the inner loop's
    SASS. Every sector that a block asks for is taken to be asked of the L2.

    Parameters
    ----------
    stem, name : str
        Version and variant.
    gpu : Gpu
        The data sheet that gives the rates, and the architecture that is compiled for.
    size : int
        M = N = K: a multiple of the tile.
    lines : bool
        Count the lines that the L1 looks up, instead of the fewest that requests and sectors allow;
        of kernels whose warps all access alike.

    Raises
    ------
    ValueError
        If tiles don't divide the problem.
    """
    kernel = kernels.find(stem)
    variant = kernel.variant(name)
    M, N = variant.tile
    if size % M or size % N or size % variant.step:
        raise ValueError(f"{size} is no multiple of {variant.name}'s tile {M}×{N}×{variant.step}")
    depths, traces = _one_block(stem, name, gpu.arch)
    one, other = (
        {**trace.counters(),
         **({"lines": busiest.lines(trace.sites, trace.watched)} if lines else {})}
        for trace in traces
    )
    counters = scaling.scaled(one, other, depths, K=size, blocks=size // M * (size // N))
    loop = compile_kernel(kernel, variant, gpu.arch).inner_loop
    work = size**3
    l2_bytes = SECTOR * (counters["global_load_sectors"] + counters["global_store_sectors"])
    times = busiest.least_times(
        counters, gpu, lines=counters.get("lines"), tensor_flops=2.0 * work,
        tensor_flops_per_s=busiest.fp8_flops(gpu, gpu.clock_hz) if variant.scaling else None,
        warp_instructions=busiest.loop_instructions(mix.per_thousand_fma(i.opcode for i in loop),
                                                    counters, work // busiest.HMMA_1688),
        dram_bytes=busiest.compulsory_bytes(size, size, size, itemsize=ITEM_BYTES[variant.dtype],
                                            out=ITEM_BYTES[variant.out]),
    )
    return times, l2_bytes
