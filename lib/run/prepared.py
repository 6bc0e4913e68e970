"""The launches that make a product, with their arguments: on NumPy's arrays as on CuPy's.

It compiles nothing and reads no records, so it runs where neither can be: in a reader's browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lib.dispatch.plan import Plan
from lib.kernels.grid import Launch
from lib.kernels.spec import Variant
from lib.problem import ITEM_BYTES, Epilogue, Operand, Problem, numpy_dtype, viewed
from lib.problem.epilogue import Given
from lib.problem.scales import ATOM_BLOCKS, ATOM_ROWS, FORMATS, atoms
from lib.run.placed import Mapped, Placed
from lib.run.tensor_maps import encode

# How tensor maps are made: the swizzle that wgmma reads, and a hint to the
# L2. A matrix without elements has no map, and nothing is loaded from it.
TMA_SWIZZLE = 128
L2_PROMOTION = 128
# Where the scalars stand among a kernel's arguments.
ALPHA, BETA = 3, 6
NO_MAP = np.zeros(1, "V128")[0]
# `Strides` of strides.cuh.
STRIDES = np.dtype([("count", "i4"), ("a", "i4"), ("b", "i4"), ("c", "i4"),
                    ("next_a", "i8"), ("next_b", "i8"), ("next_c", "i8")])


class Step(NamedTuple):
    """One launch of those that make a product."""

    variant: Variant
    launch: Launch
    arguments: tuple[Any, ...]


def lay_out(
    plan: Plan, problem: Problem, sets: Sequence[tuple[Any, ...]], xp: Any = np
) -> list[list[Step]]:
    """The launches of a plan for each set of matrices, in their order: the last one writes C.

    The sets share their workspace, so their launches must follow each other.

    `plan`: the problem's, for matrices aligned as these are. `sets`: each as `Problem.inputs` gives
    it. `xp`: ``numpy`` or ``cupy``: where the matrices live. Raises ValueError if an array's shape,
    type or layout is not the problem's.
    """
    chosen, space = plan.variant, plan.workspace
    # Floats are poison and ints zeros, as a kernel leaves them.
    extra = (xp.full(space.floats, xp.nan, "float32"), xp.zeros(space.ints, "int32"),
             *map(np.int32, space.scalars)) if space.ints else ()
    if chosen.strided:
        extra = (*extra, _strides(*problem.operands))
    rooms = {name: _room(xp, problem.operand(name), chosen) for name in plan.packing}
    packed = {name: _packed(room, problem.operand(name)) for name, room in rooms.items()}
    made = []
    for one in sets:
        main = (*arguments(problem, one[0], one[1], one[2], chosen, packed),
                *scales(problem, one, chosen.step, xp),
                *(_extras(problem, chosen.epilogue, Given(*one)) if chosen.epilogue else ()),
                *extra)
        copies = [
            _packing(chosen.packing, launch, problem.operand(name), one["AB".index(name)],
                     rooms[name], behind)
            for behind, (name, launch) in enumerate(plan.packing.items()) if chosen.packing]
        made.append([*copies, Step(chosen, plan.launch, main)])
    return made


def _strides(a: Operand, b: Operand, c: Operand) -> Any:
    """The argument that says how matrices lie that no tensor map describes."""
    leads = (one.lead for one in (a, b, c))
    return np.array((c.products, *leads, a.stride, b.stride, c.stride), STRIDES)[()]


def _room(xp: Any, operand: Operand, variant: Variant) -> Any:
    """Room for an operand's matrices, with their rows padded to a multiple of `row_bytes`."""
    unit = variant.row_bytes // ITEM_BYTES[operand.dtype]
    pitch = -(-operand.length // unit) * unit
    return xp.empty((operand.lines * operand.distinct, pitch), numpy_dtype(operand.dtype))


def _packed(room: Any, operand: Operand) -> Any:
    """The operand's matrices in that room."""
    if operand.products == 1:
        return room[:, :operand.length]
    pitch = room.shape[1]
    stride = pitch * operand.lines if operand.stride else 0
    return _viewed(room, operand.shape, (stride, pitch, 1))


def _packing(
    variant: Variant, launch: Launch, operand: Operand, matrix: Any, room: Any, behind: int
) -> Step:
    """The step that copies an operand into such room; of two, the second may overlap the first."""
    sizes = (np.int32(operand.lines), np.int32(operand.length))
    gaps: tuple[Any, ...] = ()
    if variant.strided:
        matrix = _flat(matrix)
        stride = operand.stride if operand.distinct > 1 else 0
        gaps = (np.array((operand.distinct, operand.lead, 0, 0, stride, 0, 0), STRIDES)[()],)
    pitch = np.int32(room.shape[1])
    return Step(variant, launch, (*sizes, matrix, pitch, room, np.int32(behind), *gaps))


def _viewed(matrix: Any, shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Another view of a matrix, so many elements apart along each axis."""
    if isinstance(matrix, Placed):
        return matrix.viewed(shape, steps)
    return viewed(_flat(matrix), shape, steps)


def _flat(matrix: Any) -> Any:
    """A matrix with gaps as a kernel's argument: NumPy's as the memory from its beginning on.

    Of another one only the address counts.
    """
    if not isinstance(matrix, np.ndarray) or matrix.flags.c_contiguous:
        return matrix
    root = matrix
    while isinstance(root.base, np.ndarray):
        root = root.base
    behind = (matrix.ctypes.data - root.ctypes.data) // matrix.dtype.itemsize
    steps = zip(matrix.shape, matrix.strides, strict=True)
    last = sum((n - 1) * step for n, step in steps) // matrix.dtype.itemsize
    flat: Any = root.reshape(-1).view(matrix.dtype)[behind:behind + last + 1]
    return flat


def addresses(*matrices: Any) -> list[int]:
    """Where matrices begin on the GPU; the emulator copies NumPy's to addresses of its own."""
    return [int(m.data.ptr) for m in matrices if not isinstance(m, np.ndarray)]


def arguments(
    problem: Problem, A: Any, B: Any, C: Any, variant: Variant, packed: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The arguments of every kernel of this book, in its contract's order.

    A `variant` with boxes takes tensor maps in place of A and B: of what is `packed` by name, the
    copy's. If it may store C so, a map of C comes last.

    Raises ValueError if an array's shape, type or layout is not the problem's.
    """
    for one, array in zip(problem.operands, (A, B, C), strict=True):
        name, wanted = one.name, numpy_dtype(one.dtype)
        if array.shape != one.shape:
            raise ValueError(f"{name} is {array.shape}; the problem asks for {one.shape}")
        if array.dtype != wanted:
            raise ValueError(f"{name} holds {array.dtype}; the kernel takes {wanted}")
        if one.tight and not array.flags.c_contiguous:
            raise ValueError(f"{name} is not row-major and tight: pass a C-contiguous array")
        steps = tuple(step * wanted.itemsize for step in one.steps)
        if any(n > 1 and got != step for n, got, step in zip(
                array.shape, array.strides, steps, strict=True)) and array.size:
            raise ValueError(f"{name} has strides of {array.strides} bytes; the problem asks for "
                             f"{steps}")
    sizes = (np.int32(problem.M), np.int32(problem.N), np.int32(problem.K))
    boxes = variant.maps.boxes if variant.maps else {}
    maps = {
        name: _map(packed.get(name, array), boxes[name], variant.strided)
        if name in boxes and array.size else NO_MAP
        for name, array in (("A", A), ("B", B), ("C", C))
    }
    if variant.strided:
        A, B, C = map(_flat, (A, B, C))
    a, b = (maps["A"], maps["B"]) if boxes else (A, B)
    last = (maps["C"],) if variant.maps and variant.maps.lanes_store else ()
    return (*sizes, np.float32(problem.alpha), a, b, np.float32(problem.beta), C, *last)


def scales(
    problem: Problem, given: Sequence[Any], step: int = 0, xp: Any = np
) -> tuple[Any, ...]:
    """The arguments that say how far apart scales of A and of B lie, and where; if there are any.

    Block scales are laid out anew, for a tensor map of their own. `given`: A, B, C and the scales
    of A and of B, with any strides. `step`: of K, as the kernel goes. Raises ValueError if the
    scales are of another shape, or there are none, or more than the problem has.
    """
    of_each = () if problem.epilogue else given[3:]
    shapes = problem.shapes_of_scales
    if len(of_each) != len(shapes):
        raise ValueError(f"{len(given)} arrays are given; the problem asks for {3 + len(shapes)}")
    steps: list[np.int32] = []
    for name, array, shape in zip(("scale_a", "scale_b"), of_each, shapes, strict=False):
        if array.shape != shape:
            raise ValueError(f"{name} is {array.shape}; the problem asks for {shape}")
        if problem.scaling in FORMATS:
            continue
        # Along rows or columns of C, then along K.
        strides = array.strides if name == "scale_a" else array.strides[::-1]
        steps += [np.int32(n // array.dtype.itemsize) for n in strides]
    if form := FORMATS.get(problem.scaling):
        box = (step // form.block // ATOM_BLOCKS, ATOM_ROWS)  # atoms in a step, and their words
        words = (atoms(one if xp is np else xp.asnumpy(one)) for one in of_each)
        return tuple(encode(xp.asarray(one), box, swizzle=0, l2_promotion=L2_PROMOTION)
                     if one.size else NO_MAP for one in words)
    return (*steps, *map(_reach, of_each))


def apart_arguments(
    problem: Problem, product: Any, given: Given, variant: Variant
) -> tuple[Any, ...]:
    """The arguments of `lib.kernels.fused.apart`, for an (M, N) product in FP32: A·B, or what
    stands for it."""
    assert variant.epilogue
    bias, residual, amax = _extras(problem, variant.epilogue, given)
    groups = problem.columns // variant.schedule.vec
    return (*map(np.int32, (problem.M, problem.N, groups)), np.float32(problem.alpha), product,
            bias, np.float32(problem.beta), given.C, residual, amax)


def _extras(problem: Problem, epilogue: Epilogue, given: Given) -> tuple[Any, ...]:
    """Bias, residual and amax of a kernel with an epilogue; for what it lacks an address that is
    never read.

    Raises ValueError if one is missing or too many, of another shape or type, or not tight.
    """
    of_c = problem.operand("C").shape
    for name, shape, dtype in (("bias", (problem.N,), problem.out),
                               ("residual", of_c, problem.out), ("amax", (1,), "float32")):
        array = getattr(given, name)
        if (array is not None) != getattr(epilogue, name):
            raise ValueError(f"the epilogue {epilogue.name} takes "
                             f"{'no' if array is not None else 'a'} {name}")
        if array is None:
            continue
        if array.shape != shape:
            raise ValueError(f"{name} is {array.shape}; the problem asks for {shape}")
        if array.dtype != numpy_dtype(dtype):
            raise ValueError(f"{name} holds {array.dtype}; it must be {dtype}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not tight: pass a contiguous array")
    return tuple(given.C if one is None else one for one in given[3:])


def _reach(array: Any) -> Any:
    """An array as it lies; NumPy's, whose gaps the emulator takes too, from its first element to
    its last."""
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return array
    reach = 1 + sum((n - 1) * stride // array.itemsize
                    for n, stride in zip(array.shape, array.strides, strict=True))
    return np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,))


def _map(array: Any, lines: tuple[int, int], batch: bool) -> Any:
    """The tensor map of a matrix; of one whose address is put in later, with the matrix.

    Of a batch it has three axes, also if that is of one product.
    """
    box: tuple[int, ...] = lines
    if batch:
        box = (1, *lines)
        if array.ndim == 2:
            lead, step = (n // array.dtype.itemsize for n in array.strides)
            array = _viewed(array, (1, *array.shape), (lead, lead, step))
    made = encode(array, box, swizzle=TMA_SWIZZLE, l2_promotion=L2_PROMOTION)
    return Mapped(array, made) if isinstance(array, Placed) else made
