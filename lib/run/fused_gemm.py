"""`lib.gemm` with an epilogue: what it checks, its plans, its launches.

A plan is laid out once for shapes, strides and alignments, as `lib.run.gemm` does; a call puts the
addresses in. Where no kernel fuses (`lib.dispatch.fused`), a plan is the epilogue alone, and the
product is `lib.gemm`'s own, in FP32, in memory of the stream.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from lib.dispatch import fused as dispatch
from lib.dispatch.fused import FusedChoice, apart_launch, launch_of
from lib.kernels.build import compile_kernel
from lib.kernels.epilogues import Epilogue, FusedProblem, Given
from lib.kernels.fused import EPILOGUE, apart
from lib.kernels.spec import TMA_STRIDE, Variant
from lib.problem import ITEM_BYTES
from lib.run import device, libraries, placed
from lib.run.bound import Bound
from lib.run.fused import apart_arguments, arguments
from lib.run.launching import capturing, while_capturing
from lib.run.libraries import Library, Look
from lib.run.placed import Placed
from lib.run.prepared import Step

MAX_PLANS = 256
# Where the addresses stand in a call: A, B and C as ever, and behind them the epilogue's operands.
_NAMES = ("A", "B", "C", "bias", "residual", "amax")
BIAS, RESIDUAL, AMAX = 3, 4, 5
# Elements of C that a thread of the epilogue alone has, where C's rows allow it.
VEC = 4

# Computes A·B in FP32 into a matrix on a stream: (A, B, C, stream).
Product = Callable[[Any, Any, Any, int], Any]


class Plan(NamedTuple):
    """A product with an epilogue, laid out."""

    # shape, out: C's.
    shape: tuple[int, int]
    out: str
    # The shape of the product in FP32 that comes first; None where it is fused.
    product: tuple[int, int] | None
    nbytes: tuple[int, ...]  # what each of `_NAMES` spans, 0 for what isn't there
    bound: Bound | None  # the last launch; None where C has no elements
    reason: str


_plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
_lock = threading.Lock()
# Products in FP32 that graphs write and read: they stay, for nobody says when a graph has gone.
_held: list[Any] = []


def compute(
    A: Any, B: Any, alpha: float, beta: float, C: Any, stream: Any, epilogue: str | None,
    bias: Any, residual: Any, amax: Any, product: Product, out: str | None = None,
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
            return compute(A, B, alpha, beta, C, stream, epilogue, bias, residual, amax, product,
                           out)
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    queue = library.stream(stream, index)
    plan = _planned(library, looks, asked, beta != 0, out)
    if C is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place = looks["C"][0]
        _check_overlap(plan, looks, place)
    if plan.bound is None:
        return C
    addresses = [place if name not in looks or name == "C" else looks[name][0] for name in _NAMES]
    if plan.product is not None:
        between = library.empty(plan.product, "float32", index, queue)
        if capturing(queue):  # the graph may run beside what the memory is given to later
            _held.append(between)
        product(A, B, between, queue)
        addresses[placed.A] = library.address(between)
    with _lock:
        plan.bound(queue, addresses, alpha, beta)
    return C


def chosen(
    A: Any, B: Any, C: Any = None, epilogue: str | None = None, bias: Any = None,
    residual: Any = None, amax: Any = None,
) -> str:
    """Say which kernel takes such matrices with an epilogue, and why."""
    asked = Epilogue(epilogue or "none", bias is not None, residual is not None, amax is not None)
    library = libraries.of(A, B, C)
    looks = {name: library.look(name, one)
             for name, one in zip(_NAMES, (A, B, C, bias, residual, amax), strict=True)
             if one is not None}
    with library.on(looks["A"][2][-1]):
        return _planned(library, looks, asked, False, None).reason


def forget() -> None:
    """Let go of all plans."""
    with _lock:
        _plans.clear()


def _planned(
    library: Library, looks: dict[str, Look], asked: Epilogue, adds: bool, out: str | None
) -> Plan:
    """The plan for arrays of these kinds: what was made before, or a new one."""
    key = (library.name, device.current(), asked, adds, out, *(
        (name, look[2], look[0] % TMA_STRIDE) for name, look in looks.items()))
    with _lock:
        plan = _plans.get(key)
        if plan is None:
            plan = _plans[key] = _made(library, looks, asked, adds, out)
            while len(_plans) > MAX_PLANS:
                _plans.popitem(last=False)
        _plans.move_to_end(key)
    for name, nbytes in zip(_NAMES, plan.nbytes, strict=True):
        if name in looks and looks[name][1] < nbytes:
            raise ValueError(
                f"{name} takes {nbytes:,} bytes and is a view past the end of its memory"
            )
    return plan


def _made(
    library: Library, looks: dict[str, Look], asked: Epilogue, adds: bool, out: str | None
) -> Plan:
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
        return Plan((M, N // asked.fold), out, None, (0,) * len(_NAMES), None, "nothing to compute")
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
    if found.variant is not None:
        step = Step(found.variant, launch_of(found.variant, problem, device.filled),
                    arguments(problem, laid, found.variant))
    else:
        step = _apart(problem, laid, places[placed.C:])
    ready = _code(device.current(), step.variant).ready(step.launch, step.arguments)
    spans = tuple(kinds[name].nbytes if name in kinds else
                  laid.C.nbytes if name == "C" else 0 for name in _NAMES)
    return Plan(of_c, out, None if found.variant else (M, N), spans, Bound([step], [ready]),
                found.reason)


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


def _apart(problem: FusedProblem, laid: Given, places: tuple[int, ...]) -> Step:
    """The launch of the epilogue alone, in vectors where C and the residual allow them."""
    size = VEC * ITEM_BYTES[problem.out]
    of_c, _, of_residual = places
    vec = VEC if problem.columns % VEC == 0 and of_c % size == of_residual % size == 0 else 1
    variant = apart(problem.epilogue, problem.out, vec)
    product = Placed.tight(placed.A, (problem.M, problem.N), "float32")
    return Step(variant, apart_launch(variant, problem, device.sms()),
                apart_arguments(problem, product, laid, variant))


def _check_overlap(plan: Plan, looks: dict[str, Look], place: int) -> None:
    """Refuse a C whose bytes are those of an operand, too."""
    end = place + plan.nbytes[placed.C]
    for name, nbytes in zip(_NAMES, plan.nbytes, strict=True):
        if name in looks and name != "C" and nbytes and (
                place < looks[name][0] + nbytes and looks[name][0] < end):
            raise ValueError(f"C overlaps {name}: pass another C")


_code_on: dict[tuple[int, str], device.Loaded] = {}


def _code(index: int, variant: Variant) -> device.Loaded:
    """An instantiation on a GPU; it stays there, for graphs that hold it."""
    key = index, EPILOGUE.expression(variant)
    if key not in _code_on:
        compiled = compile_kernel(EPILOGUE, variant, device.arch())
        with while_capturing():
            _code_on[key] = device.Loaded(compiled)
    return _code_on[key]
