"""One kernel on one problem, on the GPU or in the emulator, with the same call."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lib import ptx
from lib.compiler.arch import check_arch, legal
from lib.compiler.compiled import Compiled
from lib.dispatch.cost import Choice
from lib.dispatch.plan import Plan, plan
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch, Sms
from lib.kernels.spec import Kernel, Variant
from lib.paths import CUDA
from lib.problem import Problem, Verdict
from lib.records import searches
from lib.run import device
from lib.run.prepared import Step, addresses, lay_out

BACKENDS = ("auto", "gpu", "emulator")


@dataclass(frozen=True)
class Run:
    """What happened."""

    # kernel, variant, problem: what was run.
    kernel: Kernel
    variant: Variant
    problem: Problem
    backend: str  # ``"gpu"`` or ``"emulator"``: where it ran
    arch: str  # what it was compiled for
    C: Any  # (M, N) array, the result, NumPy's or CuPy's
    operands: tuple[Any, ...]  # all that `Problem.inputs` gives, as the kernel left it
    verdict: Verdict  # against the float64 reference
    plan: Plan  # the instantiation that was launched, how, and why if it is not `variant` itself
    compiled: Compiled
    launch: ptx.Launch | None  # the emulator's trace, hazards and allocations; None on a GPU

    @property
    def emulated(self) -> ptx.Launch:
        """`launch`, of a run in the emulator. Raises ValueError if it ran on a GPU."""
        if self.launch is None:
            raise ValueError(f"{self.kernel.stem} ran on a GPU; use backend 'emulator'")
        return self.launch

    @property
    def trace(self) -> ptx.Trace:
        """What the emulator counted; raises as `emulated` does, and where it did not count."""
        return self.emulated.traced


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
    given: Sequence[Any] | None = None,
) -> Run:
    """Run a kernel on random inputs and judge the result.

    `variant`: the kernel's fastest if not given. `backend` ({"auto", "gpu", "emulator"}):
    ``"auto"`` takes the GPU if one here can run the variant and nothing of the emulator's own is
    asked for.
    `arch`: what to compile for: this GPU's own, or in the emulator the oldest that runs the
    variant. `watch`: block and warp whose addresses the emulator keeps. `races`: let the emulator
    look for races. `schedule`: the emulator's order of warps: ``"lowest"``, ``"highest"`` or
    ``"random"``. `landing`: when the emulator lets asynchronous copies land: ``"early"`` or
    ``"late"``. `seed`: seed of the inputs and of the random schedule. `source`: CUDA text to run in
    place of the kernel's file: the file, changed, for an experiment. `trace`: let the emulator
    count. Without it a run is quicker, and its launch's trace is None. `exact`: keep to the
    variant's own tile, also where a smaller one suits the shape better. `sms`: launch a persistent
    kernel for so many SMs; for those of the GPU, or in the emulator for an H100's, if not given.
    `given`: what `Problem.inputs` gives, NumPy's, in place of random ones; it stays as it is.
    Raises ValueError if the shape or the type can't be launched, or a name is unknown; NoGpu if
    `backend` is ``"gpu"`` and no GPU can be used, or the one here can't run the variant.
    """
    variant = variant or kernel.fastest
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
    if where == "gpu":
        here = device.arch(kernel.needs(variant))
        target = check_arch(arch or here)
        if here not in legal(target):
            raise ValueError(f"code for {target} doesn't run on this GPU, an {here}")
        xp = device.cupy()
    else:
        target = check_arch(arch or kernel.oldest(variant))
        xp = np
    # Raises before anything is allocated.
    chosen = planned(kernel, variant, problem, sms=sms, exact=exact, on_gpu=where == "gpu")
    operands = list(problem.inputs(seed, xp) if given is None else (
        None if one is None else xp.asarray(one) for one in given))
    if given is not None:  # what kernels write to: C, and behind A and B an amax
        operands[2:] = [None if one is None else one.copy() for one in operands[2:]]
    C = operands[2]
    prepared = Prepared(chosen, lay_out(chosen, problem, [tuple(operands)], xp))
    compiled = compile_kernel(
        kernel, chosen.variant, target, source=source,
        ptx_only=where == "emulator" and not trace,  # counting asks how ptxas merged accesses
    )
    reference = problem.reference(*operands)
    launched = None
    if where == "gpu":
        Loaded(kernel, prepared, target, source=source)(0)
        xp.cuda.get_current_stream().synchronize()
    else:
        options: dict[str, Any] = {"watch": watch, "races": races, "schedule": schedule,
                                   "landing": landing, "seed": seed}
        if source is not None:  # reports show its lines, and not those of the file
            options["sources"] = {kernel.file(chosen.variant).name: source}
        *packing, main = prepared.steps[0]
        packed = []
        for step in packing:
            packings = compile_kernel(kernel, step.variant, target,
                                   source=_of_its_file(kernel, chosen.variant, step, source))
            packed.append(emulate(packings, step.launch, step.arguments, trace=False,
                                  **(options | {"watch": None})))
        launched = emulate(compiled, main.launch, main.arguments, trace=trace, **options)
        launched.hazards[:0] = [hazard for copy in packed for hazard in copy.hazards]
        launched.looked_at += sum(copy.looked_at for copy in packed)
    verdict = problem.judge(C, reference, *operands[3:])
    return Run(kernel, variant, problem, where, target, C, tuple(operands), verdict, chosen,
               compiled, launched)


def emulate(
    compiled: Compiled, launch: Launch, args: tuple[Any, ...], *, trace: bool = True,
    sources: Mapping[str, str] | None = None, **options: Any,
) -> ptx.Launch:
    """Run compiled code in the emulator, its accesses and FFMA counted as ptxas made them.

    `args`: NumPy arrays (changed in place) and scalars. `trace`: whether to count. What ptxas made
    takes a disassembly, and only counting asks for it. `sources`: texts that were compiled in place
    of files, by the files' names: reports show their lines. `options`: the emulator's own: `watch`,
    `races`, `schedule`, `landing`, `seed`.
    """
    if trace:
        options |= {"merge": compiled.merge, "ffma": compiled.ffma}
    sys.audit("gemm.blocks emulated", math.prod(launch.grid))
    module = ptx.Module(compiled.ptx, compiled.arch, sources=sources, folders=[CUDA])
    function = module.get_function(compiled.name)
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


class Prepared(NamedTuple):
    """What there is to launch: the plan, and the launches for each set of matrices (`lay_out`)."""

    plan: Plan
    steps: list[list[Step]]


class Loaded:
    """A prepared product on the GPU: a call enqueues its launches for one set of matrices.

    `arch`: what to compile for. `ptx_arch`, `source`: as `compile_kernel` takes them. `modules`:
    the code on the device, by the C++ name of its instantiation.
    """

    def __init__(
        self, kernel: Kernel, prepared: Prepared, arch: str, ptx_arch: str | None = None,
        source: str | None = None,
    ) -> None:
        self._kernel, self._prepared = kernel, prepared
        self.modules = {
            kernel.expression(step.variant): device.Loaded(
                compile_kernel(kernel, step.variant, arch, ptx_arch=ptx_arch,
                               source=_of_its_file(kernel, prepared.plan.variant, step, source))
            )
            for steps in prepared.steps for step in steps
        }

    def __call__(self, index: int) -> None:
        self._enqueue(self._prepared.steps[index])

    def copy_operands(self, index: int) -> None:
        """Enqueue the copies alone that come before the product; of most products there are none.
        """
        self._enqueue(self._prepared.steps[index][:-1])

    def _enqueue(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.modules[self._kernel.expression(step.variant)](step.launch, step.arguments)


def _of_its_file(kernel: Kernel, main: Variant, step: Step, source: str | None) -> str | None:
    """The changed text of the main launch's file, for a launch of the same file."""
    return source if kernel.file(step.variant) == kernel.file(main) else None


