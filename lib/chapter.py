"""The few names a chapter imports: pictures and tables, each with its kind of evidence.

Functions are for any page; `Chapter` is one kernel version's. On a machine with a GPU a chapter
measures. Without one it shows what was recorded, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from IPython.display import HTML, Markdown, display
from matplotlib.figure import Figure

from lib import claims as ledger
from lib import device, gpus, kernels, reported, runner, scoreboard, source, tables
from lib.compiler import Compiled, compile_kernel
from lib.figures import banks as banks_figure
from lib.figures import busiest as busiest_figure
from lib.figures import coalescing as coalescing_figure
from lib.figures import html, style
from lib.figures import ladder as ladder_figure
from lib.figures import map as map_figure
from lib.figures import mix as mix_figure
from lib.figures import occupancy as occupancy_figure
from lib.figures import pipeline as pipeline_figure
from lib.figures import roofline as roofline_figure
from lib.figures import swizzle as swizzle_figure
from lib.figures import timeline as timeline_figure
from lib.kernels import CATALOGUE, Kernel, Variant
from lib.measure import records
from lib.models import busiest, mapping, mix, order, roofline
from lib.models import phases as phases_of
from lib.models import pipeline as model
from lib.models.accesses import named
from lib.models.layouts import Layout
from lib.models.occupancy import occupancy
from lib.problem import Problem

# Whose records the pages show where no GPU is: the machine that all of them were made on.
RECORDED_ON = "H100"

# The problem that is traced for the counters and the access figures: several blocks, quick to run.
TRACED = Problem(128, 128, 128)
# The warp whose addresses are kept: not in the first block, where row and column 0 hide mistakes.
# Where there are fewer blocks, it is the same warp of the last one.
WATCHED = (5, 3)

# What every version must get right: square, ragged, one wide, and the ends of K, α and β.
CHECKED = (
    Problem(128, 128, 128), Problem(100, 99, 101), Problem(33, 65, 31, 0.5, -2.0),
    Problem(1, 70, 40, 1.0, 1.0), Problem(70, 1, 40, -2.0, 0.5), Problem(31, 33, 1),
    Problem(64, 64, 0, 1.0, 0.5),
)

# The counters that are compared between versions: those of the main loop.
PER_MULTIPLY_ADD = (
    "global_load_requests", "global_load_sectors", "shared_load_instructions",
    "shared_wavefronts", "shared_wavefronts_ideal",
)

# The size at which a chapter looks at time: large enough to fill the GPU, quick enough to measure.
TIMED = 2048
SPEED_SIZES = (1024, 2048, 4096)
# How much of a timeline is drawn, cycles: more than one step of any version, and still readable.
WINDOW = 6000.0


def show(figure: Figure) -> None:
    """Display a finished figure as inline SVG, in the page's own ink."""
    display(HTML(html.svg(figure)))


def note(markdown: str) -> None:
    """Display Markdown: how numbers reach a page."""
    display(Markdown(markdown))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], evidence: str) -> None:
    """Display a table with its kind of evidence under it."""
    note(f"{tables.markdown(head, rows)}\n\n*{evidence}*")


def ladder(mark: str | None = None, size: int = scoreboard.LADDER_SIZE) -> None:
    """Draw all versions as % of cuBLAS.

    Parameters
    ----------
    mark : str, optional
        Stem of the version in colour.
    size : int
        M = N = K.
    """
    rows = {
        (row.kernel, row.variant): row
        for row in records.rows()
        if row.gpu == RECORDED_ON and row.M == row.N == row.K == size
    }
    rungs, dates = [], set()
    for stem, kernel in CATALOGUE.items():
        row = rows.get((stem, kernel.variants[0].name))
        if row:
            dates.add(row.date)
        rungs.append(ladder_figure.Rung(
            _rung(kernel), kernel.group, row and row.ratio, row and row.tflops,
            reported.ratio(stem), bool(row and row.stale),
        ))
    when = ", ".join(sorted(dates))
    evidence = f"recorded: {RECORDED_ON}, {when}, M = N = K = {size:,}"
    current = _rung(CATALOGUE[mark]) if mark else None
    show(ladder_figure.draw(rungs, evidence=evidence, current=current))


