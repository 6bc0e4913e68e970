"""What does the SM do, cycle by cycle? One row a warp, from marks measured inside the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.time.ring import model as ring
from lib.topics.time.timeline.model import (
    Phase,
    at_work,
    parts,
    phases,
    recorded_until,
    residency,
    share,
)

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
class Version:
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
    """

    name: str
    events: Sequence[str]
    blocks: Sequence[tuple[str, Sequence[Sequence[tuple[int | str, float]]]]]
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


def _extent(warps: Sequence[Sequence[tuple[int | str, float]]]) -> tuple[float, float]:
    cycles = [cycle for marks in warps for _, cycle in marks]
    return min(cycles), max(cycles)


@style.styled
def draw(
    versions: Sequence[Version], *, evidence: str, window: tuple[float, float] | None = None,
    title: str | None = None, narrow: bool = False,
) -> Figure:
    """Draw one version, or several on one scale of cycles for before and after.

    Parameters
    ----------
    versions : sequence of Version
    window : (first, last), optional
        Cycles since the first mark shown; if not given, as far as every block's marks go.
    """
    wide = _NARROW_WIDTH if narrow else _WIDTH
    spans = [_spans(one) for one in versions]
    if window is None:
        window = (0.0, min(max(span.end for span in rows) for mine in spans for _, rows in mine))
    heights = [_height(one, narrow) for one in versions]
    # A phone's figure has a line for each; else what marks cost has one of its own where it and
    # the evidence would overprint each other.
    cost = _cost(versions)
    own_line = bool(cost) and not narrow and not style.fits_one_line(cost, evidence)
    tall = sum(heights) + _BETWEEN * (len(heights) - 1) + _LINE * own_line
    shares = [
        parts([span for _, rows in mine for span in _working(one, rows)], tuple(style.PHASE),
              window)
        for one, mine in zip(versions, spans, strict=True)
    ]
    fig, ax = style.canvas(title or _finding(versions, shares), tall, narrow)
    top = tall
    for one, mine, mean, height in zip(versions, spans, shares, heights, strict=True):
        _version(ax, top, one, mine, mean, window, wide)
        top -= height + _BETWEEN
    if own_line:
        ax.text(0, 2 if len(style.foot_lines(evidence)) == 1 else 6, cost, va="bottom")
    return style.finish(fig, alt=_alt(versions, shares, window), evidence=evidence,
                        note="" if own_line else cost)


def _spans(one: Version) -> list[tuple[str, list[Phase]]]:
    """Phases of each block, in cycles since the first mark of the first one."""
    begin = min(_extent(warps)[0] for _, warps in one.blocks)
    shifted = [
        (label, [[(event, cycle - begin) for event, cycle in marks] for marks in warps])
        for label, warps in one.blocks
    ]
    return [(label, [*_turns(one, warps), *phases(one.events, warps)]) for label, warps in shifted]


def _turns(one: Version, warps: Sequence[Sequence[tuple[int | str, float]]]) -> list[Phase]:
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


def _warps(one: Version) -> int:
    return sum(len(warps) for _, warps in one.blocks)


def _working(one: Version, rows: Sequence[Phase]) -> list[Phase]:
    """Phases of the warps that compute: those of the first role, or all."""
    return [span for span in rows if not one.roles or span.warp < one.roles[0][1]]


def _workers(one: Version) -> int:
    """How many warps of all blocks compute."""
    largest = one.roles[0][1] if one.roles else None
    return sum(len(warps[:largest]) for _, warps in one.blocks)


def _doing(one: Version) -> str:
    """Who it is whose shares are shown."""
    return one.roles[0][0] if one.roles else "warps"


def _row(one: Version) -> float:
    return float(np.clip(190.0 / _warps(one), 4.0, 11.0))


def _height(one: Version, narrow: bool = False) -> float:
    rows = _row(one) * _warps(one) + _BLOCK_GAP * (len(one.blocks) - 1)
    said = _LINE * (len(_remarks(one)) + bool(one.roles)) + _KEY if narrow else 0.0
    return (_HEAD + said + _KEY + _AXIS + rows + _BAND + _AXIS + 8
            + _OVERVIEW * bool(one.overview) + _FLIGHT * bool(one.stages))


