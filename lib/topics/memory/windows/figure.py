"""Two address maps as windows on a tile: which row each lane of an ldmatrix points at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.memory.windows import model as windows
from lib.topics.memory.windows.model import Window

_ROW, _LEFT, _HEAD, _GAP = 14.0, 22.0, 60.0, 40.0
_ROWS, _COLUMNS = 16, 24  # halves of the tile that are drawn
_WIDTH = 206.0
_BETWEEN = 22.0  # under each other
_LANES = 8  # halves that an address names


@dataclass(frozen=True)
class Panel:
    """One way to address a tile.

    Attributes
    ----------
    name : str
        ``"mirrored"``.
    expression : str
        How the source says it: ``"&Bs[k + down][n + across]"``.
    found : sequence of Window
        One a lane.
    """

    name: str
    expression: str
    found: Sequence[Window]


@style.styled
def draw(
    panels: Sequence[Panel], *, evidence: str, title: str | None = None, narrow: bool = False
) -> Figure:
    """Draw the maps beside each other: the right one, then the wrong one.

    Parameters
    ----------
    panels : sequence of Panel
        Two at most.
    """
    tall = _HEAD + _ROW * _ROWS + 18
    across, down = (0.0, tall + _BETWEEN) if narrow else (_WIDTH + _LEFT + _GAP - 12, 0.0)
    height = tall + down * (len(panels) - 1)
    fig, ax = style.canvas(title or _finding(panels), height, narrow)
    for number, panel in enumerate(panels):
        _panel(ax, number * across, height - number * down, panel)
    return style.finish(fig, alt=_alt(panels), evidence=evidence)


def _panel(ax: Axes, left: float, height: float, panel: Panel) -> None:
    top, x0 = height - _HEAD, left + _LEFT
    unit = _WIDTH / _COLUMNS
    off = windows.misaligned(panel.found)
    ax.text(left, height - 2, panel.name, size=style.NORMAL, weight="bold", va="top")
    ax.text(left, height - 16, panel.expression, family=["DejaVu Sans Mono"], va="top")
    text = f"{style.plural(len(windows.rows(panel.found)), 'row')}, "
    text += "every address on 16 bytes" if not off else f"{off} addresses off 16 bytes"
    ax.text(left, height - 30, text, va="top")
    for column in range(0, _COLUMNS + 1, 8):
        ax.text(x0 + column * unit, top + 2, f"{column}", ha="center", va="bottom")
    shapes.strokes(ax, [((x0 + column * unit, top), (x0 + column * unit, top - _ROWS * _ROW))
                        for column in range(0, _COLUMNS + 1, 8)], linewidth=0.4, alpha=0.4)
    origin = min(w.column for w in panel.found) // 8 * 8
    groups = [[w for w in panel.found if w.row == row] for row in windows.rows(panel.found)]
    if any(_overlap(group) for group in groups):
        _stairs(ax, x0, top, unit, groups, origin)
    else:
        _rows(ax, x0, top, unit, groups, origin)
    ax.text(x0, top - _ROWS * _ROW - 4, "row and column of the tile, in halves", va="top")


def _overlap(group: Sequence[Window]) -> bool:
    """Whether two lanes name halves in common."""
    columns = sorted(w.column for w in group)
    return any(b - a < _LANES for a, b in zip(columns, columns[1:], strict=False))


def _rows(
    ax: Axes, x0: float, top: float, unit: float, groups: Sequence[Sequence[Window]], origin: int
) -> None:
    """Windows where they lie: a row of the tile a line."""
    first = min(w.row for group in groups for w in group)
    shapes.strokes(ax, [((x0, top - row * _ROW), (x0 + _WIDTH, top - row * _ROW))
                        for row in range(_ROWS + 1)], linewidth=0.4, alpha=0.4)
    for row in range(_ROWS):
        ax.text(x0 - 5, top - (row + 0.5) * _ROW, f"{first + row}", ha="right", va="center")
    boxes: dict[bool, list[tuple[float, float, float, float]]] = {True: [], False: []}
    for w in (w for group in groups for w in group):
        x = x0 + (w.column - origin) * unit
        y = top - (w.row - first + 1) * _ROW + 0.6
        boxes[w.aligned].append((x + 0.5, y, _LANES * unit - 1, _ROW - 1.2))
        colour = style.PHASE["load"] if w.aligned else style.WARNING
        ax.text(x + _LANES * unit / 2, y + _ROW / 2 - 0.9, f"lane {w.lane}", ha="center",
                va="center", color=style.on(colour))
    shapes.rectangles(ax, boxes[True], facecolor=style.PHASE["load"])
    shapes.rectangles(ax, boxes[False], facecolor=style.WARNING)


def _stairs(
    ax: Axes, x0: float, top: float, unit: float, groups: Sequence[Sequence[Window]], origin: int
) -> None:
    """Windows that lie over each other: one line a lane, under the row that all of them name."""
    room = _ROWS * _ROW / len(groups)
    boxes: dict[bool, list[tuple[float, float, float, float]]] = {True: [], False: []}
    for number, group in enumerate(groups):
        y = top - number * room
        shapes.strokes(ax, [((x0, y), (x0 + _WIDTH, y))], linewidth=0.4, alpha=0.4)
        ax.text(x0 - 5, y - 7, f"{group[0].row}", ha="right", va="center")
        ax.text(x0 + 3, y - room + 8, f"lanes {group[0].lane} to {group[-1].lane},\n"
                                      f"all at row {group[0].row}", va="bottom", linespacing=1.2)
        tall = (room - 4) / len(group)
        for place, w in enumerate(group):
            boxes[w.aligned].append((
                x0 + (w.column - origin) * unit + 0.5, y - 2 - (place + 1) * tall + 0.5,
                _LANES * unit - 1, tall - 1.0,
            ))
    y = top - _ROWS * _ROW
    shapes.strokes(ax, [((x0, y), (x0 + _WIDTH, y))], linewidth=0.4, alpha=0.4)
    shapes.rectangles(ax, boxes[True], facecolor=style.PHASE["load"])
    shapes.rectangles(ax, boxes[False], facecolor=style.WARNING)


def _finding(panels: Sequence[Panel]) -> str:
    parts = []
    for panel in panels:
        off = windows.misaligned(panel.found)
        rows = style.plural(len(windows.rows(panel.found)), "row")
        parts.append(f"{panel.name}: {rows}" + (f", {off} addresses off 16 bytes" if off else ""))
    return "; ".join(parts)


def _alt(panels: Sequence[Panel]) -> str:
    return " ".join(
        f"{p.name}, {p.expression}: the {len(p.found)} lanes name "
        f"{style.plural(len(windows.rows(p.found)), 'row')} of the tile, at most "
        f"{max(windows.rows(p.found).values())} lanes a row; {windows.misaligned(p.found)} "
        "addresses are no multiple of 16 bytes."
        for p in panels
    )
