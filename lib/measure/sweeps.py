"""Series of measurements for one question: one thing is varied, all else is held.

What is varied, and how a record of it is read, is in `lib.records.sweeps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from lib import gpus
from lib.compiler.compiled import Compiled
from lib.gpus import Gpu
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import find
from lib.kernels.spec import Variant
from lib.measure import cublas, turns
from lib.measure.bench import KernelPlayer, copies_of, refuse_wrong
from lib.problem import Problem
from lib.ptx.core.machine import WARP
from lib.records.schema import Sweep, Swept
from lib.records.sweeps import (
    DOUBLE_BUFFER,
    FORMS,
    LATE,
    STEM,
    TILES,
    Tile,
    hashes,
    source,
    variant,
)
from lib.run import device
from lib.run.runner import prepare
from lib.show.occupancy import occupancy

SIZE = 4096


@dataclass(frozen=True)
class Setting:
    """One form of a tile, and so many blocks on an SM."""

    tile: Tile
    form: str
    variant: Variant
    compiled: Compiled
    blocks: int


def settings(tile: Tile, arch: str, gpu: Gpu) -> list[dict[str, Setting]]:
    """Every number of blocks that a tile is measured at, each with its forms.

    One, two, four and so on, as long as each form has registers and shared memory for them.
    """
    kernel = find(STEM)
    made = {form: variant(tile, form) for form in FORMS}
    compiled = {
        form: compile_kernel(kernel, made[form], arch, source=source(form))
        for form in FORMS
    }
    fit = min(
        occupancy(gpu, c.resources.registers, c.resources.shared_bytes, made[form].threads).blocks
        for form, c in compiled.items()
    )
    found, blocks = [], 1
    while blocks <= min(fit, tile.max_blocks):
        found.append({
            form: Setting(
                tile, form,
                replace(made[form], shared_bytes=unused_bytes(
                    gpu, compiled[form].resources.shared_bytes, blocks)),
                compiled[form], blocks,
            )
            for form in FORMS
        })
        blocks *= 2
    return found


def unused_bytes(gpu: Gpu, static_bytes: int, blocks: int) -> int:
    """Dynamic shared memory with which so many blocks fit an SM, and not one more.

    `static_bytes`: what the kernel has in any case.
    """
    unit = gpu.shared_allocation_bytes
    share = gpu.shared_bytes_per_sm // blocks // unit * unit - gpu.shared_bytes_reserved
    return max(min(share, gpu.shared_bytes_per_block) - static_bytes, 0)


def measure() -> dict[str, Sweep]:
    """Measure every sweep, each by its name.

    Raises NoGpu if there is no GPU; WrongResult if a result is wrong.
    """
    cp = device.cupy()
    problem = Problem(SIZE, SIZE, SIZE)
    copies = copies_of(problem, cp)
    reference = problem.reference(*problem.inputs(0, cp))
    gpu = gpus.find(device.name())
    rows = [
        _row(forms, problem, copies, reference)
        for tile in tqdm(TILES, desc=DOUBLE_BUFFER)
        for forms in settings(tile, device.arch(), gpu)
    ]
    method = (f"median of {turns.SERIES} samples, the forms and cuBLAS's default in turns; "
              "otherwise as bench")
    shape = problem.M, problem.N, problem.K
    return {DOUBLE_BUFFER: Sweep(kernel=STEM, shape=shape, method=method, rows=tuple(rows))}


def _row(
    forms: Mapping[str, Setting], problem: Problem, copies: list[tuple[Any, Any, Any]],
    reference: Any,
) -> Swept:
    """Time the forms of one tile at one number of blocks, and cuBLAS, in turns."""
    kernel = find(STEM)

    def launcher(setting: Setting) -> Callable[[int], None]:
        # The launch is made here, and not from a narrower instantiation: SIZE fits every vector.
        prepared = prepare(kernel, setting.variant, problem, copies, exact=True)
        loaded = device.Loaded(setting.compiled)
        return lambda index: loaded(*prepared.steps[index][-1][1:])

    calls = {form: launcher(setting) for form, setting in forms.items()}
    calls["cuBLAS"] = lambda index: cublas.gemm(problem, *copies[index])
    for name, call in calls.items():
        refuse_wrong(name, call, problem, copies[0], reference)
    players = [KernelPlayer(call, len(copies)) for call in calls.values()]
    times = dict(zip(calls, turns.take(players, 1), strict=True))
    one = forms[LATE]
    return Swept(
        block=one.tile.block, warp=one.tile.warp, blocks=one.blocks,
        warps=one.blocks * one.variant.threads // WARP,
        seconds={form: times[form].seconds for form in FORMS},
        spread={form: times[form].spread for form in FORMS},
        registers={form: forms[form].compiled.resources.registers for form in FORMS},
        hashes=hashes(one.tile),
        cublas_seconds=times["cuBLAS"].seconds,
        clock={form: clock for form in FORMS if (clock := times[form].clock)},
    )
