"""One product on the GPU by the best kernel of this book: C = alpha * A @ B + beta * C.

>>> import lib
>>> C = lib.gemm(A, B)                                                        # doctest: +SKIP
>>> lib.gemm(A, B, alpha=0.5, beta=1.0, C=C, stream=stream)                   # doctest: +SKIP
>>> lib.gemm(A, B, trials=8)                                                  # doctest: +SKIP

A call looks its arrays up by address and shape. What it finds has the kernel loaded, its tensor
maps encoded and its arguments laid out, so that nothing is left to do but to launch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from lib.kernels import rule
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.select import Choice
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem, numpy_dtype
from lib.run import device
from lib.run.launching import Ready
from lib.run.runner import Loaded, prepare

# Products whose launches are kept laid out. Each holds its workspace on the GPU.
KEPT = 64
# A trial: turns, and launches of each.
_TURNS, _LAUNCHES = 3, 10
# Where the scalars stand among a kernel's arguments (`lib.run.prepared.arguments`).
_ALPHA, _BETA = 3, 6
# C's type where none is given; what can be asked for is what a variant of a kernel has.
_OUT = {"float32": "float32", "float16": "float32", "bfloat16": "bfloat16"}
# DLPack's header, DLDeviceType: kDLCUDA.
_DLPACK_CUDA = 2


class Plan(NamedTuple):
    """How a product is computed: which kernel, why, its launches, and what they need to live.

    That is the loaded code and the workspace; the matrices are the caller's to keep. `scalars` are
    the alpha and beta that the launches have now.
    """

    kernel: Kernel
    variant: Variant
    reason: str
    launches: list[Ready]
    kept: list[Any]
    scalars: list[float]


# What trials have found, by variant, problem and how many there were.
_found: dict[tuple[str, Problem, int], Choice] = {}
_plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()


def gemm(
    A: Any, B: Any, alpha: float = 1.0, beta: float = 0.0, C: Any = None, stream: Any = None,
    trials: int = 1,
) -> Any:
    """Enqueue C = alpha * A @ B + beta * C, and return C without waiting for it.

    Parameters
    ----------
    A, B : (M, K) and (K, N) arrays on one GPU
        CuPy's, or any that speak DLPack, such as PyTorch's. float32 or float16 by rows, or bfloat16
        with B by columns (the transpose of an (N, K) array).
    alpha, beta : float
        With a `beta` of 0 C is not read.
    C : (M, N) array, optional
        By rows: float32, or of the type of A and B where that is float16 or bfloat16. A new one of
        CuPy's if not given.
    stream : optional
        CuPy's or PyTorch's stream, or a CUstream as an int; CuPy's current one if not given.
    trials : int
        How many instantiations are timed the first time that a kernel with a rule meets a shape and
        its types, in the order of the rule's ranking; the fastest is kept. That waits for the GPU,
        and C is not touched by it. With 1 nothing is timed, and the rule's first is taken.

    Returns
    -------
    C : array
        The one that was given, or CuPy's.

    Raises
    ------
    ValueError
        If types, layouts, shapes or devices don't fit, C overlaps A or B, or `trials` is below 1.
    NoGpu
        If there is no GPU.
    """
    cp = device.cupy()
    a, b = _on_gpu(cp, "A", A), _on_gpu(cp, "B", B)
    if C is None:
        if beta != 0:
            raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
        _check_operands(a, b)
        C = cp.empty((a.shape[0], b.shape[1]), numpy_dtype(_OUT[a.dtype.name]))
    c = _on_gpu(cp, "C", C)
    queue = _stream(cp, stream)
    plan = _planned(cp, a, b, c, queue, trials)
    if plan.scalars != [alpha, beta]:
        main = plan.launches[-1]
        main.put(_ALPHA, np.float32(alpha))
        main.put(_BETA, np.float32(beta))
        plan.scalars[:] = alpha, beta
    for launch in plan.launches:
        launch(queue)
    return C


def chosen(A: Any, B: Any, C: Any, trials: int = 1) -> str:
    """Say which kernel, and which instantiation of it, `gemm` takes for such arrays, and why."""
    cp = device.cupy()
    arrays = (_on_gpu(cp, name, one) for name, one in (("A", A), ("B", B), ("C", C)))
    plan = _planned(cp, *arrays, cp.cuda.get_current_stream().ptr, trials)
    return f"{plan.kernel.stem}, {plan.kernel.expression(plan.variant)}" + (
        f" ({plan.reason})" if plan.reason else "")


def _planned(cp: Any, a: Any, b: Any, c: Any, stream: int, trials: int) -> Plan:
    """The plan for these arrays on this stream: what was made before, or a new one."""
    # Written out: a generator over the three takes twice as long, a tenth of a call.
    key = (
        stream, trials, a.data.ptr, a.shape, a.strides, a.dtype,
        b.data.ptr, b.shape, b.strides, b.dtype, c.data.ptr, c.shape, c.strides, c.dtype,
    )
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = _made(cp, a, b, c, trials)
        if len(_plans) > KEPT:
            (where, *_), _ = _plans.popitem(last=False)
            cp.cuda.runtime.streamSynchronize(where)  # its workspace may still be in use
    else:
        _plans.move_to_end(key)
    return plan


def _made(cp: Any, a: Any, b: Any, c: Any, trials: int) -> Plan:
    """Check the arrays, choose a kernel and lay its launches out."""
    if trials < 1:
        raise ValueError(f"trials is {trials}: pass 1, which times nothing, or more")
    _check_operands(a, b)
    (M, K), N = a.shape, b.shape[1]
    if c.shape != (M, N) or not c.flags.c_contiguous:
        raise ValueError(f"C must be a C-contiguous array of {M}×{N}, not {c.shape} of {c.strides}")
    if len({one.device.id for one in (a, b, c)}) > 1:
        raise ValueError("A, B and C must lie on one GPU")
    for name, one in (("A", a), ("B", b)):
        if cp.shares_memory(one, c) and one.size:
            raise ValueError(f"C overlaps {name}: pass another C")
    # Where N or K is 1, B lies both ways.
    layouts = {"row": b.flags.c_contiguous, "column": b.flags.f_contiguous}
    kernel, variant, problem = _version([
        Problem(M, N, K, dtype=a.dtype.name, out=c.dtype.name, b_layout=layout)
        for layout, fits in layouts.items() if fits
    ])
    operands = a, b if problem.b_layout == "row" else b.T, c
    choice = None
    if trials > 1 and variant.by_rule:
        choice = _fastest(cp, kernel, variant, problem, operands, trials)
    return _laid_out(cp, kernel, variant, problem, operands, choice)


def _fastest(
    cp: Any, kernel: Kernel, variant: Variant, problem: Problem, operands: Sequence[Any],
    trials: int,
) -> Choice:
    """The candidate of a rule's first few that is fastest on these matrices, and as many trials."""
    key = (variant.name, problem, trials)
    if key not in _found:
        A, B, C = operands
        other = cp.empty_like(C)
        tried = rule.ranked(kernel, variant, problem)[:trials]
        seconds = [
            _seconds(cp, _laid_out(cp, kernel, variant, problem, (A, B, other), choice))
            for choice in tried
        ]
        best = tried[seconds.index(min(seconds))]
        _found[key] = Choice(best.name, f"{best.name}: the fastest of {len(tried)} that were tried")
    return _found[key]


