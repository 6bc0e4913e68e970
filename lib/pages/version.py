"""One kernel version: what was run, compiled and recorded of it, for tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from lib import device, gpus, kernels, runner, tuning
from lib.compiler import Compiled, compile_kernel
from lib.figures import timeline as timeline_figure
from lib.measure import records
from lib.models import busiest
from lib.models import phases as phases_of
from lib.models.occupancy import occupancy
from lib.problem import Problem
from lib.versions import Kernel, Variant

# Whose records the pages show where no GPU is: the machine that all of them were made on.
RECORDED_ON = "H100"
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


def by_kind(labels: Mapping[str, Sequence[str]]) -> str:
    """One evidence label; where there are several kinds, with the names that each holds for."""
    if len(labels) == 1:
        return next(iter(labels))
    return "; ".join(f"{label} ({', '.join(names)})" for label, names in labels.items())


def rung(kernel: Kernel) -> str:
    """The short name of a version on ladders, roofs and timelines."""
    first, _, rest = kernel.title.partition(" ")
    word = first.lower() if first.istitle() and not first.endswith("'s") else first
    return f"{kernel.stem[:2]} {word} {rest}".rstrip()


@dataclass(frozen=True)
class Marked:
    """What the timeline's marks change of the kernel that they look at, on the recorded GPU.

    Attributes
    ----------
    registers, registers_with : int
        A thread's, without marks and with them.
    blocks, blocks_with : int
        Blocks that fit an SM.
    slowdown : float
        Recorded time with marks over the one without, less 1.
    """

    registers: int
    registers_with: int
    blocks: int
    blocks_with: int
    slowdown: float


class Row(NamedTuple):
    """A variant of a version, and the page that knows it."""

    page: Version
    variant: Variant

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.page.kernel.stem[:2]} {self.variant.name}"


class Version:
    """One kernel version: what was run, compiled and recorded of it.

    Parameters
    ----------
    stem : str
        Name in the catalogue.
    """

    def __init__(self, stem: str) -> None:
        self.kernel = kernels.find(stem)

    def run(self, problem: Problem = TRACED, variant: str | None = None, **options: Any
            ) -> runner.Run:
        """Run the kernel on a problem, taken in the variant's types (see `lib.runner.run`)."""
        chosen = self.kernel.variant(variant)
        return runner.run(self.kernel, chosen.typed(problem), variant=chosen, **options)

    def traced(self, variant: str | None = None) -> runner.Run:
        """The emulated run that counters and access figures are drawn from; kept."""
        return _traced(self.kernel.stem, self.kernel.variant(variant).name)

    def stored_by_lanes(self, variant: str | None = None) -> runner.Run:
        """`traced`; where the copy engine stores C, the same but that its lanes store it."""
        chosen = self.kernel.variant(variant)
        if "C" not in chosen.boxes:
            return self.traced(variant)
        boxes = {name: box for name, box in chosen.boxes.items() if name != "C"}
        by_lanes = replace(chosen, constants={**chosen.constants, "STAGED": 0}, boxes=boxes)
        block = min(WATCHED[0], self._blocks(self.problem, by_lanes) - 1)
        return runner.run(
            self.kernel, by_lanes.typed(self.problem), variant=by_lanes, backend="emulator",
            watch=(block, _watched_warp(chosen)), exact=True,
        )

    @cached_property
    def problem(self) -> Problem:
        """The problem that is traced: `TRACED`, doubled until each variant has several blocks."""
        problem = TRACED
        while any(self._blocks(problem, variant) == 1 for variant in self.kernel.variants):
            problem = replace(problem, M=2 * problem.M, N=2 * problem.N, K=2 * problem.K)
        return problem

    def _blocks(self, problem: Problem, variant: Variant) -> int:
        columns, rows, _ = self.kernel.launch(variant.typed(problem), variant).grid
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
        trace = self.traced(variant).launch.trace
        counters = trace.counters()
        on_tensor_cores = busiest.tensor_flops(trace.instructions) / 2
        work = on_tensor_cores or counters["ffma_thread_instructions"]
        return 32 * counters[counter] / work

    def _emulated(self) -> str:
        return f"emulated: {self.kernel.min_arch} PTX, {self.problem.shape.replace('x', '×')}"

    @cached_property
    def record(self) -> dict[str, Any]:
        """This version's record."""
        record = records.load(RECORDED_ON, self.kernel.stem)
        if record is None:
            raise records.NotRecorded(
                f"{self.kernel.stem} has no record: python -m lib record {self.kernel.stem}"
            )
        return record

    def _measured(self, variant: Variant, size: int) -> Mapping[str, Any]:
        from lib.measure.bench import bench

        key = (variant.name, size)
        if key not in self._times:
            problem = variant.problem(size, size, size)
            self._times[key] = bench(self.kernel, variant, problem, rounds=5)
        return self._times[key]

    @cached_property
    def _times(self) -> dict[tuple[str, int], Mapping[str, Any]]:
        return {}

    def recorded(
        self, size: int, variant: str | None = None, ptx_arch: str | None = None
    ) -> Mapping[str, Any]:
        """The recorded benchmark at one size: a row of the record.

        Parameters
        ----------
        size : int
            M = N = K.
        variant : str, optional
        ptx_arch : str, optional
            An older architecture, whose code was assembled for the recorded GPU.

        Raises
        ------
        records.NotRecorded
            If there is no such record, variant, code or size.
        """
        for row in self._kept(variant, ptx_arch, "bench"):
            if row["M"] == row["N"] == row["K"] == size:
                return row
        raise self._nothing(variant, f"no time at {size:,}")

    def _kept(self, variant: str | None, ptx_arch: str | None, what: str) -> list[dict[str, Any]]:
        """The rows of one part of the record."""
        name = self.kernel.variant(variant).name
        kept = self.record["variants"].get(name)
        if kept is None:
            raise self._nothing(variant, "nothing")
        if ptx_arch:
            kept = kept.get("ptx", {}).get(ptx_arch)
            if kept is None:
                raise self._nothing(variant, f"no code of {ptx_arch}")
        return kept.get(what, [])

    def _nothing(self, variant: str | None, missing: str) -> records.NotRecorded:
        stem, name = self.kernel.stem, self.kernel.variant(variant).name
        return records.NotRecorded(
            f"the record of {stem} has {missing} for {name}: python -m lib record {stem}"
        )

    def _timed_on(self, variants: Sequence[str] = (), above: Sequence[str] = ()) -> str:
        """The evidence label of what is timed: which rows (see `rows`) here, which in the record.

        A GPU may be too old for some of them.
        """
        rows = self.rows(variants, above)
        here = [row for row in rows if device.runs(row.page.kernel, row.variant)]
        there = [row for row in rows if row not in here]
        labels = {}
        if here:
            labels[measured_on()] = here
        if there:
            first = there[-1].page
            stale = any(records.stale(first.record, v.name) for v in first.kernel.variants)
            labels[records.label(first.record)
                   + (" (stale: the source has changed since)" if stale else "")] = there
        return by_kind({label: [row.name for row in rows] for label, rows in labels.items()})

    def marked(self, variant: str | None = None) -> Marked:
        """Say how far a timeline is that of another kernel: marks take registers and time."""
        chosen = self.kernel.variant(variant)
        gpu = gpus.GPUS[RECORDED_ON]
        used = [
            compile_kernel(self.kernel, chosen, gpu.arch, timeline=marks).resources
            for marks in (False, True)
        ]
        fit = [occupancy(gpu, r.registers, r.shared_bytes, chosen.threads).blocks for r in used]
        times = self.record["variants"][chosen.name]["timeline"]
        return Marked(
            used[0].registers, used[1].registers, fit[0], fit[1],
            times["seconds_with"] / times["seconds_without"] - 1,
        )

    def step_cycles(self, variant: str | None = None) -> Mapping[str, float]:
        """Mean cycles of a warp in each phase of a step, in the recorded timeline's first block."""
        one = self._recorded_version(self.kernel.variant(variant))
        return phases_of.per_step(phases_of.phases(one.events, one.blocks[0][1]))

    def launched(self, row: Mapping[str, Any]) -> Variant | None:
        """The variant that a recorded row is of; None if the catalogue has it no more.

        Of several that differ in how they are launched today's choice, if it is among them.
        """
        names = self.kernel.instantiated(row["instantiation"])
        tuned = self.kernel.variants[0]
        if len(names) > 1 and tuned.tuned:
            problem = tuned.problem(row["M"], row["N"], row["K"])
            chosen = tuning.choose(self.kernel.stem, tuned, problem).name
            names = [chosen] if chosen in names else names
        return self.kernel.variant(names[0]) if names else None

    def rows(
        self, variants: Sequence[str], above: Sequence[str] = (), every: bool = False
    ) -> list[Row]:
        """What stands in the rows of a table or a figure: other versions, then this one's variants.

        Parameters
        ----------
        variants : sequence of str
            If none is named the first, or all if `every` is set.
        above : sequence of str
            Other versions, as ``stem`` or ``stem/variant``.
        every : bool
        """
        others = [(type(self)(stem), name) for stem, _, name in (a.partition("/") for a in above)]
        names = variants or [v.name for v in self.kernel.variants[: None if every else 1]]
        chosen = (*others, *((self, name) for name in names))
        return [Row(page, page.kernel.variant(name or None)) for page, name in chosen]

    def _version(self, variant: Variant) -> timeline_figure.Version:
        """The timeline of a variant: measured where a GPU here can run it, else recorded."""
        if not device.runs(self.kernel, variant):
            return self._recorded_version(variant)
        from lib.measure.timeline import timeline

        marks = timeline(self.kernel, variant, variant.problem(TIMED, TIMED, TIMED))
        return self._told(variant, marks, self._measured(variant, TIMED)["sm_clock_mhz"])

    def _recorded_version(self, variant: Variant) -> timeline_figure.Version:
        """The recorded timeline of a variant."""
        marks = self.record["variants"][variant.name]["timeline"]
        return self._told(variant, marks, self.recorded(TIMED, variant.name)["sm_clock_mhz"])

    def _told(
        self, variant: Variant, marks: Mapping[str, Any], clock: float | None
    ) -> timeline_figure.Version:
        """A timeline by its marks and the SM clock, MHz."""
        name = rung(self.kernel)
        if len(self.kernel.variants) > 1:
            name += f", {variant.name}"
        gpu = gpus.GPUS[RECORDED_ON]
        return timeline_figure.version(
            name, marks, clock * 1e6 if clock else gpu.clock_hz, roles=variant.roles,
            stages=variant.stages,
        )

    def metrics(
        self, size: int, variant: str | None = None, ptx_arch: str | None = None
    ) -> Mapping[str, float]:
        """The recorded hardware counters at one size (`lib.measure.counters`' names).

        Of a variant that takes another's place by size, those of the one that was timed: what is
        divided by each other must be of one kernel.

        Raises
        ------
        records.NotRecorded
            As `recorded` does.
        """
        chosen = self.kernel.variant(variant)
        if chosen.tuned and not ptx_arch:
            timed = self.launched(self.recorded(size, chosen.name))
            variant = (timed or chosen).name
        for row in self._kept(variant, ptx_arch, "counters"):
            if row["M"] == row["N"] == row["K"] == size:
                return row["metrics"]
        raise self._nothing(variant, f"no counters at {size:,}")


# Kept for the process: a page asks for its own runs and, through pages of their own, for those of
# the versions that it is compared with.
@lru_cache(maxsize=16)
def _traced(stem: str, name: str) -> runner.Run:
    """The run that `Version.traced` returns."""
    page = Version(stem)
    chosen = page.kernel.variant(name)
    last = page._blocks(page.problem, chosen) - 1
    # Where tiles are cut, the last block of all adds up a tile's parts and stores it.
    cut = chosen.resident and chosen.least_share
    watch = (last if cut else min(WATCHED[0], last), _watched_warp(chosen))
    return page.run(page.problem, name, backend="emulator", watch=watch, exact=True)


def _watched_warp(variant: Variant) -> int:
    return min(WATCHED[1], variant.threads // 32 - 1)
