"""From marks inside a kernel to phases of its warps, and from block times to residency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

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


def recorded_until(overview: Sequence[Sequence[float]], total: int) -> float:
    """Return up to when an overview tells all that ran, in seconds from the first block's start.

    Parameters
    ----------
    overview : sequence of (sm, start_ns, end_ns)
        One a block, in the order of their numbers.
    total : int
        Blocks of the kernel. If there are more than recorded, the others began after the last
        recorded one did, so that the overview is whole up to there.
    """
    first = min(start for _, start, _ in overview)
    if total <= len(overview):
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
    """The timeline of one kernel version: the first two blocks of its marks.

    Attributes
    ----------
    name : str
    marks : Timeline
    clock_hz : float
        SM clock, to write cycles as time.
    roles : sequence of (str, int)
        What the warps of a block do, and how many of them, in order: ``("consumer", 8)``; empty
        where all do the same.
    stages : int
        Of the ring between producer and consumers, whose tiles in flight are then drawn; 0 where
        there is none.

    Raises
    ------
    ValueError
        If the marks are of no block.
    """

    name: str
    marks: Timeline
    clock_hz: float
    roles: Sequence[tuple[str, int]] = ()
    stages: int = 0

    def __post_init__(self) -> None:
        if not self.marks.blocks:
            raise ValueError(f"the timeline of {self.name} holds no block")

    @property
    def labels(self) -> list[str]:
        """What the blocks are called."""
        return [f"block {block.block}" for block in self.marks.blocks[:2]]

    @cached_property
    def blocks(self) -> list[list[list[Mark]]]:
        """The marks of each block's warps, in cycles since the first of all."""
        blocks = [without_other_lanes(self.marks.events, block.warps)
                  for block in self.marks.blocks[:2]]
        begin = min(cycle for warps in blocks for marks in warps for _, cycle in marks)
        return [[[(event, cycle - begin) for event, cycle in marks] for marks in warps]
                for warps in blocks]

    @cached_property
    def spans(self) -> list[list[Phase]]:
        """Phases of each block's warps."""
        return [[*self._turns(warps), *phases(self.marks.events, warps)] for warps in self.blocks]

    def _turns(self, warps: Sequence[Sequence[Mark]]) -> list[Phase]:
        """What warps of the first role wait until their first mark: for their turn at the tiles.

        Consumers that take turns mark nothing before theirs comes. Without that wait their share
        of the time in the inner loop would be that of the ones who work.
        """
        if not self.roles or "wait" not in self.marks.events:
            return []
        first = [marks[0][1] if marks else None for marks in warps[:self.workers]]
        begin = min((at for at in first if at is not None), default=0.0)
        return [Phase(warp, "wait", begin, at) for warp, at in enumerate(first)
                if at is not None and at > begin]

    @property
    def workers(self) -> int | None:
        """How many warps of a block compute: those of the first role; None if all do."""
        return self.roles[0][1] if self.roles else None

    @cached_property
    def working(self) -> list[Phase]:
        """Phases of the warps that compute."""
        return [span for spans in self.spans for span in spans
                if self.workers is None or span.warp < self.workers]

    @cached_property
    def rows(self) -> list[int]:
        """Warps of each block that have a row: not those beside a producer's, which mark nothing.
        """
        sizes = [len(warps) for warps in self.blocks]
        if not self.roles:
            return sizes
        busy = max((span.warp + 1 for spans in self.spans for span in spans), default=1)
        return [size - max(min(sizes) - busy, 0) for size in sizes]

    @property
    def row(self) -> float:
        """How high a row is, pt."""
        return float(np.clip(190.0 / sum(self.rows), 4.0, 11.0))

    @property
    def doing(self) -> str:
        """Who it is whose shares are shown."""
        return self.roles[0][0] if self.roles else "warps"

    @property
    def first(self) -> tuple[int, int, int] | None:
        """SM, start and end of the first block, ns; None where its times were not noted."""
        at, overview = self.marks.blocks[0].block, self.marks.overview
        return overview[at] if at < len(overview) else None

    @property
    def noted(self) -> float:
        """Up to when its overview tells all that ran, s."""
        return recorded_until(self.marks.overview, self.marks.total_blocks)

    @property
    def remarks(self) -> list[str]:
        """What of the kernel the rows are."""
        shown = max(map(len, self.blocks))
        remarks = [", ".join(self.labels)] if self.roles else []
        if shown < self.marks.warps:
            remarks.append(f"the first {shown} of {self.marks.warps} warps")
        # A kernel may leave stretches unmarked, to keep the marks' own cost low.
        if any(self.marks.events[event] == "end"
               for warps in self.blocks for marks in warps for event, _ in marks[:-1]):
            remarks.append("gaps: steps not marked")
        return remarks

    def tells(self, window: tuple[float, float]) -> bool:
        """Whether blocks running over time say something.

        Nothing where thread 0 notes a block's end and other warps go on, or where the blocks that
        are noted all begin at once: these say nothing of the time that is drawn above.
        """
        if self.first is not None:
            _, start, end = self.first
            cycles = [cycle for marks in self.blocks[0] for _, cycle in marks]
            if (max(cycles) - min(cycles)) / self.clock_hz > _LONGER * (end - start) * 1e-9:
                return False
        return bool(self.marks.overview) and self.noted >= (window[1] - window[0]) / self.clock_hz


