"""Which roof is over us? A dot for each version at each level of memory, under measured roofs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import style
from lib.topics.limits.roofline.model import LEVELS, Point, Roofs

AT_A_ROOF = 0.9  # of it, from which on a version is said to be there
_MARKERS = {"L1/shared": "o", "DRAM": "D"}
_HEIGHT = 4.3
_NARROW_HEIGHT = 3.2
_NARROW_LINE = 13.0  # of the names under the chart, pt
_LINE = 12.0  # of the names beside their dots, at least, pt
_LETTERS = 10.0  # height of a line of small letters, pt
_BEGINNING = 24.0  # of a name, pt, that no other version's dot may stand in

Box = tuple[float, float, float, float]  # pt from the figure's corner: left, right, bottom, top


@style.styled
def draw(
    roofs: Roofs, points: Sequence[Point], *, evidence: str, current: str | None = None,
    peaks: Sequence[str] = ("FFMA",), title: str | None = None, narrow: bool = False,
) -> Figure:
    """Draw the hierarchical roofline.

    Parameters
    ----------
    roofs : Roofs
    points : sequence of Point
        `lib.topics.limits.roofline.model.points` of all versions to show.
    current : str, optional
        Name of this chapter's version; it alone is in full colour.
    peaks : sequence of str
        Which of ``roofs.peaks`` to draw.
    """
    names = list(dict.fromkeys(point.name for point in points))
    width = style.NARROW if narrow else style.WIDTH
    under = (_NARROW_LINE * len(names) + 4) / 72 if narrow else 0.0
    height = _NARROW_HEIGHT if narrow else _HEIGHT
    fig = style.figure(title or _finding(roofs, points, current, peaks[0]), height + under, width)
    inset = 0.46 if narrow else 0.62
    ax = style.axes(fig, inset, 0.42 + under, width - inset - 0.16, height - 0.5)
    drawn = {name: roofs.peaks[name] for name in peaks}
    ridges = [max(drawn.values()) / bandwidth for bandwidth in roofs.bandwidths.values()]
    xs = [point.intensity for point in points] + ridges
    ys = [point.flops_per_s for point in points]
    left = min(xs) / 3
    labelled = [] if narrow else points  # whose names stand beside their dots
    x_range = (left, _right_edge(left, max(ridges, default=1.0), labelled))
    y_range = (min([*ys, max(drawn.values()) / 30]) / 3, max(drawn.values()) * 2.2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*x_range)
    ax.set_ylim(*y_range)
    _scales(ax, x_range, y_range)
    taken = _roofs(ax, height - 0.5, roofs, drawn, x_range, y_range)
    for name in sorted(names, key=lambda n: n == current):
        _version(ax, [p for p in points if p.name == name], name == current)
    _levels(ax, [p for p in points if p.name == current], max(drawn.values()), taken)
    if narrow:
        _listed(fig, points, names, current, under)
    else:
        _names(ax, points, names, current)
    return style.finish(fig, alt=_alt(roofs, points, current, drawn), evidence=evidence)


def _right_edge(left: float, ridge: float, points: Sequence[Point]) -> float:
    """Return how far the x-axis must reach for the longest name to fit beside its dot."""
    edge = ridge * 8
    for point in points:
        room = (len(point.name) + 18) * 6.1 / ((style.WIDTH - 0.78) * 72)
        edge = max(edge, left * (point.intensity / left) ** (1 / max(1 - room, 0.3)))
    return edge


def _scales(ax: Axes, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
    x_ticks = [x for x in 10.0 ** np.arange(-3, 6) if x_range[0] <= x <= x_range[1] / 1.6]
    y_ticks = [y for y in 10.0 ** np.arange(8, 17) if y_range[0] <= y <= y_range[1]]
    ax.set_xticks(x_ticks, [f"{x:,g}" for x in x_ticks])
    ax.set_yticks(y_ticks, [style.quantity(y, "FLOP/s").replace("FLOP/s", "") for y in y_ticks])
    ax.minorticks_off()
    ax.grid(True)
    ax.set_xlabel("arithmetic intensity at each level, FLOP/B", labelpad=2)
    ax.text(0, 1.0, "FLOP/s", transform=ax.transAxes, ha="right", va="bottom")


def _roofs(
    ax: Axes, height: float, roofs: Roofs, drawn: dict[str, float], x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> list[Box]:
    """Draw the roofs into axes of a height in inches; return where the level ones' names stand."""
    top = max(drawn.values())
    (x0, y0), (x1, y1) = ax.transData.transform([(1, 1), (10, 10)])
    slope = np.degrees(np.arctan2(y1 - y0, x1 - x0))
    per_decade = height * 72 / np.log10(y_range[1] / y_range[0])
    for level, bandwidth in roofs.bandwidths.items():
        start = max(x_range[0], y_range[0] / bandwidth)
        ax.plot([start, top / bandwidth], [start * bandwidth, top], color=style.INK, linewidth=1.1)
        label = f"{level} {style.quantity(bandwidth, 'B/s')}"
        # From its lower end, where no version is; 5 pt off the line.
        x = start * 1.15
        ax.text(x, x * bandwidth * 10 ** (5 / per_decade), label, rotation=slope,
                rotation_mode="anchor", ha="left", va="bottom")
    widest = max(roofs.bandwidths.values()) if roofs.bandwidths else 1.0
    labels: list[tuple[float, str]] = []  # from the highest; of two close ones, both on the upper
    for name, peak in sorted(drawn.items(), key=lambda one: -one[1]):
        ax.plot([peak / widest, x_range[1]], [peak, peak], color=style.INK, linewidth=1.1)
        text = f"{name} {style.quantity(peak, 'FLOP/s')}"
        if labels and np.log10(labels[-1][0] / peak) * per_decade < 14:
            upper = labels[-1][1].removesuffix(text[text.rindex(" "):])
            labels[-1] = labels[-1][0], f"{upper}, under it {text}"
        else:
            labels.append((peak, text))
    taken = []
    for peak, text in labels:
        ax.annotate(text, (x_range[1], peak), (0, 3), textcoords="offset points", ha="right",
                    va="bottom")
        right, y = _points_of(ax, x_range[1], peak)
        taken.append((right - style.text_width(text, style.SMALL), right, y + 3, y + 3 + _LETTERS))
    return taken


