"""One product on the GPU by the best kernel of this book: C = alpha * A @ B + beta * C.

>>> import lib
>>> C = lib.gemm(A, B)                                                        # doctest: +SKIP
>>> lib.gemm(A, B, alpha=0.5, beta=1.0, C=C, stream=stream)                   # doctest: +SKIP
>>> lib.gemm(A, B, trials=8)                                                  # doctest: +SKIP

In FP16 and BF16, and in FP32 off the cubes, a model of costs chooses among tiles, which go down to
one row of C. A call looks up the shapes, types and alignments of its matrices. What it finds has
the kernel loaded and its arguments laid out, so that nothing is left but to put the addresses in
and to launch. PyTorch's operator, which has gradients and which `torch.compile` traces, is
`lib.torch`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Protocol

from lib.dispatch import cost, fit
from lib.dispatch.choice import Choice
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import LAUNCHED, find
from lib.kernels.spec import Kernel, Variant
from lib.problem import ITEM_BYTES, Operand, Problem
from lib.run import described, device, fused_gemm, libraries, placed, scaled_gemm
from lib.run import trials as timing
from lib.run.bound import Bound
from lib.run.launching import capturing, while_capturing
from lib.run.libraries import Library, Look, WantsGradient
from lib.run.placed import Placed, Sketch
from lib.run.prepared import lay_out
from lib.run.runner import planned

# Plans that are kept: a few kilobytes each, on the host. What kernels are loaded stay so.
MAX_PLANS = 1024
# Streams, of all GPUs, whose scratch memory is kept.
MAX_STREAMS = 64
# Bytes of scratch memory and of counters of a plan that needs neither.
NO_MEMORY = (0, 0)
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


@dataclass(frozen=True)
class Product:
    """How products of matrices of one kind are computed: a plan, laid out."""

    kernel: Kernel
    variant: Variant  # the instantiation
    reason: str  # why this one
    # shape, out: C's.
    shape: tuple[int, ...]
    out: str
    nbytes: tuple[int, int, int]  # bytes of A, B and C, each from its first to its last
    # Of A, B and C bytes from a row to the next, and of a row; of a column where that is one.
    rows: tuple[tuple[int, int], ...]
    # Bytes of scratch memory and of counters that the launches take; both 0 if none.
    memory: tuple[int, int]
    # Enqueues the launches (`Bound`); does nothing where C has no elements.
    bound: Callable[[int, Sequence[int], float, float], None]


class Rooms(NamedTuple):
    """What launches on one stream share: scratch memory, and counters that they leave at zero."""

    held: tuple[Any, Any]
    nbytes: tuple[int, int]
    addresses: tuple[int, int]


operator: Operator | None = None
_plans: OrderedDict[tuple[Any, ...], Product] = OrderedDict()
_loaded: dict[tuple[int, str, str], device.Loaded] = {}
_rooms: OrderedDict[tuple[str, int, int], Rooms] = OrderedDict()
# A plan's arguments are written and launched, and a stream's scratch memory is used by the launches
# of one product after another: one thread at a time.
_launching = threading.Lock()
# Threads that meet the same shape compile it once.
_planning = threading.RLock()


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
        (`lib.kernels.epilogues.interleaved`). Fused, where the shape suits that and rows and
        addresses are multiples of 16 bytes; elsewhere it is a launch behind the product
        (`lib.run.fused_gemm.chosen` says which). `trials` has no part in it.
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
        return _with_more(A, B, alpha, beta, C, stream, scale_a, scale_b, epilogue, bias, residual,
                          amax)
    if operator is not None and operator.traced():
        return operator.call(A, B, C, alpha, beta, stream, trials)
    try:
        return compute(A, B, alpha, beta, C, stream, trials)
    except WantsGradient:
        if operator is None:
            raise
    return operator.call(A, B, C, alpha, beta, stream, trials)


def _with_more(
    A: Any, B: Any, alpha: float, beta: float, C: Any, stream: Any, scale_a: Any, scale_b: Any,
    epilogue: str | None, bias: Any, residual: Any, amax: Any,
) -> Any:
    """`gemm` with scales, or with an epilogue."""
    if scale_a is not None or scale_b is not None:
        if any(one is not None for one in (epilogue, bias, residual, amax)):
            raise ValueError("a product with scales takes no epilogue: apply it to its C")
        if operator is not None and operator.traced():
            raise ValueError("products with scales can't be traced yet: call lib.gemm outside of "
                             "torch.compile, or under torch.compiler.disable")
        return scaled_gemm.compute(A, B, alpha, beta, C, stream, scale_a, scale_b)
    if operator is not None and operator.traced():
        raise ValueError("lib.gemm with an epilogue can't be traced: call lib.torch.linear")
    try:
        return fused_gemm.compute(A, B, alpha, beta, C, stream, epilogue, bias, residual, amax,
                                  _product)
    except WantsGradient as wanted:
        raise ValueError("lib.gemm with an epilogue has no gradient: call lib.torch.linear, or "
                         "detach its operands") from wanted


def fused(A: Any, B: Any, C: Any, epilogue: str, bias: Any, residual: Any) -> Any:
    """Enqueue C = act(A @ B + bias) + residual on the library's stream, without gradients."""
    return fused_gemm.compute(A, B, 1.0, 0.0, C, None, epilogue, bias, residual, None, _product)


