"""Plans of products: laid out once, kept by what they depend on, launched at a call's addresses.

What a product needs besides its matrices is found once for their *kinds*: the library that they
are of, the GPU, shapes, strides and types, and what divides their addresses. A `LaunchPlan` then
holds the instantiation that `lib.dispatch` chose, its code on the GPU, the arguments in the bytes
that the driver reads, grid and shared memory. A call puts addresses and scalars in and launches
(`lib.run.bound`); nothing is looked for or converted any more.

`PLANS` keeps up to `MAX_PLANS` of them, of `lib.gemm`, with an epilogue and with scales alike; the
one that was not used for longest goes first. A plan is a few kilobytes on the host. Its code stays
on the GPU when the plan goes: a graph may hold it. So a plan that is needed again takes a fraction
of a millisecond; only code that no process has compiled before takes long, and what was compiled
lies on disk (`lib.compiler.cache`).

**Memory.** Where tiles share K, or rows are packed first, launches need scratch memory, and
counters that they find at zero and leave so. Launches of one stream follow each other, so they
share one `Rooms`, which grows with what is asked for. More than `MAX_HELD` bytes are not held: they
come from the library's allocator for one call. So does what a graph records, which may run beside
what the stream is given later.

**Threads.** A plan's arguments are written and then launched, and rooms are used by the launches of
one product after another: `enqueue` holds a lock for both. Threads that meet the same kinds make
one plan.

An address counts by the largest power of two up to `lib.dispatch.fit.MAX_ALIGNMENT` that divides
it. Whether a matrix reaches past its memory, or C overlaps an operand, is a question of addresses:
who makes the call asks it each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Generic, NamedTuple, TypeVar

from lib.dispatch import fit
from lib.dispatch.cost import Choice
from lib.dispatch.plan import Plan
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import LAUNCHED, find
from lib.kernels.spec import Kernel, Variant
from lib.problem import ITEM_BYTES, Operand, Problem
from lib.run import device, placed
from lib.run.bound import Bound
from lib.run.launching import capturing, while_capturing
from lib.run.libraries import Library, Look
from lib.run.placed import Placed, Sketch
from lib.run.prepared import Step, lay_out
from lib.run.runner import planned

MAX_PLANS = 1024
# Streams, of all GPUs, whose scratch memory is kept; and how much of it each, B.
MAX_STREAMS = 64
MAX_HELD = 1 << 26
# Bytes of scratch memory and of counters of a plan that needs neither.
NO_MEMORY = (0, 0)
T = TypeVar("T")


@dataclass(frozen=True)
class LaunchPlan:
    """How products of matrices of one kind are computed."""

    kernel: Kernel
    variant: Variant  # the instantiation that writes C
    reason: str  # why this one
    # shape, out: C's.
    shape: tuple[int, ...]
    out: str
    nbytes: Mapping[str, int]  # of each operand, by its name, from its first byte to its last
    # Bytes of scratch memory and of counters that the launches take; both 0 if none.
    memory: tuple[int, int] = NO_MEMORY
    # Enqueues the launches (`Bound`); None where C has no elements.
    bound: Callable[[int, Sequence[int], float, float], None] | None = None
    # Of matrices with gaps bytes from a row to the next, and of a row; of a column where that is
    # one.
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Rooms(NamedTuple):
    """What launches on one stream share: scratch memory, and counters that they leave at zero."""

    held: tuple[Any, Any]
    nbytes: tuple[int, int]
    addresses: tuple[int, int]


class Cache(Generic[T]):
    """What is kept for the kinds of operands; of more than `MAX_PLANS` what wasn't used for longest
    goes."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        # Threads that meet the same kinds compile them once.
        self._making = threading.RLock()
        _caches.append(self)

    def get(self, key: Hashable) -> T | None:
        """What is kept under a key."""
        entry = self._entries.get(key)
        if entry is not None and 2 * len(self._entries) > MAX_PLANS:  # the key is hashed once more
            with suppress(KeyError):  # another thread has just thrown it out
                self._entries.move_to_end(key)
        return entry

    def add(self, key: Hashable, make: Callable[[], T]) -> T:
        """What another thread has put under a key meanwhile, or what is made now."""
        with self._making:
            entry = self.get(key)
            if entry is None:
                entry = self._entries[key] = make()
            while len(self._entries) > MAX_PLANS:
                self._entries.popitem(last=False)
        return entry

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Let go of all."""
        with self._making:
            self._entries.clear()


_caches: list[Cache[Any]] = []
PLANS: Cache[LaunchPlan] = Cache()
_rooms: OrderedDict[tuple[str, int, int], Rooms] = OrderedDict()
_loaded: dict[tuple[int, str, str], device.Loaded] = {}
_launching = threading.Lock()


def forget() -> None:
    """Let go of all plans and of the scratch memory of all streams."""
    for cache in _caches:
        cache.clear()
    with _launching:
        _rooms.clear()


def enqueue(
    library: Library, plan: LaunchPlan, index: int, stream: int, addresses: list[int], alpha: float,
    beta: float,
) -> None:
    """Enqueue a plan's launches on a CUstream of a GPU.

    `addresses`: of the operands by their places among `lib.run.placed.SOURCES`; those of scratch
    memory and of counters are put in here.
    """
    bound = plan.bound
    if bound is None:
        return
    memory = plan.memory
    if memory == NO_MEMORY:
        with _launching:
            bound(stream, addresses, alpha, beta)
    elif memory[0] > MAX_HELD or capturing(stream):
        with _launching, library.borrowed(memory, index, stream) as rooms:
            addresses[placed.SCRATCH], addresses[placed.COUNTERS] = rooms
            bound(stream, addresses, alpha, beta)
    else:
        with _launching:
            rooms = _room(library, index, stream, memory)
            addresses[placed.SCRATCH], addresses[placed.COUNTERS] = rooms
            bound(stream, addresses, alpha, beta)


def _room(
    library: Library, index: int, stream: int, nbytes: tuple[int, int]
) -> tuple[int, int]:
    """Addresses of a stream's scratch memory and counters, which grow with what is asked for.

    What has become too small goes back to the library's allocator, which gives it to nothing but
    later work of the same stream: nobody has to wait.
    """
    key = library.name, index, stream
    rooms = _rooms.get(key)
    if rooms is None or rooms.nbytes[0] < nbytes[0] or rooms.nbytes[1] < nbytes[1]:
        before = rooms.nbytes if rooms else (1, 1)
        scratch, counters = max(nbytes[0], before[0]), max(nbytes[1], before[1])
        held = (library.empty((scratch,), "uint8", index, stream),
                library.zeros(counters, index, stream))
        rooms = Rooms(held, (scratch, counters),
                      (library.address(held[0]), library.address(held[1])))
        _rooms[key] = rooms
        while len(_rooms) > MAX_STREAMS:
            _rooms.popitem(last=False)
    _rooms.move_to_end(key)
    return rooms.addresses


def check_reach(looks: Mapping[str, Look], nbytes: Mapping[str, int]) -> None:
    """Refuse an operand that its memory ends before."""
    for name, look in looks.items():
        if look[1] < nbytes[name]:
            raise ValueError(
                f"{name} takes {nbytes[name]:,} bytes and is a view past the end of its memory")


def check_overlap(plan: LaunchPlan, looks: Mapping[str, Look], place: int) -> None:
    """Refuse a C whose bytes are those of an operand, too. `place`: where C begins."""
    end = place + plan.nbytes["C"]
    for name, look in looks.items():
        first, nbytes = look[0], plan.nbytes[name]
        if name == "C" or not nbytes or first >= end or place >= first + nbytes:
            continue
        # Rows of one array, cut lengthwise, lie between each other and don't overlap.
        pitch, row = plan.rows.get(name, (1, 1))
        of_c, row_of_c = plan.rows.get("C", (0, 0))
        behind = (first - place) % pitch
        if pitch != of_c or behind < row_of_c or behind + row > pitch:
            raise ValueError(f"C overlaps {name}: pass another C")


# -- which problem matrices are ------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A product's sizes, and whether its matrices have an axis for the products of a batch."""

    # M, N, K, batch: any of them may be 0.
    M: int
    N: int
    K: int
    batch: int
    of_c: tuple[int, ...]  # shape of C: (M, N), or (batch, M, N)

    @property
    def empty(self) -> bool:
        """Whether C has no elements."""
        return 0 in self.of_c


