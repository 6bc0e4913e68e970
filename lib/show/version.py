"""One kernel version: what was run, compiled and recorded of it, for tables and pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

from lib.compiler.compiled import Compiled
from lib.dispatch.plan import plan
from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.kernels.grid import tiles
from lib.kernels.spec import Kernel, Variant, parted
from lib.problem import Problem
from lib.ptx.core.machine import WARP, WARPGROUP
from lib.records import reach
from lib.records import store as records
from lib.records.reader import Recorded
from lib.records.schema import Benchmark, KernelRecord, MachineRecord, Timeline
from lib.records.schema import Row as RecordedRow
from lib.run import device, runner

RECORDED_ON = reach.GPU
# The problem that is traced for the counters and the access figures: several blocks, quick to run.
TRACED = Problem(128, 128, 128)
# The warp whose addresses are kept: not in the first block, where row and column 0 hide mistakes.
# Where there are fewer blocks, it is of the last one, and where there are fewer warps, the last.
WATCHED = (5, 3)
# The size at which a chapter looks at time: large enough to fill the GPU, quick enough to measure.
TIMED = 2048


def measured_on() -> str:
    """The evidence label of what is measured here."""
    return f"measured: {device.name().removeprefix('NVIDIA ')}"


def roof(name: str, gpu: str = RECORDED_ON) -> float:
    """Return a roof measured on a recorded GPU, such as ``mma_k8``'s FLOP/s.

    Raises
    ------
    records.NotRecorded
        If it was not measured.
    """
    record = records.load(MachineRecord, gpu)
    roofs = record.roofs.named() if record else {}
    if name not in roofs:
        raise records.NotRecorded(f"no roof {name} is recorded: python -m lib record machine")
    return roofs[name].value


def by_kind(labels: Mapping[str, Sequence[str]]) -> str:
    """One evidence label; where there are several kinds, with the names that each holds for.

    What is of the same kind and GPU as the one before names its date alone.
    """
    if len(labels) == 1:
        return next(iter(labels))
    said, source = [], ""
    for label, names in labels.items():
        before, comma, date = label.partition(", ")
        said.append(f"{date if comma and before == source else label} ({', '.join(names)})")
        source = before
    return "; ".join(said)


def short_name(kernel: Kernel) -> str:
    """The short name of a version on ladders, roofs and timelines."""
    first, _, rest = kernel.title.partition(" ")
    word = first.lower() if first.istitle() and not first.endswith("'s") else first
    number = "" if kernel.stem in kernels.RULES else kernel.stem[:2]
    return f"{number} {word} {rest}".strip()


def called(stem: str, variant: str) -> str:
    """The short name of a variant; of one that a rule may launch, that of its own version."""
    if stem in kernels.RULES and "/" in variant:
        stem, _, variant = variant.partition("/")
    return f"{stem if stem in kernels.RULES else stem[:2]} {variant}"


_PRODUCT = re.compile(r"^(?:wmma\.mma|mma|wgmma\.mma_async)\..*\bm(\d+)n(\d+)k(\d+)\b")


def tensor_flops(instructions: Mapping[str, tuple[int, int]]) -> float:
    """FLOP of all matrix products of a launch: 2·m·n·k for each mma or wmma of a warp, and for each
    wgmma of four.

    Parameters
    ----------
    instructions : mapping of str to (int, int)
        ``ptx.Trace.instructions``: warp and thread instructions by PTX opcode.
    """
    total = 0.0
    for opcode, (warps, _) in instructions.items():
        if shape := _PRODUCT.match(opcode):
            together = WARPGROUP if opcode.startswith("wgmma") else 1
            total += 2.0 * warps / together * math.prod(map(int, shape.groups()))
    return total


class Row(NamedTuple):
    """A variant of a version, and the page that knows it."""

    page: Version
    variant: Variant

    @property
    def name(self) -> str:
        """What tables call it."""
        return called(self.page.kernel.stem, self.variant.name)


class Live(Protocol):
    """What measures on the GPU that is here (`lib.measure`)."""

    def lacks(self, variant: Variant) -> str:
        """What must be installed for a variant to be timed; empty if nothing."""
        ...

    def bench(self, kernel: Kernel, variant: Variant, problem: Problem) -> Benchmark:
        """Time a variant against cuBLAS."""
        ...

    def timeline(self, kernel: Kernel, variant: Variant, problem: Problem) -> Timeline:
        """Take marks inside a variant."""
        ...


class Version:
    """One kernel version: what was run, compiled and recorded of it, or is measured here.

    Parameters
    ----------
    stem : str
        Name in the catalogue.
    live : Live, optional
        What measures where there is a GPU. Without it a version is known by its record.
    fresh : bool
        Whether a record of other source than today's counts as none.
    gpu : str
        Whose record.
    """

    def __init__(
        self, stem: str, live: Live | None = None, fresh: bool = False, gpu: str = RECORDED_ON
    ) -> None:
        self.kernel = kernels.find(stem)
        self.live = live
        self.reader = Recorded(stem, gpu, fresh)

    def of(self, stem: str) -> Version:
        """Another version, measured by the same means."""
        return Version(stem, self.live)

    @cached_property
    def before(self) -> Version | None:
        """The version that this one changes; None for the first."""
        kernel = kernels.predecessor(self.kernel)
        return self.of(kernel.stem) if kernel else None

    def run(self, problem: Problem = TRACED, variant: str | None = None, **options: Any
            ) -> runner.Run:
        """Run the kernel on a problem, taken in the variant's types (see `lib.run.runner.run`)."""
        chosen = self.kernel.variant(variant)
        return runner.run(self.kernel, chosen.typed(problem), variant=chosen, **options)

    def traced(self, variant: str | None = None) -> runner.Run:
        """The emulated run that counters and access figures are drawn from; kept."""
        return _traced(self.kernel.stem, self.kernel.variant(variant).name)

    @cached_property
    def problem(self) -> Problem:
        """The problem that is traced: `TRACED`, doubled until each variant has several blocks.

        And until it is as large as the kernel asks (`Kernel.traced`).
        """
        problem = TRACED
        while problem.M < self.kernel.traced or any(
                self._blocks(problem, variant) == 1 for variant in self.kernel.variants):
            problem = replace(problem, M=2 * problem.M, N=2 * problem.N, K=2 * problem.K)
        return problem

    def _blocks(self, problem: Problem, variant: Variant) -> int:
        launch = plan(self.kernel, variant, variant.typed(problem), exact=True).launch
        columns, rows, _ = launch.grid
        return columns * rows

    def compiled(self, arch: str, variant: str | None = None) -> Compiled:
        """The kernel compiled for an architecture."""
        return compile_kernel(self.kernel, self.kernel.variant(variant), arch)

    def each(self, counter: str, variant: str | None = None) -> float:
        """One counter of the traced run, for each multiply-add of a warp: for 32 of a thread's.

        Tensor cores do many in one instruction; those are counted.

        Where a version's tiles divide the traced problem, so that no lane idles, this does not
        depend on the size: versions that are traced at different sizes can be compared by it.
        """
        trace = self.traced(variant).trace
        counters = trace.counters()
        on_tensor_cores = tensor_flops(trace.instructions) / 2
        work = on_tensor_cores or counters["ffma_thread_instructions"]
        return WARP * counters[counter] / work

    def emulated_label(self) -> str:
        """The evidence label of what is drawn from the traced run."""
        return f"emulated: {self.kernel.min_arch} PTX, {self.problem.shape.replace('x', '×')}"

    @property
    def record(self) -> KernelRecord:
        """This version's record."""
        return self.reader.record

    def recorded(self, size: int, variant: str | None = None) -> RecordedRow:
        """The recorded benchmark at one size (see `Recorded.bench`)."""
        return self.reader.bench(size, variant)

    def metrics(self, size: int, variant: str | None = None) -> Mapping[str, float]:
        """The recorded hardware counters at one size (see `Recorded.counters`)."""
        return self.reader.counters(size, variant)

    def measuring(self, variant: Variant) -> Live | None:
        """What measures a variant here; None without a GPU that runs it, or what it takes."""
        if self.live is None or not device.runs(self.kernel, variant) or self.live.lacks(variant):
            return None
        return self.live

    def measures(self, variant: Variant) -> bool:
        """Whether a variant is measured on the GPU here."""
        return self.measuring(variant) is not None

    def timed(self, variant: Variant, size: int) -> Benchmark:
        """A benchmark at one size: measured here once, or recorded."""
        live = self.measuring(variant)
        if live is None:
            return self.recorded(size, variant.name)
        key = (variant.name, size)
        if key not in self._times:
            problem = variant.problem(size, size, size)
            self._times[key] = live.bench(self.kernel, variant, problem)
        return self._times[key]

    @cached_property
    def _times(self) -> dict[tuple[str, int], Benchmark]:
        return {}

    def timed_on(
        self, variants: Sequence[str] = (), above: Sequence[str] = (), timelines: bool = False
    ) -> str:
        """The evidence label of what is timed: which rows (see `rows`) here, which in the record.

        A GPU may be too old for some of them. Of `timelines` it says which are older than their
        record: of the same code, at a commit of their own.
        """
        here: list[str] = []
        recorded: dict[str, list[tuple[str, KernelRecord]]] = {}
        for row in self.rows(variants, above):
            if row.page.measures(row.variant):
                here.append(row.name)
                continue
            stale = row.page.reader.stale(row.variant.name)
            remark = " (stale: the source has changed since)" if stale else ""
            live = row.page.live
            if live and device.runs(row.page.kernel, row.variant):
                remark += f" (not measured here: {live.lacks(row.variant)})"
            if timelines and (older := row.page.reader.timeline(row.variant.name).revision):
                commit, dash, dirty = older.partition("-")
                remark += f" at {commit[:7]}{dash}{dirty}"
            recorded.setdefault(remark, []).append((row.name, row.page.record))
        labels = {measured_on(): here} if here else {}
        for remark, rows in recorded.items():
            label = records.labels((record, None) for _, record in rows) + remark
            labels[label] = [name for name, _ in rows]
        return by_kind(labels)

    def named(self, variants: Sequence[str]) -> Sequence[str]:
        """These variants, or all of this version if none is named."""
        return variants or tuple(variant.name for variant in self.kernel.variants)

    def rows(self, variants: Sequence[str], above: Sequence[str] = ()) -> list[Row]:
        """What stands in the rows of a table or a figure: other versions, then this one's variants.

        Parameters
        ----------
        variants : sequence of str
            The fastest if none is named.
        above : sequence of str
            Other versions, as ``stem`` or ``stem/variant``.
        """
        others = [(self.of(stem), name) for stem, name in map(parted, above)]
        chosen = (*others, *((self, name) for name in variants or ("",)))
        return [Row(page, page.kernel.variant(name or None)) for page, name in chosen]


# Kept for the process: a page asks for its own runs and, through versions of their own, for those
# that it is compared with.
@lru_cache(maxsize=16)
def _traced(stem: str, name: str) -> runner.Run:
    """The run that `Version.traced` returns."""
    version = Version(stem)
    chosen = version.kernel.variant(name)
    return version.run(version.problem, name, backend="emulator", watch=_watched(version, chosen),
                       exact=True)


def _watched(version: Version, variant: Variant) -> tuple[int, int]:
    """The block and the warp whose addresses are kept: those that own a tile of C."""
    last = version._blocks(version.problem, variant) - 1
    warp = min(WATCHED[1], variant.threads // WARP - 1)
    if variant.grid.blocks_per_sm and variant.grid.least_share:
        return last, warp  # where tiles are cut, the last block adds up a tile's parts
    # A cluster may reach past C: its last blocks own nothing.
    owned = math.prod(tiles(version.problem, variant.tile)) - 1
    return min(WATCHED[0], last, owned), warp