def _version(ax: Axes, mine: Sequence[Point], is_current: bool) -> None:
    colour = style.FOCUS if is_current else style.OTHER
    ax.plot([p.intensity for p in mine], [p.flops_per_s for p in mine], color=colour,
            linewidth=0.8 if is_current else 0.5, zorder=3 + is_current)
    for point in mine:
        ax.plot([point.intensity], [point.flops_per_s], _MARKERS[point.level], color=colour,
                markersize=7 if is_current else 5, markeredgewidth=0, zorder=4 + is_current)


def _levels(ax: Axes, mine: Sequence[Point], roof: float, taken: Sequence[Box]) -> None:
    """Name the levels at this version's dots: over them, or under where another name stands."""
    if len(mine) < 2:
        return
    boxes = list(taken)
    # A roof is near on the left of the first, the versions' names on the right of the last.
    for number, point in enumerate(sorted(mine, key=lambda p: p.intensity)):
        width = style.text_width(point.level, style.SMALL)
        x, y = _points_of(ax, point.intensity, point.flops_per_s)
        left = x + 5 if number == 0 else x - 5 - width
        below = [-5 - _LETTERS - _LINE * line for line in range(len(mine))]
        places = [(left, left + width, y + up, y + up + _LETTERS)
                  for up in (_above(ax, point.flops_per_s, roof), *below)]
        place = next((one for one in places if not any(_meet(one, other) for other in boxes)),
                     places[-1])
        boxes.append(place)
        ax.annotate(point.level, (point.intensity, point.flops_per_s),
                    (place[0] - x, place[2] - y), textcoords="offset points", ha="left",
                    va="bottom")


def _meet(one: Box, other: Box) -> bool:
    return (one[0] < other[1] + 2 and other[0] < one[1] + 2
            and one[2] < other[3] and other[2] < one[3])


def _above(ax: Axes, flops_per_s: float, roof: float) -> float:
    """How far over its dot a level's name stands, pt: where the roof would cross it, over that."""
    heights = [ax.transData.transform((1.0, y))[1] for y in (flops_per_s, roof)]
    gap = (heights[1] - heights[0]) / ax.figure.dpi * 72
    return gap + 2 if 3 < gap < 16 else 5


