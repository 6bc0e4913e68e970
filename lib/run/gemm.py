"""One product on the GPU by the best kernel of this book: C = alpha * A @ B + beta * C.

>>> import lib
>>> C = lib.gemm(A, B)                                                        # doctest: +SKIP
>>> lib.gemm(A, B, alpha=0.5, beta=1.0, C=C, stream=stream)                   # doctest: +SKIP
>>> lib.gemm(A, B, trials=8)                                                  # doctest: +SKIP

In FP16 and BF16, and in FP32 off the cubes, a model of costs chooses among tiles, which go down to
one row of C.

A call looks up the shapes, types and alignments of its matrices; what it finds has the kernel
loaded and its arguments laid out (`lib.run.plans`), so that nothing is left but to put the
addresses in and to launch. PyTorch's operator, which has gradients and which `torch.compile`
traces, is `lib.torch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from lib.dispatch import cost, fit
from lib.dispatch.cost import Choice
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem
from lib.run import device, libraries, parts, placed, plans
from lib.run import trials as timing
from lib.run.launching import capturing
from lib.run.libraries import Library, Look, WantsGradient
from lib.run.placed import Placed
from lib.run.plans import PLANS, LaunchPlan, check_overlap, check_reach, enqueue, version

# C's type where none is given; what can be asked for is what a variant of a kernel has.
OUT = {"float32": "float32", "float16": "float32", "bfloat16": "bfloat16"}


class Operator(Protocol):
    """`lib.torch`, which puts itself here when it is imported, for tensors that it takes over."""

    def traced(self) -> bool:
        """Whether `torch.compile` traces the call."""

    def call(
        self, A: Any, B: Any, C: Any, alpha: float, beta: float, stream: Any, trials: int
    ) -> Any:
        """Compute the product by the operators."""


operator: Operator | None = None


def gemm(
    A: Any, B: Any, alpha: float = 1.0, beta: float = 0.0, C: Any = None, stream: Any = None,
    trials: int = 1, scale_a: Any = None, scale_b: Any = None, epilogue: str | None = None,
    bias: Any = None, residual: Any = None, amax: Any = None,
) -> Any:
    """Enqueue C = alpha * A @ B + beta * C, and return C without waiting for it.

    With an epilogue it is C = act(alpha * A @ B + beta * C + bias) + residual, in FP32, rounded
    once.

    Parameters
    ----------
    A, B : (M, K) and (K, N) arrays on one GPU
        CuPy's, PyTorch's tensors, or others that speak DLPack: float32, and on Hopper float16 or
        bfloat16, each by rows or by columns (a transpose), with gaps between these or without. On
        older GPUs float16 is taken by rows without gaps. Either may have an axis of products before
        the others; where only one has it, all products share the other.
    alpha, beta : float
        With a `beta` of 0 C is not read.
    C : (M, N) array, or (batch, M, N), optional
        By rows, with gaps or without: float32, or of the type of A and B where that is float16 or
        bfloat16. A new one of the library of A and B if not given.
    stream : optional
        CuPy's or PyTorch's stream, or a CUstream as an int. If not given, the current one of the
        library of A and B. A stream that is captured into a graph records the product.
    trials : int
        How many instantiations are timed the first time that a kernel with a rule meets a shape and
        its types, in the order of the rule's ranking; the fastest is kept, on disk too. That waits
        for the GPU, and C is not touched by it. With 1 nothing is timed, and the rule's first is
        taken.
    scale_a, scale_b : float32 arrays, optional
        Of A and B in float8_e4m3fn (CuPy's uint8 for its bytes), B by columns, on Hopper: one for
        all, (1, 1) each; for each row of A and column of B, (M, 1) and (1, N); or for each row and
        128 of K and for squares of 128, (M, ⌈K/128⌉) and (⌈K/128⌉, ⌈N/128⌉). Of any strides. C is
        bfloat16, or float32 where one is given; `trials` has no part in it.
    epilogue : str, optional
        ``"relu"``, ``"gelu"`` (by its tanh), ``"gelu_erf"``, ``"silu"``, ``"swiglu"`` or
        ``"none"``, of A and B in float16 or bfloat16, on Hopper. With ``"swiglu"`` C has N / 2
        columns, and those of A @ B are eight gates and eight of what they let through in turns
        (`lib.problem.epilogue.interleaved`). Fused, where the shape suits that and rows and
        addresses are multiples of 16 bytes; elsewhere it is a launch behind the product
        (`lib.run.parts.chosen` says which). `trials` has no part in it.
    bias : (N,) array, optional
        Added to each row of A @ B. Of C's type; a C that isn't given has that of the bias, else of
        the residual, else of A and B.
    residual : array of C's shape and type, optional
    amax : (1,) float32 array, optional
        Becomes the larger of what it is and the largest |C|, before that is rounded.

    Returns
    -------
    C : array
        The one that was given, or a new one.

    Raises
    ------
    ValueError
        If types, layouts, shapes, libraries or devices don't fit, a matrix wants a gradient, C
        overlaps A, B or itself, or `trials` is below 1 or would be made while the stream is
        captured.
    NoGpu
        If there is no GPU.
    """
    if not scale_a is scale_b is epilogue is bias is residual is amax is None:
        given = {"A": A, "B": B, "C": C, "scale_a": scale_a, "scale_b": scale_b, "bias": bias,
                 "residual": residual, "amax": amax}
        arrays = {name: array for name, array in given.items() if array is not None}
        return _with_parts(arrays, alpha, beta, stream, epilogue)
    if operator is not None and operator.traced():
        return operator.call(A, B, C, alpha, beta, stream, trials)
    try:
        return compute(A, B, alpha, beta, C, stream, trials)
    except WantsGradient:
        if operator is None:
            raise
    return operator.call(A, B, C, alpha, beta, stream, trials)


def _with_parts(
    arrays: Mapping[str, Any], alpha: float, beta: float, stream: Any, epilogue: str | None
) -> Any:
    """`gemm` with scales, or with an epilogue."""
    traced = operator is not None and operator.traced()
    if arrays.keys() & {"scale_a", "scale_b"}:
        if epilogue or arrays.keys() & {"bias", "residual", "amax"}:
            raise ValueError("a product with scales takes no epilogue: apply it to its C")
        if not arrays.keys() >= {"scale_a", "scale_b"}:
            raise ValueError("scale_a and scale_b go together: pass both")
        if traced:
            raise ValueError("products with scales can't be traced yet: call lib.gemm outside of "
                             "torch.compile, or under torch.compiler.disable")
    elif traced:
        raise ValueError("lib.gemm with an epilogue can't be traced: call lib.torch.linear")
    try:
        return parts.compute(arrays, alpha, beta, stream, epilogue or "none")
    except WantsGradient as wanted:
        raise ValueError("lib.gemm with scales or an epilogue has no gradient: call "
                         "lib.torch.linear, or detach its operands") from wanted


def compute(
    A: Any, B: Any, alpha: float, beta: float, C: Any, stream: Any, trials: int,
    out: str | None = None,
) -> Any:
    """Enqueue a product, as `gemm` does, without gradients; `out` is the type of a new C."""
    # A warm call takes the host as long as this function does: so what is refused is only found
    # here, and named elsewhere.
    library = libraries.of(A, B, C)
    a, b, c = library.look("A", A), library.look("B", B), None
    if C is not None:
        c = library.look("C", C)
    elif beta != 0:
        raise ValueError(f"beta is {beta:g} and there is no C to add: pass one")
    index = a[2][3]
    if index != device.current():
        with library.on(index):
            return compute(A, B, alpha, beta, C, stream, trials, out)
    queue = library.stream(stream, index)
    plan = _planned(library, index, queue, a, b, c, trials, out)
    at_a, at_b = a[0], b[0]
    if c is None:
        C = library.empty(plan.shape, plan.out, index, queue)
        place = library.address(C)
    else:
        place, nbytes = c[0], plan.nbytes
        end = place + nbytes["C"]
        if at_a < end and place < at_a + nbytes["A"] or at_b < end and place < at_b + nbytes["B"]:
            check_overlap(plan, {"A": a, "B": b}, place)
    enqueue(library, plan, index, queue, [at_a, at_b, place, 0, 0], alpha, beta)
    return C


def chosen(A: Any, B: Any, C: Any = None, trials: int = 1) -> str:
    """Say which kernel, and which instantiation of it, `gemm` takes for such matrices, and why."""
    plan = plan_of(A, B, C, trials)
    return f"{plan.kernel.stem}, {plan.kernel.expression(plan.variant)}" + (
        f" ({plan.reason})" if plan.reason else "")


def plan_of(
    A: Any, B: Any, C: Any = None, trials: int = 1, out: str | None = None
) -> LaunchPlan:
    """What `gemm` launches for such matrices, by itself or with a new C of type `out`."""
    library = libraries.of(A, B, C)
    a, b = library.look("A", A), library.look("B", B)
    c = None if C is None else library.look("C", C)
    index = a[2][-1]
    with library.on(index):
        return _planned(library, index, library.stream(None, index), a, b, c, trials, out)


def _planned(
    library: Library, index: int, stream: int, a: Look, b: Look, c: Look | None, trials: int,
    out: str | None = None,
) -> LaunchPlan:
    """The plan for matrices of these kinds: what was made before, or a new one."""
    key = (
        library.name, trials, a[2], a[0] % fit.MAX_ALIGNMENT, b[2], b[0] % fit.MAX_ALIGNMENT,
        out if c is None else (c[2], c[0] % fit.MAX_ALIGNMENT),
    )
    plan = PLANS.get(key) or PLANS.add(
        key, lambda: _made(library, index, stream, a, b, c, trials, out))
    nbytes = plan.nbytes
    if a[1] < nbytes["A"] or b[1] < nbytes["B"] or (c is not None and c[1] < nbytes["C"]):
        check_reach({"A": a, "B": b} | ({} if c is None else {"C": c}), nbytes)
    return plan


def _made(
    library: Library, index: int, stream: int, a: Look, b: Look, c: Look | None, count: int,
    out: str | None,
) -> LaunchPlan:
    """Check matrices of these kinds, choose a kernel and lay its launches out."""
    if count < 1:
        raise ValueError(f"trials is {count}: pass 1, which times nothing, or more")
    if any(one is not None and one[2][-1] != index for one in (b, c)):
        raise ValueError("A, B and C must lie on one GPU")
    A, B = library.placed(placed.A, a[2]), library.placed(placed.B, b[2])
    _check_types(A, B)
    shape = plans.shape_of(A, B)
    out = out or OUT[A.dtype.name]
    C = None
    if c is not None:
        C = library.placed(placed.C, c[2])
        if C.shape != shape.of_c:
            raise ValueError(f"C is {C.shape}: it must be {shape.of_c}")
        out = C.dtype.name
    if shape.empty:
        kernel, variant, _ = version([Problem(1, 1, 8, dtype=A.dtype.name, out=out)])
        return LaunchPlan(kernel, variant, "nothing to compute", shape.of_c, out,
                          dict.fromkeys("ABC", 0))
    kernel, variant, problem = version(plans.problems(A, B, C, shape, out))
    places = (a[0], b[0], c[0] if c else fit.MAX_ALIGNMENT)
    choice = None
    if count > 1 and variant.by_rule:
        check_reach({"A": a, "B": b}, {"A": A.nbytes, "B": B.nbytes})  # before a trial reads them
        choice = _fastest(library, index, stream, kernel, variant, problem, places, count)
    return replace(plans.laid_out(kernel, variant, problem, places, choice), shape=shape.of_c)


def _fastest(
    library: Library, index: int, stream: int, kernel: Kernel, variant: Variant, problem: Problem,
    places: tuple[int, int, int], count: int,
) -> Choice:
    """The fastest of the first candidates of a rule, as it was found before or is found now."""
    tried = cost.ranked(kernel, variant, problem)[:count]
    parts = timing.depends_on(kernel, [kernel.variant(one.name) for one in tried], problem,
                              list(map(fit.alignment, places)))
    if capturing(stream) and not timing.known(parts):
        raise ValueError(
            f"trials is {count}, {problem.shape} hasn't been timed yet, and the stream is "
            "captured: call once before the capture, or pass trials=1"
        )

    def seconds(choice: Choice) -> float:
        plan = plans.laid_out(kernel, variant, problem, places, choice)
        C = library.empty((plan.nbytes["C"],), "uint8", index, stream)
        rooms = [library.zeros(max(n, 1), index, stream) for n in plan.memory]
        addresses = (places[0], places[1], *map(library.address, (C, *rooms)))
        assert (launch := plan.bound) is not None
        return timing.seconds(lambda queue: launch(queue, addresses, 1.0, 0.0))

    name = timing.fastest(parts, tried, seconds)
    return Choice(name, f"{name}: the fastest of {len(tried)} that were tried")


def _check_types(A: Placed, B: Placed) -> None:
    """Refuse types that no kernel takes, whatever C is."""
    if A.dtype != B.dtype or A.dtype.name not in OUT:
        raise ValueError(
            f"A holds {A.dtype} and B {B.dtype}: both must be one of {', '.join(OUT)}"
        )
