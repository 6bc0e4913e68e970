"""From marks inside a kernel to phases of its warps, and from block times to residency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import gpus
from lib.kernels.spec import Variant
from lib.records.schema import Timeline, mhz
from lib.show import chart as style
from lib.show import ring
from lib.show.display import both
from lib.show.pipelines import Span
from lib.show.ring import Mark
from lib.show.version import RECORDED_ON, TIMED, Version, short_name


@dataclass(frozen=True)
class Phase:
    """A warp in one phase, from one mark to the next.

    Attributes
    ----------
    warp : int
        Row of the warp.
    event : str
        What the first mark says the warp begins.
    start, end : float
        Cycles.
    """

    warp: int
    event: str
    start: float
    end: float


def phases(events: Sequence[str], warps: Sequence[Sequence[Mark]]) -> list[Phase]:
    """Return the phases of some warps.

    Parameters
    ----------
    events : sequence of str
        Names of the events.
    warps : sequence of sequence of (event, cycle)
        Each warp's marks in time; `event` is an index into `events`, or a name. A mark begins a
        phase that lasts to the warp's next mark, so the last one only closes the phase before it;
        a mark named ``"end"`` does the same anywhere.

    Raises
    ------
    ValueError
        If a warp's marks run backwards.
    """
    found = []
    for warp, marks in enumerate(warps):
        for (event, start), (_, end) in zip(marks, marks[1:], strict=False):
            if end < start:
                raise ValueError(f"warp {warp}: a mark at {end} follows one at {start}")
            name = events[event]
            if end > start and name != "end":
                found.append(Phase(warp, name, float(start), float(end)))
    return found


def without_other_lanes(events: Sequence[str], warps: Sequence[Sequence[Mark]]) -> list[list[Mark]]:
    """Leave out what lanes wrote over a warp's first mark.

    Where one lane of a warp works and the others do not, as in the producer of 17, these come to
    the end first, and their closing mark takes the place of the working lane's first one. It is an
    ``"end"`` before all others.
    """
    return [list(marks[1:] if len(marks) > 1 and events[marks[0][0]] == "end" else marks)
            for marks in warps]


def share(
    spans: Sequence[Phase], events: Sequence[str], edges: np.ndarray, warps: int
) -> np.ndarray:
    """Return the mean share of warps in each phase between neighbouring `edges`.

    Parameters
    ----------
    spans : sequence of Phase
    events : sequence of str
        The rows of the result.
    edges : ndarray, shape (bins + 1,)
        Ascending, cycles.
    warps : int
        What counts as a whole.

    Returns
    -------
    ndarray, shape (events, bins)
        0 to 1. Columns sum to less than 1 where a warp has not begun or has ended.
    """
    edges = np.asarray(edges, dtype=float)
    total = np.zeros((len(events), len(edges) - 1))
    rows = {event: row for row, event in enumerate(events)}
    for span in spans:
        if span.event in rows:
            overlap = np.minimum(span.end, edges[1:]) - np.maximum(span.start, edges[:-1])
            total[rows[span.event]] += np.clip(overlap, 0, None)
    return total / (np.diff(edges) * warps)


def parts(
    spans: Sequence[Phase], events: Sequence[str], window: tuple[float, float]
) -> dict[str, float]:
    """Return each event's part of the time that the marks account for, 0 to 1.

    Parameters
    ----------
    spans : sequence of Phase
    events : sequence of str
        What counts. Time in other phases (steps that a kernel leaves unmarked, a warp that has
        ended) is no part of the whole.
    window : (first, last)
        Cycles to look at.

    Returns
    -------
    dict of str to float
        Only events that occur in the window; their parts sum to 1.
    """
    cycles = dict.fromkeys(events, 0.0)
    for span in spans:
        if span.event in cycles:
            cycles[span.event] += max(0.0, min(span.end, window[1]) - max(span.start, window[0]))
    total = sum(cycles.values())
    return {event: value / total for event, value in cycles.items() if value > 0}


def at_work(spans: Sequence[Phase], window: tuple[float, float]) -> float:
    """Return the share of a stretch of time in which at least one warp is in the inner loop.

    Parameters
    ----------
    spans : sequence of Phase
    window : (first, last)
        In the spans' unit.
    """
    total, until = 0.0, window[0]
    for start, end in sorted((span.start, span.end) for span in spans if span.event == "compute"):
        end = min(end, window[1])
        if end > until:
            total, until = total + end - max(start, until), end
    return total / (window[1] - window[0])


def recorded_until(overview: Sequence[Sequence[float]], total: int | None) -> float:
    """Return up to when an overview tells all that ran, in seconds from the first block's start.

    Parameters
    ----------
    overview : sequence of (sm, start_ns, end_ns)
        One a block, in the order of their numbers.
    total : int or None
        Blocks of the kernel. If there are more than recorded, the others began after the last
        recorded one did, so that the overview is whole up to there; None means it is whole.
    """
    first = min(start for _, start, _ in overview)
    if total is None or total <= len(overview):
        return (max(end for _, _, end in overview) - first) * 1e-9
    return (max(start for _, start, _ in overview) - first) * 1e-9


def residency(
    overview: Sequence[Sequence[float]], bins: int = 200, *, until: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many blocks run at once over the kernel.

    Parameters
    ----------
    overview : sequence of (sm, start_ns, end_ns)
        One a block.
    bins : int
        Samples over the kernel's time.
    until : float, optional
        Seconds after the first block's start at which to stop; the last end if not given.

    Returns
    -------
    seconds : ndarray, shape (bins,)
        Middle of each bin, from the first block's start.
    blocks : ndarray, shape (bins,)
        Mean number of blocks running in the bin.
    """
    times = np.asarray([(start, end) for _, start, end in overview], dtype=float) * 1e-9
    times -= times[:, 0].min()
    edges = np.linspace(0, until or times[:, 1].max(), bins + 1)
    # Block-seconds run before t, exactly, for all edges at once: sums over sorted starts and ends.
    before = _elapsed(times[:, 0], edges) - _elapsed(times[:, 1], edges)
    return (edges[:-1] + edges[1:]) / 2, np.diff(before) / np.diff(edges)