def results_table() -> None:
    """Display every recorded benchmark of a cube."""
    rows = records.rows()
    dates = sorted({(row.gpu, row.date) for row in rows})
    evidence = "recorded: " + "; ".join(f"{gpu}, {date}" for gpu, date in dates)
    note(f"{scoreboard.markdown(rows)}\n\n*{evidence}; cuBLAS on the same types in the same run, "
         "TF32 off*")


def roofs_table() -> None:
    """Display the roofs measured on each machine, beside its data sheet's figure."""
    rows, labels = [], []
    sheet = {
        "copy": ("DRAM", lambda g: g.dram_bytes_per_s), "l2": ("L2", lambda g: None),
        "shared": ("shared memory", lambda g: None), "ffma": ("FFMA", lambda g: g.fp32_flops),
        "mma_k8": ("mma.m16n8k8", lambda g: g.tensor_fp16_flops),
        "mma_k16": ("mma.m16n8k16", lambda g: g.tensor_fp16_flops),
    }
    for record in records.every():
        if record["kernel"] != records.MACHINE:
            continue
        gpu = gpus.GPUS[record["gpu"]["key"]]
        labels.append(records.label(record))
        for key, roof in record["roofs"].items():
            name, peak = sheet[key]
            unit, given = roof["unit"], peak(gpu)
            rows.append((
                f"{gpu.key}, {name}", style.quantity(roof["value"], unit),
                style.quantity(given, unit) if given else "not given", roof["method"],
            ))
    table(("roof", "measured", "data sheet", "how"), rows, "; ".join(labels))


def provenance() -> None:
    """Display where each record comes from: GPU, driver, toolkit, date, revision, method."""
    rows = [
        (r["kernel"], r["gpu"]["name"], r["gpu"]["driver"], r["software"]["cuda"],
         r["software"]["cublas"], r["date"], r["revision"])
        for r in records.every()
    ]
    head = ("record", "GPU", "driver", "CUDA", "cuBLAS", "date", "revision")
    table(head, rows, "recorded: the files in results/")
    methods = {r["method"]["bench"] for r in records.every() if r["kernel"] in CATALOGUE}
    clocks = {r["method"]["clocks"] for r in records.every()}
    note("\n\n".join([f"Timing: {'; '.join(methods)}.", f"Clocks: {'; '.join(clocks)}."]))