def _product(A: Any, B: Any, C: Any, stream: int) -> Any:
    """A·B alone, for an epilogue that is launched behind it."""
    return compute(A, B, 1.0, 0.0, C, stream, 1)


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
        place, (of_a, of_b, of_c) = c[0], plan.nbytes
        end = place + of_c
        if at_a < end and place < at_a + of_a or at_b < end and place < at_b + of_b:
            _check_overlap(plan, at_a, at_b, place)
    if plan.memory == NO_MEMORY:
        with _launching:
            plan.bound(queue, (at_a, at_b, place, 0, 0), alpha, beta)
    elif capturing(queue):  # the graph may run beside what the stream is given later
        with _launching, library.captured(plan.memory, index, queue) as rooms:
            plan.bound(queue, (at_a, at_b, place, *rooms), alpha, beta)
    else:
        with _launching:
            rooms = _room(library, index, queue, plan.memory)
            plan.bound(queue, (at_a, at_b, place, *rooms), alpha, beta)
    return C


def chosen(A: Any, B: Any, C: Any = None, trials: int = 1) -> str:
    """Say which kernel, and which instantiation of it, `gemm` takes for such matrices, and why."""
    library = libraries.of(A, B, C)
    a, b = library.look("A", A), library.look("B", B)
    c = None if C is None else library.look("C", C)
    index = a[2][-1]
    with library.on(index):
        plan = _planned(library, index, library.stream(None, index), a, b, c, trials)
    return f"{plan.kernel.stem}, {plan.kernel.expression(plan.variant)}" + (
        f" ({plan.reason})" if plan.reason else "")


def forget() -> None:
    """Let go of all plans and of the scratch memory of all streams."""
    with _planning, _launching:
        _plans.clear()
        _rooms.clear()


def _planned(
    library: Library, index: int, stream: int, a: Look, b: Look, c: Look | None, trials: int,
    out: str | None = None,
) -> Product:
    """The plan for matrices of these kinds: what was made before, or a new one."""
    key = (
        library.name, trials, a[2], a[0] % fit.MAX_ALIGNMENT, b[2], b[0] % fit.MAX_ALIGNMENT,
        out if c is None else (c[2], c[0] % fit.MAX_ALIGNMENT),
    )
    try:
        plan = _plans[key]
        _plans.move_to_end(key)
    except KeyError:  # never there, or another thread has just thrown it out
        with _planning:
            plan = _plans.get(key) or _made(library, index, stream, a, b, c, trials, out)
            _plans[key] = plan
            while len(_plans) > MAX_PLANS:
                _plans.popitem(last=False)
    of_a, of_b, of_c = plan.nbytes
    if a[1] < of_a or b[1] < of_b or (c is not None and c[1] < of_c):
        _check_reach(plan.nbytes, a, b, c)
    return plan


