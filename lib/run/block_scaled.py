"""28 with block scales on one problem, on the GPU or in the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler.arch import check_arch
from lib.dispatch.block_scaled import check, launch_of
from lib.dispatch.plan import Plan
from lib.kernels.blackwell import BLOCK_SCALED
from lib.kernels.block_scaled import BlockOperands, BlockScaledProblem, atoms
from lib.kernels.build import compile_kernel
from lib.kernels.grid import h100_sms
from lib.kernels.spec import Kernel, Variant
from lib.problem import Verdict
from lib.run import device
from lib.run.prepared import L2_PROMOTION, NO_MAP, TMA_SWIZZLE
from lib.run.runner import choose_backend, emulate
from lib.run.tensor_maps import encode

# Words of an atom of scales, the rows of their tensor map.
ATOM_WORDS = 128


@dataclass(frozen=True)
class BlockScaledRun:
    """What happened."""

    variant: Variant
    problem: BlockScaledProblem
    backend: str  # ``"gpu"`` or ``"emulator"``
    arch: str  # what it was compiled for
    plan: Plan  # the instantiation, which is `variant`, and how it was launched
    C: np.ndarray  # (M, N) array, NumPy's
    verdict: Verdict  # against float64, of the rounded matrices
    launch: ptx.Launch | None  # the emulator's hazards and counts; None on a GPU

    @property
    def trace(self) -> ptx.Trace:
        """What the emulator counted. Raises ValueError if it ran on a GPU."""
        if self.launch is None:
            raise ValueError("28_cta_pairs ran on a GPU; use backend 'emulator'")
        return self.launch.traced


def arguments(
    problem: BlockScaledProblem, given: BlockOperands, variant: Variant, xp: Any = np
) -> tuple[Any, ...]:
    """The arguments of the kernel, in its contract's order.

    `given`: codes and C as arrays of `xp`; the scales as NumPy's, which are laid out here. `xp`:
    ``numpy`` or ``cupy``.
    """
    assert variant.maps is not None
    boxes = variant.maps.boxes

    def of(array: Any, box: tuple[int, int], swizzle: int = TMA_SWIZZLE) -> Any:
        if not array.size:
            return NO_MAP
        return encode(array, box, swizzle=swizzle, l2_promotion=L2_PROMOTION)

    along = variant.step // problem.form.block // 4  # atoms in a step of K
    scales = [of(xp.asarray(atoms(one.scales)), (along, ATOM_WORDS), 0)
              for one in (given.A, given.B)]
    return (
        *map(np.int32, (problem.M, problem.N, problem.K)), np.float32(problem.alpha),
        of(given.A.codes, boxes["A"]), of(given.B.codes, boxes["B"]), np.float32(problem.beta),
        given.C, of(given.C, boxes["C"]), *scales,
    )


def run(
    problem: BlockScaledProblem, *, variant: Variant | None = None, backend: str = "auto",
    arch: str | None = None, seed: int = 0, sms: int | None = None, source: str | None = None,
    given: BlockOperands | None = None, kernel: Kernel = BLOCK_SCALED, **options: Any,
) -> BlockScaledRun:
    """Run 28 with block scales and judge the result.

    `variant`: the first of the problem's format and types if not given. `backend` ({"auto", "gpu",
    "emulator"}): ``"auto"`` takes the emulator where something of its own is asked for. `arch`:
    what to compile for: there is one that runs it. `seed`: of the inputs. `sms`: launch for so many
    SMs. `source`: CUDA text to run in place of the kernel's file. `given`: NumPy's arrays, in place
    of random ones. `options`: the emulator's: `races`, `schedule`, `landing`, `trace`. Raises
    ValueError if the shape or the types can't be launched; NoGpu if `backend` is ``"gpu"`` and
    there is none that runs it.
    """
    variant = variant or suited(problem)
    check(variant, problem)
    asked = [name for name, usual in (("races", False), ("schedule", "lowest"),
                                      ("landing", "early"))
             if options.get(name, usual) != usual]
    where = choose_backend("emulator" if asked and backend == "auto" else backend, kernel, variant)
    if asked and where == "gpu":
        raise ValueError(f"{', '.join(asked)}: the emulator's alone; use backend 'emulator'")
    target = check_arch(arch or kernel.oldest(variant))
    given = given or problem.inputs(seed)
    C = given.C.copy()
    reference = problem.reference(given)
    launched = None
    if where == "gpu":
        cp = device.cupy()
        there = given._replace(A=given.A._replace(codes=cp.asarray(given.A.codes)),
                               B=given.B._replace(codes=cp.asarray(given.B.codes)),
                               C=cp.asarray(C))
        compiled = compile_kernel(kernel, variant, target, source=source)
        launch = launch_of(variant, problem, sms or device.filled)
        taken = arguments(problem, there, variant, cp)
        device.Loaded(compiled)(launch, taken)
        C = cp.asnumpy(there.C)
    else:
        trace = bool(options.pop("trace", False))
        compiled = compile_kernel(kernel, variant, target, source=source, ptx_only=not trace)
        launch = launch_of(variant, problem, sms or h100_sms)
        taken = arguments(problem, given._replace(C=C), variant)
        launched = emulate(compiled, launch, taken, trace=trace, seed=seed, **options)
    return BlockScaledRun(variant, problem, where, target, Plan(variant, launch), C,
                          problem.judge(C, reference), launched)


def suited(problem: BlockScaledProblem) -> Variant:
    """The first instantiation for a problem's format and types."""
    found = next((one for one in BLOCK_SCALED.variants
                  if one.constants["FORMAT"] == problem.form.cuda and one.out == problem.out), None)
    if found is None:
        raise ValueError(f"28_cta_pairs has no {problem.format} with C in {problem.out}")
    return found
