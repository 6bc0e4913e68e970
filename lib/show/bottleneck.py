"""The least time that each unit of the GPU needs for a kernel's work: the longest is the limit.

First form of the model. Every unit works alone, at its documented rate, without a gap, and the
work is spread evenly over the SMs; so no kernel can be faster than the longest of these times,
and a kernel much slower than it waits for something that is no unit's rate: latency, barriers, or
two of these units at once.

=================  =======================================  ==================================
unit               work                                     rate of one SM, a clock
=================  =======================================  ==================================
issue slots        warp instructions                        4
FMA pipe           thread FFMAs                             ``Gpu.fp32_lanes_per_sm``
tensor pipe        FLOP of tensor cores, if there are any   ``Gpu.tensor_fp16_flops``, or measured
shared memory      wavefronts of 128 B                      ``gpus.data_bytes_per_clock`` / 128
L1 lines           lines looked up, at least one a request  ``gpus.TAG_LOOKUPS``
L1 bytes           sectors of 32 B                          ``gpus.data_bytes_per_clock`` / 32
DRAM               bytes read and written                   the GPU's bandwidth / SMs / clock
=================  =======================================  ==================================

No data sheet gives the L2's rate, and kernels here pass what a loop of reads measured. So the L2
is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from lib import gpus, ptx
from lib.gpus import Gpu
from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Variant
from lib.problem import Problem
from lib.ptx.core.machine import SECTOR, WAVEFRONT
from lib.records import store as records
from lib.records.schema import MachineRecord, mhz
from lib.run import device, runner
from lib.show import coalescing, roofline
from lib.show import instruction_mix as mix
from lib.show.coalescing import WarpAccess
from lib.show.display import show
from lib.show.roofline import FP8, Roofs
from lib.show.scene import Scene, lanes
from lib.show.version import RECORDED_ON, TIMED, Version, measured_on
from lib.show.words import duration, percent


def scaled(
    one: Mapping[str, int], other: Mapping[str, int], depths: tuple[int, int], *, K: int,
    blocks: int,
) -> dict[str, int]:
    """Return the counters of `blocks` blocks and a depth of `K`.

    Parameters
    ----------
    one, other : mapping of str to int
        Counters of one block, at the first and at the second depth.
    depths : (int, int)
        The two K, which differ.
    K, blocks : int
        Of the large problem.

    Raises
    ------
    ValueError
        If the depths are equal, or a counter doesn't grow by whole numbers a step.
    """
    first, second = depths
    if first == second:
        raise ValueError(f"two runs of K = {first} tell nothing of K")
    found = {}
    for name, value in one.items():
        per_k, rest = divmod((other[name] - value) * (K - first), second - first)
        if rest:
            raise ValueError(f"{name} grows by {other[name] - value} from K = {first} to {second}, "
                             f"which gives no whole number at {K}")
        found[name] = blocks * (value + per_k)
    return found


HMMA_1688 = 16 * 8 * 8
"""FP16 multiply-adds of one HMMA.1688, all that a T4 has."""


def loop_instructions(
    per_thousand_fma: Mapping[str, float], counters: Mapping[str, int],
    tensor_instructions: int = 0,
) -> int:
    """Warp instructions that the inner loop issues over the launch: a lower bound for the kernel.

    Parameters
    ----------
    per_thousand_fma : mapping of str to float
        `lib.show.instruction_mix.per_thousand_fma` of the inner loop's SASS.
    counters : mapping of str to int
        Of the whole launch; 32 thread FFMAs are one warp instruction.
    tensor_instructions : int
        HMMAs of the launch, which stand in for FFMAs where a loop has none of those.
    """
    each = sum(per_thousand_fma.values()) / 1000
    return round(each * (tensor_instructions or counters["ffma_thread_instructions"] / 32))


def lines(sites: Iterable[ptx.Site], watched: Mapping[int, Sequence[WarpAccess]]) -> int:
    """Estimate the 128-byte lines of a launch from the accesses of its watched warp.

    Each global site's requests, times the mean lines of that site's watched accesses: exact where
    all warps access alike, as they do away from ragged edges.

    Parameters
    ----------
    sites : iterable of ptx.Site
    watched : mapping of int to sequence of ptx.WarpAccess
        By PTX line, as in ``Trace.watched``.

    Raises
    ------
    ValueError
        If a global site that ran was not watched.
    """
    total = 0.0
    for site in sites:
        if site.space != "global" or not site.requests:
            continue
        seen = watched.get(site.line)
        if not seen:
            raise ValueError(f"no access of PTX line {site.line} was watched")
        mean = sum(len(coalescing.describe(access).lines) for access in seen) / len(seen)
        total += site.requests * mean
    return round(total)


def least_times(
    counters: Mapping[str, float], gpu: Gpu, *, warp_instructions: float, dram_bytes: float,
    clock_hz: float | None = None, tensor_flops: float = 0.0,
    tensor_flops_per_s: float | None = None,
) -> dict[str, float]:
    """Return the least seconds that each unit needs, the tensor cores after the FMA pipe.

    The tensor pipe comes behind the FMA pipe where it has something to do.

    Parameters
    ----------
    counters : mapping of str to float
        Of the whole launch, with the keys of ``Trace.counters()``.
    gpu : Gpu
        The data sheet that gives the rates.
    warp_instructions : float
        Warp instructions executed: measured, or `loop_instructions`.
    dram_bytes : float
        Bytes that DRAM reads and writes: measured, or compulsory.
    clock_hz : float, optional
        The SMs' clock; the data sheet's boost clock if not given.
    tensor_flops : float
        FLOP of tensor cores, from `tensor_flops`.
    tensor_flops_per_s : float, optional
        Their measured peak with the instruction in question, such as ``mma_k8`` of the machine's
        record; if not given, the data sheet's, at the clock that is given.
    """
    hz = clock_hz or gpu.clock_hz
    clocks = gpu.sms * hz
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    # The least that requests and sectors allow: one a request, and one for every four sectors.
    looked_up = max(requests, math.ceil(sectors / 4))
    data = gpus.data_bytes_per_clock(gpu)
    peak = tensor_flops_per_s or gpu.tensor_fp16_flops * hz / gpu.clock_hz
    return {
        "issue slots": warp_instructions / gpus.ISSUE_SLOTS / clocks,
        "FMA pipe": counters["ffma_thread_instructions"] / gpu.fp32_lanes_per_sm / clocks,
        **({"tensor pipe": tensor_flops / peak} if tensor_flops else {}),
        "shared memory": counters["shared_wavefronts"] * WAVEFRONT / data / clocks,
        "L1 lines": looked_up / gpus.TAG_LOOKUPS / clocks,
        "L1 bytes": sectors * SECTOR / data / clocks,
        "DRAM": dram_bytes / gpu.dram_bytes_per_s,
    }


def fp8_flops(gpu: Gpu, clock_hz: float) -> float:
    """The data sheet's peak of 8-bit floats at a clock, FLOP/s."""
    return gpu.flops("float8_e4m3fn") * clock_hz / gpu.clock_hz


