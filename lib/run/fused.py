"""25 on one problem, on the GPU or in the emulator: its arguments, its launch, its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.dispatch.fused import apart_launch, launch_of
from lib.kernels.build import compile_kernel
from lib.kernels.epilogues import FusedProblem, Given
from lib.kernels.fused import EPILOGUE, EVERY, apart, check, epilogue_of
from lib.kernels.grid import h100_sms
from lib.kernels.spec import Kernel, Variant
from lib.problem import Verdict, numpy_dtype
from lib.run import device
from lib.run.placed import Mapped, Placed
from lib.run.prepared import L2_PROMOTION, NO_MAP, TMA_SWIZZLE, check_extras
from lib.run.runner import choose_backend, emulate
from lib.run.tensor_maps import encode


@dataclass(frozen=True)
class FusedRun:
    """What happened."""

    variant: Variant
    problem: FusedProblem
    backend: str  # ``"gpu"`` or ``"emulator"``
    C: np.ndarray  # (M, N) array, NumPy's
    amax: float | None  # where the epilogue keeps one
    verdict: Verdict  # against float64
    launch: ptx.Launch | None  # the emulator's hazards and counts; None on a GPU


def check_given(problem: FusedProblem, given: Given) -> None:
    """Refuse arrays that are not the problem's.

    Raises ValueError if one is missing or too many, of another shape or type, or not tight.
    """
    for one, array, dtype in zip(problem.operands, given, (problem.dtype, problem.dtype,
                                                           problem.out), strict=False):
        if array.shape != one.shape:
            raise ValueError(f"{one.name} is {array.shape}; the problem asks for {one.shape}")
        if array.dtype != numpy_dtype(dtype):
            raise ValueError(f"{one.name} holds {array.dtype}; it must be {dtype}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{one.name} is not tight: pass a contiguous array")
    check_extras(problem, problem.epilogue, given)


def arguments(problem: FusedProblem, given: Given, variant: Variant) -> tuple[Any, ...]:
    """The arguments of 25, in its contract's order. What an epilogue lacks is C's address.

    Raises ValueError as `check_given`.
    """
    check_given(problem, given)
    assert variant.maps is not None
    boxes = variant.maps.boxes
    maps = {
        name: _map(array, boxes[name]) if name in boxes and array.size else NO_MAP
        for name, array in (("A", given.A), ("B", given.B), ("C", given.C))
    }
    of_c = (maps["C"],) if variant.maps.lanes_store else ()
    return (
        *map(np.int32, (problem.M, problem.N, problem.K)), np.float32(problem.alpha), maps["A"],
        maps["B"], np.float32(problem.beta), given.C, *of_c, *_extra_arguments(given),
    )


def apart_arguments(
    problem: FusedProblem, product: Any, given: Given, variant: Variant
) -> tuple[Any, ...]:
    """The arguments of `apart`, for an (M, N) product in FP32: A·B, or what stands for it."""
    bias, residual, amax = _extra_arguments(given)
    groups = problem.columns // variant.schedule.vec
    return (*map(np.int32, (problem.M, problem.N, groups)), np.float32(problem.alpha), product,
            bias, np.float32(problem.beta), given.C, residual, amax)


def _extra_arguments(given: Given) -> tuple[Any, ...]:
    """Bias, residual and amax; for what there isn't an address that is never read."""
    return tuple(given.C if one is None else one
                 for one in (given.bias, given.residual, given.amax))


def _map(array: Any, box: tuple[int, int]) -> Any:
    made = encode(array, box, swizzle=TMA_SWIZZLE, l2_promotion=L2_PROMOTION)
    return Mapped(array, made) if isinstance(array, Placed) else made


def run(
    problem: FusedProblem, *, variant: Variant | None = None, backend: str = "auto", seed: int = 0,
    sms: int | None = None, source: str | None = None, given: Given | None = None,
    kernel: Kernel = EPILOGUE, **options: Any,
) -> FusedRun:
    """Run an instantiation of 25 and judge the result.

    `variant`: the first of `EPILOGUE` that takes the problem, if not given. `backend`: {"auto",
    "gpu", "emulator"}. `seed`: of the inputs. `sms`: launch for so many SMs. `source`: CUDA text to
    run in place of the kernel's file. `given`: NumPy's arrays, in place of random ones. `options`:
    the emulator's: `races`, `schedule`, `landing`, `trace`. Raises ValueError if the shape, types
    or epilogue can't be launched; NoGpu if `backend` is ``"gpu"`` and there is none that runs it.
    """
    variant = variant or suited(problem)
    check(variant, problem)
    where = choose_backend(backend, kernel, variant)
    given = given or problem.inputs(seed)
    own = _copied(given)
    taken = arguments(problem, own, variant)
    answer = problem.reference(*given)
    launched = None
    if where == "gpu":
        cp = device.cupy()
        there = Given(*(None if one is None else cp.asarray(one) for one in own))
        compiled = compile_kernel(kernel, variant, device.arch(), source=source)
        launch = launch_of(variant, problem, sms or device.filled)
        device.Loaded(compiled)(launch, arguments(problem, there, variant))
        own = own._replace(C=cp.asnumpy(there.C),
                           amax=None if there.amax is None else cp.asnumpy(there.amax))
    else:
        trace = bool(options.pop("trace", False))
        compiled = compile_kernel(kernel, variant, kernel.oldest(variant), source=source,
                                  ptx_only=not trace)
        launch = launch_of(variant, problem, sms or h100_sms)
        launched = emulate(compiled, launch, taken, trace=trace, seed=seed, **options)
    amax = None if own.amax is None else float(own.amax[0])
    verdict = problem.judge(own.C, answer, *own[3:])
    return FusedRun(variant, problem, where, own.C, amax, verdict, launched)


def run_apart(
    problem: FusedProblem, product: np.ndarray, *, vec: int = 1, given: Given | None = None,
    seed: int = 0, sms: int = 1, source: str | None = None, **options: Any,
) -> FusedRun:
    """Run `apart` in the emulator on an (M, N) product in FP32, and judge the result."""
    given = given or problem.inputs(seed)
    own = _copied(given)
    check_given(problem, own)
    variant = apart(problem.epilogue, problem.out, vec)
    compiled = compile_kernel(EPILOGUE, variant, "sm_90a", source=source, ptx_only=True)
    launched = emulate(compiled, apart_launch(variant, problem, sms),
                       apart_arguments(problem, product, own, variant), trace=False, **options)
    amax = None if own.amax is None else float(own.amax[0])
    verdict = problem.judge(own.C, problem.reference(*given), *own[3:])
    return FusedRun(variant, problem, "emulator", own.C, amax, verdict, launched)


def _copied(given: Given) -> Given:
    """The same with a C and an amax of its own, which are written."""
    return given._replace(C=given.C.copy(), amax=None if given.amax is None else given.amax.copy())


def suited(problem: FusedProblem) -> Variant:
    """The first instantiation for a problem's epilogue, types and layout.

    Raises ValueError if there is none.
    """
    for variant in EVERY:
        if (epilogue_of(variant), variant.dtype, variant.out, variant.b_layout) == (
                problem.epilogue, problem.dtype, problem.out, problem.b_layout):
            return variant
    raise ValueError(f"25_epilogue has no variant with {problem.epilogue.name}, A and B in "
                     f"{problem.dtype}, B by {problem.b_layout}s and C in {problem.out}")
