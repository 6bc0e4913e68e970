"""What a kernel version is: its instantiations, and how each is launched."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib.compiler.arch import TARGETS
from lib.compiler.fingerprint import fingerprint
from lib.gpus import ARCHITECTURES, GPUS
from lib.kernels.grid import MAX_GRID_X, PERSISTENT_SMS, Grid, Launch, Plane
from lib.paths import CHAPTERS, CUDA
from lib.problem import ITEM_BYTES, Problem

# Rows of more bytes than an int can hold are not for kernels that step over them with ints.
MAX_ROW_FLOATS = (2**31 - 1) // ITEM_BYTES["float32"]
# A tensor map's strides are multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled), and so
# is the address of each vector of 16 bytes that cp.async copies.
TMA_STRIDE = 16


@dataclass(frozen=True)
class Vectors:
    """The vectors in which an instantiation reads its matrices, and what it does without them.

    Attributes
    ----------
    narrow : mapping of str to int or bool
        The constants that differ in the narrower instantiation: the one for operands that this
        one's vectors don't fit (see `lib.kernels.select`). Empty if this one fits every operand.
    along : tuple of str
        The dimensions along which vectors lie, which must be multiples of them.
    between : tuple of int
        Narrower vectors to try before `narrow`.
    alignment : int
        What each matrix's address must be a multiple of, B; 0 if that is the size of a vector.
    """

    narrow: Mapping[str, int | bool] = field(default_factory=dict)
    along: tuple[str, ...] = ("N", "K")
    between: tuple[int, ...] = ()
    alignment: int = 0


@dataclass(frozen=True)
class TensorMaps:
    """What an instantiation moves by TMA.

    Attributes
    ----------
    boxes : mapping of str to (int, int)
        Rows and columns of the boxes in which tensor maps move A, B and C; of the matrices that the
        kernel takes through tensor maps.
    lanes_store : mapping of str to int, optional
        The constants with which the lanes store C where it has no map. A kernel that has them takes
        a map of C as an argument of its own, behind the others. None where it takes none.
    """

    boxes: Mapping[str, tuple[int, int]]
    lanes_store: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Roles:
    """Warps of a block that do different things, for its timeline.

    Attributes
    ----------
    warps : tuple of (str, int)
        What they do, in order, and how many of them, the ones that multiply first; empty where all
        do the same.
    stages : int
        Buffers of the ring through which one warp feeds the others; 0 where there is none.
    """

    warps: tuple[tuple[str, int], ...] = ()
    stages: int = 0


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
    dtype, out : str
        NumPy's names of the types of A and B, and of C.
    b_layout : str
        ``"row"`` or ``"column"``: how B is kept.
    shared_bytes : int
        Dynamic shared memory of a block, B.
    vectors : Vectors
    grid : Grid
        How many blocks there are.
    maps : TensorMaps, optional
        What is moved by TMA, where anything is.
    roles : Roles
    candidates : tuple of str
        Names of the variants of which the one that suits the shape takes over; its own may be among
        them. Empty where the variant is launched as it is.
    by_rule : bool
        Whether `lib.kernels.rule` chooses among the candidates; otherwise a recorded search does.
    function : str
        Name of the ``__global__`` template, where it isn't the kernel's own.
    file : str
        Stem of the file in ``cuda/steps`` that it is in, where that isn't the kernel's own.
    row_bytes : int
        What rows and addresses of A and B must be multiples of, B; 0 if they may be anything.
    pack : Variant, optional
        The instantiation that copies A or B, where they break `row_bytes`, into rows that don't.
        Without one such matrices are refused.
    early : bool
        Whether the launch lets it begin while the grid before it in the stream still ends.
    """

    name: str
    constants: Mapping[str, int | bool | str]
    tile: tuple[int, int]
    block: tuple[int, int]
    step: int
    step_reader: str
    meaning: str
    dtype: str = "float32"
    out: str = "float32"
    b_layout: str = "row"
    shared_bytes: int = 0
    vectors: Vectors = Vectors()
    grid: Grid = Plane()
    maps: TensorMaps | None = None
    roles: Roles = Roles()
    candidates: tuple[str, ...] = ()
    by_rule: bool = False
    function: str = ""
    file: str = ""
    row_bytes: int = 0
    pack: Variant | None = None
    early: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1]

    @property
    def warps_read(self) -> bool:
        """Whether warps of their own read A and B, where others have TMA (21)."""
        return "LOADERS" in self.constants

    def problem(
        self, M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0
    ) -> Problem:
        """A problem of the types and the layout that this instantiation takes."""
        return self.typed(Problem(M, N, K, alpha, beta))

    def typed(self, problem: Problem) -> Problem:
        """The same problem in the types and the layout that this instantiation takes."""
        return replace(problem, dtype=self.dtype, out=self.out, b_layout=self.b_layout)


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
    steps : tuple of Variant
        Instantiations on the way from the version before, each with one thing more: run, tested and
        measured like the variants, and not in a page's tables unless it names them.
    exhibits : tuple of Variant
        Instantiations that show a mistake: found by name and run, never listed or measured.
    menu : tuple of Variant
        Further candidates of tuned variants: found by name and run, measured only in their place.
    ptx_archs : tuple of str
        Older architectures whose PTX is recorded too, assembled for the GPU that is there: what
        code that is legal on them can do on a later machine.
    large : bool
        Whether it is recorded on large problems too (`lib.kernels.shapes`): the last of its kind.
    layers : bool
        Whether it is recorded on the layers of a public model too.
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
    steps: tuple[Variant, ...] = ()
    exhibits: tuple[Variant, ...] = ()
    menu: tuple[Variant, ...] = ()
    ptx_archs: tuple[str, ...] = ()
    large: bool = False
    layers: bool = False

    @property
    def source(self) -> Path:
        """The CUDA file."""
        return CUDA / f"{self.stem}.cu"

    @property
    def measured(self) -> tuple[Variant, ...]:
        """The variants and the steps to them: all that a record of the version holds."""
        return (*self.variants, *self.steps)

    def file(self, variant: Variant) -> Path:
        """The CUDA file that an instantiation is in."""
        return CUDA / "steps" / f"{variant.file}.cu" if variant.file else self.source

    @property
    def chapter(self) -> Path:
        """The notebook that tells of it."""
        return CHAPTERS / f"{self.stem}.ipynb"

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the templates that its products are launched as, without what packs."""
        every = (*self.measured, *self.menu)
        return tuple(dict.fromkeys(variant.function or self.function for variant in every))

    @property
    def dtype(self) -> str:
        """NumPy's name for the type of A and B that its first variant takes."""
        return self.variants[0].dtype

    def variant(self, name: str | None = None) -> Variant:
        """Return the variant called `name`, the first one if `name` is None.

        Raises
        ------
        ValueError
            If there is none of that name; the message suggests the nearest.
        """
        if name is None:
            return self.variants[0]
        every = (*self.measured, *self.exhibits, *self.menu)
        by_name = {variant.name: variant for variant in every}
        if name not in by_name:
            raise ValueError(unknown("variant", name, by_name) + f" of {self.stem}")
        return by_name[name]

    def expression(self, variant: Variant) -> str:
        """The C++ name expression of an instantiation, such as ``naive<32, true>``."""
        arguments = (
            str(value).lower() if isinstance(value, bool) else str(value)
            for value in variant.constants.values()
        )
        return f"{variant.function or self.function}<{', '.join(arguments)}>"

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
            hold, or if rows of A or B are no multiples of `row_bytes` and nothing packs them.
        """
        for what, takes, given in (
            ("A and B in", variant.dtype, problem.dtype), ("C in", variant.out, problem.out),
            ("B in layout", variant.b_layout, problem.b_layout),
        ):
            if takes != given:
                raise ValueError(f"{self.stem} {variant.name} takes {what} {takes}, not {given}")
        if variant.row_bytes and not variant.pack:
            for name, reason in misfits(problem, variant.row_bytes).items():
                raise ValueError(
                    f"{self.stem} loads {name} in rows that are multiples of {variant.row_bytes} "
                    f"bytes: {reason}"
                )
        # Row, column and k are ints inside the kernel and may run one tile past the edge.
        for name, size, step in (
            ("M", problem.M, variant.grid.rows_past_the_end(variant.tile)),
            ("N", problem.N, variant.tile[1]), ("K", problem.K, max(variant.tile)),
        ):
            if size > MAX_GRID_X - step:
                raise ValueError(f"{name} = {size} passes what a 32-bit index can hold")
        if variant.grid.least_share and max(problem.N, problem.K) > MAX_ROW_FLOATS:
            raise ValueError(
                f"{self.stem} takes rows of at most {MAX_ROW_FLOATS} floats; N is {problem.N} "
                f"and K {problem.K}"
            )
        grid = variant.grid.blocks(problem, variant.tile, variant.step, sms or PERSISTENT_SMS)
        return Launch(grid, (*variant.block, 1), variant.shared_bytes, variant.early)

    def oldest(self, variant: Variant) -> str:
        """The oldest architecture that has the instructions, and room for a block's tiles."""
        for arch in TARGETS[TARGETS.index(self.min_arch):]:
            if variant.shared_bytes <= GPUS[ARCHITECTURES[arch]].shared_bytes_per_block:
                return arch
        raise ValueError(
            f"{self.stem} {variant.name} wants {variant.shared_bytes} bytes of shared memory a "
            "block, more than any GPU of this book has"
        )

    def hash(self, variant: Variant, marks: bool = False) -> str:
        """Fingerprint of one instantiation: its file, the headers it includes, its constants.

        Comments and white space do not count, so that a record stays fresh when only they change.
        Neither do the timeline's marks and their header, which compile to nothing, unless `marks`
        is set: a recorded timeline depends on them, a recorded time doesn't.
        """
        return fingerprint(self.file(variant), self.expression(variant), marks)


def misfits(problem: Problem, row_bytes: int) -> dict[str, str]:
    """Which of A and B have rows that are no multiples of so many bytes, and what would mend it."""
    unit = row_bytes // ITEM_BYTES[problem.dtype]
    along = {"A": ("K", problem.K), "B": ("K", problem.K)}
    if problem.b_layout == "row":
        along["B"] = "N", problem.N
    return {
        name: f"{which} = {size} must be a multiple of {unit}"
        for name, (which, size) in along.items() if size % unit
    }


def unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    """Return the line that says that a name is none of those known, and which one is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"unknown {kind} {name!r} ({hint})"
