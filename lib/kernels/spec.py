"""What a kernel version is: its instantiations, and what each needs to be launched."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lib.compiler.arch import legal
from lib.compiler.fingerprint import fingerprint
from lib.gpus import Gpu, for_arch
from lib.kernels.frozen import FrozenDict, frozen
from lib.kernels.grid import Line, Plane
from lib.kernels.schedule import Argument, Schedule
from lib.paths import CHAPTERS, CUDA
from lib.problem import Epilogue, Problem

# A tensor map's strides are multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled), and so
# is the address of each vector of 16 bytes that cp.async copies.
TMA_STRIDE = 16


@dataclass(frozen=True)
class Vectors:
    """The vectors in which an instantiation reads its matrices, and what it does without them."""

    # What differs in the narrower instantiation's schedule, by its fields: the one for operands
    # that this one's vectors don't fit (see `lib.dispatch.fit`). Empty if this one fits every
    # operand.
    narrow: Mapping[str, int | bool] = field(default_factory=dict)
    # The dimensions along which vectors lie, which must be multiples of them.
    along: tuple[str, ...] = ("N", "K")
    between: tuple[int, ...] = ()  # narrower vectors to try before `narrow`
    # What each matrix's address must be a multiple of, B; 0 if that is the size of a vector.
    alignment: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "narrow", frozen(self.narrow))


@dataclass(frozen=True)
class TensorMaps:
    """What an instantiation moves by TMA."""

    # Lines of A, B and C, and elements of each, in the boxes in which tensor maps move them; of the
    # matrices that the kernel takes through tensor maps.
    boxes: Mapping[str, tuple[int, int]]
    # Whether the lanes store C where it has no map and nothing is staged. Such a kernel takes a map
    # of C as an argument of its own, behind the others.
    lanes_store: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes", frozen(self.boxes))


@dataclass(frozen=True)
class Roles:
    """Warps of a block that do different things, for its timeline."""

    # What they do, in order, and how many of them, the ones that multiply first; empty where all do
    # the same.
    warps: tuple[tuple[str, int], ...] = ()
    # Buffers of the ring through which one warp feeds the others; 0 where there is none.
    stages: int = 0


@dataclass(frozen=True)
class Variant:
    """One instantiation of a kernel."""

    name: str  # how the command line and the records call it
    schedule: Schedule  # how it divides the product
    # The names of the template's arguments, in its order: their values follow from the schedule.
    template: tuple[str, ...]
    block: tuple[int, int]  # threads of a block, x and y
    meaning: str  # what sets this variant apart, for tables
    # dtype, out: NumPy's names of the types of A and B, and of C.
    dtype: str = "float32"
    out: str = "float32"
    # b_layout, a_layout: ``"row"`` or ``"column"``: how B and A are kept.
    b_layout: str = "row"
    a_layout: str = "row"
    # Whether it takes a batch, and a C with gaps between its rows (`Strides`, strides.cuh).
    strided: bool = False
    # Whether its template has instantiations for all layouts and all types of as many bytes
    # (`lib.dispatch.fit.laid`).
    any_layout: bool = False
    shared_bytes: int = 0  # dynamic shared memory of a block, B
    vectors: Vectors = Vectors()
    grid: Line = Plane()  # how many blocks there are
    maps: TensorMaps | None = None  # what is moved by TMA, where anything is
    roles: Roles = Roles()
    # Names of the variants of which the one that suits the shape takes over; its own may be among
    # them. Empty where the variant is launched as it is.
    candidates: tuple[str, ...] = ()
    # Whether `lib.dispatch.cost` chooses among the candidates; otherwise a recorded search does.
    by_rule: bool = False
    # Whether it is a candidate for some rows of C alone (`lib.dispatch.cost.ROWS`).
    for_rows: bool = False
    # Name of the ``__global__`` template, where it isn't the kernel's own: in a file of
    # ``cuda/steps`` the file's without its number, if not given.
    function: str = ""
    # Stem of the file in ``cuda/steps`` that it is in, where that isn't the kernel's own.
    file: str = ""
    # Stem of the version that it is of, where that isn't the kernel: what another one launches.
    version: str = ""
    # What rows and addresses of A and B must be multiples of, B; 0 if they may be anything.
    row_bytes: int = 0
    # The instantiation that copies A or B, where they break `row_bytes`, into rows that don't.
    # Without one such matrices are refused.
    packing: Variant | None = None
    # Whether the launch lets it begin while the grid before it in the stream still ends.
    programmatic_launch: bool = False
    # The oldest architecture it is legal on, where that is a later one than its kernel's.
    min_arch: str = ""
    # What elements share a scale, of `lib.problem.scales`; empty if there are none.
    scaling: str = ""

    def __post_init__(self) -> None:
        if not self.function:
            object.__setattr__(self, "function", self.file.partition("_")[2])

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of C that one block computes."""
        return self.schedule.tile

    @property
    def step(self) -> int:
        """How far the main loop goes along K in one step."""
        return self.schedule.step

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1]

    @property
    def warps_read(self) -> bool:
        """Whether warps of their own read A and B, where others have TMA (21)."""
        return self.schedule.loaders > 0

    @cached_property
    def constants(self) -> Mapping[str, Argument]:
        """The template's arguments by name, in its order."""
        return FrozenDict(self.schedule.arguments(
            self.template, self.dtype, self.out, self.b_layout, self.a_layout))

    def scheduled(self, **changes: Any) -> Variant:
        """The same with parts of its schedule changed."""
        return replace(self, schedule=replace(self.schedule, **changes))

    def problem(
        self, M: int, N: int, K: int, alpha: float = 1.0, beta: float = 0.0
    ) -> Problem:
        """A problem of the types and the layout that this instantiation takes."""
        return Problem(M, N, K, alpha, beta, **self._types)

    @property
    def epilogue(self) -> Epilogue | None:
        """What becomes of sums before they are stored (25); None where the template has none."""
        expression = self.constants.get("E")
        return None if expression is None else Epilogue.of(str(expression))

    @property
    def promotes(self) -> bool:
        """Whether sums of 8-bit products are added up in FP32, 128 of K at a time (26)."""
        return self.constants.get("PARTS", 1) != 0

    def typed(self, problem: Problem) -> Problem:
        """The same problem in the types and the layout that this instantiation takes."""
        return replace(problem, **self._types)

    @property
    def _types(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "out": self.out, "b_layout": self.b_layout,
                "a_layout": self.a_layout, "scaling": self.scaling, "promoted": self.promotes,
                "epilogue": self.epilogue}


