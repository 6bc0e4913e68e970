"""`lib.gemm` with scales or an epilogue: what it checks, and what is laid out for it.

Where no kernel fuses an epilogue (`lib.dispatch.parts`), the product comes first, in FP32, in
memory of the stream, and the epilogue in a launch behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lib.dispatch import fit, parts
from lib.kernels.fp8 import FP8
from lib.kernels.fused import EPILOGUE, apart
from lib.kernels.spec import Kernel
from lib.problem import ITEM_BYTES, Epilogue, Problem, with_epilogue, with_scales
from lib.problem.epilogue import Given
from lib.problem.scales import DTYPE, OUTS, SCALES, Operands
from lib.run import device, libraries, placed, plans
from lib.run.libraries import Library, Look
from lib.run.placed import Placed, Sketch
from lib.run.plans import PLANS, LaunchPlan, check_overlap, check_reach, enqueue
from lib.run.prepared import Step, apart_arguments

BIAS, RESIDUAL, AMAX, SCALE_A, SCALE_B = range(placed.MORE, placed.MORE + 5)
# Arrays by their places among a call's addresses.
SOURCES = {"A": placed.A, "B": placed.B, "C": placed.C, "bias": BIAS, "residual": RESIDUAL,
           "amax": AMAX, "scale_a": SCALE_A, "scale_b": SCALE_B}
# Elements of C that a thread of the epilogue alone has, where C's rows allow it.
VEC = 4

Arrays = Mapping[str, Any]
Kinds = dict[str, Placed]


def compute(
    arrays: Arrays, alpha: float, beta: float, stream: Any, activation: str = "none"
) -> Any:
    """Enqueue C = act(alpha * (A∘scale_a) @ (B∘scale_b) + beta * C + bias) + residual.

    `arrays`: by `SOURCES`' names, A and B at least. Raises ValueError if types, layouts, shapes,
    libraries or devices don't fit, or C overlaps an operand; NoGpu if there is no GPU that runs the
    kernels.
    """
    library = libraries.of(arrays["A"], arrays["B"], arrays.get("C"))
    looks = {name: library.look(name, array) for name, array in arrays.items()}
    index = looks["A"][2][-1]
    if any(look[2][-1] != index for look in looks.values()):
        raise ValueError(f"{', '.join(arrays)} must lie on one GPU")
    if index != device.current():
        with library.on(index):
            return compute(arrays, alpha, beta, stream, activation)
    C = arrays.get("C")
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    queue = library.stream(stream, index)
    plan = _planned(library, looks, activation, "scale_a" not in arrays and beta != 0)
    if C is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place = looks["C"][0]
        check_overlap(plan, looks, place)
    # For what there isn't C's place, which is never read.
    others = [looks[name][0] if name in looks else place for name in tuple(SOURCES)[3:]]
    enqueue(library, plan, index, queue,
            [looks["A"][0], looks["B"][0], place, 0, 0, *others], alpha, beta)
    return C


def chosen(activation: str = "none", **arrays: Any) -> str:
    """Say which kernel takes such matrices with an epilogue, and why."""
    return plan_of(activation, **arrays).reason


def plan_of(activation: str = "none", **arrays: Any) -> LaunchPlan:
    """What is launched for such matrices with an epilogue and a beta of 0."""
    given = {name: array for name, array in arrays.items() if array is not None}
    library = libraries.of(given["A"], given["B"], given.get("C"))
    looks = {name: library.look(name, array) for name, array in given.items()}
    with library.on(looks["A"][2][-1]):
        return _planned(library, looks, activation, False)


def _planned(
    library: Library, looks: dict[str, Look], activation: str, adds: bool
) -> LaunchPlan:
    """The plan for arrays of these kinds: what was made before, or a new one."""
    key = (library.name, activation, adds, *(
        (name, look[2], look[0] % fit.MAX_ALIGNMENT) for name, look in looks.items()))
    plan = PLANS.get(key) or PLANS.add(key, lambda: (
        _scaled(library, looks) if "scale_a" in looks
        else _fused(library, looks, activation, adds)))
    check_reach(looks, plan.nbytes)
    return plan


def _scaled(library: Library, looks: dict[str, Look]) -> LaunchPlan:
    """Check arrays with scales, and lay their launch out."""
    kinds = {name: _byte_kind(library, name, look[2]) for name, look in looks.items()}
    for name in ("A", "B"):
        if kinds[name].dtype.itemsize != 1:
            raise ValueError(f"{name} holds {kinds[name].dtype}: with scales it must be {DTYPE}, "
                             "or its bytes in CuPy's uint8")
    A, B, scale_a, scale_b = (kinds[name] for name in ("A", "B", "scale_a", "scale_b"))
    for name in ("scale_a", "scale_b"):
        if kinds[name].dtype != np.float32:
            raise ValueError(f"{name} holds {kinds[name].dtype}: scales must be float32")
    M, N, K = _sizes(A, B)
    if 0 in (M, N):
        raise ValueError(f"A is {A.shape} and B is {B.shape}: they must be M×K and K×N")
    if not A.c_contiguous:
        raise ValueError("A must be C-contiguous: pass a contiguous copy")
    if not B.f_contiguous:
        raise ValueError("B must lie by columns: pass the transpose of a contiguous (N, K) array")
    out = kinds["C"].dtype.name if "C" in kinds else OUTS[0]
    problem = with_scales(M, N, K, out=out, scaling=_scaling((M, N, K), scale_a, scale_b))
    _check_kinds(kinds, {"C": ((M, N), out)})
    given, sketch = Operands(*plans.matrices(problem), scale_a, scale_b), Sketch()
    chosen, steps = plans.steps_of(
        FP8, parts.suited(problem), problem,
        [looks[name][0] for name in "ABC" if name in looks], given, sketch)
    nbytes = {name: one.nbytes for name, one in zip(given._fields, given, strict=True)}
    return LaunchPlan(FP8, chosen.variant, chosen.reason, (M, N), out, nbytes, sketch.memory,
                      plans.bound(steps))


def _byte_kind(library: Library, name: str, kind: tuple[Any, ...]) -> Placed:
    """An array of a kind, with no address; PyTorch's 8-bit floats as bytes."""
    shape, strides, dtype, _ = kind
    typed, source = str(dtype).removeprefix("torch."), SOURCES[name]
    if typed in (DTYPE, "uint8"):
        return Placed(source, tuple(shape), np.dtype("u1"), tuple(strides))
    if typed.startswith("float8"):
        raise ValueError(f"{name} holds {typed}: 26_fp8 takes {DTYPE}")
    return replace(library.placed(min(source, placed.C), kind), source=source)


