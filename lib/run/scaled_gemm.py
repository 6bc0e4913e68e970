"""`lib.gemm` of 8-bit operands with scales: what it checks, its plans, its launch.

A plan is laid out once for shapes, strides and alignments, as `lib.run.gemm` does; a call puts the
addresses in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lib.dispatch.plan import plan
from lib.dispatch.scaled import suited
from lib.kernels.build import compile_kernel
from lib.kernels.fp8 import FP8
from lib.kernels.scaled import DTYPE, OUTS, SCALES, Operands, ScaledProblem
from lib.run import device, libraries, placed
from lib.run.bound import Bound
from lib.run.launching import while_capturing
from lib.run.libraries import Library, Look
from lib.run.placed import Placed
from lib.run.prepared import Step, arguments, scales

MAX_PLANS = 256
# Tensor maps ask for more than any other argument: where a matrix begins, to a multiple of this.
_ALIGNMENT = 16
# Where the scales' addresses stand in a call, in place of memory that other kernels work in.
SCALE_A, SCALE_B = placed.SCRATCH, placed.COUNTERS
_NAMES = ("A", "B", "C", "scale_a", "scale_b")


class Plan(NamedTuple):
    """A product, laid out: C's shape and type, bytes that each array spans, and the launch."""

    shape: tuple[int, int]
    out: str
    nbytes: tuple[int, ...]
    bound: Bound


_plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
_lock = threading.Lock()


def compute(
    A: Any, B: Any, alpha: float, beta: float, C: Any, stream: Any, scale_a: Any, scale_b: Any,
    out: str | None = None,
) -> Any:
    """Enqueue C = alpha * (A∘scale_a) @ (B∘scale_b) + beta * C, as `lib.gemm` says.

    Raises ValueError if types, layouts, shapes, libraries or devices don't fit, or C overlaps A or
    B; NoGpu if there is no GPU that runs the kernel.
    """
    if scale_a is None or scale_b is None:
        raise ValueError("scale_a and scale_b go together: pass both")
    library = libraries.of(A, B, C)
    given = {"A": A, "B": B, "C": C, "scale_a": scale_a, "scale_b": scale_b}
    looks = {name: library.look(name, array) for name, array in given.items() if array is not None}
    index = looks["A"][2][-1]
    if any(look[2][-1] != index for look in looks.values()):
        raise ValueError("A, B, C and their scales must lie on one GPU")
    if index != device.current():
        with library.on(index):
            return compute(A, B, alpha, beta, C, stream, scale_a, scale_b, out)
    if C is None and beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    queue = library.stream(stream, index)
    key = (library.name, index, out, *(
        (name, look[2], look[0] % _ALIGNMENT) for name, look in looks.items()))
    with _lock:
        plan = _plans.get(key)
        if plan is None:
            plan = _plans[key] = _made(library, looks, out)
            while len(_plans) > MAX_PLANS:
                _plans.popitem(last=False)
        _plans.move_to_end(key)
    _check_reach(plan, looks)
    if C is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place = looks["C"][0]
        _check_overlap(plan, looks, place)
    addresses = (looks["A"][0], looks["B"][0], place, looks["scale_a"][0], looks["scale_b"][0])
    with _lock:
        plan.bound(queue, addresses, alpha, beta)
    return C


def forget() -> None:
    """Let go of all plans."""
    with _lock:
        _plans.clear()


