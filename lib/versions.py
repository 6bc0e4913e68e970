"""What a kernel version is: its instantiations, which one a problem gets, how it is launched."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib.fingerprint import CUDA, ROOT, fingerprint
from lib.gpus import ARCHITECTURES, GPUS
from lib.problem import ITEM_BYTES, Problem

# CUDA C++ Programming Guide, technical specifications: the largest grid.
MAX_GRID_X = 2**31 - 1
MAX_GRID_Y = 65535
# Rows of more bytes than an int can hold are not for kernels that step over them with ints.
MAX_ROW_FLOATS = (2**31 - 1) // ITEM_BYTES["float32"]
# A tensor map's strides are multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled).
TMA_STRIDE = 16
# Persistent blocks are launched for this many SMs; on a smaller GPU the last ones wait their turn.
PERSISTENT_SMS = GPUS["H100"].sms


@dataclass(frozen=True)
class Variant:
    """One instantiation of a kernel.

    Attributes
    ----------
    name : str
        How the command line and the records call it.
    constants : mapping of str to int, bool or str
        Template arguments by name, in the template's order; an enumerator by its name.
    tile : (int, int)
        Rows and columns of C that one block computes.
    block : (int, int)
        Threads of a block, x and y.
    step : int
        How far the main loop goes along K in one step.
    step_reader : str
        Who reads a step's operands together: ``"warp"`` or ``"block"``.
    meaning : str
        What sets this variant apart, for tables.
    narrow : mapping of str to int or bool
        The constants that differ in the narrower instantiation: the one for operands that this
        one's vectors don't fit (see `Kernel.select`). Empty if this one fits every operand.
    vectors_along : tuple of str
        The dimensions along which vectors lie, which must be multiples of them.
    between : tuple of int
        Narrower vectors to try before `narrow`.
    alignment : int
        What each matrix's address must be a multiple of, B; 0 if that is the size of a vector.
    dtype, out : str
        NumPy's names of the types of A and B, and of C.
    b_layout : str
        ``"row"`` or ``"column"``: how B is kept.
    shared_bytes : int
        Dynamic shared memory of a block, B.
    raster : bool
        Blocks stand in one line, and the kernel decides which tile is whose.
    cluster : int
        Blocks of a cluster; their tiles lie below each other.
    resident : int
        Blocks of a persistent kernel on an SM; 0 if each block has one tile.
    least_share : int
        Steps of K that a block gets at least where tiles are cut into equal shares; 0 if they are
        not cut.
    tuned : tuple of str
        Names of the variants of which the one that suits the shape takes over (see `lib.tuning`);
        its own may be among them.
    roles : tuple of (str, int)
        What the warps of a block do, in order, and how many of them, the ones that multiply first;
        empty where all do the same.
    stages : int
        Buffers of the ring through which one warp feeds the others; 0 where there is none.
    boxes : mapping of str to (int, int)
        Rows and columns of the boxes in which tensor maps move A, B and C; of the matrices that the
        kernel takes through tensor maps. C's map is an argument of its own, behind the others.
    """

    name: str
    constants: Mapping[str, int | bool | str]
    tile: tuple[int, int]
    block: tuple[int, int]
    step: int
    step_reader: str
    meaning: str
    narrow: Mapping[str, int | bool] = field(default_factory=dict)
    vectors_along: tuple[str, ...] = ("N", "K")
    between: tuple[int, ...] = ()
    alignment: int = 0
    dtype: str = "float32"
    out: str = "float32"
    b_layout: str = "row"
    shared_bytes: int = 0
    raster: bool = False
    cluster: int = 1
    resident: int = 0
    least_share: int = 0
    tuned: tuple[str, ...] = ()
    roles: tuple[tuple[str, int], ...] = ()
    stages: int = 0
    boxes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1]

    def problem(
        self, M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0
    ) -> Problem:
        """A problem of the types and the layout that this instantiation takes."""
        return self.typed(Problem(M, N, K, alpha, beta))

    def typed(self, problem: Problem) -> Problem:
        """The same problem in the types and the layout that this instantiation takes."""
        return replace(problem, dtype=self.dtype, out=self.out, b_layout=self.b_layout)


@dataclass(frozen=True)
class Launch:
    """Grid and block in CUDA's order (x, y, z), and dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Selection:
    """The instantiation that is launched for a problem.

    Attributes
    ----------
    variant : Variant
        The one that was asked for, or that one with its narrower constants.
    reason : str
        Why it is not the one that was asked for; empty if it is.
    """

    variant: Variant
    reason: str = ""