def _elapsed(moments: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Sum over moments of max(0, at - moment)."""
    moments = np.sort(moments)
    sums = np.concatenate([[0.0], np.cumsum(moments)])
    count = np.searchsorted(moments, at)
    return count * at - sums[count]


_LEFT, _WIDTH, _NARROW_WIDTH = 57.0, 447.0, 189.0
_HEAD, _KEY, _BAND, _AXIS, _OVERVIEW, _BLOCK_GAP = 17.0, 15.0, 42.0, 24.0, 60.0, 6.0
_BETWEEN = 12.0
_LINE = 13.0  # of words
_FLIGHT = 34.0  # tiles in flight, where there is a ring

# What a phase is called where not as its mark: "compute" would hide that a warp also
# waits there, for shared memory.
_NAMES = {"compute": "inner loop"}
_LONGER = 1.1  # more than the clock of marks and the GPU's timer differ by
_LEAST = 1.5  # pt: how high a few blocks among many are drawn

# A phase is told apart by its height as well as by its colour, so that grey print works too.
_HEIGHTS = {"compute": 1.0, "load": 0.72, "store": 0.72, "wait": 0.3, "barrier": 0.3}


@dataclass(frozen=True)
class Shown:
    """The timeline of one kernel version.

    Attributes
    ----------
    name : str
    events : sequence of str
        Names of the marks' events.
    blocks : sequence of (label, warps)
        Blocks resident on one SM; `warps` holds each warp's marks as (event, cycle).
    clock_hz : float
        SM clock, to write cycles as time.
    overview : sequence of (sm, start_ns, end_ns)
        The blocks of the kernel, or the first of them; empty if not recorded.
    total_blocks : int or None
        Blocks of the kernel, where `overview` holds only the first.
    total_warps : int or None
        Warps of a block, where only the first are recorded.
    shown : int
        Index into `overview` of the first of `blocks`.
    roles : sequence of (str, int)
        What the warps of a block do, and how many of them, in order: ``("consumer", 8)``; empty
        where all do the same.
    stages : int
        Of the ring between producer and consumers, whose tiles in flight are then drawn; 0 where
        there is none.
    mark_cycles : float
        What one mark costs.
    seconds_with, seconds_without : float
        The kernel's time with and without marks; 0 if not recorded.
    idle : int
        Warps at a block's end that mark nothing and have no row.
    """

    name: str
    events: Sequence[str]
    blocks: Sequence[tuple[str, Sequence[Sequence[Mark]]]]
    clock_hz: float
    overview: Sequence[Sequence[float]] = field(default_factory=tuple)
    total_blocks: int | None = None
    total_warps: int | None = None
    shown: int = 0
    roles: Sequence[tuple[str, int]] = field(default_factory=tuple)
    stages: int = 0
    mark_cycles: float = 0.0
    seconds_with: float = 0.0
    seconds_without: float = 0.0
    idle: int = 0


def _extent(warps: Sequence[Sequence[Mark]]) -> tuple[float, float]:
    cycles = [cycle for marks in warps for _, cycle in marks]
    return min(cycles), max(cycles)


@style.styled
def picture(
    versions: Sequence[Shown], *, evidence: str, window: tuple[float, float],
    narrow: bool = False,
) -> Figure:
    """Draw one version, or several on one scale of cycles for before and after.

    Parameters
    ----------
    versions : sequence of Shown
    window : (first, last)
        Cycles since the first mark shown.
    """
    wide = _NARROW_WIDTH if narrow else _WIDTH
    spans = [_spans(one) for one in versions]
    versions = [_without_idle(one, mine) for one, mine in zip(versions, spans, strict=True)]
    heights = [_height(one, window, narrow) for one in versions]
    tall = sum(heights) + _BETWEEN * (len(heights) - 1)
    shares = [
        parts([span for _, rows in mine for span in _working(one, rows)], tuple(style.PHASE),
              window)
        for one, mine in zip(versions, spans, strict=True)
    ]
    fig, ax = style.canvas(_finding(versions, shares), tall, narrow)
    top = tall
    for one, mine, mean, height in zip(versions, spans, shares, heights, strict=True):
        _version(ax, top, one, mine, mean, window, wide)
        top -= height + _BETWEEN
    return style.finish(fig, alt=_alt(versions, shares, window), evidence=evidence,
                        note=_cost(versions))


def _spans(one: Shown) -> list[tuple[str, list[Phase]]]:
    """Phases of each block, in cycles since the first mark of the first one."""
    begin = min(_extent(warps)[0] for _, warps in one.blocks)
    shifted = [
        (label, [[(event, cycle - begin) for event, cycle in marks] for marks in warps])
        for label, warps in one.blocks
    ]
    return [(label, [*_turns(one, warps), *phases(one.events, warps)]) for label, warps in shifted]


def _turns(one: Shown, warps: Sequence[Sequence[Mark]]) -> list[Phase]:
    """What warps of the first role wait until their first mark: for their turn at the tiles.

    Consumers that take turns mark nothing before theirs comes. Without that wait their share of
    the time in the inner loop would be that of the ones who work.
    """
    if not one.roles or "wait" not in one.events:
        return []
    first = [marks[0][1] if marks else None for marks in warps[:one.roles[0][1]]]
    begin = min((at for at in first if at is not None), default=0.0)
    return [Phase(warp, "wait", begin, at) for warp, at in enumerate(first)
            if at is not None and at > begin]


def _without_idle(one: Shown, mine: list[tuple[str, list[Phase]]]) -> Shown:
    """Which last warps no phase is marked in: those beside a producer's, which have no row."""
    if not one.roles:
        return one
    busy = max((span.warp + 1 for _, rows in mine for span in rows), default=1)
    return replace(one, idle=max(min(len(warps) for _, warps in one.blocks) - busy, 0))


def _warps(one: Shown) -> int:
    return sum(len(warps) - one.idle for _, warps in one.blocks)


def _working(one: Shown, rows: Sequence[Phase]) -> list[Phase]:
    """Phases of the warps that compute: those of the first role, or all."""
    return [span for span in rows if not one.roles or span.warp < one.roles[0][1]]


def _workers(one: Shown) -> int:
    """How many warps of all blocks compute."""
    largest = one.roles[0][1] if one.roles else None
    return sum(len(warps[:largest]) for _, warps in one.blocks)


def _doing(one: Shown) -> str:
    """Who it is whose shares are shown."""
    return one.roles[0][0] if one.roles else "warps"


def _row(one: Shown) -> float:
    return float(np.clip(190.0 / _warps(one), 4.0, 11.0))


def _height(one: Shown, window: tuple[float, float], narrow: bool) -> float:
    rows = _row(one) * _warps(one) + _BLOCK_GAP * (len(one.blocks) - 1)
    said = _LINE * (len(_remarks(one)) + bool(one.roles)) + _KEY if narrow else 0.0
    return (_HEAD + said + _KEY + _AXIS + rows + _BAND + _AXIS + 8
            + _OVERVIEW * _tells(one, window)
            + _FLIGHT * bool(one.stages))


def _remarks(one: Shown) -> list[str]:
    """What of the kernel the rows are."""
    shown = max(len(warps) for _, warps in one.blocks)
    remarks = [", ".join(label for label, _ in one.blocks)] if one.roles else []
    if one.total_warps and shown < one.total_warps:
        remarks.append(f"the first {shown} of {one.total_warps} warps")
    if _has_gaps(one):
        remarks.append("gaps: steps not marked")
    return remarks


def _version(
    ax: Axes, top: float, one: Shown, mine: list[tuple[str, list[Phase]]],
    mean: Mapping[str, float], window: tuple[float, float], wide: float,
) -> None:
    narrow = wide < _WIDTH
    scale = wide / (window[1] - window[0])

    def x_of(cycle: float) -> float:
        return _LEFT + (min(max(cycle, window[0]), window[1]) - window[0]) * scale

    # On a phone a long name is a little smaller, never under the smallest of a page's letters.
    fits = max(style.SMALL, style.LARGE * min(1.0, 32 / len(one.name))) if narrow else style.LARGE
    ax.text(0, top - 13, one.name, size=fits, weight="bold", va="bottom")
    remarks = _remarks(one)
    if one.roles:
        busy = at_work([span for _, rows in mine for span in _working(one, rows)], window)
        remarks.append(f"a {_doing(one).removesuffix('s')} multiplies {style.percent(busy)} "
                       "of the time")
    if narrow:
        for remark in remarks:
            ax.text(0, top - 13 - _LINE, remark, va="bottom")
            top -= _LINE
    else:
        ax.text(_LEFT + wide, top - 12, "; ".join(remarks), ha="right", va="bottom")
    y = top - _HEAD - _KEY * (1 + narrow)
    _key(ax, y + 3, mean, wide)
    y -= _AXIS
    _axis(ax, y, window, x_of, 1e6 / one.clock_hz, "µs", wide, above=True)
    row = _row(one)
    for number, ((label, rows), (_, warps)) in enumerate(zip(mine, one.blocks, strict=True)):
        y -= _BLOCK_GAP * (number > 0)
        bottom = y - row * (len(warps) - one.idle)
        if one.roles:
            _roles(ax, y, one, len(warps) - one.idle, row, wide)
        else:
            ax.text(0, (y + bottom) / 2, label, rotation=90, ha="left", va="center")
            for warp in {0, len(warps) - 1}:
                text = f"warp {warp}" if row * len(warps) > 60 or warp == 0 else ""
                ax.text(_LEFT - 4, y - row * (warp + 0.5), text, ha="right", va="center_baseline")
        for event, colour in style.PHASE.items():
            tall = max(row - 0.8, 1.0) * _HEIGHTS[event]
            style.rectangles(
                ax,
                [
                    (x_of(s.start), y - row * s.warp - row / 2 - tall / 2,
                     x_of(s.end) - x_of(s.start), tall)
                    for s in rows
                    if s.event == event and s.end > window[0] and s.start < window[1]
                ],
                facecolor=colour,
            )
        y = bottom
    y -= 8
    if one.stages:
        _flight(ax, y - _FLIGHT + 6, one, window, x_of, wide)
        y -= _FLIGHT
    _band(ax, y - _BAND, one, mine, window, wide)
    y -= _BAND
    _axis(ax, y, window, x_of, 1.0, "cycles", wide, above=False)
    y -= _AXIS
    if _tells(one, window):
        _overview(ax, y - _OVERVIEW + 24, one, window, wide)


def _roles(ax: Axes, top: float, one: Shown, warps: int, row: float, wide: float) -> None:
    """Name the warps by what they do, with a line between the roles."""
    first = 0
    for name, count in one.roles:
        count = min(count, warps - first)
        if count <= 0:
            return
        ax.text(_LEFT - 4, top - row * (first + count / 2), name, ha="right", va="center")
        first += count
        if first < warps:
            y = top - row * first
            style.strokes(ax, [((0, y), (_LEFT + wide, y))], linewidth=0.6, alpha=0.5)


def _flight(
    ax: Axes, bottom: float, one: Shown, window: tuple[float, float],
    x_of: Callable[[float], float], wide: float,
) -> None:
    """Tiles that the first block has asked for and not begun to multiply, over time."""
    tall = _FLIGHT - 16
    workers = one.roles[0][1]
    warps = one.blocks[0][1]
    begin = min(_extent(each)[0] for _, each in one.blocks)
    tiles = ring.tiles(one.events, warps[workers], warps[:workers])
    edges = sorted({at - begin for tile in tiles for at in tile} | {*window})
    inside = [at for at in edges if window[0] <= at <= window[1]]
    points = []
    for left, right in zip(inside, inside[1:], strict=False):
        height = bottom + ring.in_flight(tiles, (left + right) / 2 + begin) / one.stages * tall
        points += [(x_of(left), height), (x_of(right), height)]
    if points:
        style.outline(ax, [(points[0][0], bottom), *points, (points[-1][0], bottom)],
                       closed=True, linewidth=0, facecolor=style.PHASE["load"])
    style.strokes(ax, [((_LEFT, bottom + tall), (_LEFT + wide, bottom + tall))], linewidth=0.5,
                   alpha=0.4)
    ax.text(_LEFT - 4, bottom + tall / 2, "stages\nin flight", ha="right", va="center",
            linespacing=1.05)
    ax.text(_LEFT + wide + 2, bottom + tall, f"{one.stages}", ha="left", va="center")


def _has_gaps(one: Shown) -> bool:
    """Whether a kernel leaves stretches unmarked, to keep the marks' own cost low."""
    return any(one.events[event] == "end"
               for _, warps in one.blocks for marks in warps for event, _ in marks[:-1])


def _key(ax: Axes, y: float, mean: Mapping[str, float], wide: float) -> None:
    """The phases and the share of the warps' time that each takes: legend and finding in one."""
    narrow = wide < _WIDTH
    x, y = (0.0, y + _KEY) if narrow else (_LEFT, y)
    for event, value in mean.items():
        if value < 5e-4:
            continue
        text = f"{_NAMES.get(event, event)} {style.percent(value)}"
        if narrow and x + 11 + 6.2 * len(text) > _LEFT + wide:
            x, y = 0.0, y - _KEY
        style.rectangles(ax, [(x, y, 8, 8 * _HEIGHTS[event])], facecolor=style.PHASE[event])
        ax.text(x + 11, y - 1, text, va="bottom")
        x += 11 + 1.04 * style.text_width(text, style.SMALL) + 12


def _axis(
    ax: Axes, y: float, window: tuple[float, float], x_of: Callable[[float], float],
    factor: float, unit: str, wide: float, above: bool,
) -> None:
    ticks = _ticks(window[0] * factor, window[1] * factor, 8 if wide == _WIDTH else 4)
    side = 1 if above else -1
    va = "bottom" if above else "top"
    style.strokes(ax, [((_LEFT, y), (_LEFT + wide, y))] + [
        ((x_of(t / factor), y), (x_of(t / factor), y + 3 * side)) for t in ticks], linewidth=0.6)
    for tick in ticks:
        x = x_of(tick / factor)
        ha = "left" if x < _LEFT + 12 else "right" if x > _LEFT + wide - 14 else "center"
        ax.text(x, y + 5 * side, f"{tick:,.9g}", ha=ha, va=va)
    ax.text(_LEFT - 4, y + 5 * side, unit, ha="right", va=va)


def _ticks(low: float, high: float, limit: int = 8) -> list[float]:
    """Round numbers between two bounds, about `limit` at most."""
    step = 10.0 ** np.floor(np.log10((high - low) / 5))
    step *= next(m for m in (1, 2, 5, 10, 20) if (high - low) / (step * m) <= limit)
    return [round(i * step, 9) for i in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _band(
    ax: Axes, bottom: float, one: Shown, mine: list[tuple[str, list[Phase]]],
    window: tuple[float, float], wide: float,
) -> None:
    """The share of warps in each phase over time, stacked."""
    bins = 150
    every = [span for _, rows in mine for span in _working(one, rows)]
    shares = share(every, one.events, np.linspace(*window, bins + 1), _workers(one))
    step = wide / bins
    under = np.zeros(bins)
    for event in ("compute", "load", "store", "barrier", "wait"):
        if event not in one.events:
            continue
        part = shares[list(one.events).index(event)]
        if not part.any():
            continue
        lower = style.steps(_LEFT, step, bottom + under * _BAND)
        under = under + part
        upper = style.steps(_LEFT, step, bottom + under * _BAND)
        style.outline(ax, [*upper, *reversed(lower)], closed=True, linewidth=0,
                       facecolor=style.PHASE[event])
        # An edge of ink keeps neighbours apart where print is grey.
        style.outline(ax, upper, edgecolor=style.INK, linewidth=0.7, alpha=0.8)
    text = f"share of\n{one.roles[0][0]}" if one.roles else "share\nof warps"
    ax.text(_LEFT - 4, bottom + _BAND / 2, text, ha="right", va="center", linespacing=1.05)


def _tells(one: Shown, window: tuple[float, float]) -> bool:
    """Whether blocks running over time say something.

    Nothing where thread 0 notes a block's end and other warps go on, or where the blocks that are
    noted all begin at once: these say nothing of the time that is drawn above.
    """
    return bool(one.overview) and not _outlasted(one) and (
        recorded_until(one.overview, one.total_blocks) >= (window[1] - window[0]) / one.clock_hz)


def _overview(
    ax: Axes, bottom: float, one: Shown, window: tuple[float, float], wide: float
) -> None:
    """The whole kernel: blocks running over time, and where the rows above are from."""
    end = recorded_until(one.overview, one.total_blocks)
    seconds, blocks = residency(one.overview, bins=160, until=end)
    start = min(block[1] for block in one.overview)
    tall = 26.0
    scale = wide / end
    # A few blocks that outlast the others are seen, too.
    heights = np.where(blocks > 0, np.maximum(blocks / blocks.max() * tall, _LEAST), 0.0)
    step = wide / len(seconds)
    style.outline(
        ax, [(_LEFT, bottom), *style.steps(_LEFT, step, bottom + heights), (_LEFT + wide, bottom)],
        closed=True, linewidth=0, facecolor=style.OTHER, alpha=0.5)
    style.strokes(ax, [((_LEFT, bottom), (_LEFT + wide, bottom))], linewidth=0.6)
    ax.text(_LEFT - 4, bottom + tall / 2, "blocks\nrunning", ha="right", va="center",
            linespacing=1.05)
    narrow = wide < _WIDTH
    if not narrow:
        ax.text(_LEFT, bottom - 3, "0", va="top")
    total = one.total_blocks or len(one.overview)
    what = f"the whole kernel, {total:,} blocks"
    if total > len(one.overview):
        what = f"the first {len(one.overview):,} of {total:,} blocks"
    ax.text(_LEFT + wide, bottom - 3, f"{style.duration(end)}: {what}"
                                      + f", at most {blocks.max():,.0f} at once" * (not narrow),
            ha="right", va="top")
    if one.shown >= len(one.overview):
        return
    zoom = [
        (one.overview[one.shown][1] - start) * 1e-9 + cycle / one.clock_hz for cycle in window
    ]
    x, width = _LEFT + zoom[0] * scale, max((zoom[1] - zoom[0]) * scale, 1.6)
    style.rectangles(ax, [(x, bottom, width, tall + 5)], facecolor=style.FOCUS)
    text = f"shown above, {style.duration(zoom[1] - zoom[0])}"
    room = style.text_width(text, style.SMALL) + 4
    if x < _LEFT + wide / 2 and x + width + room <= _LEFT + wide:
        ax.text(x + width + 4, bottom + tall + 1, text, va="bottom")
    elif x >= room:
        ax.text(x - 4, bottom + tall + 1, text, ha="right", va="bottom")
    else:  # most of the kernel: there is room within
        ax.text(x + width / 2, bottom + (tall + 5) / 2, text, ha="center", va="center",
                color=style.on(style.FOCUS))


def _outlasted(one: Shown) -> bool:
    """Whether warps of a drawn block go on after its thread 0, which notes the end, is done."""
    if one.shown >= len(one.overview):
        return False
    _, first, last = one.overview[one.shown]
    begin, end = _extent(one.blocks[0][1])
    return (end - begin) / one.clock_hz > _LONGER * (last - first) * 1e-9


def _finding(versions: Sequence[Shown], shares: Sequence[Mapping[str, float]]) -> str:
    if len(versions) > 1:
        heads = {one.name.rpartition(", ")[0] for one in versions}
        version = heads.pop() + ", " if len(heads) == 1 else ""  # of variants, said once
        first, *others = [
            f"{style.percent(mean.get('compute', 0.0))} {{}}in {one.name.removeprefix(version)}"
            for one, mean in zip(versions, shares, strict=True)
        ]
        text = f"{_doing(versions[-1])} are in the inner loop for {first.format('of the time ')}, "
        text = f"{version[:-2]}: {text}" if version[:-2] else text[0].upper() + text[1:]
        return text + ", ".join(other.format("") for other in others)
    idle = {event: value for event, value in shares[0].items() if event != "compute"}
    worst = max(idle, key=lambda event: idle[event], default="")
    doing = {"load": "loading", "wait": "waiting", "barrier": "at barriers", "store": "storing"}
    share_of = style.percent(shares[0].get("compute", 0.0))
    text = f"{_doing(versions[0]).capitalize()} are in the inner loop for {share_of} of the time"
    return f"{text} and spend {style.percent(idle[worst])} {doing[worst]}" if worst else text


def _cost(versions: Sequence[Shown]) -> str:
    one = versions[-1]
    if not one.mark_cycles:
        return ""
    text = f"a mark costs {style.number(one.mark_cycles, 2)} cycles"
    if one.seconds_with and one.seconds_without:
        slower = [
            max(v.seconds_with / v.seconds_without - 1, 0.0) for v in versions if v.seconds_without
        ]
        if len(slower) == 1:
            text += f"; with marks +{style.percent(slower[0])} time"
        else:
            text += f"; with marks +{min(slower):.0%} to +{max(slower):.0%}"
    return text


def _alt(
    versions: Sequence[Shown], shares: Sequence[Mapping[str, float]], window: tuple[float, float]
) -> str:
    parts = [
        f"{one.name}: {_warps(one)} warps of {style.plural(len(one.blocks), 'block')} over cycles "
        f"{window[0]:,.0f} to {window[1]:,.0f}; share of the {_doing(one)}' time: "
        + ", ".join(f"{_NAMES.get(event, event)} {style.percent(value)}"
                    for event, value in mean.items())
        + "."
        for one, mean in zip(versions, shares, strict=True)
    ]
    return " ".join([*parts, f"{_cost(versions).capitalize()}." if _cost(versions) else ""]).strip()


# How much of a timeline is drawn, cycles: more than one step of any version, and still readable.
WINDOW = 6000.0


def draw(
    version: Version, *variants: str, with_previous: bool = False, above: Sequence[str] = (),
    cycles: float = WINDOW, since: float = 0.0,
) -> None:
    """Draw what some warps of one SM do, cycle by cycle: marks measured inside the kernel.

    Parameters
    ----------
    with_previous : bool
        Draw the version before above it, on the same scale.
    cycles : float
        How much of the time to draw.
    since : float
        Where the drawn time begins, cycles after the first mark.
    """
    if with_previous and version.before:
        above = (*above, version.before.kernel.stem)
    rows = [of_variant(*row) for row in version.rows(variants, above)]
    evidence = f"{version.timed_on(variants, above, timelines=True)}, {TIMED:,}³"
    both(picture, rows, evidence=evidence, window=(since, since + cycles))


def tiles_of(version: Version, variant: str, tiles: int) -> list[Span]:
    """What the first warp of a recorded block does over some tiles, from a wait's end on."""
    marks = version.reader.timeline(variant)
    warps = without_other_lanes(marks.events, marks.blocks[0].warps)
    mine = [one for one in phases(marks.events, warps) if one.warp == 0]
    waits = [i for i, one in enumerate(mine) if one.event == "wait"]
    # Not the first: the pipeline is filling, and other blocks begin.
    first, last = waits[len(waits) // 4], waits[len(waits) // 4 + tiles]
    begin = mine[first].end
    return [Span(one.event, one.start - begin, one.end - begin)
            for one in mine[first + 1:last + 1]]


def of_variant(version: Version, variant: Variant) -> Shown:
    """The timeline of a variant: measured where a GPU here can run it, else recorded."""
    live = version.measuring(variant)
    if live is None:
        return as_recorded(version, variant)
    marks = live.timeline(version.kernel, variant, variant.problem(TIMED, TIMED, TIMED))
    return _named(version, variant, marks, mhz(version.timed(variant, TIMED).clock))


def as_recorded(version: Version, variant: Variant) -> Shown:
    """The recorded timeline of a variant."""
    clock = mhz(version.recorded(TIMED, variant.name).clock)
    return _named(version, variant, version.reader.timeline(variant.name), clock)


def _named(
    version: Version, variant: Variant, marks: Timeline, clock: float | None
) -> Shown:
    """A timeline by its marks and the SM clock, MHz."""
    name = short_name(version.kernel)
    if len(version.kernel.variants) > 1 or variant is not version.kernel.variants[0]:
        name += f", {variant.name}"
    return of_marks(name, marks, clock * 1e6 if clock else gpus.GPUS[RECORDED_ON].clock_hz,
                    roles=variant.roles.warps, stages=variant.roles.stages)


def of_marks(
    name: str, timeline: Timeline, clock_hz: float, *, blocks: Sequence[int] | None = None,
    roles: Sequence[tuple[str, int]] = (), stages: int = 0,
) -> Shown:
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
        Of the ring, as in `Shown`.

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
    return Shown(
        name,
        timeline.events,
        [(f"block {recorded[i].block}",
          without_other_lanes(timeline.events, recorded[i].warps)) for i in blocks],
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
