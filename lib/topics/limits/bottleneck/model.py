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
is left out, and `l2_needed` says what its rate would have to be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lib import gpus
from lib.gpus import Gpu
from lib.ptx.core.machine import SECTOR, WARPGROUP, WAVEFRONT
from lib.show import coalescing
from lib.show.coalescing import WarpAccess
from lib.topics.limits.roofline.model import FP8, Roofs

HMMA_1688 = 16 * 8 * 8
"""FP16 multiply-adds of one HMMA.1688, all that a T4 has."""

UNITS = ("issue slots", "FMA pipe", "shared memory", "L1 lines", "L1 bytes", "DRAM")
PLURAL = ("issue slots", "L1 lines", "L1 bytes")
"""Units that a sentence has in the plural."""


class Site(Protocol):
    """What `lines` needs of a memory instruction; ``lib.ptx.Site`` has it."""

    line: int
    space: str
    requests: int


def compulsory_bytes(
    M: int, N: int, K: int, beta: float = 0.0, itemsize: int = 4, out: int | None = None
) -> int:
    """Bytes that DRAM must move if each element crosses it once: A, B, C written, C read if β ≠ 0.

    `itemsize` is that of A and B, `out` that of C, the same if it is not given.

    A lower bound that a cache as large as the matrices reaches; say "compulsory" where it is shown.
    """
    return itemsize * (M * K + K * N) + (out or itemsize) * M * N * (2 if beta != 0 else 1)


def l2_needed(l2_bytes: float, times: Mapping[str, float]) -> float:
    """Return the B/s that the L2 must deliver so as not to be the longest of `times`.

    Parameters
    ----------
    l2_bytes : float
        Bytes that the SMs ask of it.
    times : mapping of str to float
        `least_times` of the other units.
    """
    return l2_bytes / max(times.values())


def loop_instructions(
    per_thousand_fma: Mapping[str, float], counters: Mapping[str, int],
    tensor_instructions: int = 0,
) -> int:
    """Warp instructions that the inner loop issues over the launch: a lower bound for the kernel.

    Parameters
    ----------
    per_thousand_fma : mapping of str to float
        `lib.topics.code.instruction_mix.model.per_thousand_fma` of the inner loop's SASS.
    counters : mapping of str to int
        Of the whole launch; 32 thread FFMAs are one warp instruction.
    tensor_instructions : int
        HMMAs of the launch, which stand in for FFMAs where a loop has none of those.
    """
    each = sum(per_thousand_fma.values()) / 1000
    return round(each * (tensor_instructions or counters["ffma_thread_instructions"] / 32))


_PRODUCT = re.compile(r"^(?:wmma\.mma|mma|wgmma\.mma_async)\..*\bm(\d+)n(\d+)k(\d+)\b")


def tensor_flops(instructions: Mapping[str, tuple[int, int]]) -> float:
    """FLOP of all matrix products of a launch: 2·m·n·k for each mma or wmma of a warp, and for each
    wgmma of four.

    Parameters
    ----------
    instructions : mapping of str to (int, int)
        ``ptx.Trace.instructions``: warp and thread instructions by PTX opcode.
    """
    total = 0.0
    for opcode, (warps, _) in instructions.items():
        if shape := _PRODUCT.match(opcode):
            together = WARPGROUP if opcode.startswith("wgmma") else 1
            total += 2.0 * warps / together * math.prod(map(int, shape.groups()))
    return total


def lines(sites: Iterable[Site], watched: Mapping[int, Sequence[WarpAccess]]) -> int:
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
    lines: int | None = None, clock_hz: float | None = None, dram_bytes_per_s: float | None = None,
    tensor_flops: float = 0.0, tensor_flops_per_s: float | None = None,
) -> dict[str, float]:
    """Return the least seconds that each unit needs, by unit in the order of `UNITS`.

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
        Bytes that DRAM reads and writes: measured, or `compulsory_bytes`.
    lines : int, optional
        128-byte lines touched, summed over requests, from `lines`. If not given, the least that
        requests and sectors allow: one a request, and one for every four sectors.
    clock_hz : float, optional
        The SMs' clock; the data sheet's boost clock if not given.
    dram_bytes_per_s : float, optional
        A measured bandwidth; the data sheet's if not given.
    tensor_flops : float
        FLOP of tensor cores, from `tensor_flops`.
    tensor_flops_per_s : float, optional
        Their measured peak with the instruction in question, such as ``mma_k8`` of the machine's
        record; if not given, the data sheet's, at the clock that is given.

    Raises
    ------
    ValueError
        If `lines` is fewer than requests and sectors allow.
    """
    clocks = gpu.sms * (clock_hz or gpu.clock_hz)
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    fewest = max(requests, math.ceil(sectors / 4))
    looked_up = fewest if lines is None else lines
    if looked_up < fewest:
        raise ValueError(f"{lines} lines cannot hold {sectors} sectors of {requests} requests")
    data = gpus.data_bytes_per_clock(gpu)
    ffma = counters["ffma_thread_instructions"]
    peak = tensor_flops_per_s or gpu.tensor_fp16_flops * (clock_hz or gpu.clock_hz) / gpu.clock_hz
    return {
        "issue slots": warp_instructions / gpus.ISSUE_SLOTS / clocks,
        "FMA pipe": ffma / gpu.fp32_lanes_per_sm / clocks,
        **({"tensor pipe": tensor_flops / peak} if tensor_flops else {}),
        "shared memory": counters["shared_wavefronts"] * WAVEFRONT / data / clocks,
        "L1 lines": looked_up / gpus.TAG_LOOKUPS / clocks,
        "L1 bytes": sectors * SECTOR / data / clocks,
        "DRAM": dram_bytes / (dram_bytes_per_s or gpu.dram_bytes_per_s),
    }



def fp8_flops(gpu: Gpu, clock_hz: float) -> float:
    """The data sheet's peak of 8-bit floats at a clock, FLOP/s."""
    return gpu.flops("float8_e4m3fn") * clock_hz / gpu.clock_hz


def of_record(
    metrics: Mapping[str, float], gpu: Gpu, roofs: Roofs | None, *, product: str | None,
    flops: float, clock_mhz: float | None, lines: int | None = None,
) -> dict[str, float]:
    """Return the least seconds that each unit needs for a launch that ncu has counted.

    Parameters
    ----------
    metrics : mapping of str to float
        By the names of ``lib.measure.counters``.
    gpu : Gpu
    roofs : Roofs, optional
        Measured on that GPU: of the product's instruction.
    product : str, optional
        What `lib.topics.limits.roofline.model.product_of` says; None where no tensor core works.
    flops : float
        Of the launch.
    clock_mhz : float, optional
        The SMs' clock while it was timed; the data sheet's if not given.
    lines : int, optional
        As `least_times` has it.
    """
    tensor: dict[str, Any] = {}
    hz = clock_mhz * 1e6 if clock_mhz else gpu.clock_hz
    if product is not None:
        tensor = {
            "tensor_flops": flops,
            "tensor_flops_per_s": fp8_flops(gpu, hz) if product == FP8
            else roofs and roofs.products.get(product),
        }
    return least_times(metrics, gpu, lines=lines, warp_instructions=metrics["instructions"],
                       dram_bytes=metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
                       clock_hz=clock_mhz * 1e6 if clock_mhz else None, **tensor)


def longest(times: Mapping[str, float]) -> str:
    """Return the unit that needs the most time: what the next version must relieve."""
    return max(times, key=lambda unit: times[unit])