@dataclass(frozen=True)
class Kernel:
    """One version of the ladder. The first variant is the one that tables and records lead with.

    Attributes
    ----------
    stem : str
        The name that ``cuda/<stem>.cu``, ``chapters/<stem>.ipynb`` and the records share.
    function : str
        Name of the ``__global__`` template.
    title, change : str
        For people: the version's name, and what it changes.
    level : str
        The level of the machine that it works at.
    group : str
        ``"FP32"`` or ``"FP16"``: which rival it is measured against.
    variants : tuple of Variant
    min_arch : str
        The oldest architecture it is legal on.
    builds_on : str or None
        Stem of the version that this one changes, where that is not the one before it.
    exhibits : tuple of Variant
        Instantiations that show a mistake: found by name and run, never listed or measured.
    ptx_archs : tuple of str
        Older architectures whose PTX is recorded too, assembled for the GPU that is there: what
        code that is legal on them can do on a later machine.
    """

    stem: str
    function: str
    title: str
    change: str
    level: str
    variants: tuple[Variant, ...]
    group: str = "FP32"
    min_arch: str = "sm_75"
    builds_on: str | None = None
    exhibits: tuple[Variant, ...] = ()
    ptx_archs: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """The CUDA file."""
        return CUDA / f"{self.stem}.cu"

    @property
    def chapter(self) -> Path:
        """The notebook that tells of it."""
        return ROOT / "chapters" / f"{self.stem}.ipynb"

    @property
    def dtype(self) -> str:
        """NumPy's name for the type of A and B that its first variant takes."""
        return self.variants[0].dtype

    @property
    def predecessor(self) -> Kernel | None:
        """The version that this one changes: the one before it unless `builds_on` names another."""
        from lib.kernels import CATALOGUE

        if self.builds_on:
            return CATALOGUE[self.builds_on]
        stems = list(CATALOGUE)
        place = stems.index(self.stem)
        return CATALOGUE[stems[place - 1]] if place else None

    def variant(self, name: str | None = None) -> Variant:
        """Return the variant called `name`, the first one if `name` is None.

        Raises
        ------
        ValueError
            If there is none of that name; the message suggests the nearest.
        """
        if name is None:
            return self.variants[0]
        by_name = {variant.name: variant for variant in (*self.variants, *self.exhibits)}
        if name not in by_name:
            raise ValueError(unknown("variant", name, by_name) + f" of {self.stem}")
        return by_name[name]

    def expression(self, variant: Variant) -> str:
        """The C++ name expression of an instantiation, such as ``naive<32, true>``."""
        arguments = (
            str(value).lower() if isinstance(value, bool) else str(value)
            for value in variant.constants.values()
        )
        return f"{self.function}<{', '.join(arguments)}>"

    def instantiated(self, expression: str) -> list[str]:
        """Names of the variants that an instantiation may be: with their own or narrower constants.

        There may be several, which differ in how they are launched; and none, where the catalogue
        has changed since.
        """
        names = []
        for variant in self.variants:
            if variant.tuned and variant.name not in variant.tuned:
                continue  # it is launched as one of its candidates
            changes = ({}, variant.narrow, *({"VEC": width} for width in variant.between))
            forms = (replace(variant, constants={**variant.constants, **c}) for c in changes)
            if expression in map(self.expression, forms):
                names.append(variant.name)
        return names

    def select(
        self,
        problem: Problem,
        variant: Variant,
        addresses: Iterable[int] = (),
        exact: bool = False,
    ) -> Selection:
        """Choose the instantiation that a problem's rows and pointers allow and its size asks for.

        A variant with vectors of VEC elements reads A and B VEC elements at a time, and C in
        vectors of no more bytes or elements. That is legal where each row begins on a multiple of
        VEC elements, and each matrix at an address that is a multiple of a vector. Elsewhere its
        narrower constants are taken.

        Parameters
        ----------
        problem : Problem
        variant : Variant
        addresses : iterable of int
            Where A, B and C begin, if that is known.
        exact : bool
            Keep to the variant's own tile, however few blocks that makes.
        """
        if variant.tuned and not exact:
            from lib.tuning import choose

            choice = choose(self.stem, variant, problem)
            chosen = self.select(problem, self.variant(choice.name), addresses, exact=True)
            return Selection(
                chosen.variant, " and ".join(filter(None, (choice.reason, chosen.reason)))
            )
        if "C" in variant.boxes and problem.N * ITEM_BYTES[problem.out] % TMA_STRIDE:
            constants = {**variant.constants, "STAGED": 0}
            boxes = {name: box for name, box in variant.boxes.items() if name != "C"}
            reason = f"rows of C, {problem.N} elements, are no multiple of {TMA_STRIDE} bytes"
            return Selection(replace(variant, constants=constants, boxes=boxes), reason)
        if not variant.narrow:
            return Selection(variant)
        addresses = tuple(addresses)
        width = int(variant.constants["VEC"])
        reasons = self._against(problem, variant, width, addresses)
        if not reasons:
            return Selection(variant)
        changed: Mapping[str, int | bool] = variant.narrow
        for narrower in variant.between:
            if not self._against(problem, variant, narrower, addresses):
                changed = {"VEC": narrower}
                break
        constants = {**variant.constants, **changed}
        return Selection(replace(variant, constants=constants), " and ".join(reasons))

    def _against(
        self, problem: Problem, variant: Variant, width: int, addresses: tuple[int, ...]
    ) -> list[str]:
        """Say what speaks against vectors of `width` elements."""
        reasons = [
            f"{name} = {size} is no multiple of {width}"
            for name, size in (("N", problem.N), ("K", problem.K))
            if name in variant.vectors_along and size % width
        ]
        nbytes = variant.alignment or ITEM_BYTES[variant.dtype] * width
        if any(address % nbytes for address in addresses):
            reasons.append(f"a matrix is not aligned to {nbytes} bytes")
        return reasons

    def launch(
        self, problem: Problem, variant: Variant, sms: int | None = None
    ) -> Launch:
        """Say how to launch this kernel on a problem.

        Parameters
        ----------
        problem : Problem
        variant : Variant
        sms : int, optional
            SMs of the GPU, `PERSISTENT_SMS` if not given: a persistent kernel has as many blocks as
            fit them.

        Raises
        ------
        ValueError
            If types or layout differ, if the shape passes what CUDA's grid or 32-bit indices can
            hold, or if tensor maps can't describe A or B.
        """
        for what, takes, given in (
            ("A and B in", variant.dtype, problem.dtype), ("C in", variant.out, problem.out),
            ("B in layout", variant.b_layout, problem.b_layout),
        ):
            if takes != given:
                raise ValueError(f"{self.stem} {variant.name} takes {what} {takes}, not {given}")
        if variant.boxes:
            _check_strides(self.stem, problem)
        rows, columns = variant.tile
        # Row, column and k are ints inside the kernel and may run one tile past the edge.
        for name, size, step in (
            ("M", problem.M, rows * variant.cluster if variant.raster else 0),
            ("N", problem.N, columns), ("K", problem.K, max(rows, columns)),
        ):
            if size > MAX_GRID_X - step:
                raise ValueError(f"{name} = {size} passes what a 32-bit index can hold")
        if variant.least_share and max(problem.N, problem.K) > MAX_ROW_FLOATS:
            raise ValueError(
                f"{self.stem} takes rows of at most {MAX_ROW_FLOATS} floats; N is {problem.N} "
                f"and K {problem.K}"
            )
        if variant.raster:
            grid = self._line(problem, variant, sms or PERSISTENT_SMS)
        else:
            grid = self._plane(problem, variant)
        return Launch(grid, (*variant.block, 1), variant.shared_bytes)

    def _plane(self, problem: Problem, variant: Variant) -> tuple[int, int, int]:
        """A block a tile: tiles beside each other along x, below each other along y."""
        rows, columns = variant.tile
        blocks_x, blocks_y = self._blocks(problem, variant)
        if blocks_y > MAX_GRID_Y:
            raise ValueError(
                f"M = {problem.M} needs {blocks_y} blocks along y and CUDA allows {MAX_GRID_Y}: "
                f"M may be at most {MAX_GRID_Y * rows}"
            )
        return blocks_x, blocks_y, 1

    def _line(self, problem: Problem, variant: Variant, sms: int) -> tuple[int, int, int]:
        """Whole clusters in one line: for all tiles, or for as many as the SMs hold.

        Where tiles are cut there may be more blocks than tiles, if K is long enough for the shares.
        """
        rows, columns = variant.tile
        clusters = -(-problem.M // (rows * variant.cluster)) * -(-problem.N // columns)
        if clusters * variant.cluster > MAX_GRID_X:
            raise ValueError(
                f"M = {problem.M} and N = {problem.N} make {clusters * variant.cluster} tiles and "
                f"there may be {MAX_GRID_X}"
            )
        if variant.resident:
            shares = 0
            if variant.least_share:
                shares = clusters * -(-problem.K // variant.step) // variant.least_share
            # Where shares would be short, a block a tile is better than a loop over tiles.
            if not variant.least_share or shares > clusters:
                clusters = min(max(clusters, shares), variant.resident * sms // variant.cluster)
        return clusters * variant.cluster, 1, 1

    @staticmethod
    def _blocks(problem: Problem, variant: Variant) -> tuple[int, int]:
        """Blocks along N and along M."""
        rows, columns = variant.tile
        return -(-problem.N // columns), -(-problem.M // rows)

    def oldest(self, variant: Variant) -> str:
        """The oldest architecture that has the instructions, and room for a block's tiles."""
        known = tuple(ARCHITECTURES)
        for arch in known[known.index(self.min_arch):]:
            if variant.shared_bytes <= GPUS[ARCHITECTURES[arch]].shared_bytes_per_block:
                return arch
        raise ValueError(
            f"{self.stem} {variant.name} wants {variant.shared_bytes} bytes of shared memory a "
            "block, more than any GPU of this book has"
        )

    def workspace(self, problem: Problem, variant: Variant, launch: Launch) -> tuple[int, int]:
        """Floats and ints that a launch needs beside the matrices: for sums of cut tiles.

        Two places of a tile's sums for each block, and a count of arrivals for each tile.
        """
        if not variant.least_share:
            return 0, 0
        rows, columns = variant.tile
        across, down = self._blocks(problem, variant)
        if launch.grid[0] == across * down:  # none is cut
            return 1, 1
        return 2 * launch.grid[0] * rows * columns, across * down

    def hash(self, variant: Variant, marks: bool = False) -> str:
        """Fingerprint of one instantiation: its file, the headers it includes, its constants.

        Comments and white space do not count, so that a record stays fresh when only they change.
        Neither do the timeline's marks and their header, which compile to nothing, unless `marks`
        is set: a recorded timeline depends on them, a recorded time doesn't.
        """
        return fingerprint(self.source, self.expression(variant), marks)


def _check_strides(stem: str, problem: Problem) -> None:
    """Refuse rows of A or B that tensor maps can't step over."""
    for name, size, which in (
        ("A", problem.K, "K"),
        ("B", *((problem.N, "N") if problem.b_layout == "row" else (problem.K, "K"))),
    ):
        item = ITEM_BYTES[problem.dtype]
        if size * item % TMA_STRIDE:
            raise ValueError(
                f"{stem} loads {name} by TMA, whose rows must be multiples of {TMA_STRIDE} bytes: "
                f"{which} = {size} must be a multiple of {TMA_STRIDE // item}"
            )


def unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    """Return the line that says that a name is none of those known, and which one is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"unknown {kind} {name!r} ({hint})"
