"""Two address maps as windows on a tile: which row each lane of an ldmatrix points at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lib.show.scene import Box, Grid, Scene, column, row, words
from lib.show.words import plural
from lib.topics.memory.windows import model as windows
from lib.topics.memory.windows.model import Window

_ROWS, _COLUMNS = 16, 24  # halves of the tile that are drawn
_CELL = (12.0, 17.0)  # px
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


def draw(panels: Sequence[Panel], *, evidence: str, title: str | None = None) -> Scene:
    """Draw the maps beside each other: the right one, then the wrong one."""
    return Scene(title or _finding(panels), row(*map(_panel, panels)), evidence,
                 "row and column of the tile, in halves")


def _panel(panel: Panel) -> str:
    off = windows.misaligned(panel.found)
    groups = [[w for w in panel.found if w.row == at] for at in windows.rows(panel.found)]
    return column(
        words(panel.name, bold=True), words(panel.expression, code=True),
        words(f"{plural(len(groups), 'row')}, "
              + (f"{off} addresses off 16 bytes" if off else "every address on 16 bytes"),
              worse=off > 0),
        (_stairs if any(map(_overlap, groups)) else _rows)(
            groups, min(w.column for w in panel.found) // 8 * 8).html())


def _overlap(group: Sequence[Window]) -> bool:
    """Whether two lanes name halves in common."""
    columns = sorted(w.column for w in group)
    return any(b - a < _LANES for a, b in zip(columns, columns[1:], strict=False))


def _rows(groups: Sequence[Sequence[Window]], origin: int) -> Grid:
    """Windows where they lie: a row of the tile a line."""
    first = min(w.row for group in groups for w in group)
    grid = _grid({at: first + at for at in range(_ROWS)}, _CELL[1], _ROWS)
    for w in (w for group in groups for w in group):
        x, y, wide, tall = grid.box(w.row - first, w.column - origin, 1, _LANES)
        box, colour = (x + 1, y + 1, wide - 2, tall - 2), "load" if w.aligned else "warning"
        grid.boxes([box], colour).label(box, f"lane {w.lane}", over=colour)
    return grid.ruled(1, 8)


def _stairs(groups: Sequence[Sequence[Window]], origin: int) -> Grid:
    """Windows that lie over each other: one line a lane, under the row that all of them name."""
    grid = _grid({at: group[0].row for at, group in enumerate(groups)},
                 _ROWS * _CELL[1] / len(groups), len(groups))
    boxes: dict[bool, list[Box]] = {True: [], False: []}
    for number, group in enumerate(groups):
        x, y, _, tall = grid.box(number, 0)
        grid.text(x + 4, y + tall - 20, f"lanes {group[0].lane} to {group[-1].lane},")
        grid.text(x + 4, y + tall - 6, f"all at row {group[0].row}")
        high = (tall - 4) / len(group)
        for place, w in enumerate(group):
            boxes[w.aligned].append((x + (w.column - origin) * _CELL[0] + 1, y + 2 + place * high,
                                     _LANES * _CELL[0] - 2, high - 1))
    return grid.boxes(boxes[True], "load").boxes(boxes[False], "warning").ruled(1, 8)


def _grid(down: dict[int, int], tall: float, rows: int) -> Grid:
    return Grid(rows, _COLUMNS, (_CELL[0], tall), across={at: at for at in range(0, _COLUMNS, 8)},
                down=down)


def _finding(panels: Sequence[Panel]) -> str:
    parts = []
    for panel in panels:
        off = windows.misaligned(panel.found)
        rows = plural(len(windows.rows(panel.found)), "row")
        parts.append(f"{panel.name}: {rows}" + (f", {off} addresses off 16 bytes" if off else ""))
    return "; ".join(parts)
