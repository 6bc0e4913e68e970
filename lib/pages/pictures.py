"""Pictures of a page: what is drawn, from traces, machine code and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lib import gpus, predictions, reported, scoreboard
from lib.figures import ablation as ablation_figure
from lib.figures import banks as banks_figure
from lib.figures import busiest as busiest_figure
from lib.figures import by_shape, style
from lib.figures import coalescing as coalescing_figure
from lib.figures import ladder as ladder_figure
from lib.figures import map as map_figure
from lib.figures import mix as mix_figure
from lib.figures import occupancy as occupancy_figure
from lib.figures import pipeline as pipeline_figure
from lib.figures import roofline as roofline_figure
from lib.figures import slots as slots_figure
from lib.figures import sweep as sweep_figure
from lib.figures import swizzle as swizzle_figure
from lib.figures import timeline as timeline_figure
from lib.kernels import CATALOGUE, in_book
from lib.measure import records, sweeps
from lib.models import busiest, mapping, mix, roofline
from lib.models import pipeline as model
from lib.models import slots as slots_of
from lib.models.accesses import named
from lib.models.layouts import Layout
from lib.models.occupancy import occupancy
from lib.pages.display import note, show
from lib.pages.version import RECORDED_ON, TIMED, Version, rung

# How much of a timeline is drawn, cycles: more than one step of any version, and still readable.
WINDOW = 6000.0


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
    for stem, kernel in in_book().items():
        row = rows.get((stem, kernel.variants[0].name))
        if row:
            dates.add(row.date)
        rungs.append(ladder_figure.Rung(
            rung(kernel), kernel.group, row and row.ratio, row and row.tflops,
            reported.ratio(stem), bool(row and row.stale),
        ))
    when = ", ".join(sorted(dates))
    evidence = f"recorded: {RECORDED_ON}, {when}, M = N = K = {size:,}"
    current = rung(CATALOGUE[mark]) if mark else None
    show(ladder_figure.draw(rungs, evidence=evidence, current=current))


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


# What the forms of the sweep are called where they are drawn.
_FORMS = {
    sweeps.LATE: "loaded when needed", sweeps.STAGED: "ahead, into registers",
    sweeps.DOUBLE: "ahead, and two buffers",
}


def loading_ahead() -> None:
    """Draw what loading ahead gains, tile by tile and with fewer and fewer warps on an SM."""
    record = records.load(RECORDED_ON, records.SWEEPS)
    if record is None or sweeps.DOUBLE_BUFFER not in record["sweeps"]:
        note("*This sweep is not recorded yet: `python -m lib record sweeps`, on a machine with a "
             "GPU.*")
        return
    sweep = record["sweeps"][sweeps.DOUBLE_BUFFER]
    M, N, K = sweep["shape"]
    settings = [
        sweep_figure.Setting(
            sweeps.tile_of(row), style.plural(row["warps"], "warp"),
            {name: 2 * M * N * K / row["seconds"][form] / 1e12 for form, name in _FORMS.items()},
        )
        for row in sweep["rows"]
    ]
    stale = ", stale: the source has changed since" if sweeps.stale(sweep) else ""
    show(sweep_figure.draw(
        settings, slow=_FORMS[sweeps.LATE], fast=_FORMS[sweeps.DOUBLE], gained="Loading ahead",
        evidence=f"{records.label(record)}, {M:,}³{stale}",
    ))


class Pictures(Version):
    """What a page of one kernel version draws."""

    # 1, 3: where we are, and the idea

    def ladder(self) -> None:
        """Draw the ladder with this version in colour."""
        ladder(self.kernel.stem)

    def map(self, variant: str | None = None) -> None:
        """Draw who computes what, from the stores and the launch of the traced run.

        Where the copy engine stores C, from the same tiles stored by the lanes that computed them.
        """
        work = mapping.work(self.stored_by_lanes(variant))
        show(map_figure.draw(work, evidence=self._emulated()))

    # 5: what the compiler made of it

    def occupancy(self) -> None:
        """Draw what limits resident blocks on a T4, an A100 and an H100, as far as they run it."""
        variant = self.kernel.variants[0]
        found = {}
        for arch, key in gpus.ARCHITECTURES.items():
            if arch < self.kernel.min_arch:
                continue
            used = self.compiled(arch).resources
            if used.shared_bytes <= gpus.GPUS[key].shared_bytes_per_block:
                found[key] = occupancy(
                    gpus.GPUS[key], used.registers, used.shared_bytes, variant.threads
                )
        show(occupancy_figure.draw(found))

    def mix(self, arch: str = "sm_90a") -> None:
        """Draw what the inner loop's issue slots are spent on, against the version before."""
        def of(version: Version) -> tuple[str, Mapping[str, float]]:
            loop = version.compiled(arch).inner_loop
            return rung(version.kernel), mix.per_thousand_fma(i.opcode for i in loop)

        before = self.kernel.predecessor
        evidence = f"modelled: SASS of the inner loop, {arch}, NVRTC {self.compiled(arch).toolkit}"
        show(mix_figure.draw(of(self), before and of(type(self)(before.stem)), evidence=evidence))

    # 7: memory

    def coalescing(self, *variants: str) -> None:
        """Draw what a warp's loads and stores touched in global memory, variant by variant.

        Parameters
        ----------
        *variants : str
            All of them if none is named, but for those whose matrices the copy engine moves.
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
            if panels:
                groups.append(coalescing_figure.Group(name, panels))
            if not groups and variant is chosen[-1] or variants and not panels:
                raise ValueError(f"{self.kernel.stem}, {variant.name}: no lane reads or writes "
                                 "global memory itself; draw its boxes instead: box()")
        show(coalescing_figure.draw(groups, evidence=self._emulated()))

    def banks(self, variant: str | None = None, kind: str | None = None) -> None:
        """Draw which banks a warp's shared accesses meet, a wavefront a row.

        Parameters
        ----------
        variant : str, optional
        kind : str, optional
            ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"`` or ``"copy"``; all if not given.
        """
        accesses = named(self.traced(variant).launch, "shared")
        panels = [
            banks_figure.panel(
                one.label, one.access, kind=one.kind, where=one.where, source=one.source,
                past_l1=one.past_l1,
            )
            for one in sorted(accesses, key=lambda n: n.kind in ("load", "ldmatrix"))
            if kind in (None, one.kind)
        ]
        if not panels:
            raise ValueError(f"{self.kernel.stem} has no shared memory to draw")
        show(banks_figure.draw(panels, evidence=self._emulated()))

    # 8, 9: time

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
            [row.page._version(row.variant) for row in self.rows(variants, above)],
            evidence=f"{self._timed_on(variants, above)}, {TIMED:,}³", window=(0.0, cycles),
        ))

    def roofline(self, size: int = 4096) -> None:
        """Draw this version and those before it under the roofs measured on the recorded GPU."""
        machine = records.load(RECORDED_ON, records.MACHINE)
        if machine is None:
            raise records.NotRecorded("no roofs are recorded: python -m lib record machine")
        roofs = roofline.Roofs.from_record(machine, gpus.GPUS[RECORDED_ON])
        points = []
        for stem, kernel in in_book().items():
            if kernel.group == self.kernel.group and (
                    stem == self.kernel.stem or records.load(RECORDED_ON, stem)):
                points += type(self)(stem)._points(size)
            if stem == self.kernel.stem:
                break
        product = roofline.product_of(self.traced().launch.trace.instructions)
        peaks = [name for name in (product, "tensor") if name in roofs.peaks] if product else [
            "FFMA"
        ]
        show(roofline_figure.draw(
            roofs, points, current=rung(self.kernel), peaks=peaks,
            evidence=f"{records.label(self.record)}, M = N = K = {size:,}",
        ))

    def _points(self, size: int) -> list[roofline.Point]:
        """One point a level of memory: recorded time over recorded traffic."""
        metrics = self.metrics(size)
        seconds = self.recorded(size)["seconds"]
        return roofline.points(rung(self.kernel), 2.0 * size**3, seconds, {
            "L1/shared": roofline.l1_bytes(metrics),
            "L2": metrics["l2_bytes"],
            "DRAM": metrics["dram_read_bytes"] + metrics["dram_write_bytes"],
        })

    def busiest(self, size: int = TIMED, lines: bool = False) -> None:
        """Draw the least time that each unit needs, and the time that the kernel took.

        Parameters
        ----------
        size : int
            M = N = K.
        lines : bool
            Take the lines that the L1 looks up from the traced run, scaled, and not the fewest that
            the recorded requests and sectors allow. Loads grow with the size's cube, stores with
            its square.
        """
        row = self.recorded(size)
        machine = records.load(RECORDED_ON, records.MACHINE)
        looked_up = None
        if lines:
            trace, larger = self.traced().launch.trace, size / self.problem.K
            looked_up = sum(
                round(busiest.lines([site], trace.watched) * larger ** (3 - (site.kind == "store")))
                for site in trace.sites
            )
        times = busiest.of_record(
            self.metrics(size), gpus.GPUS[RECORDED_ON],
            roofline.Roofs.from_record(machine, gpus.GPUS[RECORDED_ON]) if machine else None,
            product=roofline.product_of(self.traced().launch.trace.instructions),
            flops=2.0 * size**3, clock_mhz=row["sm_clock_mhz"], lines=looked_up,
        )
        show(busiest_figure.draw(
            times, seconds=row["seconds"],
            evidence=f"modelled: {RECORDED_ON} rates × {records.label(self.record)}, {size:,}³",
        ))

    def ablation(
        self, *steps: str, since: str, size: int = 4096, least: float = 0.0,
        of_rival: bool = False,
    ) -> None:
        """Draw what each of some variants added to the one before it, beside what was predicted.

        Parameters
        ----------
        *steps : str
            Variants of this version, each the one before it and something more.
        since : str
            Stem of the version that it starts from.
        size : int
            M = N = K.
        least : float
            Where the scale begins, TFLOP/s, or % of cuBLAS.
        of_rival : bool
            Draw % of cuBLAS in the same run in place of TFLOP/s: where the chip's clock falls as it
            gets hot, speeds of different runs say more of the order of the runs than of the steps.
        """
        def speed(row: Mapping[str, Any]) -> float:
            return 100 * row["ratio"] if of_rival else row["tflops"]

        start = type(self)(since)
        first = speed(start.recorded(size))
        expected = predictions.PREDICTIONS.get(self.kernel.stem, {})
        rows, before = [], first
        for name in steps:
            row, guess = self.recorded(size, name), expected.get(name)
            rows.append(ablation_figure.Step(
                name, speed(row), before * (1 + guess.gain) if guess else None
            ))
            before = speed(row)
        show(ablation_figure.draw(
            ablation_figure.Step(rung(start.kernel), first), rows,
            evidence=f"{records.label(self.record)}, {size:,}³", least=least,
            limit=("cuBLAS", 100.0 if of_rival else row["cublas_tflops"]),
            note=f"outlines {predictions.label()}",
            unit="% of cuBLAS" if of_rival else "TFLOP/s",
        ))

    def slots(self, variant: str | None = None, size: int = 4096) -> slots_of.Slots:
        """Say what became of the issue slots in the recorded run of a variant."""
        return slots_of.slots(self.metrics(size, variant), self.record["gpu"]["sms"])

    def peak(self, *variants: str, above: Sequence[str] = (), size: int = 4096) -> None:
        """Draw what became of the issue slots: of versions before, of cuBLAS and of some variants.

        Parameters
        ----------
        *variants : str
            The first if none is named.
        above : sequence of str
            Stems of other versions to draw above.
        size : int
            M = N = K.
        """
        rows = {}
        for stem in above:
            page = type(self)(stem)
            rows[rung(page.kernel)] = page.slots(size=size)
        rows["cuBLAS"] = rival_slots(size)
        for name in variants or (self.kernel.variants[0].name,):
            rows[f"{self.kernel.stem[:2]} {name}"] = self.slots(name, size)
        show(slots_figure.draw(
            rows, evidence=f"{records.label(self.record)}, ncu, {size:,}³"
        ))

    def sweep(self, fixed: str) -> None:
        """Draw the recorded ratio to cuBLAS over all shapes, the tile that was taken for each.

        Parameters
        ----------
        fixed : str
            The variant to compare with: its tile, whatever the shape.
        """
        tuned = self.kernel.variants[0]
        kept = self.record["variants"]
        others = {_shape(row): row["ratio"] for row in kept[fixed]["bench"]}
        rows = []
        for row in kept[tuned.name]["bench"]:
            launched = self.launched(row) or tuned
            rows.append(
                by_shape.Shape(_shape(row), row["ratio"], launched.name, others[_shape(row)])
            )
        show(by_shape.draw(rows, fixed=fixed, evidence=records.label(self.record)))


def _shape(row: Mapping[str, Any]) -> str:
    return f"{row['M']}×{row['N']}×{row['K']}"


def rival_slots(size: int) -> slots_of.Slots:
    """Say what became of the issue slots in the recorded run of cuBLAS, FP32."""
    record = records.load(RECORDED_ON, records.CUBLAS)
    if record is None:
        raise records.NotRecorded("cuBLAS has no record: python -m lib record cublas")
    kept = record["variants"]["fp32"]["counters"]
    metrics = next(row["metrics"] for row in kept if row["M"] == size)
    return slots_of.slots(metrics, record["gpu"]["sms"])