def _names(ax: Axes, points: Sequence[Point], names: Sequence[str], current: str | None) -> None:
    """Write each version's name at its rightmost dot, at least a line apart."""
    last = {
        name: max((p for p in points if p.name == name), key=lambda p: p.intensity)
        for name in names
    }
    dots = {name: _points_of(ax, one.intensity, one.flops_per_s) for name, one in last.items()}
    wanted = {name: y for name, (_, y) in dots.items()}
    placed: dict[str, float] = {}
    edge = np.inf  # from the top, since close under the roof there is room below only
    for name in sorted(names, key=lambda n: -wanted[n]):
        placed[name] = edge = min(wanted[name], edge - _LINE)
    edge = ax.get_window_extent().y0 / ax.figure.dpi * 72 - _LINE / 2
    for name in reversed(placed):  # and from the bottom, where the axis stands
        placed[name] = edge = max(placed[name], edge + _LINE)
    for name, point in last.items():
        x = right = dots[name][0]
        # Other versions' dots may lie where the name would begin.
        for there, height in sorted(dots.values()):
            if right <= there < right + _BEGINNING and abs(height - placed[name]) < 9:
                right = there
        ax.annotate(f"{name}, {style.quantity(point.flops_per_s, 'FLOP/s')}",
                    (point.intensity, point.flops_per_s),
                    (right - x + 8, placed[name] - wanted[name]), textcoords="offset points",
                    ha="left", va="center", weight="bold" if name == current else "normal")


def _listed(
    fig: style.Drawing, points: Sequence[Point], names: Sequence[str], current: str | None,
    under: float,
) -> None:
    """Write the versions' names and speeds under the chart, from the fastest."""
    speeds = {point.name: point.flops_per_s for point in points}
    ax = style.axes(fig, 0.08, 0, style.NARROW - 0.16, under, bare=True)
    for row, name in enumerate(sorted(names, key=lambda n: -speeds[n])):
        y = under * 72 - (row + 1) * _NARROW_LINE + 3
        ax.plot([4], [y + 3.5], "o", color=style.FOCUS if name == current else style.OTHER,
                markersize=6, markeredgewidth=0, clip_on=False)
        ax.text(12, y, f"{name}, {style.quantity(speeds[name], 'FLOP/s')}", va="bottom",
                weight="bold" if name == current else "normal")


def _points_of(ax: Axes, intensity: float, flops_per_s: float) -> tuple[float, float]:
    """Where a dot is drawn, pt from the figure's corner."""
    pixels = ax.transData.transform((intensity, flops_per_s))
    return tuple(pixels / ax.figure.dpi * 72)


def _finding(roofs: Roofs, points: Sequence[Point], current: str | None, peak: str) -> str:
    """How near the two nearest roofs are; that one of them limits a version is said only at it."""
    shares = roofs.shares([p for p in points if p.name == current], peak)
    if not shares:
        return "Every version lies under some roof"
    (name, first), *others = sorted(shares.items(), key=lambda pair: -pair[1])
    if first >= AT_A_ROOF:
        return f"{current} reaches {style.percent(first)} of the {name} roof"
    labelled = f", {style.percent(others[0][1])} of the {others[0][0]} roof" if others else ""
    return f"{current} is under every roof: {style.percent(first)} of the {name} roof{labelled}"


def _alt(
    roofs: Roofs, points: Sequence[Point], current: str | None, drawn: dict[str, float]
) -> str:
    lines = [f"{n} {style.quantity(b, 'B/s')}" for n, b in roofs.bandwidths.items()]
    lines += [f"{n} {style.quantity(p, 'FLOP/s')}" for n, p in drawn.items()]
    parts = [f"Roofs: {', '.join(lines)}."]
    names = list(dict.fromkeys(point.name for point in reversed(points)))
    # This chapter's first: not every reader hears a long text to its end.
    for name in sorted(names, key=lambda one: one != current):
        mine = sorted((p for p in points if p.name == name), key=lambda p: LEVELS.index(p.level))
        where = ", ".join(f"{style.number(p.intensity)} FLOP/B at {p.level}" for p in mine)
        this = " (this chapter)" if name == current else ""
        parts.append(f"{name}{this}: {style.quantity(mine[0].flops_per_s, 'FLOP/s')}; {where}.")
    return " ".join(parts)