def shape_of(A: Placed, B: Placed) -> Shape:
    """The sizes of a product; of a batch A, B or both have three axes.

    Raises ValueError if they don't fit each other.
    """
    batches = {one.shape[0] for one in (A, B) if one.ndim == 3}
    fits = A.ndim in (2, 3) and B.ndim in (2, 3) and len(batches) < 2
    if not fits or A.shape[-1] != B.shape[-2]:
        raise ValueError(
            f"A is {A.shape} and B is {B.shape}: they must be M×K and K×N, or batches of as many")
    M, N = A.shape[-2], B.shape[-1]
    return Shape(M, N, A.shape[-1], max(batches, default=1), (*batches, M, N))


def problems(A: Placed, B: Placed, C: Placed | None, shape: Shape, out: str) -> list[Problem]:
    """The problem that matrices are: which way each lies, and with which gaps.

    Several where one of them lies both ways.

    `C`: tight if not given. `shape`: theirs; no size but K is 0. `out`: C's type. Raises ValueError
    if the neighbours of a row or of a column don't lie beside each other, or lines overlap.
    """
    ways = [list(_ways(name, one, shape.batch)) for name, one in (("A", A), ("B", B))]
    if C is None:
        of_c = [Operand(
            "C", "row", shape.M, shape.N, shape.N, shape.batch, shape.M * shape.N, out)]
    else:
        of_c = [one for one in _ways("C", C, shape.batch) if one.layout == "row"]
        if not of_c:
            raise ValueError(f"C must lie by rows, and its strides are {C.strides} bytes: pass "
                             "another C")
    found = []
    for a, b in product(*ways):
        operands = (a, b, of_c[0])
        found.append(Problem(
            shape.M, shape.N, shape.K, dtype=A.dtype.name, out=out, a_layout=a.layout,
            b_layout=b.layout, batch=shape.batch,
            leads=(a.lead, b.lead, of_c[0].lead),
            strides=tuple(one.stride for one in operands) if shape.batch > 1 else (),
        ))
    return found