@dataclass(frozen=True)
class Pair:
    """Two instantiations that differ in one thing: what a sentence that says "because" stands on.
    """

    change: str  # the one thing, for tables: what the second has and the first has not
    # first, second: ``"NN_name/variant"``.
    first: str
    second: str
    # The argument of the template that both share in which alone they differ; empty where they are
    # of two templates, or one change takes several arguments.
    constant: str = ""
    launched: bool = False  # whether both are the same code, launched otherwise

    @classmethod
    def table(cls, stem: str, text: str) -> tuple[Pair, ...]:
        """Pairs, a line each: ``first → second (CONSTANT): change``.

        A side without a version is of `stem`. ``(launch)`` stands where only the launch differs.
        """
        found = []
        for line in filter(None, (" ".join(line.split()) for line in text.splitlines())):
            sides, change = line.split(": ", 1)
            first, second, *constant = re.sub("[→()]", "", sides).split()
            first, second = (side if "/" in side else f"{stem}/{side}" for side in (first, second))
            launched = constant == ["launch"]
            found.append(cls(change, first, second, "".join(constant) * (not launched), launched))
        return tuple(found)


@dataclass(frozen=True)
class Kernel:
    """One version of the ladder.

    Attributes
    ----------
    stem : str
        The name that ``cuda/<stem>.cu``, ``chapters/<stem>.ipynb`` and the records share.
    function : str
        Name of the ``__global__`` template.
    title, change : str
        For people: the version's name, and what it changes.
    group : str
        ``"FP32"``, ``"FP16"`` or ``"FP8"``: which rival it is measured against.
    variants : tuple of Variant
    best : str
        The variant that stands on the ladder: its fastest on the book's GPU at 4,096; the first
        where it is empty.
    min_arch : str
        The oldest architecture its variants are legal on, but for those that name a later one.
    builds_on : tuple of str
        Stems of the versions that this one changes, where that is not the one before it: the first
        is what its difference is shown against and its step is measured from.
    pairs : tuple of Pair
        What isolates its changes, and each part of them.
    steps : tuple of Variant
        Instantiations on the way from the version before, each with one thing more: run, tested and
        measured like the variants, and not in a page's tables unless it names them.
    exhibits : tuple of Variant
        Instantiations that show a mistake: found by name and run, never listed or measured.
    laid : tuple of Variant
        For the types and layouts that no other variant takes: found by name and run, and launched
        by `lib.gemm`; never listed or measured.
    menu : tuple of Variant
        Further candidates of tuned variants: found by name and run, measured only in their place.
    ptx_archs : tuple of str
        Older architectures whose PTX is recorded too, assembled for the GPU that is there: what
        code that is legal on them can do on a later machine.
    traced : int
        The least M, N and K of the problem that its page traces; 0 if the smallest with several
        blocks fills a tile.
    large : bool
        Whether it is recorded on large problems too (`lib.kernels.shapes`): the last of its kind.
    layers : bool
        Whether it is recorded on the layers of a public model too.
    own_shapes : tuple of (int, int, int)
        Shapes that the version is about, M, N and K: all that is measured of it in the types of its
        first variant is timed on them too.
    """

    stem: str
    function: str
    title: str
    change: str
    variants: tuple[Variant, ...]
    group: str = "FP32"
    best: str = ""
    min_arch: str = "sm_75"
    builds_on: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    steps: tuple[Variant, ...] = ()
    exhibits: tuple[Variant, ...] = ()
    laid: tuple[Variant, ...] = ()
    menu: tuple[Variant, ...] = ()
    ptx_archs: tuple[str, ...] = ()
    traced: int = 0
    large: bool = False
    layers: bool = False
    own_shapes: tuple[tuple[int, int, int], ...] = ()

    @property
    def source(self) -> Path:
        """The CUDA file."""
        return CUDA / f"{self.stem}.cu"

    @property
    def fastest(self) -> Variant:
        """The variant that stands on the ladder."""
        return self.variant(self.best) if self.best else self.variants[0]

    @property
    def measured(self) -> tuple[Variant, ...]:
        """The variants and the steps to them: all that a record of the version holds."""
        return (*self.variants, *self.steps)

    def file(self, variant: Variant) -> Path:
        """The CUDA file that an instantiation is in."""
        if variant.file:
            return CUDA / "steps" / f"{variant.file}.cu"
        return CUDA / f"{variant.version}.cu" if variant.version else self.source

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
        """Return the variant called `name`, the fastest if `name` is None.

        Raises
        ------
        ValueError
            If there is none of that name; the message suggests the nearest.
        """
        if name is None:
            return self.fastest
        if name not in self._by_name:
            raise ValueError(unknown("variant", name, self._by_name) + f" of {self.stem}")
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Variant]:
        every = (*self.measured, *self.exhibits, *self.laid, *self.menu)
        return {variant.name: variant for variant in every}

    def expression(self, variant: Variant) -> str:
        """The C++ name expression of an instantiation, such as ``naive<32, true>``."""
        arguments = (
            str(value).lower() if isinstance(value, bool) else str(value)
            for value in variant.constants.values()
        )
        return f"{variant.function or self.function}<{', '.join(arguments)}>"

    def needs(self, variant: Variant) -> str:
        """The oldest architecture that has an instantiation's instructions."""
        return variant.min_arch or self.min_arch

    def oldest(self, variant: Variant) -> str:
        """The oldest architecture that has the instructions, and room for a block's tiles."""
        for arch in legal(self.needs(variant)):
            if variant.shared_bytes <= for_arch(arch).shared_bytes_per_block:
                return arch
        raise ValueError(
            f"{self.stem}/{variant.name} wants {variant.shared_bytes} bytes of shared memory a "
            "block, more than any GPU of this book has"
        )

    def runs_on(self, gpu: Gpu, variant: Variant) -> bool:
        """Whether a GPU has an instantiation's instructions and its memory, by the data sheet."""
        return (gpu.arch in legal(self.needs(variant))
                and variant.shared_bytes <= gpu.shared_bytes_per_block)

    def hash(self, variant: Variant, marks: bool = False) -> str:
        """Fingerprint of one instantiation: its file, the headers it includes, its constants.

        Comments and white space do not count, so that a record stays fresh when only they change.
        Neither do the timeline's marks and their header, which compile to nothing, unless `marks`
        is set: a recorded timeline depends on them, a recorded time doesn't. What packs its rows,
        where that is of another file, counts too.
        """
        own = fingerprint(self.file(variant), self.expression(variant), marks)
        packing = variant.packing
        if packing is None or self.file(packing) == self.file(variant):
            return own
        other = fingerprint(self.file(packing), self.expression(packing), marks)
        return hashlib.sha256(f"{own} {other}".encode()).hexdigest()[:16]


def parted(name: str) -> tuple[str, str | None]:
    """The two parts of ``NAME/VARIANT``; of ``NAME`` alone the second is None.

    So a variant is named everywhere: on the command line, in records' searches, in pairs, in what a
    chapter asks for.
    """
    stem, stroke, variant = name.partition("/")
    return stem, variant if stroke else None


def unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    """Return the line that says that a name is none of those known, and which one is near.

    A name with a variant behind another sign than a stroke is told how a variant is written.
    """
    other = re.fullmatch(r"(\w+)[:.@](\w+)", name)
    if other and other[1] in known:
        return f"unknown {kind} {name!r} (a variant is written {other[1]}/{other[2]})"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return f"unknown {kind} {name!r} ({hint})"