class _Frame(NamedTuple):
    """Where a stretch of time is drawn: `wide` pt from `_LEFT` on."""

    ax: Axes
    window: tuple[float, float]
    wide: float

    @property
    def narrow(self) -> bool:
        """Whether it is a phone's."""
        return self.wide < _WIDTH

    @property
    def right(self) -> float:
        """Where the time ends."""
        return _LEFT + self.wide

    def x_of(self, cycle: float) -> float:
        """Where a cycle is; what lies outside is at the nearer end."""
        first, last = self.window
        return _LEFT + (min(max(cycle, first), last) - first) * self.wide / (last - first)

    def label(self, y: float, text: str, va: str = "center") -> None:
        """Write what a row is, to its left."""
        self.ax.text(_LEFT - 4, y, text, ha="right", va=va,
                     linespacing=1.05 if "\n" in text else None)

    def line(self, y: float, start: float = _LEFT, **given: float) -> None:
        """Draw a line as long as the time."""
        style.strokes(self.ax, [((start, y), (self.right, y))], **given)


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
    heights = [_height(one, window, narrow) for one in versions]
    top = sum(heights) + _BETWEEN * (len(heights) - 1)
    shares = [parts(one.working, tuple(style.PHASE), window) for one in versions]
    fig, ax = style.canvas(_finding(versions, shares), top, narrow)
    frame = _Frame(ax, window, _NARROW_WIDTH if narrow else _WIDTH)
    for one, mean, height in zip(versions, shares, heights, strict=True):
        _version(frame, top, one, mean)
        top -= height + _BETWEEN
    cost = _cost(versions)
    return style.finish(fig, alt=_alt(versions, shares, window, cost), evidence=evidence,
                        note=cost)


def _height(one: Shown, window: tuple[float, float], narrow: bool) -> float:
    rows = one.row * sum(one.rows) + _BLOCK_GAP * (len(one.blocks) - 1)
    said = _LINE * (len(one.remarks) + bool(one.roles)) + _KEY if narrow else 0.0
    return (_HEAD + said + _KEY + _AXIS + rows + _BAND + _AXIS + 8
            + _OVERVIEW * one.tells(window)
            + _FLIGHT * bool(one.stages))


