"""One kernel on one problem, on the GPU or in the emulator, with the same call."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler.arch import TARGETS, check_arch
from lib.compiler.compiled import Compiled
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch
from lib.kernels.select import Choice, Selection, select
from lib.kernels.spec import Kernel, Variant
from lib.problem import ITEM_BYTES, Problem, Verdict
from lib.records.tuning import choose
from lib.run import device
from lib.run.launching import Ready
from lib.run.prepared import Prepared, addresses, lay_out

BACKENDS = ("auto", "gpu", "emulator")


@dataclass(frozen=True)
class Run:
    """What happened.

    Attributes
    ----------
    kernel, variant, problem
        What was run.
    backend : str
        ``"gpu"`` or ``"emulator"``: where it ran.
    arch : str
        What it was compiled for.
    C : (M, N) array
        The result, NumPy's or CuPy's.
    verdict : Verdict
        Against the float64 reference.
    selection : Selection
        The instantiation that was launched, and why if it is not `variant` itself.
    compiled : Compiled
    launch : ptx.Launch or None
        The emulator's trace, hazards and allocations; None on a GPU.
    """

    kernel: Kernel
    variant: Variant
    problem: Problem
    backend: str
    arch: str
    C: Any
    verdict: Verdict
    selection: Selection
    compiled: Compiled
    launch: ptx.Launch | None


def run(
    kernel: Kernel,
    problem: Problem,
    *,
    variant: Variant | None = None,
    backend: str = "auto",
    arch: str | None = None,
    watch: tuple[int, int] | None = None,
    races: bool = False,
    schedule: str = "lowest",
    landing: str = "early",
    seed: int = 0,
    source: str | None = None,
    trace: bool = True,
    exact: bool = False,
    sms: int | None = None,
) -> Run:
    """Run a kernel on random inputs and judge the result.

    Parameters
    ----------
    kernel : Kernel
    problem : Problem
    variant : Variant, optional
        The kernel's first if not given.
    backend : {"auto", "gpu", "emulator"}
        ``"auto"`` takes the GPU if one here can run the variant and nothing of the emulator's own
        is asked for.
    arch : str, optional
        What to compile for: this GPU's own, or in the emulator the oldest that runs the variant.
    watch : (int, int), optional
        Block and warp whose addresses the emulator keeps.
    races : bool
        Let the emulator look for races.
    schedule : str
        The emulator's order of warps: ``"lowest"``, ``"highest"`` or ``"random"``.
    landing : str
        When the emulator lets asynchronous copies land: ``"early"`` or ``"late"``.
    seed : int
        Seed of the inputs and of the random schedule.
    source : str, optional
        CUDA text to run in place of the kernel's file: the file, changed, for an experiment.
    trace : bool
        Let the emulator count. Without it a run is quicker, and its launch's trace is None.
    exact : bool
        Keep to the variant's own tile, also where a smaller one suits the shape better.
    sms : int, optional
        Launch a persistent kernel for so many SMs; for those of the GPU, or in the emulator for an
        H100's, if not given.

    Raises
    ------
    ValueError
        If the shape or the type can't be launched, or a name is unknown.
    NoGpu
        If `backend` is ``"gpu"`` and no GPU can be used, or the one here can't run the variant.
    """
    variant = variant or kernel.variants[0]
    asked = [
        name for name, given in (
            ("watch", watch is not None), ("races", races), ("schedule", schedule != "lowest"),
            ("landing", landing != "early"),
        ) if given
    ]
    if asked and backend == "auto":
        backend = "emulator"  # only there can it be had
    where = choose_backend(backend, kernel, variant)
    if asked and where == "gpu":
        raise ValueError(f"{', '.join(asked)}: the emulator's alone; use backend 'emulator'")
    kernel.launch(problem, variant)  # raises before anything is allocated
    if where == "gpu":
        target = check_arch(arch or device.arch())
        if TARGETS.index(target) > TARGETS.index(device.arch()):
            raise ValueError(f"code for {target} doesn't run on this GPU, an {device.arch()}")
        xp = device.cupy()
    else:
        target = check_arch(arch or kernel.oldest(variant))
        xp = np
    A, B, C = problem.inputs(seed, xp)
    prepared = prepare(kernel, variant, problem, [(A, B, C)], exact, sms)
    selection = prepared.selection
    compiled = compile_kernel(
        kernel, selection.variant, target, source=source,
        ptx_only=where == "emulator" and not trace,  # counting asks how ptxas merged accesses
    )
    reference = problem.reference(A, B, C)
    launched = None
    if where == "gpu":
        Loaded(kernel, prepared, target, source=source)(0)
        xp.cuda.get_current_stream().synchronize()
    else:
        options = {"watch": watch, "races": races, "schedule": schedule, "landing": landing,
                   "seed": seed}
        *packing, main = prepared.steps(0)
        hazards = []
        for step in packing:
            packs = compile_kernel(kernel, step.variant, target, source=source)
            hazards += emulate(packs, step.launch, step.arguments, trace=False,
                               **(options | {"watch": None})).hazards
        launched = emulate(compiled, main.launch, main.arguments, trace=trace, **options)
        launched.hazards[:0] = hazards
    verdict = problem.judge(C, reference)
    return Run(kernel, variant, problem, where, target, C, verdict, selection, compiled, launched)


def emulate(
    compiled: Compiled, launch: Launch, args: tuple[Any, ...], *, trace: bool = True, **options: Any
) -> ptx.Launch:
    """Run compiled code in the emulator, its accesses and FFMA counted as ptxas made them.

    Parameters
    ----------
    compiled : Compiled
    launch : Launch
    args : tuple
        NumPy arrays (changed in place) and scalars.
    trace : bool
        Whether to count. What ptxas made takes a disassembly, and only counting asks for it.
    **options
        The emulator's own: `watch`, `races`, `schedule`, `landing`, `seed`.
    """
    if trace:
        options |= {"merge": compiled.merge, "ffma": compiled.ffma}
    sys.audit("gemm.blocks emulated", math.prod(launch.grid))
    function = ptx.Module(compiled.ptx, compiled.arch).get_function(compiled.name)
    return function(
        launch.grid, launch.block, args, shared_mem=launch.shared_bytes, trace=trace, **options
    )


def choose_backend(backend: str, kernel: Kernel, variant: Variant) -> str:
    """Turn ``"auto"`` into ``"gpu"`` or ``"emulator"``; refuse what can't be had."""
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
    if backend == "gpu" and (refused := device.why_not(kernel, variant)):
        raise device.NoGpu(refused)
    if backend == "auto":
        return "gpu" if device.runs(kernel, variant) else "emulator"
    return backend


