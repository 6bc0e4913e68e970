"""26 on one problem, on the GPU or in the emulator: its arguments, its launch, its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import ptx
from lib.kernels.build import compile_kernel
from lib.kernels.fp8 import FP8, check, launch_of, promotes
from lib.kernels.grid import PERSISTENT_SMS
from lib.kernels.scaled import Operands, ScaledProblem
from lib.kernels.spec import Kernel, Variant
from lib.problem import Verdict
from lib.run import device
from lib.run.placed import Mapped, Placed
from lib.run.prepared import L2_PROMOTION, NO_MAP, TMA_SWIZZLE
from lib.run.runner import choose_backend, emulate
from lib.run.tensor_maps import encode


@dataclass(frozen=True)
class ScaledRun:
    """What happened.

    Attributes
    ----------
    variant : Variant
    problem : ScaledProblem
    backend : str
        ``"gpu"`` or ``"emulator"``.
    C : (M, N) array
        NumPy's.
    verdict : Verdict
        Against float64.
    launch : ptx.Launch or None
        The emulator's hazards and counts; None on a GPU.
    """

    variant: Variant
    problem: ScaledProblem
    backend: str
    C: np.ndarray
    verdict: Verdict
    launch: ptx.Launch | None


def arguments(problem: ScaledProblem, given: Operands, variant: Variant) -> tuple[Any, ...]:
    """The arguments of 26, in its contract's order.

    Parameters
    ----------
    problem : ScaledProblem
    given : Operands
        A, (M, K), and B, (N, K), of one byte an element, C, all tight; scales of any strides.
    variant : Variant

    Raises
    ------
    ValueError
        If a shape is not the problem's, or a matrix is not tight.
    """
    shapes = {"A": (problem.M, problem.K), "B": (problem.N, problem.K), "C": (problem.M, problem.N)}
    scales = dict(zip(("scale_a", "scale_b"), problem.shapes_of_scales, strict=True))
    for name, shape in {**shapes, **scales}.items():
        array = getattr(given, name)
        if array.shape != shape:
            raise ValueError(f"{name} is {array.shape}; the problem asks for {shape}")
        if name in shapes and not array.flags.c_contiguous:
            raise ValueError(f"{name} is not tight: pass a contiguous array")
    assert variant.maps is not None
    maps = {
        name: _map(array, variant.maps.boxes[name]) if array.size else NO_MAP
        for name, array in (("A", given.A), ("B", given.B), ("C", given.C))
    }
    of_a, of_b = given.scale_a, given.scale_b
    a_along, a_k = (n // of_a.dtype.itemsize for n in of_a.strides)
    b_k, b_along = (n // of_b.dtype.itemsize for n in of_b.strides)
    return (
        *map(np.int32, (problem.M, problem.N, problem.K)), np.float32(problem.alpha), maps["A"],
        maps["B"], np.float32(problem.beta), given.C, maps["C"], _memory(of_a),
        *map(np.int32, (a_along, a_k)), _memory(of_b), *map(np.int32, (b_along, b_k)),
    )


def _memory(scales: Any) -> Any:
    """Scales as they lie; of NumPy's, whose gaps the emulator takes too, from the first to the
    last."""
    if not isinstance(scales, np.ndarray) or scales.flags.c_contiguous:
        return scales
    item = scales.itemsize
    reach = 1 + sum((n - 1) * stride // item
                    for n, stride in zip(scales.shape, scales.strides, strict=True))
    return np.lib.stride_tricks.as_strided(scales, (reach,), (item,))


def _map(array: Any, box: tuple[int, int]) -> Any:
    """The tensor map of a matrix; 8-bit floats are moved as bytes."""
    if array.dtype.itemsize == 1 and not isinstance(array, Placed):
        array = array.view(np.uint8)
    made = encode(array, box, swizzle=TMA_SWIZZLE, l2_promotion=L2_PROMOTION)
    return Mapped(array, made) if isinstance(array, Placed) else made


def run(
    problem: ScaledProblem, *, variant: Variant | None = None, backend: str = "auto", seed: int = 0,
    sms: int | None = None, source: str | None = None, given: Operands | None = None,
    kernel: Kernel = FP8, **options: Any,
) -> ScaledRun:
    """Run 26 and judge the result.

    Parameters
    ----------
    problem : ScaledProblem
    variant : Variant, optional
        `FP8`'s first of the problem's scales and types if not given.
    backend : {"auto", "gpu", "emulator"}
    seed : int
        Of the inputs.
    sms : int, optional
        Launch for so many SMs.
    source : str, optional
        CUDA text to run in place of the kernel's file.
    given : Operands, optional
        NumPy's arrays, in place of random ones.
    kernel : Kernel
    **options
        The emulator's: `races`, `schedule`, `landing`, `trace`.

    Raises
    ------
    ValueError
        If the shape or the types can't be launched.
    NoGpu
        If `backend` is ``"gpu"`` and there is none that runs it.
    """
    variant = variant or suited(problem)
    check(variant, problem)
    where = choose_backend(backend, kernel, variant)
    given = given or problem.inputs(seed)
    C = given.C.copy()
    taken = arguments(problem, given._replace(C=C), variant)
    reference = problem.reference(given)
    launched = None
    if where == "gpu":
        cp = device.cupy()
        # CuPy has no 8-bit floats and need know none: bytes are moved.
        there = Operands(*(cp.asarray(array.view(np.uint8) if array.itemsize == 1 else array)
                           for array in given._replace(C=C)))
        compiled = compile_kernel(kernel, variant, device.arch(), source=source)
        launch = launch_of(variant, problem, sms or device.sms())
        device.Loaded(compiled)(launch, arguments(problem, there, variant))
        C = cp.asnumpy(there.C)
    else:
        trace = bool(options.pop("trace", False))
        compiled = compile_kernel(kernel, variant, kernel.oldest(variant), source=source,
                                  ptx_only=not trace)
        launch = launch_of(variant, problem, sms or PERSISTENT_SMS)
        launched = emulate(compiled, launch, taken, trace=trace, seed=seed, **options)
    verdict = problem.judge(C, reference, promotes(variant))
    return ScaledRun(variant, problem, where, C, verdict, launched)


def suited(problem: ScaledProblem) -> Variant:
    """The first instantiation for a problem's scales and types."""
    for variant in FP8.variants:
        try:
            check(variant, ScaledProblem(1, 8, 16, out=problem.out, scaling=problem.scaling))
        except ValueError:
            continue
        return variant
    raise ValueError(f"26_fp8 has no instantiation for scales by {problem.scaling}")