def _check_reach(nbytes: tuple[int, int, int], a: Look, b: Look, c: Look | None) -> None:
    """Refuse a matrix that its memory ends before."""
    of_a, of_b, of_c = nbytes
    if a[1] < of_a or b[1] < of_b or (c is not None and c[1] < of_c):
        raise ValueError(
            f"A, B and C take {of_a:,}, {of_b:,} and {of_c:,} bytes, and one of them is a view "
            "past the end of its memory"
        )


def _check_overlap(plan: Product, a: int, b: int, c: int) -> None:
    """Refuse a C whose bytes are A's or B's, too."""
    for n, place in enumerate((a, b)):
        nbytes, (pitch, row) = plan.nbytes[n], plan.rows[n]
        if not nbytes or place >= c + plan.nbytes[2] or c >= place + nbytes:
            continue
        # Rows of one array, cut lengthwise, lie between each other and don't overlap.
        behind = (place - c) % pitch
        if pitch != plan.rows[2][0] or behind < plan.rows[2][1] or behind + row > pitch:
            raise ValueError(f"C overlaps {'AB'[n]}: pass another C")


def _room(
    library: Library, index: int, stream: int, nbytes: tuple[int, int]
) -> tuple[int, int]:
    """Addresses of a stream's scratch memory and counters, which grow with what is asked for.

    What has become too small goes back to the library's allocator, which gives it to nothing but
    later work of the same stream: nobody has to wait.
    """
    key = library.name, index, stream
    found = _rooms.get(key)
    if found is None or found.nbytes[0] < nbytes[0] or found.nbytes[1] < nbytes[1]:
        before = found.nbytes if found else (1, 1)
        scratch, counters = max(nbytes[0], before[0]), max(nbytes[1], before[1])
        held = (library.empty((scratch,), "uint8", index, stream),
                library.zeros(counters, index, stream))
        found = Rooms(held, (scratch, counters),
                      (library.address(held[0]), library.address(held[1])))
        _rooms[key] = found
        while len(_rooms) > MAX_STREAMS:
            _rooms.popitem(last=False)
    _rooms.move_to_end(key)
    return found.addresses


def _made(
    library: Library, index: int, stream: int, a: Look, b: Look, c: Look | None, count: int,
    out: str | None,
) -> Product:
    """Check matrices of these kinds, choose a kernel and lay its launches out."""
    if count < 1:
        raise ValueError(f"trials is {count}: pass 1, which times nothing, or more")
    if any(one is not None and one[2][-1] != index for one in (b, c)):
        raise ValueError("A, B and C must lie on one GPU")
    A, B = library.placed(placed.A, a[2]), library.placed(placed.B, b[2])
    _check_types(A, B)
    shape = described.shape_of(A, B)
    out = out or OUT[A.dtype.name]
    C = None
    if c is not None:
        C = library.placed(placed.C, c[2])
        if C.shape != shape.of_c:
            raise ValueError(f"C is {C.shape}: it must be {shape.of_c}")
        out = C.dtype.name
    if shape.empty:
        kernel, variant, _ = version([Problem(1, 1, 8, dtype=A.dtype.name, out=out)])
        return Product(kernel, variant, "nothing to compute", shape.of_c, out, (0, 0, 0),
                       ((1, 0),) * 3, (0, 0), lambda *given: None)
    kernel, variant, problem = version(described.problems(A, B, C, shape, out))
    places = (a[0], b[0], c[0] if c else fit.MAX_ALIGNMENT)
    choice = None
    if count > 1 and variant.by_rule:
        _check_reach((A.nbytes, B.nbytes, 0), a, b, c)  # before a trial reads them
        choice = _fastest(library, index, stream, kernel, variant, problem, places, count)
    return replace(laid_out(kernel, variant, problem, places, choice), shape=shape.of_c)