def _ways(name: str, matrix: Placed, products: int) -> Iterator[Operand]:
    """How a matrix lies: by rows, by columns, or, where one of its sizes is 1, both ways."""
    (rows, columns), item = matrix.shape[-2:], matrix.dtype.itemsize
    down, across = (step // item for step in matrix.strides[-2:])
    stride = matrix.strides[0] // item if matrix.ndim == 3 else 0
    found = 0
    for layout, lines, length, lead, step in (
        ("row", rows, columns, down, across), ("column", columns, rows, across, down),
    ):
        if not rows or not columns:
            lead, step, stride = length, 1, lines * length
        if (step == 1 or length == 1) and (lead >= length or lines == 1):
            found += 1
            lead = max(lead, 1) if lines > 1 else max(length, 1)
            yield Operand(name, layout, lines, length, lead if length else 0, products, stride,
                          matrix.dtype.name)
    if not found:
        raise ValueError(
            f"{name}'s strides are {matrix.strides} bytes: the elements of its rows, or those of "
            f"its columns, must be neighbours, and rows apart; pass a contiguous copy"
        )


# -- how a product is laid out ---------------------------------------------------------------------


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


def laid_out(
    kernel: Kernel, variant: Variant, problem: Problem, places: Sequence[int],
    choice: Choice | None = None,
) -> LaunchPlan:
    """The launches of a kernel, or of a candidate of its rule, for matrices so aligned."""
    A, B, C = operands = matrices(problem)
    sketch = Sketch()
    chosen, steps = steps_of(kernel, variant, problem, places, operands, sketch, choice)
    return LaunchPlan(
        kernel, chosen.variant, chosen.reason, problem.operand("C").shape, problem.out,
        {"A": A.nbytes, "B": B.nbytes, "C": C.nbytes},
        sketch.memory, bound(steps), {one.name: _rows(one) for one in problem.operands},
    )


def steps_of(
    kernel: Kernel, variant: Variant, problem: Problem, places: Sequence[int],
    operands: tuple[Any, ...], sketch: Sketch, choice: Choice | None = None,
) -> tuple[Plan, list[tuple[Kernel, Step]]]:
    """What is launched for matrices so aligned, which ask a sketch for what they need besides."""
    chosen = planned(kernel, variant, problem, places, choice=choice, on_gpu=True)
    (steps,) = lay_out(chosen, problem, [operands], sketch)
    return chosen, [(kernel, step) for step in steps]


def matrices(problem: Problem) -> tuple[Placed, Placed, Placed]:
    """A, B and C of a problem, with no addresses."""
    A, B, C = (
        Placed.tight(source, one.shape, one.dtype).viewed(one.shape, one.steps)
        for source, one in zip((placed.A, placed.B, placed.C), problem.operands, strict=True))
    return A, B, C


def bound(steps: Sequence[tuple[Kernel, Step]]) -> Bound:
    """Launches of kernels on the current GPU, with their code there; the last one writes C."""
    return Bound([step for _, step in steps], [
        code(kernel, step.variant).ready(step.launch, step.arguments) for kernel, step in steps])


def code(kernel: Kernel, variant: Variant) -> device.Loaded:
    """An instantiation on the GPU. It stays there: a graph may hold it when no plan does any more.
    """
    key = device.current(), kernel.stem, kernel.expression(variant)
    if key not in _loaded:
        compiled = compile_kernel(kernel, variant, device.arch())
        with while_capturing():
            _loaded[key] = device.Loaded(compiled)
    return _loaded[key]


def _rows(operand: Operand) -> tuple[int, int]:
    """Bytes from a line to the next, and of a line; of a batch, of all that it spans."""
    item = ITEM_BYTES[operand.dtype]
    if operand.products > 1 or not operand.span:
        return max(operand.span * item, 1), operand.span * item
    return operand.lead * item, operand.length * item
