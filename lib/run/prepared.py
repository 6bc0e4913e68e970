"""The launches that make a product, with their arguments: on NumPy's arrays as on CuPy's.

It compiles nothing and reads no records, so it runs where neither can be: in a reader's browser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lib.kernels.grid import MAX_GRID_Y, Launch
from lib.kernels.select import Selection
from lib.kernels.spec import Kernel, Variant
from lib.problem import Problem, numpy_dtype
from lib.run.tensor_maps import encode

# How tensor maps are made: the swizzle that wgmma reads, and a hint to the
# L2. A matrix without elements has no map, and nothing is loaded from it.
TMA_SWIZZLE = 128
L2_PROMOTION = 128
NO_MAP = np.zeros(1, "V128")[0]


class Step(NamedTuple):
    """One launch of those that make a product."""

    variant: Variant
    launch: Launch
    arguments: tuple[Any, ...]


class Prepared(NamedTuple):
    """What there is to launch: the instantiation, how, and the arguments for each set of matrices.

    `packing` has for each set the launches that must come first. The sets share their workspace, so
    their launches must follow each other.
    """

    selection: Selection
    launch: Launch
    arguments: list[tuple[Any, ...]]
    packing: list[list[Step]]

    def steps(self, index: int) -> list[Step]:
        """All launches for one set of matrices, in their order."""
        main = Step(self.selection.variant, self.launch, self.arguments[index])
        return [*self.packing[index], main]


def lay_out(
    kernel: Kernel, selection: Selection, problem: Problem, sets: Sequence[tuple[Any, Any, Any]],
    xp: Any = np, sms: int | None = None,
) -> Prepared:
    """Make the launches of a selected instantiation, and all that they take.

    Parameters
    ----------
    kernel : Kernel
    selection : Selection
    problem : Problem
    sets : sequence of (A, B, C)
    xp : module
        ``numpy`` or ``cupy``: where the matrices live.
    sms : int, optional
        SMs that a persistent kernel's blocks must fit (see `Kernel.launch`).

    Raises
    ------
    ValueError
        If the shape can't be launched.
    """
    chosen = selection.variant
    launch = kernel.launch(problem, chosen, sms)
    space = chosen.grid.workspace(problem, chosen.tile, chosen.step, launch.grid)
    # Floats are poison and ints zeros, as a kernel leaves them.
    extra = (xp.full(space.floats, xp.nan, "float32"), xp.zeros(space.ints, "int32"),
             *map(np.int32, space.scalars)) if space.ints else ()
    rooms = {name: _room(xp, sets[0]["AB".index(name)], chosen) for name in selection.packed}
    packed = {
        name: room[:, :sets[0]["AB".index(name)].shape[1]] for name, room in rooms.items()
    }
    filled = [("AB".index(name), room) for name, room in rooms.items() if room.size]
    return Prepared(
        selection, launch,
        [(*arguments(problem, *one, chosen, packed), *extra) for one in sets],
        [[_packing(chosen.pack, one[place], room, behind)
          for behind, (place, room) in enumerate(filled)] for one in sets],
    )


def _room(xp: Any, matrix: Any, variant: Variant) -> Any:
    """Room for a matrix with its rows padded to a multiple of `row_bytes`."""
    rows, columns = matrix.shape
    unit = variant.row_bytes // matrix.dtype.itemsize
    return xp.empty((rows, -(-columns // unit) * unit), matrix.dtype)


def _packing(variant: Variant, matrix: Any, room: Any, behind: int) -> Step:
    """The launch that copies a matrix into such room; of two, the second may overlap the first."""
    (rows, columns), pitch = matrix.shape, room.shape[1]
    threads, each = math.prod(variant.block), variant.tile[1] // math.prod(variant.block)
    # Where rows are short, several share a block: else most of its threads would have no part.
    across = min(threads, 1 << (-(-columns // each) - 1).bit_length())
    down = threads // across
    grid = (-(-columns // (each * across)), min(-(-rows // down), MAX_GRID_Y), 1)
    launch = Launch(grid, (across, down, 1), early=variant.early)
    sizes = (np.int32(rows), np.int32(columns))
    return Step(variant, launch, (*sizes, matrix, np.int32(pitch), room, np.int32(behind)))


def addresses(*matrices: Any) -> list[int]:
    """Where matrices begin on the GPU; the emulator copies NumPy's to addresses of its own."""
    return [int(m.data.ptr) for m in matrices if not isinstance(m, np.ndarray)]


def arguments(
    problem: Problem, A: Any, B: Any, C: Any, variant: Variant | None = None,
    packed: Mapping[str, Any] | None = None,
) -> tuple[Any, ...]:
    """The arguments of every kernel of this book, in its contract's order.

    A `variant` with boxes takes tensor maps in place of A and B: of what is `packed` by name, the
    copy's. If it may store C so, a map of C comes last.

    Raises
    ------
    ValueError
        If an array's shape, type or layout is not the problem's.
    """
    shapes = {"A": (problem.M, problem.K), "B": problem.shape_of_b, "C": (problem.M, problem.N)}
    for (name, shape), array in zip(shapes.items(), (A, B, C), strict=True):
        wanted = numpy_dtype(problem.out if name == "C" else problem.dtype)
        if array.shape != shape:
            raise ValueError(f"{name} is {array.shape}; the problem asks for {shape}")
        if array.dtype != wanted:
            raise ValueError(f"{name} holds {array.dtype}; the kernel takes {wanted}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not row-major and tight: pass a C-contiguous array")
    sizes = (np.int32(problem.M), np.int32(problem.N), np.int32(problem.K))
    tensor_maps = variant.maps if variant else None
    boxes = tensor_maps.boxes if tensor_maps else {}
    copied = packed or {}
    maps = {
        name: encode(
            copied.get(name, array), boxes[name], swizzle=TMA_SWIZZLE, l2_promotion=L2_PROMOTION
        )
        if name in boxes and array.size
        else NO_MAP
        for name, array in (("A", A), ("B", B), ("C", C))
    }
    a, b = (maps["A"], maps["B"]) if boxes else (A, B)
    last = (maps["C"],) if tensor_maps and tensor_maps.lanes_store is not None else ()
    return (*sizes, np.float32(problem.alpha), a, b, np.float32(problem.beta), C, *last)