def _seconds(cp: Any, plan: Plan) -> float:
    """What a plan takes, by the least of some turns behind one that is not counted, s.

    A turn is a graph of launches: small products are done sooner than Python enqueues them.
    """
    stream = cp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    for _ in range(_LAUNCHES):
        for launch in plan.launches:
            launch(stream.ptr)
    graph = stream.end_capture()
    cp.cuda.runtime.deviceSynchronize()  # what the caller has enqueued would take its share
    times = []
    for _ in range(1 + _TURNS):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record(stream)
        graph.launch(stream)
        end.record(stream)
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end))
    return min(times[1:]) / (1e3 * _LAUNCHES)


def _laid_out(
    cp: Any, kernel: Kernel, variant: Variant, problem: Problem, operands: Sequence[Any],
    choice: Choice | None,
) -> Plan:
    """The launches of a kernel, or of a candidate of its rule."""
    prepared = prepare(kernel, variant, problem, [operands], choice=choice)
    loaded = Loaded(kernel, prepared, device.arch())
    own = {one.data.ptr for one in operands}
    workspace = [
        value for step in prepared.steps(0) for value in step.arguments
        if isinstance(value, cp.ndarray) and value.data.ptr not in own
    ]
    return Plan(
        kernel, prepared.selection.variant, prepared.selection.reason, loaded.ready(0),
        [*loaded.modules.values(), *workspace], [problem.alpha, problem.beta],
    )


def _version(problems: Sequence[Problem]) -> tuple[Kernel, Variant, Problem]:
    """The latest version that the GPU here runs and that takes one of the problems.

    They are one product, in layouts that B has. Of the version the first variant of their types.

    Raises
    ------
    ValueError
        If none has them.
    """
    for kernel in reversed(CATALOGUE.values()):
        for variant, problem in product(kernel.variants, problems):
            if variant.typed(problem) == problem and device.runs(kernel, variant):
                return kernel, variant, problem
    problem = problems[0]
    raise ValueError(
        f"no kernel on {device.name()} takes A and B in {problem.dtype}, B by {problem.b_layout}s "
        f"and C in {problem.out}"
    )


def _check_operands(a: Any, b: Any) -> None:
    """Refuse what no kernel takes, whatever C is."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (a.shape[0], b.shape[1]):
        raise ValueError(f"A is {a.shape} and B is {b.shape}: they must be M×K and K×N")
    if a.dtype != b.dtype or a.dtype.name not in _OUT:
        raise ValueError(
            f"A holds {a.dtype} and B {b.dtype}: both must be one of {', '.join(_OUT)}"
        )
    if not a.flags.c_contiguous:
        raise ValueError("A must be C-contiguous: pass cupy.ascontiguousarray(A)")
    if not (b.flags.c_contiguous or b.flags.f_contiguous):
        raise ValueError("B must be C- or F-contiguous: pass cupy.ascontiguousarray(B)")


def _on_gpu(cp: Any, name: str, array: Any) -> Any:
    """A CuPy array over the same memory."""
    if type(array) is cp.ndarray:
        return array
    if isinstance(array, cp.ndarray) and not isinstance(array, np.ndarray):
        return array
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        raise ValueError(
            f"{name} is a {type(array).__module__}.{type(array).__name__}: pass an array on the "
            "GPU, of CuPy or one that speaks DLPack"
        )
    kind, _ = array.__dlpack_device__()
    if int(kind) != _DLPACK_CUDA:
        raise ValueError(f"{name} does not lie on a GPU: move it there first")
    return cp.from_dlpack(array)


def _stream(cp: Any, stream: Any) -> int:
    """The CUstream of what was given."""
    if stream is None:
        return cp.cuda.get_current_stream().ptr
    for attribute in ("ptr", "cuda_stream"):  # CuPy's, PyTorch's
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    return int(stream)