def _version(frame: _Frame, top: float, one: Shown, mean: Mapping[str, float]) -> None:
    ax = frame.ax
    # On a phone a long name is a little smaller, never under the smallest of a page's letters.
    fits = style.LARGE * (min(1.0, 32 / len(one.name)) if frame.narrow else 1.0)
    ax.text(0, top - 13, one.name, size=max(style.SMALL, fits), weight="bold", va="bottom")
    remarks = one.remarks
    if one.roles:
        remarks.append(f"a {one.doing.removesuffix('s')} multiplies "
                       f"{style.percent(at_work(one.working, frame.window))} of the time")
    if frame.narrow:
        for remark in remarks:
            ax.text(0, top - 13 - _LINE, remark, va="bottom")
            top -= _LINE
    else:
        ax.text(frame.right, top - 12, "; ".join(remarks), ha="right", va="bottom")
    y = top - _HEAD - _KEY * (1 + frame.narrow)
    _key(frame, y + 3, mean)
    y -= _AXIS
    _axis(frame, y, 1e6 / one.clock_hz, "µs", above=True)
    row = one.row
    for number, (label, spans, warps) in enumerate(
            zip(one.labels, one.spans, one.rows, strict=True)):
        y -= _BLOCK_GAP * (number > 0)
        if one.roles:
            _roles(frame, y, one, warps)
        else:
            ax.text(0, y - row * warps / 2, label, rotation=90, ha="left", va="center")
            for warp in {0, warps - 1}:
                text = f"warp {warp}" if row * warps > 60 or warp == 0 else ""
                frame.label(y - row * (warp + 0.5), text, "center_baseline")
        for event, colour in style.PHASE.items():
            tall = max(row - 0.8, 1.0) * _HEIGHTS[event]
            style.rectangles(ax, [
                (frame.x_of(s.start), y - row * s.warp - row / 2 - tall / 2,
                 frame.x_of(s.end) - frame.x_of(s.start), tall)
                for s in spans
                if s.event == event and s.end > frame.window[0] and s.start < frame.window[1]
            ], facecolor=colour)
        y -= row * warps
    y -= 8
    if one.stages:
        _flight(frame, y - _FLIGHT + 6, one)
        y -= _FLIGHT
    _band(frame, y - _BAND, one)
    y -= _BAND
    _axis(frame, y, 1.0, "cycles", above=False)
    if one.tells(frame.window):
        _overview(frame, y - _AXIS - _OVERVIEW + 24, one)


def _roles(frame: _Frame, top: float, one: Shown, warps: int) -> None:
    """Name the warps by what they do, with a line between the roles."""
    first = 0
    for name, count in one.roles:
        count = min(count, warps - first)
        if count <= 0:
            return
        frame.label(top - one.row * (first + count / 2), name)
        first += count
        if first < warps:
            frame.line(top - one.row * first, 0, linewidth=0.6, alpha=0.5)


def _flight(frame: _Frame, bottom: float, one: Shown) -> None:
    """Tiles that the first block has asked for and not begun to multiply, over time."""
    tall, warps = _FLIGHT - 16, one.blocks[0]
    workers = one.roles[0][1]
    first, last = frame.window
    tiles = ring.tiles(one.marks.events, warps[workers], warps[:workers])
    edges = {at for tile in tiles for at in tile if first <= at <= last}
    points = []
    for left, right in pairwise(sorted(edges | {first, last})):
        height = bottom + ring.in_flight(tiles, (left + right) / 2) / one.stages * tall
        points += [(frame.x_of(left), height), (frame.x_of(right), height)]
    style.outline(frame.ax, [(points[0][0], bottom), *points, (points[-1][0], bottom)],
                  closed=True, linewidth=0, facecolor=style.PHASE["load"])
    frame.line(bottom + tall, linewidth=0.5, alpha=0.4)
    frame.label(bottom + tall / 2, "stages\nin flight")
    frame.ax.text(frame.right + 2, bottom + tall, f"{one.stages}", ha="left", va="center")


def _key(frame: _Frame, y: float, mean: Mapping[str, float]) -> None:
    """The phases and the share of the warps' time that each takes: legend and finding in one."""
    x, y = (0.0, y + _KEY) if frame.narrow else (_LEFT, y)
    for event, value in mean.items():
        if value < 5e-4:
            continue
        text = _said(event, value)
        if frame.narrow and x + 11 + 6.2 * len(text) > frame.right:
            x, y = 0.0, y - _KEY
        style.rectangles(frame.ax, [(x, y, 8, 8 * _HEIGHTS[event])], facecolor=style.PHASE[event])
        frame.ax.text(x + 11, y - 1, text, va="bottom")
        x += 11 + 1.04 * style.text_width(text, style.SMALL) + 12