class Loaded:
    """A prepared product on the GPU: a call enqueues its launches for one set of matrices.

    Parameters
    ----------
    kernel : Kernel
    prepared : Prepared
    arch : str
        What to compile for.
    ptx_arch, source : str, optional
        As `compile_kernel` takes them.

    Attributes
    ----------
    modules : dict of str to device.Loaded
        The code on the device, by the C++ name of its instantiation.
    """

    def __init__(
        self, kernel: Kernel, prepared: Prepared, arch: str, ptx_arch: str | None = None,
        source: str | None = None,
    ) -> None:
        self._kernel, self._prepared = kernel, prepared
        self.modules = {
            kernel.expression(step.variant): device.Loaded(
                compile_kernel(kernel, step.variant, arch, ptx_arch=ptx_arch, source=source)
            )
            for index in range(len(prepared.arguments)) for step in prepared.steps(index)
        }

    def __call__(self, index: int) -> None:
        for step in self._prepared.steps(index):
            self.modules[self._kernel.expression(step.variant)](step.launch, step.arguments)

    def ready(self, index: int) -> list[Ready]:
        """The launches for one set, laid out; the last is the kernel's, the others pack."""
        return [
            self.modules[self._kernel.expression(step.variant)].ready(step.launch, step.arguments)
            for step in self._prepared.steps(index)
        ]


def prepare(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    sets: Sequence[tuple[Any, Any, Any]],
    exact: bool = False,
    sms: int | None = None,
    choice: Choice | None = None,
) -> Prepared:
    """Choose the instantiation that a problem and its matrices allow, and say how to launch it.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
    problem : Problem
    sets : sequence of (A, B, C)
        NumPy's or CuPy's arrays.
    exact : bool
        Keep to the variant's own tile (see `lib.records.tuning`).
    sms : int, optional
        As `run` takes it.
    choice : Choice, optional
        The candidate of a tuned variant to launch, in place of the one that it would choose.

    Raises
    ------
    NoGpu
        If the matrices are CuPy's and the GPU can't run the instantiation.
    ValueError
        If the shape can't be launched, or a matrix begins where the instantiation can't reach it.
    """
    on_host = isinstance(sets[0][0], np.ndarray)
    xp = np if on_host else device.cupy()
    if choice is None and variant.candidates and not exact:
        choice = choose(kernel, variant, problem)
    places = [place for one in sets for place in addresses(*one)]
    selection = select(kernel, problem, variant, places, choice)
    chosen = selection.variant
    _check_addresses(kernel, chosen, problem, places)
    if not on_host and (refused := device.why_not(kernel, chosen)):
        raise device.NoGpu(refused)
    if sms is None and not on_host:
        sms = device.sms()
    return lay_out(kernel, selection, problem, sets, xp, sms)


def _check_addresses(
    kernel: Kernel, variant: Variant, problem: Problem, places: Sequence[int]
) -> None:
    """Refuse matrices that begin where vectors of 16 bytes, or pairs of C, can't be loaded."""
    wanted = {"A": variant.row_bytes, "B": variant.row_bytes} if not variant.pack else {}
    if (variant.row_bytes or variant.warps_read) and problem.N % 2 == 0:
        wanted["C"] = 2 * ITEM_BYTES[problem.out]
    for name, nbytes in wanted.items():
        if nbytes and any(place % nbytes for place in places["ABC".index(name)::3]):
            raise ValueError(
                f"{kernel.stem}: {name} must begin at a multiple of {nbytes} bytes; copy it first"
            )