def of_record(
    metrics: Mapping[str, float], gpu: Gpu, roofs: Roofs | None, *, dtype: str, flops: float,
    clock_mhz: float | None,
) -> dict[str, float]:
    """Return the least seconds that each unit needs for a launch that ncu has counted.

    Parameters
    ----------
    metrics : mapping of str to float
        By the names of ``lib.measure.counters``.
    gpu : Gpu
    roofs : Roofs, optional
        Measured on that GPU: of the product's instruction.
    dtype : str
        Of A and B.
    flops : float
        Of the launch.
    clock_mhz : float, optional
        The SMs' clock while it was timed; the data sheet's if not given.
    """
    tensor: dict[str, Any] = {}
    hz = clock_mhz * 1e6 if clock_mhz else gpu.clock_hz
    if product := roofline.instruction(metrics, flops, dtype):
        tensor = {
            "tensor_flops": flops,
            "tensor_flops_per_s": fp8_flops(gpu, hz) if product == FP8
            else roofs and roofs.peaks.get(product),
        }
    return least_times(metrics, gpu, warp_instructions=metrics["instructions"],
                       dram_bytes=metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
                       clock_hz=hz, **tensor)


def longest(times: Mapping[str, float]) -> str:
    """Return the unit that needs the most time: what the next version must relieve."""
    return max(times, key=lambda unit: times[unit])