def _axis(frame: _Frame, y: float, factor: float, unit: str, above: bool) -> None:
    first, last = frame.window
    ticks = _ticks(first * factor, last * factor, 4 if frame.narrow else 8)
    side, va = (1, "bottom") if above else (-1, "top")
    places = [frame.x_of(tick / factor) for tick in ticks]
    style.strokes(frame.ax, [((_LEFT, y), (frame.right, y)),
                             *(((x, y), (x, y + 3 * side)) for x in places)], linewidth=0.6)
    for tick, x in zip(ticks, places, strict=True):
        ha = "left" if x < _LEFT + 12 else "right" if x > frame.right - 14 else "center"
        frame.ax.text(x, y + 5 * side, f"{tick:,.9g}", ha=ha, va=va)
    frame.label(y + 5 * side, unit, va)


def _ticks(low: float, high: float, limit: int) -> list[float]:
    """Round numbers between two bounds, about `limit` at most."""
    step = 10.0 ** np.floor(np.log10((high - low) / 5))
    step *= next(m for m in (1, 2, 5, 10, 20) if (high - low) / (step * m) <= limit)
    return [round(i * step, 9) for i in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _band(frame: _Frame, bottom: float, one: Shown) -> None:
    """The share of warps in each phase over time, stacked."""
    bins, events = 150, one.marks.events
    workers = sum(len(warps[:one.workers]) for warps in one.blocks)
    shares = share(one.working, events, np.linspace(*frame.window, bins + 1), workers)
    step = frame.wide / bins
    under = np.zeros(bins)
    for event in ("compute", "load", "store", "barrier", "wait"):
        if event not in events:
            continue
        part = shares[events.index(event)]
        if not part.any():
            continue
        lower = style.steps(_LEFT, step, bottom + under * _BAND)
        under = under + part
        upper = style.steps(_LEFT, step, bottom + under * _BAND)
        style.outline(frame.ax, [*upper, *reversed(lower)], closed=True, linewidth=0,
                      facecolor=style.PHASE[event])
        # An edge of ink keeps neighbours apart where print is grey.
        style.outline(frame.ax, upper, edgecolor=style.INK, linewidth=0.7, alpha=0.8)
    frame.label(bottom + _BAND / 2,
                f"share of\n{one.doing}" if one.roles else "share\nof warps")


def _overview(frame: _Frame, bottom: float, one: Shown) -> None:
    """The whole kernel: blocks running over time, and where the rows above are from."""
    ax, overview, total, end = frame.ax, one.marks.overview, one.marks.total_blocks, one.noted
    seconds, blocks = residency(overview, bins=160, until=end)
    tall = 26.0
    # A few blocks that outlast the others are seen, too.
    heights = np.where(blocks > 0, np.maximum(blocks / blocks.max() * tall, _LEAST), 0.0)
    stairs = style.steps(_LEFT, frame.wide / len(seconds), bottom + heights)
    style.outline(ax, [(_LEFT, bottom), *stairs, (frame.right, bottom)],
                  closed=True, linewidth=0, facecolor=style.OTHER, alpha=0.5)
    frame.line(bottom, linewidth=0.6)
    frame.label(bottom + tall / 2, "blocks\nrunning")
    if not frame.narrow:
        ax.text(_LEFT, bottom - 3, "0", va="top")
    what = (f"the whole kernel, {total:,} blocks" if total <= len(overview)
            else f"the first {len(overview):,} of {total:,} blocks")
    ax.text(frame.right, bottom - 3,
            f"{style.duration(end)}: {what}"
            + f", at most {blocks.max():,.0f} at once" * (not frame.narrow),
            ha="right", va="top")
    if one.first is None:
        return
    begin = (one.first[1] - min(start for _, start, _ in overview)) * 1e-9
    start, stop = (begin + cycle / one.clock_hz for cycle in frame.window)
    x, width = _LEFT + start * frame.wide / end, max((stop - start) * frame.wide / end, 1.6)
    style.rectangles(ax, [(x, bottom, width, tall + 5)], facecolor=style.FOCUS)
    text = f"shown above, {style.duration(stop - start)}"
    room = style.text_width(text, style.SMALL) + 4
    if x < _LEFT + frame.wide / 2 and x + width + room <= frame.right:
        ax.text(x + width + 4, bottom + tall + 1, text, va="bottom")
    elif x >= room:
        ax.text(x - 4, bottom + tall + 1, text, ha="right", va="bottom")
    else:  # most of the kernel: there is room within
        ax.text(x + width / 2, bottom + (tall + 5) / 2, text, ha="center", va="center",
                color=style.on(style.FOCUS))


def _finding(versions: Sequence[Shown], shares: Sequence[Mapping[str, float]]) -> str:
    if len(versions) > 1:
        heads = {one.name.rpartition(", ")[0] for one in versions}
        version = heads.pop() + ", " if len(heads) == 1 else ""  # of variants, said once
        first, *others = [
            f"{style.percent(mean.get('compute', 0.0))} {{}}in {one.name.removeprefix(version)}"
            for one, mean in zip(versions, shares, strict=True)
        ]
        text = f"{versions[-1].doing} are in the inner loop for {first.format('of the time ')}, "
        text = f"{version[:-2]}: {text}" if version[:-2] else text[0].upper() + text[1:]
        return text + ", ".join(other.format("") for other in others)
    idle = {event: value for event, value in shares[0].items() if event != "compute"}
    worst = max(idle, key=lambda event: idle[event], default="")
    doing = {"load": "loading", "wait": "waiting", "barrier": "at barriers", "store": "storing"}
    share_of = style.percent(shares[0].get("compute", 0.0))
    text = f"{versions[0].doing.capitalize()} are in the inner loop for {share_of} of the time"
    return f"{text} and spend {style.percent(idle[worst])} {doing[worst]}" if worst else text


def _cost(versions: Sequence[Shown]) -> str:
    cycles = versions[-1].marks.mark_cycles
    if not cycles:
        return ""
    slower = [max(one.marks.seconds_with / one.marks.seconds_without - 1, 0.0) for one in versions]
    longer = (style.percent(slower[0]) + " time" if len(slower) == 1
              else f"{min(slower):.0%} to +{max(slower):.0%}")
    return f"a mark costs {style.number(cycles, 2)} cycles; with marks +{longer}"


def _alt(versions: Sequence[Shown], shares: Sequence[Mapping[str, float]],
         window: tuple[float, float], cost: str) -> str:
    said = [
        f"{one.name}: {sum(one.rows)} warps of {style.plural(len(one.blocks), 'block')} over "
        f"cycles {window[0]:,.0f} to {window[1]:,.0f}; share of the {one.doing}' time: "
        + ", ".join(_said(event, value) for event, value in mean.items()) + "."
        for one, mean in zip(versions, shares, strict=True)
    ]
    return " ".join([*said, f"{cost.capitalize()}." if cost else ""]).strip()


def _said(event: str, value: float) -> str:
    """A phase and its share of the time."""
    return f"{_NAMES.get(event, event)} {style.percent(value)}"


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
    marks = (live.timeline(version.kernel, variant, variant.problem(TIMED, TIMED, TIMED)) if live
             else version.reader.timeline(variant.name))
    clock = mhz(version.timed(variant, TIMED).clock)
    name = short_name(version.kernel)
    if len(version.kernel.variants) > 1 or variant is not version.kernel.variants[0]:
        name += f", {variant.name}"
    return Shown(name, marks, clock * 1e6 if clock else gpus.GPUS[RECORDED_ON].clock_hz,
                 variant.roles.warps, variant.roles.stages)
