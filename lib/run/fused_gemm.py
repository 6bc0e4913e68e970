"""`lib.gemm` with an epilogue: what it checks, and what is laid out for it.

Where no kernel fuses (`lib.dispatch.fused`), the product comes first, in FP32, in memory of the
stream, and the epilogue in a launch behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lib.dispatch import fit
from lib.dispatch import fused as dispatch
from lib.dispatch.fused import FusedChoice, apart_launch, launch_of
from lib.kernels.epilogues import Epilogue, FusedProblem, Given
from lib.kernels.fused import EPILOGUE, apart
from lib.kernels.spec import Kernel
from lib.problem import ITEM_BYTES
from lib.run import described, device, libraries, placed, plans
from lib.run.fused import apart_arguments, arguments
from lib.run.libraries import Library, Look
from lib.run.placed import Placed, Sketch
from lib.run.plans import PLANS, LaunchPlan, check_overlap, check_reach, enqueue
from lib.run.prepared import Step

_NAMES = ("A", "B", "C", "bias", "residual", "amax")
BIAS, RESIDUAL, AMAX = range(placed.MORE, placed.MORE + 3)
# Elements of C that a thread of the epilogue alone has, where C's rows allow it.
VEC = 4


def compute(
    A: Any, B: Any, alpha: float, beta: float, C: Any, stream: Any, epilogue: str | None,
    bias: Any, residual: Any, amax: Any, out: str | None = None,
) -> Any:
    """Enqueue C = act(alpha * A @ B + beta * C + bias) + residual, as `lib.gemm` says.

    Raises ValueError if types, layouts, shapes, libraries or devices don't fit, or C overlaps an
    operand; NoGpu if there is no GPU that runs the kernels.
    """
    asked = Epilogue(epilogue or "none", bias is not None, residual is not None, amax is not None)
    library = libraries.of(A, B, C)
    given = {name: one for name, one in zip(_NAMES, (A, B, C, bias, residual, amax), strict=True)
             if one is not None}
    looks = {name: library.look(name, array) for name, array in given.items()}
    index = looks["A"][2][-1]
    if any(look[2][-1] != index for look in looks.values()):
        raise ValueError(f"{', '.join(given)} must lie on one GPU")
    if index != device.current():
        with library.on(index):
            return compute(A, B, alpha, beta, C, stream, epilogue, bias, residual, amax, out)
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    queue = library.stream(stream, index)
    plan = _planned(library, looks, asked, beta != 0, out)
    if C is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place = looks["C"][0]
        check_overlap(plan, looks, place)
    enqueue(library, plan, index, queue, addresses(looks, place), alpha, beta)
    return C


def addresses(looks: Mapping[str, Look], place: int) -> list[int]:
    """Where a call's arrays begin; for what there isn't C's place, which is never read."""
    return [looks["A"][0], looks["B"][0], place, 0, 0,
            *(looks[name][0] if name in looks else place for name in _NAMES[placed.MORE - 2:])]


def chosen(
    A: Any, B: Any, C: Any = None, epilogue: str | None = None, bias: Any = None,
    residual: Any = None, amax: Any = None,
) -> str:
    """Say which kernel takes such matrices with an epilogue, and why."""
    return plan_of(A, B, C, epilogue, bias, residual, amax).reason


def plan_of(
    A: Any, B: Any, C: Any = None, epilogue: str | None = None, bias: Any = None,
    residual: Any = None, amax: Any = None,
) -> LaunchPlan:
    """What is launched for such matrices with an epilogue and a beta of 0."""
    asked = Epilogue(epilogue or "none", bias is not None, residual is not None, amax is not None)
    library = libraries.of(A, B, C)
    looks = {name: library.look(name, one)
             for name, one in zip(_NAMES, (A, B, C, bias, residual, amax), strict=True)
             if one is not None}
    with library.on(looks["A"][2][-1]):
        return _planned(library, looks, asked, False, None)


def _planned(
    library: Library, looks: dict[str, Look], asked: Epilogue, adds: bool, out: str | None
) -> LaunchPlan:
    """The plan for arrays of these kinds: what was made before, or a new one."""
    key = ("epilogue", library.name, asked, adds, out, *(
        (name, look[2], look[0] % fit.MAX_ALIGNMENT) for name, look in looks.items()))
    plan = PLANS.get(key) or PLANS.add(key, lambda: _made(library, looks, asked, adds, out))
    check_reach(looks, plan.nbytes)
    return plan


