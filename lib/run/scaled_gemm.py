"""`lib.gemm` of 8-bit operands with scales: what it checks, and what is laid out for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lib.dispatch.plan import plan
from lib.dispatch.scaled import suited
from lib.kernels.fp8 import FP8
from lib.kernels.scaled import DTYPE, OUTS, SCALES, Operands, ScaledProblem
from lib.run import device, libraries, placed, plans
from lib.run.libraries import Library, Look
from lib.run.placed import Placed
from lib.run.plans import PLANS, LaunchPlan, check_overlap, check_reach, enqueue
from lib.run.prepared import Step, arguments, scales

# Tensor maps ask for more than any other argument: where a matrix begins, to a multiple of this.
_ALIGNMENT = 16
SCALE_A, SCALE_B = range(placed.MORE, placed.MORE + 2)
# By their places among a call's addresses.
_NAMES = {"A": placed.A, "B": placed.B, "C": placed.C, "scale_a": SCALE_A, "scale_b": SCALE_B}


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
    key = ("scales", library.name, out, *(
        (name, look[2], look[0] % _ALIGNMENT) for name, look in looks.items()))
    plan = PLANS.get(key) or PLANS.add(key, lambda: _made(library, looks, out))
    check_reach(looks, plan.nbytes)
    if C is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place = looks["C"][0]
        check_overlap(plan, looks, place)
    enqueue(library, plan, index, queue, [looks["A"][0], looks["B"][0], place, 0, 0,
                                          looks["scale_a"][0], looks["scale_b"][0]], alpha, beta)
    return C


def _made(library: Library, looks: dict[str, Look], out: str | None) -> LaunchPlan:
    """Check arrays of these kinds, and lay their launch out."""
    kinds = {name: _kind(library, name, look[2]) for name, look in looks.items()}
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
    spans = dict(zip(_NAMES, map(_span, given), strict=True))
    return LaunchPlan(FP8, variant, chosen.reason, (M, N), out, spans, {}, plans.NO_MEMORY,
                      plans.bound([(FP8, step)]))


def _kind(library: Library, name: str, kind: tuple[Any, ...]) -> Placed:
    """An array of a kind, with no address; PyTorch's 8-bit floats as bytes."""
    shape, strides, dtype, _ = kind
    typed, source = str(dtype).removeprefix("torch."), _NAMES[name]
    if typed in (DTYPE, "uint8"):
        return Placed(source, tuple(shape), np.dtype("u1"), tuple(strides))
    if typed.startswith("float8"):
        raise ValueError(f"{name} holds {typed}: 26_fp8 takes {DTYPE}")
    return replace(library.placed(min(source, placed.C), kind), source=source)


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
