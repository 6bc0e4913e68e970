"""What warps do, cycle by cycle: timelines, and what is read off them."""

from __future__ import annotations

from collections.abc import Sequence

from lib import gpus
from lib.kernels.spec import Variant
from lib.plotting.display import both
from lib.records.schema import Timeline, mhz
from lib.show.pipelines import Span
from lib.topics.time.timeline import figure as timeline_figure
from lib.topics.time.timeline import model as phases_of
from lib.topics.version import RECORDED_ON, TIMED, Version, short_name

# How much of a timeline is drawn, cycles: more than one step of any version, and still readable.
WINDOW = 6000.0


def draw(
    version: Version, *variants: str, with_previous: bool = False, above: Sequence[str] = (),
    cycles: float = WINDOW, title: str | None = None, since: float = 0.0,
) -> None:
    """Draw what some warps of one SM do, cycle by cycle: marks measured inside the kernel.

    Parameters
    ----------
    with_previous : bool
        Draw the version before above it, on the same scale.
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


def tiles_of(version: Version, variant: str, tiles: int) -> list[Span]:
    """What the first warp of a recorded block does over some tiles, from a wait's end on."""
    marks = version.reader.timeline(variant)
    warps = phases_of.without_other_lanes(marks.events, marks.blocks[0].warps)
    mine = [one for one in phases_of.phases(marks.events, warps) if one.warp == 0]
    waits = [i for i, one in enumerate(mine) if one.event == "wait"]
    # Not the first: the pipeline is filling, and other blocks begin.
    first, last = waits[len(waits) // 4], waits[len(waits) // 4 + tiles]
    begin = mine[first].end
    return [Span(one.event, one.start - begin, one.end - begin)
            for one in mine[first + 1:last + 1]]


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
    return of_marks(name, marks, clock * 1e6 if clock else gpus.GPUS[RECORDED_ON].clock_hz,
                    roles=variant.roles.warps, stages=variant.roles.stages)


def of_marks(
    name: str, timeline: Timeline, clock_hz: float, *, blocks: Sequence[int] | None = None,
    roles: Sequence[tuple[str, int]] = (), stages: int = 0,
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