def _made(
    library: Library, looks: dict[str, Look], asked: Epilogue, adds: bool, out: str | None
) -> LaunchPlan:
    """Check arrays of these kinds, and lay the launch out that writes C."""
    kinds = {name: library.placed(min(_NAMES.index(name), placed.C), look[2])
             for name, look in looks.items()}
    A, B = kinds["A"], kinds["B"]
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0]:
        raise ValueError(f"A is {A.shape} and B is {B.shape}: with an epilogue they must be M×K "
                         "and K×N, one product at a time")
    if A.dtype != B.dtype:
        raise ValueError(f"A holds {A.dtype} and B {B.dtype}: both must be the same")
    (M, K), N = A.shape, B.shape[1]
    # C's type, or that of what is added to it; where nothing says, that of A and B.
    typed = (kinds[name].dtype.name for name in ("C", "bias", "residual") if name in kinds)
    out = out or next(typed, A.dtype.name)
    if M == 0 or N == 0:
        _check_extras(kinds, asked, (M, N // asked.fold), N, out)
        return LaunchPlan(EPILOGUE, EPILOGUE.variants[0], "nothing to compute",
                          (M, N // asked.fold), out, dict.fromkeys(_NAMES, 0), {}, plans.NO_MEMORY,
                          None)
    by_columns = B.f_contiguous and not B.c_contiguous
    problem = FusedProblem(M, N, K, beta=float(adds), dtype=A.dtype.name, out=out,
                           b_layout="column" if by_columns else "row", epilogue=asked)
    of_c = (M, problem.columns)
    _check_extras(kinds, asked, of_c, N, out)
    if refused := device.why_not(EPILOGUE, EPILOGUE.variants[0]):
        raise device.NoGpu(refused)
    laid = Given(
        Placed.tight(placed.A, (M, K), problem.dtype),
        Placed.tight(placed.B, (N, K) if by_columns else (K, N), problem.dtype),
        Placed.tight(placed.C, of_c, out),
        Placed.tight(BIAS, (N,), out) if asked.bias else None,
        Placed.tight(RESIDUAL, of_c, out) if asked.residual else None,
        Placed.tight(AMAX, (1,), "float32") if asked.amax else None,
    )
    tight = A.c_contiguous and (by_columns or B.c_contiguous)
    places = tuple(looks[name][0] if name in looks else 0
                   for name in ("A", "B", "C", "bias", "residual"))
    found = dispatch.choose(problem, places) if tight else FusedChoice(
        None, "the epilogue apart: A or B has gaps, or A lies by columns")
    sketch, variant = Sketch(), found.variant
    steps: list[tuple[Kernel, Step]] = []
    if variant is not None:
        step = Step(variant, launch_of(variant, problem, device.filled),
                    arguments(problem, laid, variant))
    else:
        between = sketch.empty((M, N), "float32")
        steps = _product(A, B, between, (places[0], places[1], placed.ALLOCATED), sketch)
        step = _apart(problem, between, laid, places[placed.C:])
    nbytes = {name: one.nbytes for name, one in kinds.items()} | {"C": laid.C.nbytes}
    return LaunchPlan(EPILOGUE, step.variant, found.reason, of_c, out, nbytes, {}, sketch.memory,
                      plans.bound([*steps, (EPILOGUE, step)]))


def _product(
    A: Placed, B: Placed, C: Placed, places: tuple[int, int, int], sketch: Sketch
) -> list[tuple[Kernel, Step]]:
    """The launches of A·B alone."""
    kernel, variant, problem = plans.version(described.problems(
        A, B, C, described.shape_of(A, B), C.dtype.name))
    operands = (*plans.matrices(problem)[:2], C)
    return plans.steps_of(kernel, variant, problem, places, operands, sketch)[1]


def _check_extras(
    kinds: dict[str, Placed], asked: Epilogue, of_c: tuple[int, int], N: int, out: str
) -> None:
    """Refuse a C, bias, residual or amax of another shape or type, or with gaps."""
    wanted = {"C": (of_c, out), "bias": ((N,), out), "residual": (of_c, out),
              "amax": ((1,), "float32")}
    for name, (shape, dtype) in wanted.items():
        if name not in kinds:
            continue
        one = kinds[name]
        if one.shape != shape or not one.c_contiguous:
            raise ValueError(f"{name} must be a C-contiguous array of {'×'.join(map(str, shape))}, "
                             f"not {one.shape} of {one.strides}")
        if one.dtype.name != dtype:
            raise ValueError(f"{name} holds {one.dtype}: it must be {dtype}" + (
                "" if name == "amax" else ", as C and what the epilogue adds"))


def _apart(
    problem: FusedProblem, product: Placed, laid: Given, places: tuple[int, ...]
) -> Step:
    """The launch of the epilogue alone, in vectors where C and the residual allow them."""
    size = VEC * ITEM_BYTES[problem.out]
    of_c, _, of_residual = places
    vec = VEC if problem.columns % VEC == 0 and of_c % size == of_residual % size == 0 else 1
    variant = apart(problem.epilogue, problem.out, vec)
    return Step(variant, apart_launch(variant, problem, device.sms()),
                apart_arguments(problem, product, laid, variant))