def laid_out(
    kernel: Kernel, variant: Variant, problem: Problem, places: Sequence[int],
    choice: Choice | None = None,
) -> Product:
    """The launches of a kernel, or of a candidate of its rule, for matrices so aligned."""
    found = planned(kernel, variant, problem, places, choice=choice, on_gpu=True)
    operands = problem.operands
    types = (problem.dtype, problem.dtype, problem.out)
    A, B, C = (
        Placed.tight(source, one.shape, dtype).viewed(one.shape, one.steps)
        for source, one, dtype in zip((placed.A, placed.B, placed.C), operands, types, strict=True)
    )
    sketch = Sketch()
    steps = lay_out(found, problem, [(A, B, C)], sketch).steps(0)
    launches = [
        _code(kernel, step.variant).ready(step.launch, step.arguments) for step in steps
    ]
    return Product(
        kernel, found.variant, found.reason, operands[2].shape, problem.out,
        (A.nbytes, B.nbytes, C.nbytes),
        tuple(_rows(one, dtype) for one, dtype in zip(operands, types, strict=True)),
        (sketch.nbytes[placed.SCRATCH], sketch.nbytes[placed.COUNTERS]),
        Bound(steps, launches),
    )


def _rows(operand: Operand, dtype: str) -> tuple[int, int]:
    """Bytes from a line to the next, and of a line; of a batch, of all that it spans."""
    item = ITEM_BYTES[dtype]
    if operand.products > 1 or not operand.span:
        return max(operand.span * item, 1), operand.span * item
    return operand.lead * item, operand.length * item


def version(problems: Sequence[Problem]) -> tuple[Kernel, Variant, Problem]:
    """The version that is launched: of `LAUNCHED` the first that takes one of the problems here.

    They are one product, in layouts that its matrices have. Of the version the first variant that
    takes their types and layouts, a rule before others; FP32's cubes have a search of their own.

    Raises ValueError if none takes them.
    """
    for kernel in map(find, LAUNCHED):
        ruled = sorted((*kernel.variants, *kernel.laid), key=lambda one: not one.by_rule)
        for variant, problem in product(ruled, problems):
            cube = problem.M == problem.N == problem.K and problem.dtype == "float32"
            if cube and variant.by_rule:
                continue
            if not fit.refusal(variant, problem) and device.runs(kernel, variant):
                return kernel, variant, problem
    problem = problems[0]
    gaps = "" if problem.plain else ", with gaps between rows" if problem.batch == 1 else (
        f", {problem.batch} products at once")
    raise ValueError(
        f"no kernel on {device.name()} takes A and B in {problem.dtype}, A by {problem.a_layout}s, "
        f"B by {problem.b_layout}s and C in {problem.out}{gaps}"
    )


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
        found = laid_out(kernel, variant, problem, places, choice)
        other = library.empty((found.nbytes[2],), "uint8", index, stream)
        rooms = [library.zeros(max(n, 1), index, stream) for n in found.memory]
        addresses = (places[0], places[1], *map(library.address, (other, *rooms)))
        return timing.seconds(lambda queue: found.bound(queue, addresses, 1.0, 0.0))

    name = timing.fastest(parts, tried, seconds)
    return Choice(name, f"{name}: the fastest of {len(tried)} that were tried")


def _code(kernel: Kernel, variant: Variant) -> device.Loaded:
    """An instantiation on the GPU. It stays there: a graph may hold it when no plan does any more.
    """
    key = device.current(), kernel.stem, kernel.expression(variant)
    if key not in _loaded:
        compiled = compile_kernel(kernel, variant, device.arch())
        with while_capturing():
            _loaded[key] = device.Loaded(compiled)
    return _loaded[key]


def _check_types(A: Placed, B: Placed) -> None:
    """Refuse types that no kernel takes, whatever C is."""
    if A.dtype != B.dtype or A.dtype.name not in OUT:
        raise ValueError(
            f"A holds {A.dtype} and B {B.dtype}: both must be one of {', '.join(OUT)}"
        )
