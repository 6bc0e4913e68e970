"""What did this warp's access touch? Lanes above, sectors below, the price at the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.machine import LINE, SECTOR, WARP
from lib.topics.memory.coalescing import model as coalescing
from lib.topics.memory.coalescing.model import Allocation, Coalescing, WarpAccess

_PICTURE, _NARROW_PICTURE = 348.0, 248.0  # pt: the lanes and the address axis
_COLUMNS = (399.0, 443.0, 506.0)  # pt: right edges of the three numbers
_GAP = 0.38  # what is left out between two cells, in cells
_HEAD, _GROUP, _PANEL, _LANE_NUMBERS = 14.0, 22.0, 89.0, 11.0
_APART = 6.0  # pt between two labels under a strip
_PRICE = 14.0  # for a phone, a line with the numbers under each access


@dataclass(frozen=True)
class Panel:
    """One access of one warp.

    Attributes
    ----------
    label : str
        The expression in the source: ``"B[k * N + col]"``.
    array : str
        Name of the array that the addresses are counted from: ``"B"``.
    access : WarpAccess
        Addresses, active lanes, bytes a lane.
    found : Coalescing
        `coalescing.describe` of it.
    kind : str
        ``"load"``, ``"store"``, or ``"copy"`` for what a cp.async reads.
    where : str
        The line of the source: ``"01_naive.cu:31"``.
    """

    label: str
    array: str
    access: WarpAccess
    found: Coalescing
    kind: str = "load"
    where: str = ""


@dataclass(frozen=True)
class Group:
    """The accesses of one variant.

    Attributes
    ----------
    name : str
        The variant: ``"coalesced"``; may be empty where there is only one.
    panels : sequence of Panel
    """

    name: str
    panels: Sequence[Panel] = field(default_factory=tuple)

    @property
    def loaded_sectors(self) -> int:
        """Sectors of all loads together, one request each."""
        return self._sectors("load")

    @property
    def stored_sectors(self) -> int:
        """Sectors of all stores together, one request each."""
        return self._sectors("store")

    def _sectors(self, kind: str) -> int:
        kinds = ("load", "copy") if kind == "load" else (kind,)
        return sum(len(panel.found.sectors) for panel in self.panels if panel.kind in kinds)


def panel(
    label: str, access: WarpAccess, allocation: Allocation | None = None, *,
    array: str | None = None, kind: str = "load", where: str = "",
) -> Panel:
    """Describe one access for the figure.

    Parameters
    ----------
    label : str
        The expression in the source; up to its first bracket it names the array.
    access : WarpAccess
        From `lib.ptx.Trace.watched` or `coalescing.strided`.
    allocation : Allocation, optional
        The array that the access falls into; addresses are shown relative to it.
    array : str, optional
        The array's name, where `label` does not begin with it.
    kind : str
        A key of `style.ACCESS`.
    where : str
        File and line, to stand beside it.
    """
    return Panel(label, array if array is not None else label.split("[")[0].strip(), access,
                 coalescing.describe(access, allocation), kind, where)


@style.styled
def draw(
    groups: Sequence[Group], *, evidence: str, title: str | None = None, cells: float | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw some accesses, the wrong variant under the right one.

    All address axes have one scale, so that the width of what is filled is the price.

    Parameters
    ----------
    groups : sequence of Group
    cells : float, optional
        Sectors that fill the width; the widest axis decides if not given. Frames of one explorer
        share a value.
    """
    picture = _NARROW_PICTURE if narrow else _PICTURE
    tall = _PANEL + _PRICE * narrow
    axes_of = [[_cells(panel.found) for panel in group.panels] for group in groups]
    widest = max((_span(axis) for row in axes_of for axis in row), default=1.0)
    unit = picture / max(cells or widest, widest, 4.0)
    named = [bool(group.name) for group in groups]
    height = sum(
        (_GROUP if has_name else _HEAD) + _LANE_NUMBERS + tall * len(group.panels)
        for group, has_name in zip(groups, named, strict=True)
    )
    fig, ax = style.canvas(title or _finding(groups), height, narrow)
    y = height
    heads = () if narrow else zip(_COLUMNS, ("lines", "sectors", "useful"), strict=True)
    for right, text in heads:
        ax.text(right, y - (_GROUP if named[0] else _HEAD) + 6, text, ha="right", va="bottom")
    for group, has_name, row in zip(groups, named, axes_of, strict=True):
        y -= _GROUP if has_name else _HEAD
        if has_name:
            ax.text(0, y + 6, group.name, size=style.LARGE, weight="bold", va="bottom")
            shapes.strokes(ax, [((0, y + 3), (picture if narrow else _COLUMNS[-1], y + 3))],
                           alpha=0.35, linewidth=0.6)
        for number, (panel, axis) in enumerate(zip(group.panels, row, strict=True)):
            y -= tall + (_LANE_NUMBERS if number == 0 else 0)
            _panel(ax, y + _PRICE * narrow, panel, axis, unit, picture, lane_numbers=number == 0)
    return style.finish(fig, alt=_alt(groups), evidence=evidence)