def _remarks(one: Version) -> list[str]:
    """What of the kernel the rows are."""
    shown = max(len(warps) for _, warps in one.blocks)
    remarks = [", ".join(label for label, _ in one.blocks)] if one.roles else []
    if one.total_warps and shown < one.total_warps:
        remarks.append(f"the first {shown} of {one.total_warps} warps")
    if _has_gaps(one):
        remarks.append("gaps: steps not marked")
    return remarks


def _version(
    ax: Axes, top: float, one: Version, mine: list[tuple[str, list[Phase]]],
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
        bottom = y - row * len(warps)
        if one.roles:
            _roles(ax, y, one, len(warps), row, wide)
        else:
            ax.text(0, (y + bottom) / 2, label, rotation=90, ha="left", va="center")
            for warp in {0, len(warps) - 1}:
                text = f"warp {warp}" if row * len(warps) > 60 or warp == 0 else ""
                ax.text(_LEFT - 4, y - row * (warp + 0.5), text, ha="right", va="center_baseline")
        for event, colour in style.PHASE.items():
            tall = max(row - 0.8, 1.0) * _HEIGHTS[event]
            shapes.rectangles(
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
    if one.overview:
        _overview(ax, y - _OVERVIEW + 24, one, window, wide)


def _roles(ax: Axes, top: float, one: Version, warps: int, row: float, wide: float) -> None:
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
            shapes.strokes(ax, [((0, y), (_LEFT + wide, y))], linewidth=0.6, alpha=0.5)


def _flight(
    ax: Axes, bottom: float, one: Version, window: tuple[float, float],
    x_of: Callable[[float], float], wide: float,
) -> None:
    """Tiles that the first block has asked for and not begun to multiply, over time."""
    tall = _FLIGHT - 16
    workers = one.roles[0][1]
    warps = one.blocks[0][1]
    begin = min(_extent(each)[0] for _, each in one.blocks)
    found = ring.from_marks(one.events, warps[workers], warps[:workers], one.stages)
    edges = sorted({at - begin for t in found.tiles for at in (t.asked, t.start)} | {*window})
    inside = [at for at in edges if window[0] <= at <= window[1]]
    points = []
    for left, right in zip(inside, inside[1:], strict=False):
        height = bottom + found.in_flight((left + right) / 2 + begin) / one.stages * tall
        points += [(x_of(left), height), (x_of(right), height)]
    if points:
        shapes.outline(ax, [(points[0][0], bottom), *points, (points[-1][0], bottom)],
                       closed=True, linewidth=0, facecolor=style.PHASE["load"])
    shapes.strokes(ax, [((_LEFT, bottom + tall), (_LEFT + wide, bottom + tall))], linewidth=0.5,
                   alpha=0.4)
    ax.text(_LEFT - 4, bottom + tall / 2, "stages\nin flight", ha="right", va="center",
            linespacing=1.05)
    ax.text(_LEFT + wide + 2, bottom + tall, f"{one.stages}", ha="left", va="center")


def _has_gaps(one: Version) -> bool:
    """Whether a kernel leaves stretches unmarked, to keep the marks' own cost low."""
    ends = {"end", list(one.events).index("end") if "end" in one.events else "end"}
    return any(
        event in ends for _, warps in one.blocks for marks in warps for event, _ in marks[:-1]
    )


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
        shapes.rectangles(ax, [(x, y, 8, 8 * _HEIGHTS[event])], facecolor=style.PHASE[event])
        ax.text(x + 11, y - 1, text, va="bottom")
        x += 11 + 6.2 * len(text) + 12


def _axis(
    ax: Axes, y: float, window: tuple[float, float], x_of: Callable[[float], float],
    factor: float, unit: str, wide: float, above: bool,
) -> None:
    ticks = _ticks(window[0] * factor, window[1] * factor, 8 if wide == _WIDTH else 4)
    side = 1 if above else -1
    va = "bottom" if above else "top"
    shapes.strokes(ax, [((_LEFT, y), (_LEFT + wide, y))] + [
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
    ax: Axes, bottom: float, one: Version, mine: list[tuple[str, list[Phase]]],
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
        lower = shapes.steps(_LEFT, step, bottom + under * _BAND)
        under = under + part
        upper = shapes.steps(_LEFT, step, bottom + under * _BAND)
        shapes.outline(ax, [*upper, *reversed(lower)], closed=True, linewidth=0,
                       facecolor=style.PHASE[event])
        # An edge of ink keeps neighbours apart where print is grey.
        shapes.outline(ax, upper, edgecolor=style.INK, linewidth=0.7, alpha=0.8)
    text = f"share of\n{one.roles[0][0]}" if one.roles else "share\nof warps"
    ax.text(_LEFT - 4, bottom + _BAND / 2, text, ha="right", va="center", linespacing=1.05)


def _overview(
    ax: Axes, bottom: float, one: Version, window: tuple[float, float], wide: float
) -> None:
    """The whole kernel: blocks running over time, and where the rows above are from.

    Where all blocks begin at once, the first of them tell nothing of the time that is drawn above:
    then that is said in words.
    """
    end = recorded_until(one.overview, one.total_blocks)
    if _outlasted(one):
        text = "blocks running: not drawn. Thread 0\nnotes a block's end, and other warps go on."
        ax.text(_LEFT, bottom + 13, text if wide < _WIDTH else text.replace("\n", " "),
                size=style.SMALL, va="center")
        return
    if end < (window[1] - window[0]) / one.clock_hz:
        text = (f"The first {len(one.overview):,} of {one.total_blocks or 0:,} blocks all begin "
                f"within {style.duration(end)}.")
        if wide < _WIDTH:
            text = text.replace(" all begin ", "\nall begin ")
        ax.text(_LEFT, bottom + 13, text, va="center")
        return
    seconds, blocks = residency(one.overview, bins=160, until=end)
    start = min(block[1] for block in one.overview)
    tall = 26.0
    scale = wide / end
    # A few blocks that outlast the others are seen, too.
    heights = np.where(blocks > 0, np.maximum(blocks / blocks.max() * tall, _LEAST), 0.0)
    step = wide / len(seconds)
    shapes.outline(
        ax, [(_LEFT, bottom), *shapes.steps(_LEFT, step, bottom + heights), (_LEFT + wide, bottom)],
        closed=True, linewidth=0, facecolor=style.OTHER, alpha=0.5)
    shapes.strokes(ax, [((_LEFT, bottom), (_LEFT + wide, bottom))], linewidth=0.6)
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
    shapes.rectangles(ax, [(x, bottom, width, tall + 5)], facecolor=style.FOCUS)
    text = f"shown above, {style.duration(zoom[1] - zoom[0])}"
    room = style.text_width(text, style.SMALL) + 4
    if x < _LEFT + wide / 2 and x + width + room <= _LEFT + wide:
        ax.text(x + width + 4, bottom + tall + 1, text, va="bottom")
    elif x >= room:
        ax.text(x - 4, bottom + tall + 1, text, ha="right", va="bottom")
    else:  # most of the kernel: there is room within
        ax.text(x + width / 2, bottom + (tall + 5) / 2, text, ha="center", va="center",
                color=style.on(style.FOCUS))


def _outlasted(one: Version) -> bool:
    """Whether warps of a drawn block go on after its thread 0, which notes the end, is done."""
    if one.shown >= len(one.overview):
        return False
    _, first, last = one.overview[one.shown]
    begin, end = _extent(one.blocks[0][1])
    return (end - begin) / one.clock_hz > _LONGER * (last - first) * 1e-9


def _finding(versions: Sequence[Version], shares: Sequence[Mapping[str, float]]) -> str:
    if len(versions) > 1:
        *before, last = [
            f"{style.percent(mean.get('compute', 0.0))} {{}}in {one.name}"
            for one, mean in zip(versions, shares, strict=True)
        ]
        return (
            f"{_doing(versions[-1]).capitalize()} are in the inner loop for "
            f"{last.format('of the time ')}, "
            + ", ".join(text.format("") for text in before)
        )
    idle = {event: value for event, value in shares[0].items() if event != "compute"}
    worst = max(idle, key=lambda event: idle[event], default="")
    doing = {"load": "loading", "wait": "waiting", "barrier": "at barriers", "store": "storing"}
    share_of = style.percent(shares[0].get("compute", 0.0))
    text = f"{_doing(versions[0]).capitalize()} are in the inner loop for {share_of} of the time"
    return f"{text} and spend {style.percent(idle[worst])} {doing[worst]}" if worst else text


def _cost(versions: Sequence[Version]) -> str:
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
    versions: Sequence[Version], shares: Sequence[Mapping[str, float]], window: tuple[float, float]
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