def whole_tiles(variant: Variant, size: int) -> int:
    """How many tiles a cube has.

    Raises
    ------
    ValueError
        If they don't divide it.
    """
    M, N = variant.tile
    if size % M or size % N or size % variant.step:
        raise ValueError(f"{size} is no multiple of {variant.name}'s tile {M}×{N}×{variant.step}")
    return size // M * (size // N)


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


def emulated_times(stem: str, name: str, gpu: Gpu, size: int) -> dict[str, float]:
    """Return the least seconds of each unit for a version on tensor cores.

    Counters are those of two emulated launches of one block, scaled; warp instructions are those of
    the inner loop's SASS.

    Parameters
    ----------
    stem, name : str
        Version and variant.
    gpu : Gpu
        The data sheet that gives the rates, and the architecture that is compiled for.
    size : int
        M = N = K: a multiple of the tile.

    Raises
    ------
    ValueError
        If tiles don't divide the problem.
    """
    kernel = kernels.find(stem)
    variant = kernel.variant(name)
    blocks = whole_tiles(variant, size)
    depths, traces = _one_block(stem, name, gpu.arch)
    one, other = (trace.counters() for trace in traces)
    counters = scaled(one, other, depths, K=size, blocks=blocks)
    loop = compile_kernel(kernel, variant, gpu.arch).inner_loop
    work = size**3
    return least_times(
        counters, gpu, tensor_flops=2.0 * work,
        tensor_flops_per_s=fp8_flops(gpu, gpu.clock_hz) if variant.scaling else None,
        warp_instructions=loop_instructions(mix.per_thousand_fma(i.opcode for i in loop),
                                            counters, work // HMMA_1688),
        dram_bytes=variant.problem(size, size, size).compulsory_bytes)


_ROOM = 1.25  # of the longest bar: its time stands behind it


def picture(times: Mapping[str, float], seconds: float, *, evidence: str,
            seconds_evidence: str = "recorded", note: str = "") -> Scene:
    """Draw one bar a unit.

    Parameters
    ----------
    times : mapping of str to float
        `lib.show.bottleneck.least_times`: seconds by unit.
    seconds : float
        The time that the kernel took.
    seconds_evidence : str
        What that time is: ``"measured"`` or ``"recorded"``.
    """
    busiest, end = longest(times), _ROOM * max(*times.values(), seconds)
    colours = {unit: "warning" if unit == busiest else "other pale" for unit in times}
    bars = {**times, seconds_evidence: seconds}
    return Scene(
        f"{busiest[0].upper()}{busiest[1:]}: busy for at least "
        f"{percent(times[busiest] / seconds)} of the time",
        lanes([(unit, [(0.0, value, colours.get(unit, "focus"), ""),
                       (value, end, "behind", duration(value) if value else "none")])
               for unit, value in bars.items()], end), evidence, note)


def draw(version: Version) -> None:
    """Draw the least time that each unit needs, and the time that the kernel took.

    Where a GPU with a data sheet is here, its units come first, with the time measured on it.

    """
    if version.measures(version.kernel.fastest):
        _here(version)
    row = version.recorded(TIMED)
    machine = records.load(MachineRecord, RECORDED_ON)
    times = of_record(
        version.metrics(TIMED), gpus.GPUS[RECORDED_ON],
        roofline.Roofs.from_record(machine, gpus.GPUS[RECORDED_ON]) if machine else None,
        dtype=version.kernel.fastest.dtype, flops=2.0 * TIMED**3, clock_mhz=mhz(row.clock))
    show(picture(
        times, row.seconds, note="L1 lines: a wavefront each",
        evidence=f"modelled: {RECORDED_ON} rates × {records.label(version.record)}, {TIMED:,}³"))


def _here(version: Version) -> None:
    """Draw the units of the GPU that is here, if it has a data sheet, and the time measured."""
    try:
        gpu = gpus.find(device.name())
    except ValueError:
        return
    times = emulated_times(version.kernel.stem, version.kernel.variants[0].name, gpu, TIMED)
    show(picture(
        times, version.timed(version.kernel.fastest, TIMED).seconds, seconds_evidence="measured",
        note="DRAM: compulsory bytes",
        evidence=f"modelled: {gpu.key} data sheet × emulated counters; {measured_on()}, "
                 f"{TIMED:,}³"))
