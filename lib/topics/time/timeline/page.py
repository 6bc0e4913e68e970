"""What warps do, cycle by cycle: timelines, and what is read off them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lib import gpus
from lib.kernels.build import compile_kernel
from lib.kernels.spec import Variant
from lib.plotting.display import both, once_recorded, table
from lib.records.schema import Timeline, mhz
from lib.run import device
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.time.timeline import figure as timeline_figure
from lib.topics.time.timeline import model as phases_of
from lib.topics.version import RECORDED_ON, TIMED, Version, short_name

# How much of a timeline is drawn, cycles: more than one step of any version, and still readable.
WINDOW = 6000.0


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


def draw(
    version: Version, *variants: str, with_previous: bool = False, above: Sequence[str] = (),
    cycles: float = WINDOW, title: str | None = None, since: float = 0.0,
) -> None:
    """Draw what some warps of one SM do, cycle by cycle: marks measured inside the kernel.

    Parameters
    ----------
    with_previous : bool
        Draw the version before above it, on the same scale.
    above : sequence of str
        Stems of other versions to draw above it.
    cycles : float
        How much of the time to draw.
    title : str, optional
        The finding, in place of the share of the time in the inner loop.
    since : float
        Where the drawn time begins, cycles after the first mark.
    """
    if with_previous and version.before:
        above = (*above, version.before.kernel.stem)
    rows = [of_variant(*row) for row in version.rows(variants, above)]
    evidence = f"{version.timed_on(variants, above, timelines=True)}, {TIMED:,}³"
    both(timeline_figure.draw, rows, evidence=evidence, window=(since, since + cycles), title=title)


@once_recorded()
def phases(version: Version, *variants: str, above: Sequence[str] = ()) -> None:
    """Display the share of the warps' time in each phase, and what a tile costs the SM.

    An SM works on several blocks at once. So what a tile costs it is all its cycles, without
    marks, over all tiles that it works on.
    """
    names = ("load", "wait", "compute", "barrier")
    rows = []
    for page, variant in version.rows(variants, above):
        one = of_variant(page, variant)
        sms = device.sms() if page.measures(variant) else gpus.GPUS[RECORDED_ON].sms
        spans = [
            span for _, warps in one.blocks for span in phases_of.phases(one.events, warps)
        ]
        shares = phases_of.parts(spans, names, (0.0, float("inf")))
        if one.total_blocks is None:
            raise ValueError(f"the timeline of {one.name} has no count of blocks")
        tiles = one.total_blocks * -(-TIMED // variant.step) / sms
        cycles = one.seconds_without * one.clock_hz / tiles
        rows.append((one.name, *(f"{shares.get(name, 0.0):.0%}" for name in names),
                     f"{cycles:,.0f}"))
    table(("warps' time", "load", "wait", "inner loop", "barrier", "SM cycles per tile"), rows,
          f"{version.timed_on(variants, above, timelines=True)}, {TIMED:,}³; shares from marks in "
          "the kernel, cycles without")


def marked(version: Version, variant: str | None = None) -> Marked:
    """Say how far a timeline is that of another kernel: marks take registers and time."""
    chosen = version.kernel.variant(variant)
    gpu = gpus.GPUS[RECORDED_ON]
    used = [
        compile_kernel(version.kernel, chosen, gpu.arch, timeline=marks).resources
        for marks in (False, True)
    ]
    fit = [occupancy(gpu, r.registers, r.shared_bytes, chosen.threads).blocks for r in used]
    times = version.reader.timeline(chosen.name)
    return Marked(
        used[0].registers, used[1].registers, fit[0], fit[1],
        times.seconds_with / times.seconds_without - 1,
    )


def step_cycles(version: Version, variant: str | None = None) -> Mapping[str, float]:
    """Mean cycles of a warp in each phase of a step, in the recorded timeline's first block."""
    return phases_of.recorded_step(version.reader.timeline(version.kernel.variant(variant).name))


def of_variant(version: Version, variant: Variant) -> timeline_figure.Version:
    """The timeline of a variant: measured where a GPU here can run it, else recorded."""
    live = version.measuring(variant)
    if live is None:
        return as_recorded(version, variant)
    marks = live.timeline(version.kernel, variant, variant.problem(TIMED, TIMED, TIMED))
    return _named(version, variant, marks, mhz(version.timed(variant, TIMED).clock))


def as_recorded(version: Version, variant: Variant) -> timeline_figure.Version:
    """The recorded timeline of a variant."""
    clock = mhz(version.recorded(TIMED, variant.name).clock)
    return _named(version, variant, version.reader.timeline(variant.name), clock)


def _named(
    version: Version, variant: Variant, marks: Timeline, clock: float | None
) -> timeline_figure.Version:
    """A timeline by its marks and the SM clock, MHz."""
    name = short_name(version.kernel)
    if len(version.kernel.variants) > 1 or variant is not version.kernel.variants[0]:
        name += f", {variant.name}"
    return of_marks(
        name, marks, clock * 1e6 if clock else gpus.GPUS[RECORDED_ON].clock_hz,
        roles=variant.roles.warps, stages=variant.roles.stages,
    )


def of_marks(
    name: str,
    timeline: Timeline,
    clock_hz: float,
    *,
    blocks: Sequence[int] | None = None,
    roles: Sequence[tuple[str, int]] = (),
    stages: int = 0,
) -> timeline_figure.Version:
    """What the figure needs of marks.

    Parameters
    ----------
    name : str
        The version, as the figure should call it.
    timeline : Timeline
    clock_hz : float
        The SM clock of that run.
    blocks : sequence of int, optional
        Positions in ``timeline.blocks`` to show, all of one SM; by default the first two.
    roles : sequence of (str, int)
        What the warps do, in order: ``(("consumer", 8), ("producer", 4))``.
    stages : int
        Of the ring, as in `Version`.

    Raises
    ------
    ValueError
        If the record holds no block.
    """
    recorded = timeline.blocks
    if not recorded:
        raise ValueError(f"the timeline of {name} holds no block")
    if blocks is None:
        blocks = range(min(2, len(recorded)))
    return timeline_figure.Version(
        name,
        timeline.events,
        [(f"block {recorded[i].block}",
          phases_of.without_other_lanes(timeline.events, recorded[i].warps)) for i in blocks],
        clock_hz,
        timeline.overview,
        timeline.total_blocks,
        timeline.warps,
        recorded[blocks[0]].block,
        tuple(roles),
        stages,
        timeline.mark_cycles,
        timeline.seconds_with,
        timeline.seconds_without,
    )