def gpu_table() -> None:
    """Display the data sheets of `lib.gpus`."""
    rows = (
        ("compiled for", lambda g: g.arch),
        ("SMs", lambda g: g.sms),
        ("boost clock, MHz", lambda g: f"{g.clock_hz / 1e6:,.0f}"),
        ("FP32 lanes an SM", lambda g: g.fp32_lanes_per_sm),
        ("FP32 peak, TFLOP/s", lambda g: f"{g.fp32_flops / 1e12:.1f}"),
        ("FP16 tensor peak, TFLOP/s", lambda g: f"{g.tensor_fp16_flops / 1e12:,.0f}"),
        ("DRAM bandwidth, GB/s", lambda g: f"{g.dram_bytes_per_s / 1e9:,.0f}"),
        ("L2 cache, MiB", lambda g: g.l2_bytes // gpus.MIB),
        ("shared memory an SM, KiB", lambda g: g.shared_bytes_per_sm // gpus.KIB),
        ("registers an SM", lambda g: f"{g.registers_per_sm:,}"),
        ("resident warps an SM", lambda g: g.warps_per_sm),
    )
    sheets = tuple(gpus.GPUS.values())
    table(
        ("", *(sheet.key for sheet in sheets)),
        [(name, *(value(sheet) for sheet in sheets)) for name, value in rows],
        "reported: the vendor's data sheets and programming guide",
    )


def layouts(column: int = 5) -> None:
    """Draw where a column of a 32×32 tile lies: as it is, with padded rows, and swizzled."""
    show(swizzle_figure.draw(
        [("unpadded", Layout()), ("padded", Layout(1)), ("swizzled", Layout(0, True))],
        column=column,
    ))


def pipeline(load: float, compute: float, buffers: int, measured: str = "") -> None:
    """Draw the pipeline model (`lib.models.pipeline`).

    Parameters
    ----------
    load, compute : float
        Cycles of one tile.
    buffers : int
    measured : str
        Where the two times are from, if they are not assumed.
    """
    evidence = f"modelled: times of {measured}" if measured else "modelled: assumed times"
    show(pipeline_figure.draw(model.pipeline(load, compute, buffers), evidence=evidence))


def claims(chapter: str | None = None) -> None:
    """Display the claims that a chapter judges, or all of them."""
    note(ledger.markdown(chapter))


def _rung(kernel: Kernel) -> str:
    return f"{kernel.stem[:2]} {kernel.title.lower()}"


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


class Chapter:
    """One kernel version: everything its page shows.

    Parameters
    ----------
    stem : str
        Name in the catalogue.
    """

    def __init__(self, stem: str) -> None:
        self.kernel = kernels.find(stem)

    # What was run

    def run(self, problem: Problem = TRACED, variant: str | None = None, **options: Any
            ) -> runner.Run:
        """Run the kernel on a problem, taken in the variant's types (see `lib.runner.run`)."""
        chosen = self.kernel.variant(variant)
        return runner.run(self.kernel, chosen.typed(problem), variant=chosen, **options)

    def traced(self, variant: str | None = None) -> runner.Run:
        """The emulated run that counters and access figures are drawn from; kept."""
        name = self.kernel.variant(variant).name
        if name not in self._traces:
            problem = self.problem
            blocks = self._blocks(problem, self.kernel.variant(name))
            watch = (min(WATCHED[0], blocks - 1), WATCHED[1])
            self._traces[name] = self.run(
                problem, name, backend="emulator", watch=watch, exact=True
            )
        return self._traces[name]

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

    @cached_property
    def _traces(self) -> dict[str, runner.Run]:
        return {}

    def compiled(self, arch: str, variant: str | None = None) -> Compiled:
        """The kernel compiled for an architecture."""
        return compile_kernel(self.kernel, self.kernel.variant(variant), arch)

    # 1, 2: where we are

    def ladder(self) -> None:
        """Draw the ladder with this version in colour."""
        ladder(self.kernel.stem)

    def before(self) -> None:
        """Display what the version before left on the table, in its own counters."""
        previous = self.kernel.predecessor
        if previous is None:
            raise ValueError(f"{self.kernel.stem} is the first version")
        Chapter(previous.stem).counters()

    # 3, 4: the idea and the code

    def map(self, variant: str | None = None) -> None:
        """Draw who computes what, from the stores and the launch of the traced run."""
        work = mapping.work(self.traced(variant))
        show(map_figure.draw(work, evidence=self._emulated()))

    def code(self) -> None:
        """Display the difference to the version before, and the whole file folded."""
        language = "diff" if self.kernel.predecessor else "cpp"
        file = f"cuda/{self.kernel.source.name}"
        note(
            f"```{language}\n{source.difference(self.kernel)}```\n\n"
            f"<details><summary>The whole of <code>{file}</code>, without the timeline's marks"
            f"</summary>\n\n```cpp\n{source.listing(self.kernel)}```\n\n</details>"
        )

    # 5: what the compiler made of it

    def resources(self) -> None:
        """Display registers, shared memory, spills and resident warps for each architecture."""
        rows = []
        for variant in self.kernel.variants:
            for arch, key in gpus.ARCHITECTURES.items():
                if gpus.GPUS[key].clock_hz and arch >= self.kernel.min_arch:
                    rows.append(self._resource_row(variant, arch, key))
        toolkit = self.compiled("sm_75").toolkit
        table(
            ("variant", "for", "registers a thread", "shared B a block", "spilled B",
             "warps on an SM", "limited by"),
            rows, f"modelled: CUDA's occupancy rules on what ptxas of NVRTC {toolkit} reports",
        )

    def _resource_row(self, variant: Variant, arch: str, key: str) -> tuple[object, ...]:
        used = self.compiled(arch, variant.name).resources
        fits = occupancy(gpus.GPUS[key], used.registers, used.shared_bytes, variant.threads)
        spilled = used.spill_store_bytes + used.spill_load_bytes
        return (
            variant.name, f"{arch} ({key})", used.registers, f"{used.shared_bytes:,}", spilled,
            f"{fits.warps} of {gpus.GPUS[key].warps_per_sm}", fits.limited_by,
        )

    def occupancy(self) -> None:
        """Draw what limits resident blocks on a T4, an A100 and an H100."""
        variant = self.kernel.variants[0]
        found = {}
        for arch, key in gpus.ARCHITECTURES.items():
            used = self.compiled(arch).resources
            found[key] = occupancy(
                gpus.GPUS[key], used.registers, used.shared_bytes, variant.threads
            )
        show(occupancy_figure.draw(found))

    def order(self, *variants: str, arch: str = "sm_90a") -> None:
        """Display where the machine code of the main loop loads, computes, stores and waits."""
        rows = []
        for name in variants or tuple(v.name for v in self.kernel.variants):
            opcodes = [i.opcode for i in self.compiled(arch, name).inner_loop]
            found = order.places(opcodes)
            rows.append((name, len(opcodes), *(str(found.get(c, "none")) for c in order.CLASSES),
                         order.work_between(opcodes)))
        table(
            ("variant", "instructions", *(f"{c}s" for c in order.CLASSES),
             "FMA from load to store"),
            rows, f"modelled: SASS of the inner loop, {arch}, NVRTC {self.compiled(arch).toolkit}; "
            "positions, and in brackets how many",
        )

    def mix(self, arch: str = "sm_90a") -> None:
        """Draw what the inner loop's issue slots are spent on, against the version before."""
        def of(chapter: Chapter) -> tuple[str, Mapping[str, float]]:
            loop = chapter.compiled(arch).inner_loop
            return _rung(chapter.kernel), mix.per_thousand_fma(i.opcode for i in loop)

        before = self.kernel.predecessor
        evidence = f"modelled: SASS of the inner loop, {arch}, NVRTC {self.compiled(arch).toolkit}"
        show(mix_figure.draw(of(self), before and of(Chapter(before.stem)), evidence=evidence))

    def inner_loop(self, arch: str = "sm_90a") -> None:
        """Display the inner loop's machine code, folded."""
        rows = [f"{i.address:04x}  {i.text}" for i in self.compiled(arch).inner_loop]
        listing = "\n".join(rows)
        note(f"<details><summary>The inner loop's {len(rows)} machine instructions for {arch}"
             f"</summary>\n\n```text\n{listing}\n```\n\n</details>")

    # 6: does it compute the right thing

    def check(self, *variants: str) -> None:
        """Run variants, all if none is named, on `CHECKED` and display the errors' bounds."""
        rows = []
        names = variants or tuple(v.name for v in self.kernel.variants)
        where = "emulated: sm_75 code in the PTX emulator"
        for problem in CHECKED:
            row: list[object] = [problem.shape.replace("x", "×"), f"{problem.alpha:g}",
                                 f"{problem.beta:g}"]
            for name in names:
                done = self.run(problem, name)
                if done.backend == "gpu":
                    where = f"measured: {device.name()}"
                row.append(f"under {problem.tolerance:.1e}" if done.verdict.ok
                           else f"**{done.verdict}**")
            rows.append(row)
        head = ("M×N×K", "α", "β", *(f"error, {name}" for name in names))
        table(head, rows, f"{where}; error relative to float64, in norm; C held NaN where β = 0")

    def instantiations(self) -> None:
        """Display which instantiation each of the shapes of `CHECKED` gets, and why."""
        variant = self.kernel.variants[0]
        rows = []
        for problem in CHECKED:
            chosen = self.kernel.select(problem, variant)
            rows.append((
                problem.shape.replace("x", "×"), f"`{self.kernel.expression(chosen.variant)}`",
                chosen.reason or "every row begins on a multiple of a vector",
            ))
        table(("M×N×K", "launched", "because"), rows,
              "modelled: the catalogue's rule, for matrices that begin on 16 bytes")

    # 7: memory

    def counters(self, *variants: str) -> None:
        """Display the counters of the traced run, one column a variant."""
        names = variants or tuple(v.name for v in self.kernel.variants)
        columns = [self.traced(name).launch.trace.counters() for name in names]
        rows = [
            (key.replace("_", " "), *(f"{column[key]:,}" for column in columns))
            for key in columns[0]
        ]
        rows += [
            ("sectors a global load request", *(
                f"{c['global_load_sectors'] / c['global_load_requests']:.3g}" for c in columns)),
        ]
        shape = self.problem.shape.replace("x", "×")
        table((f"{self.kernel.stem} at {shape}", *names), rows,
              self._emulated())

    def each(self, counter: str, variant: str | None = None) -> float:
        """One counter of the traced run, for each multiply-add of a warp.

        Where a version's tiles divide the traced problem, so that no lane idles, this does not
        depend on the size: versions that are traced at different sizes can be compared by it.
        """
        counters = self.traced(variant).launch.trace.counters()
        return 32 * counters[counter] / counters["ffma_thread_instructions"]

    def per_multiply_add(self) -> None:
        """Display what a warp's multiply-add costs in memory accesses, here and before."""
        before = self.kernel.predecessor
        pages = [(Chapter(before.stem), before.variants[:1])] if before else []
        pages.append((self, self.kernel.variants))
        columns = [(page, variant.name) for page, variants in pages for variant in variants]
        rows = [
            (key.replace("_", " "), *(f"{page.each(key, name):.3g}" for page, name in columns))
            for key in PER_MULTIPLY_ADD
        ]
        head = ("for a multiply-add of a warp",
                *(f"{_rung(page.kernel)}, {name}" for page, name in columns))
        table(head, rows, f"emulated: {runner.DEFAULT_ARCH} PTX, shared memory as in its SASS")

    def coalescing(self, *variants: str) -> None:
        """Draw what a warp's loads and stores touched in global memory, variant by variant.

        Parameters
        ----------
        *variants : str
            All of them if none is named.
        """
        groups = []
        chosen = [self.kernel.variant(name) for name in variants] or self.kernel.variants
        for variant in chosen:
            launch = self.traced(variant.name).launch
            panels = [
                coalescing_figure.panel(
                    one.label, one.access, one.allocation, array=one.array, kind=one.kind,
                    where=one.where,
                )
                for one in sorted(named(launch, "global"), key=lambda n: n.kind == "store")
            ]
            name = variant.name if len(chosen) > 1 else ""
            groups.append(coalescing_figure.Group(name, panels))
        show(coalescing_figure.draw(groups, evidence=self._emulated()))

    def banks(self, variant: str | None = None, kind: str | None = None) -> None:
        """Draw which banks a warp's shared accesses meet, a wavefront a row.

        Parameters
        ----------
        variant : str, optional
        kind : str, optional
            ``"load"`` or ``"store"``; both if not given.
        """
        accesses = named(self.traced(variant).launch, "shared")
        panels = [
            banks_figure.panel(one.label, one.access, kind=one.kind, where=one.where)
            for one in sorted(accesses, key=lambda n: n.kind == "load")
            if kind in (None, one.kind)
        ]
        if not panels:
            raise ValueError(f"{self.kernel.stem} has no shared memory to draw")
        show(banks_figure.draw(panels, evidence=self._emulated()))

    def _emulated(self) -> str:
        return f"emulated: {runner.DEFAULT_ARCH} PTX, {self.problem.shape.replace('x', '×')}"

    # 8, 9: time

    @cached_property
    def record(self) -> dict[str, Any]:
        """This version's record."""
        record = records.load(RECORDED_ON, self.kernel.stem)
        if record is None:
            raise records.RecordError(
                f"{self.kernel.stem} has no record: python -m lib record {self.kernel.stem}"
            )
        return record

    def speed(self, *variants: str) -> None:
        """Display the speed of some variants, or all, against cuBLAS: measured, or recorded."""
        head = ("variant", "M = N = K", "TFLOP/s", "cuBLAS, same run", "of cuBLAS", "spread")
        rows = []
        for variant in map(self.kernel.variant, variants or (v.name for v in self.kernel.variants)):
            for row in self._benchmarks(variant):
                rows.append((variant.name, f"{row['M']:,}", f"{row['tflops']:.2f}",
                             f"{row['cublas_tflops']:.2f}", f"{row['ratio']:.1%}",
                             f"{row['spread']:.1%}"))
        table(head, rows, f"{self._timed_on()}; FP32, TF32 off, α = 1, β = 0")

    def _benchmarks(self, variant: Variant) -> list[Mapping[str, Any]]:
        if not device.available():
            kept = self.record["variants"][variant.name]["bench"]
            return [row for row in kept if row["M"] in SPEED_SIZES]
        return [self._measured(variant, size) for size in SPEED_SIZES]

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

    def recorded(self, size: int, variant: str | None = None) -> Mapping[str, Any]:
        """The recorded benchmark at one size: a row of the record."""
        kept = self.record["variants"][self.kernel.variant(variant).name]["bench"]
        return next(row for row in kept if row["M"] == size)

    def _timed_on(self) -> str:
        """The evidence label of what is timed: here, or in the record."""
        if device.available():
            return f"measured: {device.name().removeprefix('NVIDIA ')}"
        stale = any(records.stale(self.record, v.name) for v in self.kernel.variants)
        return records.label(self.record) + (" (stale: the source has changed since)" if stale
                                             else "")

    def compare(self, size: int, *variants: str) -> None:
        """Display recorded speed and traffic of some variants side by side, a row each.

        Parameters
        ----------
        size : int
            M = N = K.
        *variants : str
            All of them if none is named.
        """
        rows = []
        for name in variants or tuple(v.name for v in self.kernel.variants):
            metrics, row = self.metrics(size, name), self.recorded(size, name)
            steps = metrics["ffma_thread_instructions"] / 32
            rows.append((
                name, self.kernel.variant(name).meaning, f"{row['tflops']:.1f}",
                f"{row['ratio']:.1%}", f"{metrics['dram_read_bytes'] / 1e9:.2f}",
                f"{metrics['l2_bytes'] / 1e9:.1f}", f"{metrics['shared_wavefronts'] / steps:.2f}",
                f"{metrics['fma_pipe_percent']:.0f}%",
            ))
        table(
            (f"at {size:,}", "", "TFLOP/s", "of cuBLAS", "GB from DRAM", "GB through L2",
             "wavefronts a warp's FMA", "FMA pipe busy"),
            rows, records.label(self.record),
        )

    def timeline(
        self, *variants: str, with_previous: bool = False, above: Sequence[str] = (),
        cycles: float = WINDOW,
    ) -> None:
        """Draw what some warps of one SM do, cycle by cycle: marks measured inside the kernel.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        with_previous : bool
            Draw the version before above it, on the same scale.
        above : sequence of str
            Stems of other versions to draw above it.
        cycles : float
            How much of the time since the first mark to draw.
        """
        before = self.kernel.predecessor
        if with_previous and before:
            above = (*above, before.stem)
        show(timeline_figure.draw(
            [one for _, one in self._versions(variants, above)],
            evidence=f"{self._timed_on()}, {TIMED:,}³", window=(0.0, cycles),
        ))

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

    def phases(self, *variants: str, above: Sequence[str] = ()) -> None:
        """Display the share of the warps' time in each phase, and what a tile costs the SM.

        An SM works on several blocks at once. So what a tile costs it is all its cycles, without
        marks, over all tiles that it works on.
        """
        names = ("load", "wait", "compute", "barrier")
        sms = device.sms() if device.available() else gpus.GPUS[RECORDED_ON].sms
        rows = []
        for variant, one in self._versions(variants, above):
            spans = [
                span for _, warps in one.blocks for span in phases_of.phases(one.events, warps)
            ]
            shares = phases_of.parts(spans, names, (0.0, float("inf")))
            tiles = one.total_blocks * -(-TIMED // variant.step) / sms
            cycles = one.seconds_without * one.clock_hz / tiles
            rows.append((one.name, *(f"{shares.get(name, 0.0):.0%}" for name in names),
                         f"{cycles:,.0f}"))
        table(("warps' time", *names, "SM cycles a tile"), rows,
              f"{self._timed_on()}, {TIMED:,}³; shares from marks in the kernel, cycles without")

    def step_cycles(self, variant: str | None = None) -> Mapping[str, float]:
        """Mean cycles of a warp in each phase of a step, in the first block of the timeline."""
        one = self._version(self.kernel.variant(variant))
        return phases_of.per_step(phases_of.phases(one.events, one.blocks[0][1]))

    def _versions(
        self, variants: Sequence[str], above: Sequence[str]
    ) -> list[tuple[Variant, timeline_figure.Version]]:
        chosen = [(Chapter(stem), None) for stem in above]
        chosen += [(self, name) for name in variants or (None,)]
        return [
            (page.kernel.variant(name), page._version(page.kernel.variant(name)))
            for page, name in chosen
        ]

    def _version(self, variant: Variant) -> timeline_figure.Version:
        if device.available():
            from lib.measure.timeline import timeline

            problem = variant.problem(TIMED, TIMED, TIMED)
            marks = timeline(self.kernel, variant, problem)
            clock = self._measured(variant, TIMED)["sm_clock_mhz"]
        else:
            marks = self.record["variants"][variant.name]["timeline"]
            clock = self.recorded(TIMED, variant.name)["sm_clock_mhz"]
        name = _rung(self.kernel)
        if len(self.kernel.variants) > 1:
            name += f", {variant.name}"
        gpu = gpus.GPUS[RECORDED_ON]
        return timeline_figure.version(
            name, marks, clock * 1e6 if clock else gpu.clock_hz
        )

    def roofline(self, size: int = 4096) -> None:
        """Draw this version and those before it under the roofs measured on the recorded GPU."""
        machine = records.load(RECORDED_ON, records.MACHINE)
        if machine is None:
            raise records.RecordError("no roofs are recorded: python -m lib record machine")
        roofs = roofline.Roofs.from_record(machine, gpus.GPUS[RECORDED_ON])
        points = []
        for stem in CATALOGUE:
            page = Chapter(stem)
            points += page._points(size)
            if stem == self.kernel.stem:
                break
        show(roofline_figure.draw(
            roofs, points, current=_rung(self.kernel),
            evidence=f"{records.label(self.record)}, M = N = K = {size:,}",
        ))

    def _points(self, size: int) -> list[roofline.Point]:
        """One point a level of memory: recorded time over recorded traffic."""
        metrics = self.metrics(size)
        seconds = self.recorded(size)["seconds"]
        return roofline.points(_rung(self.kernel), 2.0 * size**3, seconds, {
            "L1/shared": roofline.l1_bytes(metrics),
            "L2": metrics["l2_bytes"],
            "DRAM": metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
        })

    def metrics(self, size: int, variant: str | None = None) -> Mapping[str, float]:
        """The recorded hardware counters at one size (`lib.measure.counters`' names)."""
        kept = self.record["variants"][self.kernel.variant(variant).name]["counters"]
        return next(row["metrics"] for row in kept if row["M"] == size)

    def busiest(self, size: int = TIMED) -> None:
        """Draw the least time that each unit needs, and the time that the kernel took."""
        metrics = self.metrics(size)
        row = self.recorded(size)
        clock = row["sm_clock_mhz"]
        times = busiest.least_times(
            metrics, gpus.GPUS[RECORDED_ON], warp_instructions=metrics["instructions"],
            dram_bytes=metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
            clock_hz=clock * 1e6 if clock else None,
        )
        show(busiest_figure.draw(
            times, seconds=row["seconds"],
            evidence=f"modelled: {RECORDED_ON} rates × {records.label(self.record)}, {size:,}³",
        ))

    def claims(self) -> None:
        """Display the claims that this chapter judges."""
        claims(self.kernel.stem)