def _sizes(A: Placed, B: Placed) -> tuple[int, int, int]:
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0]:
        raise ValueError(f"A is {A.shape} and B is {B.shape}: with scales or an epilogue they must "
                         "be M×K and K×N, one product at a time")
    return A.shape[0], B.shape[1], A.shape[1]


def _scaling(shape: tuple[int, int, int], scale_a: Placed, scale_b: Placed) -> str:
    """What shares a scale, by the scales' shapes."""
    given = scale_a.shape, scale_b.shape
    allowed = {name: with_scales(*shape, scaling=name).shapes_of_scales for name in SCALES}
    for name, shapes in allowed.items():
        if given == shapes:
            return name
    raise ValueError(
        f"scale_a is {given[0]} and scale_b {given[1]}: they must be "
        + ", or ".join(f"{a} and {b}" for a, b in allowed.values())
    )


def _fused(
    library: Library, looks: dict[str, Look], activation: str, adds: bool
) -> LaunchPlan:
    """Check arrays with an epilogue, and lay the launch out that writes C."""
    asked = Epilogue(activation, *(name in looks for name in ("bias", "residual", "amax")))
    kinds = {name: library.placed(min(SOURCES[name], placed.C), look[2])
             for name, look in looks.items()}
    A, B = kinds["A"], kinds["B"]
    M, N, K = _sizes(A, B)
    if A.dtype != B.dtype:
        raise ValueError(f"A holds {A.dtype} and B {B.dtype}: both must be the same")
    # C's type, or that of what is added to it; where nothing says, that of A and B.
    typed = (kinds[name].dtype.name for name in ("C", "bias", "residual") if name in kinds)
    out = next(typed, A.dtype.name)
    of_c = (M, N // asked.fold)
    extras = {"C": (of_c, out), "bias": ((N,), out), "residual": (of_c, out),
              "amax": ((1,), "float32")}
    if M == 0 or N == 0:
        _check_kinds(kinds, extras)
        return LaunchPlan(EPILOGUE, EPILOGUE.variants[0], "nothing to compute", of_c, out,
                          dict.fromkeys(SOURCES, 0))
    by_columns = B.f_contiguous and not B.c_contiguous
    problem = with_epilogue(M, N, K, 1.0, float(adds), A.dtype.name, out,
                            "column" if by_columns else "row", asked)
    _check_kinds(kinds, extras)
    if refused := device.why_not(EPILOGUE, EPILOGUE.variants[0]):
        raise device.NoGpu(refused)
    laid = Given(*plans.matrices(problem), *(
        Placed.tight(SOURCES[name], *extras[name]) if name in looks else None
        for name in ("bias", "residual", "amax")))
    tight = A.c_contiguous and (by_columns or B.c_contiguous)
    places = tuple(looks[name][0] if name in looks else 0
                   for name in ("A", "B", "C", "bias", "residual"))
    found = parts.choose(problem, places) if tight else parts.FusedChoice(
        None, "the epilogue apart: A or B has gaps, or A lies by columns")
    sketch = Sketch()
    if found.variant is not None:
        _, steps = plans.steps_of(EPILOGUE, found.variant, problem, places[:3], laid, sketch)
    else:
        between = sketch.empty((M, N), "float32")
        steps = _product(A, B, between, (places[0], places[1], placed.ALLOCATED), sketch)
        steps.append((EPILOGUE, _apart(problem, between, laid, places[placed.C:])))
    nbytes = {name: one.nbytes for name, one in kinds.items()} | {"C": laid.C.nbytes}
    return LaunchPlan(EPILOGUE, steps[-1][1].variant, found.reason, of_c, out, nbytes,
                      sketch.memory, plans.bound(steps))


def _product(
    A: Placed, B: Placed, C: Placed, places: tuple[int, int, int], sketch: Sketch
) -> list[tuple[Kernel, Step]]:
    """The launches of A·B alone."""
    kernel, variant, problem = plans.version(plans.problems(
        A, B, C, plans.shape_of(A, B), C.dtype.name))
    operands = (*plans.matrices(problem)[:2], C)
    return plans.steps_of(kernel, variant, problem, places, operands, sketch)[1]


def _check_kinds(kinds: Kinds, wanted: Mapping[str, tuple[tuple[int, ...], str]]) -> None:
    """Refuse a C, bias, residual or amax of another shape or type, or with gaps."""
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
    problem: Problem, product: Placed, laid: Given, places: tuple[int, ...]
) -> Step:
    """The launch of the epilogue alone, in vectors where C and the residual allow them."""
    assert problem.epilogue
    size = VEC * ITEM_BYTES[problem.out]
    of_c, _, of_residual = places
    vec = VEC if problem.columns % VEC == 0 and of_c % size == of_residual % size == 0 else 1
    variant = apart(problem.epilogue, problem.out, vec)
    return Step(variant, parts.apart_launch(variant, problem, device.sms()),
                apart_arguments(problem, product, laid, variant))
