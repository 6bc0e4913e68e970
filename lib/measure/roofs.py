"""The machine's own roofs: what DRAM, L2, shared memory, FP32 units and tensor cores reach here.

Measured by the kernels of ``cuda/roofs.cu``, each of which presses one unit. A data sheet
gives what the wires allow; these are what a kernel can hope for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lib.compiler.compiled import compile_file
from lib.kernels.grid import Launch
from lib.measure.bench import probed
from lib.measure.probe import clock
from lib.paths import CUDA
from lib.problem import Problem
from lib.ptx.core.machine import WARP
from lib.records.schema import Roof, Roofs
from lib.run import device

Unit = Literal["B/s", "FLOP/s"]
THREADS = 256
REPEATS = 9
BATCH = 8  # launches between two events
FLOAT4 = 16  # bytes
WGMMA_N = 256  # columns of a product
# Shared memory of `wgmma_chains`: 64 rows of A for each warpgroup and WGMMA_N columns of B, 128
# bytes each, and what aligns them.
WGMMA_TILES = (THREADS // 128 * 64 + WGMMA_N) * 128
WGMMA_SHARED = WGMMA_TILES + 1024


def roofs() -> Roofs:
    """Measure the roofs. Raises NoGpu if there is no GPU."""
    cp = device.cupy()
    blocks = 8 * device.sms()
    return Roofs(
        copy=_copy(cp, blocks),
        l2=_l2(cp, blocks, cp.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]),
        shared=_shared(cp, blocks),
        ffma=_ffma(cp, blocks),
        mma_k8=_mma(cp, blocks, 8),
        mma_k16=_mma(cp, blocks, 16) if device.arch() != "sm_75" else None,
        wgmma=_wgmma(cp, blocks) if device.arch() == "sm_90a" else None,
    )


def _copy(cp: Any, blocks: int) -> Roof:
    count = 2**26  # 1 GiB read and 1 GiB written, far beyond any L2
    source, target = cp.ones((count, 4), "float32"), cp.empty((count, 4), "float32")
    call = _kernel("copy", 4 * blocks, (source, target, np.uint64(count)))
    return _best(call, 2 * count * FLOAT4, "B/s", "copy of 1 GiB, bytes read plus bytes written")


def _l2(cp: Any, blocks: int, l2_bytes: int) -> Roof:
    # An eighth of the L2: small enough to stay in it whichever half of the chip asks.
    step = 4 * THREADS
    count = l2_bytes // 8 // FLOAT4 // step * step
    repeats = 8
    source = cp.ones((count, 4), "float32")
    target = cp.empty((blocks * THREADS, 4), "float32")
    call = _kernel("read_l2", blocks, (source, target, np.uint32(count), np.int32(repeats)))
    nbytes = blocks * repeats * count * FLOAT4
    size = f"{count * FLOAT4 / 2**20:.1f} MiB"
    return _best(call, nbytes, "B/s", f"every block reads the same {size} past the L1")


def _shared(cp: Any, blocks: int) -> Roof:
    repeats = 4096
    target = cp.empty((blocks * THREADS, 4), "float32")
    call = _kernel("read_shared", blocks, (target, np.int32(repeats)))
    nbytes = blocks * THREADS * repeats * 8 * FLOAT4
    return _best(call, nbytes, "B/s", "128-bit shared loads without conflicts")


def _ffma(cp: Any, blocks: int) -> Roof:
    repeats = 2048
    target = cp.empty(blocks * THREADS, "float32")
    args = (target, np.float32(0.999), np.float32(0.5), np.int32(repeats))
    call = _kernel("fma_chains", blocks, args)
    return _best(call, 2.0 * blocks * THREADS * repeats * 256, "FLOP/s",
                 "16 independent chains of FFMA a thread, registers only")


def _mma(cp: Any, blocks: int, k: int) -> Roof:
    repeats = 4096
    target = cp.empty(blocks * THREADS, "float32")
    # Zeros would draw less power than products do, and so run at a clock that no GEMM can have.
    operands = cp.asarray(Problem(1, THREADS, 6, dtype="float16").inputs()[1])
    call = _kernel("mma_chains", blocks, (operands, target, np.int32(repeats)), k)
    warps = blocks * THREADS // WARP
    return _best(call, 2.0 * 16 * 8 * k * 8 * warps * repeats, "FLOP/s",
                 f"8 independent chains of mma.m16n8k{k} a warp, sums in FP32, registers only")


def _wgmma(cp: Any, blocks: int) -> Roof:
    repeats = 2048
    target = cp.empty(blocks * THREADS, "float32")
    tiles = cp.asarray(Problem(1, WGMMA_TILES // 128, 64, dtype="float16").inputs()[1])
    call = _kernel("wgmma_chains", blocks, (tiles, target, np.int32(repeats)), WGMMA_N,
                   shared_bytes=WGMMA_SHARED)
    groups = blocks * THREADS // 128
    return _best(call, 2.0 * 64 * WGMMA_N * 64 * groups * repeats, "FLOP/s",
                 f"chains of wgmma.m64n{WGMMA_N}k16, two warpgroups a block, operands in shared "
                 "memory, sums in FP32")


def _kernel(
    function: str, blocks: int, args: tuple[Any, ...], *constants: int, shared_bytes: int = 0
) -> Callable[[], None]:
    expression = f"{function}<{', '.join(map(str, (THREADS, *constants)))}>"
    compiled = compile_file(CUDA / "roofs.cu", expression, device.arch())
    loaded = device.Loaded(compiled)
    launch = Launch((blocks, 1, 1), (THREADS, 1, 1), shared_bytes)
    return lambda: loaded(launch, args)


def _best(call: Callable[[], None], amount: float, unit: Unit, method: str) -> Roof:
    """Rate of the fastest of several launches: a roof is what can be reached."""
    def batch() -> None:
        for _ in range(BATCH):
            call()

    call()
    samples = [probed(batch, BATCH) for _ in range(REPEATS)]
    best = min(samples, key=lambda one: one.seconds)
    return Roof(value=amount / best.seconds, unit=unit, method=method, clock=clock([[best]]))