def _made(library: Library, looks: dict[str, Look], out: str | None) -> Plan:
    """Check arrays of these kinds, and lay their launch out."""
    kinds = {name: _kind(library, _NAMES.index(name), look[2]) for name, look in looks.items()}
    for name in ("A", "B"):
        if kinds[name].dtype.itemsize != 1:
            raise ValueError(f"{name} holds {kinds[name].dtype}: with scales it must be {DTYPE}, "
                             "or its bytes in CuPy's uint8")
    for name in ("scale_a", "scale_b"):
        if kinds[name].dtype != np.float32:
            raise ValueError(f"{name} holds {kinds[name].dtype}: scales must be float32")
    A, B, scale_a, scale_b = (kinds[name] for name in ("A", "B", "scale_a", "scale_b"))
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0] or 0 in (A.shape[0], B.shape[1]):
        raise ValueError(f"A is {A.shape} and B is {B.shape}: they must be M×K and K×N")
    if not A.c_contiguous:
        raise ValueError("A must be C-contiguous: pass a contiguous copy")
    if not B.f_contiguous:
        raise ValueError("B must lie by columns: pass the transpose of a contiguous (N, K) array")
    (M, K), N = A.shape, B.shape[1]
    if "C" in kinds:
        C = kinds["C"]
        if C.shape != (M, N) or not C.c_contiguous:
            raise ValueError(
                f"C must be a C-contiguous array of {M}×{N}, not {C.shape} of {C.strides}"
            )
        out = C.dtype.name
    out = out or OUTS[0]
    problem = ScaledProblem(M, N, K, out=out, scaling=_scaling((M, N, K), scale_a, scale_b))
    chosen = plan(FP8, suited(problem), problem,
                  [looks[name][0] for name in "ABC" if name in looks], device.filled)
    variant = chosen.variant
    if refused := device.why_not(FP8, variant):
        raise device.NoGpu(refused)
    given = Operands(
        Placed.tight(placed.A, (M, K), "uint8"), Placed.tight(placed.B, (N, K), "uint8"),
        Placed.tight(placed.C, (M, N), out), scale_a, scale_b,
    )
    step = Step(variant, chosen.launch,
                (*arguments(problem, *given[:3], variant), *scales(problem, given)))
    ready = _code(device.current(), variant.name, variant.schedule.staged).ready(
        step.launch, step.arguments)
    spans = tuple(map(_span, given))
    return Plan((M, N), out, spans, Bound([step], [ready]))


def _kind(library: Library, source: int, kind: tuple[Any, ...]) -> Placed:
    """An array of a kind, with no address; PyTorch's 8-bit floats as bytes."""
    shape, strides, dtype, _ = kind
    name = str(dtype).removeprefix("torch.")
    if name in (DTYPE, "uint8"):
        return Placed(source, tuple(shape), np.dtype("u1"), tuple(strides))
    if name.startswith("float8"):
        raise ValueError(f"{_NAMES[source]} holds {name}: 26_fp8 takes {DTYPE}")
    return library.placed(source, kind) if source < SCALE_A else _scales(library, source, kind)


def _scales(library: Library, source: int, kind: tuple[Any, ...]) -> Placed:
    """Scales of a kind, with no address."""
    found = library.placed(placed.A, kind)
    return Placed(source, found.shape, found.dtype, found.strides)


def _scaling(shape: tuple[int, int, int], scale_a: Placed, scale_b: Placed) -> str:
    """What shares a scale, by the scales' shapes."""
    given = scale_a.shape, scale_b.shape
    allowed = {name: ScaledProblem(*shape, scaling=name).shapes_of_scales for name in SCALES}
    for name, shapes in allowed.items():
        if given == shapes:
            return name
    raise ValueError(
        f"scale_a is {given[0]} and scale_b {given[1]}: they must be "
        + ", or ".join(f"{a} and {b}" for a, b in allowed.values())
    )


def _span(array: Placed) -> int:
    """Bytes from an array's first element to behind its last."""
    if not array.size:
        return 0
    return array.dtype.itemsize + sum(
        (n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))


def _check_reach(plan: Plan, looks: dict[str, Look]) -> None:
    """Refuse an array that its memory ends before."""
    for name, nbytes in zip(_NAMES, plan.nbytes, strict=True):
        if name in looks and looks[name][1] < nbytes:
            raise ValueError(
                f"{name} takes {nbytes:,} bytes and is a view past the end of its memory"
            )


def _check_overlap(plan: Plan, looks: dict[str, Look], place: int) -> None:
    """Refuse a C whose bytes are those of an operand, too."""
    end = place + plan.nbytes[_NAMES.index("C")]
    for name, nbytes in zip(_NAMES, plan.nbytes, strict=True):
        if name != "C" and nbytes and place < looks[name][0] + nbytes and looks[name][0] < end:
            raise ValueError(f"C overlaps {name}: pass another C")


@lru_cache(maxsize=64)
def _code(index: int, name: str, staged: int) -> device.Loaded:
    """An instantiation on a GPU, with so many slices of C.

    It stays there, for graphs that hold it.
    """
    compiled = compile_kernel(FP8, FP8.variant(name).scheduled(staged=staged), device.arch())
    with while_capturing():
        return device.Loaded(compiled)