def _cells(found: Coalescing) -> list[tuple[float, int]]:
    """Lay sectors on an axis: (position in cells, address), whole lines if they are few."""
    addresses = list(found.sectors)
    if len(found.lines) * LINE <= WARP * SECTOR:
        addresses = [line + part for line in found.lines for part in range(0, LINE, SECTOR)]
    laid, at = [], 0.0
    for number, address in enumerate(addresses):
        if number and address != addresses[number - 1] + SECTOR:
            at += _GAP
        laid.append((at, address))
        at += 1.0
    return laid


def _span(axis: list[tuple[float, int]]) -> float:
    return axis[-1][0] + 1.0 if axis else 0.0


def _panel(
    ax: Axes, y: float, panel: Panel, axis: list[tuple[float, int]], unit: float, picture: float,
    lane_numbers: bool,
) -> None:
    """Draw one access in the `_PANEL` points above y."""
    colour = style.ACCESS[panel.kind]
    found, access = panel.found, panel.access
    lanes_y, strip_top, strip, label_y = y + 60, y + 34, 14.0, y + 16
    pitch = picture / WARP
    narrow = picture < _PICTURE
    active = np.asarray(access.active, dtype=bool)

    label: dict[str, Any] = {"y": lanes_y + (24 if lane_numbers else 12), "va": "bottom"}
    ax.text(0, s=panel.kind, size=style.NORMAL, weight="bold", **label)
    where = "" if narrow else panel.where
    text = style.code(panel.label, picture - 36, where)
    ax.text(36, s=text, size=style.NORMAL, family=["DejaVu Sans Mono"], **label)
    ax.text(picture, s=where, ha="right", **label)

    if lane_numbers:
        for lane in (0, 8, 16, 24, 31) if narrow else (0, 4, 8, 12, 16, 20, 24, 28, 31):
            text = f"lane {lane}" if lane == 0 else f"{lane}"
            ax.text(0 if lane == 0 else (lane + 0.5) * pitch, lanes_y + 11, text,
                    ha="left" if lane == 0 else "center", va="bottom")
    squares = [(lane * pitch + 1, lanes_y, pitch - 2, 8) for lane in range(WARP)]
    shapes.rectangles(ax, [squares[i] for i in range(WARP) if active[i]], facecolor=colour)
    shapes.frames(ax, [squares[i] for i in range(WARP) if not active[i]], 0.5, alpha=0.5)

    left = (picture - _span(axis) * unit) / 2
    place = {address: left + at * unit for at, address in axis}

    def x_of(byte: int) -> float:
        return place[byte // SECTOR * SECTOR] + byte % SECTOR / SECTOR * unit

    bottom = strip_top - strip
    touched = set(found.sectors)
    shapes.rectangles(ax, [(place[s], bottom, unit, strip) for s in touched], facecolor=colour,
                      alpha=style.PALE)
    addresses = np.asarray(access.addresses, dtype=np.int64) - found.base
    used = coalescing.touched_bytes(addresses, access.bytes_per_lane, active)
    shapes.rectangles(ax, _runs(used, x_of, unit, bottom, strip), facecolor=colour)
    shapes.frames(ax, [(x, bottom, unit, strip) for x in place.values()], 0.5, alpha=0.6)
    middles = [
        (lane, x_of(int(addresses[lane])) + access.bytes_per_lane / SECTOR * unit / 2)
        for lane in range(WARP) if active[lane]
    ]
    shapes.strokes(ax, [(((lane + 0.5) * pitch, lanes_y), (x, strip_top)) for lane, x in middles],
                   edgecolor=colour, linewidth=0.6, alpha=0.75)
    _lines_and_labels(ax, panel, place, unit, bottom, label_y, picture)
    costly = len(found.sectors) > found.least_sectors
    price = style.WARNING if costly else style.INK
    if narrow:
        text = (f"{style.plural(len(found.lines), 'line')}, "
                f"{style.plural(len(found.sectors), 'sector')}, {style.percent(found.efficiency)} "
                f"of {found.sector_bytes:,} B useful")
        ax.text(0, y - 1, text, weight="bold", va="center", color=price)
        return
    for right, text, ink in (
        (_COLUMNS[0], f"{len(found.lines)}", style.INK),
        (_COLUMNS[1], f"{len(found.sectors)}", price),
        (_COLUMNS[2], style.percent(found.efficiency), price),
    ):
        ax.text(right, lanes_y - 3, text, size=14, weight="bold", ha="right", va="center",
                color=ink)
    ax.text(_COLUMNS[2], lanes_y - 17, f"{found.useful_bytes:,} of {found.sector_bytes:,} B",
            ha="right", va="center")


def _runs(
    used: np.ndarray, x_of: Callable[[int], float], unit: float, bottom: float, height: float
) -> list[tuple[float, float, float, float]]:
    """Boxes for runs of neighbouring used bytes within each sector."""
    if not len(used):
        return []
    breaks = np.flatnonzero((np.diff(used) != 1) | (used[1:] % SECTOR == 0)) + 1
    return [
        (x_of(int(run[0])), bottom, len(run) / SECTOR * unit, height)
        for run in np.split(used, breaks)
    ]


def _lines_and_labels(
    ax: Axes, panel: Panel, place: dict[int, float], unit: float, bottom: float, label_y: float,
    picture: float,
) -> None:
    """Mark 128-byte lines under the strip, what is left out between cells, and addresses."""
    if not place:
        ax.text(picture / 2, bottom, "no lane takes part", ha="center")
        return
    addresses = sorted(place)
    found = panel.found
    brackets, gaps = [], []
    for line in found.lines:
        mine = [place[a] for a in addresses if a // LINE * LINE == line]
        brackets.append(((min(mine) + 0.6, bottom - 2.2), (max(mine) + unit - 0.6, bottom - 2.2)))
    for before, after in zip(addresses, addresses[1:], strict=False):
        if after - before != SECTOR:
            gaps.append(((place[before] + unit, bottom + 6), (place[after], bottom + 6)))
    shapes.strokes(ax, brackets, linewidth=1.4)
    shapes.strokes(ax, gaps, linewidth=0.7, linestyle=(0, (1, 1.2)))
    left, right = place[addresses[0]], place[addresses[-1]] + unit
    first = f"{panel.array} + {addresses[0]:,} B"
    jumps = {b - a - SECTOR for a, b in zip(addresses, addresses[1:], strict=False)} - {0}
    narrow = picture < _PICTURE
    if right - left > 0.72 * picture:
        middle = f"{len(found.lines)} lines of four 32-byte sectors"
        if len(jumps) == 1:
            middle = f"{jumps.pop():,} B left out at each gap"
        elif jumps:
            middle = "gaps left out"
        elif len(found.lines) == 1:
            middle = "one 128-byte line, four 32-byte sectors"
        last = "" if narrow else f"+ {addresses[-1]:,} B"
        left, right = _room_for(first, middle, last, left, right, picture)
        ax.text(left, label_y, first, va="top")
        if last:
            ax.text(right, label_y, last, va="top", ha="right")
        ax.text(right if narrow else (left + right) / 2, label_y, middle, va="top",
                ha="right" if narrow else "center")
    else:
        lines = style.plural(len(found.lines), "line")
        if _is_broadcast(found):
            lines = f"one {found.useful_bytes}-byte element for all lanes"
            element = int(panel.access.addresses[np.argmax(panel.access.active)]) - found.base
            first = f"{panel.array} + {element:,} B"
        ax.text((left + right) / 2, label_y, f"{first}: {lines}", va="top", ha="center")


def _room_for(
    first: str, middle: str, last: str, left: float, right: float, picture: float
) -> tuple[float, float]:
    """Widen what three labels share where they would meet, to both sides, inside the picture."""
    widths = [style.text_width(text, style.NORMAL) for text in (first, middle, last)]
    needed = widths[0] + _APART + widths[1]
    if last:  # the middle one is centred
        needed = 2 * max(widths[0], widths[2]) + 2 * _APART + widths[1]
    more = max(0.0, needed - (right - left)) / 2
    return max(left - more, min(left, 0.0)), min(right + more, max(right, picture))


def _finding(groups: Sequence[Group]) -> str:
    panels = [panel for group in groups for panel in group.panels]
    if len(groups) == 1 and len(panels) == 1:
        return _sentence(panels[0].found)
    if len(groups) > 1:
        cheap, dear = groups[0], groups[-1]
        verb, few, many = "load", cheap.loaded_sectors, dear.loaded_sectors
        if few == many:
            verb, few, many = "store", cheap.stored_sectors, dear.stored_sectors
        if few == many:
            return f"{dear.name.capitalize()} and {cheap.name} move the same number of sectors"
        return (
            f"{dear.name.capitalize()}: {style.plural(many, 'sector')} to {verb} what "
            f"{cheap.name} {verb}s with {few}"
        )
    worst = max(panels, key=lambda p: len(p.found.sectors) - p.found.least_sectors)
    if len(worst.found.sectors) == worst.found.least_sectors:
        return "No access moves a sector more than its bytes need"
    # Each line is a cycle of the L1, however few of its sectors are wanted.
    scattered = " in as many lines" * (len(worst.found.lines) == len(worst.found.sectors))
    return (
        f"{worst.label}: {style.plural(len(worst.found.sectors), 'sector')}{scattered} where "
        f"{worst.found.least_sectors} would do"
    )


def _is_broadcast(found: Coalescing) -> bool:
    return found.lanes > 1 and found.useful_bytes * found.lanes == found.requested_bytes


def _sentence(found: Coalescing) -> str:
    lanes, sectors = style.plural(found.lanes, "lane"), style.plural(len(found.sectors), "sector")
    if not found.sectors:
        return "No lane takes part: nothing moves"
    if _is_broadcast(found):
        return f"{lanes}, {sectors}: all read the same {found.useful_bytes} bytes"
    if found.useful_bytes == found.sector_bytes:
        return f"{lanes}, {sectors}: every byte is used"
    return f"{lanes}, {sectors}: {style.percent(found.efficiency)} of the bytes are used"


def _alt(groups: Sequence[Group]) -> str:
    sentences = []
    for group in groups:
        for panel in group.panels:
            found = panel.found
            sentences.append(
                f"{group.name + ', ' if group.name else ''}{panel.kind} {panel.label}: "
                f"{style.plural(found.lanes, 'lane')}, {style.plural(found.requests, 'request')}, "
                f"{style.plural(len(found.sectors), 'sector')} in "
                f"{style.plural(len(found.lines), 'line')}, {found.useful_bytes} of "
                f"{found.sector_bytes} bytes useful ({style.percent(found.efficiency)})."
            )
    return " ".join(sentences)