def planned(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    addresses: Sequence[int] = (),
    sms: Sms | None = None,
    *,
    exact: bool = False,
    choice: Choice | None = None,
    on_gpu: bool = False,
) -> Plan:
    """Decide what is launched (`lib.dispatch.plan.plan`), by the recorded searches.

    `on_gpu`: for the GPU here, with its SMs if none are given.

    Raises NoGpu if the GPU here can't run the instantiation; ValueError as `lib.dispatch.plan.plan`
    does.
    """
    if sms is None and on_gpu:
        sms = device.filled
    found = plan(kernel, variant, problem, addresses, sms, exact=exact, choice=choice,
                 searches=searches.of(kernel, variant))
    if on_gpu and (refused := device.why_not(kernel, found.variant)):
        raise device.NoGpu(refused)
    return found


def prepare(
    kernel: Kernel,
    variant: Variant,
    problem: Problem,
    sets: Sequence[tuple[Any, ...]],
    exact: bool = False,
    sms: int | None = None,
    choice: Choice | None = None,
) -> Prepared:
    """Decide what is launched for a problem and its matrices, and lay out all that it takes.

    `sets`: each as `Problem.inputs` gives it, NumPy's or CuPy's arrays. `exact`: keep to the
    variant's own tile (see `lib.dispatch.plan`). `sms`: as `run` takes it. `choice`: the candidate
    of a tuned variant to launch, in place of the one that it would choose. Raises NoGpu if the
    matrices are CuPy's and the GPU can't run the instantiation; ValueError if the shape can't be
    launched, or a matrix begins where the instantiation can't reach it.
    """
    on_gpu = not isinstance(sets[0][0], np.ndarray)
    places = [place for one in sets for place in addresses(*one[:3])]
    found = planned(kernel, variant, problem, places, sms, exact=exact, choice=choice,
                    on_gpu=on_gpu)
    return Prepared(found, lay_out(found, problem, sets, device.cupy() if on_gpu else np))
