"""Does shared memory serialise? 32 banks across, one row a wavefront, lane numbers in the cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.machine import BANKS
from lib.topics.memory.banks import model as banks
from lib.topics.memory.banks.model import Banks, Cell
from lib.topics.memory.coalescing.model import WarpAccess

_LEFT, _CELL, _NARROW_CELL, _ROW = 26.0, 15.0, 7.0, 13.0
_LABEL, _SCALE, _AFTER = 30.0, 12.0, 12.0
_COUNT = 13.0  # for a phone, a line with the number of wavefronts
_MAX_ROWS = 8


@dataclass(frozen=True)
class Panel:
    """One shared access of one warp.

    Attributes
    ----------
    label : str
        The expression in the source: ``"Bs[k][threadIdx.x]"``.
    found : Banks
        `banks.describe` of it.
    kind : str
        ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"``, or ``"copy"`` for what a cp.async
        writes.
    where : str
        The line of the source.
    """

    label: str
    found: Banks
    kind: str = "load"
    where: str = ""


def panel(
    label: str, access: WarpAccess, *, kind: str = "load", where: str = "",
    source: WarpAccess | None = None, past_l1: bool = False,
) -> Panel:
    """Describe one access for the figure.

    Of a copy, `source` is what it reads in global memory, and `past_l1` says whether it goes past
    the L1.
    """
    if kind == "copy":
        if source is None:
            raise ValueError(f"{label}: what a copy costs depends on its source, too")
        return Panel(label, banks.describe_copy(access, source, past_l1), kind, where)
    return Panel(label, banks.describe(access, kind), kind, where)


@style.styled
def draw(
    panels: Sequence[Panel], *, evidence: str, title: str | None = None, rows: int | None = None,
    narrow: bool = False,
) -> Figure:
    """Draw some accesses to shared memory, one under the other.

    Parameters
    ----------
    panels : sequence of Panel
    rows : int, optional
        Room for that many wavefronts an access, however few or many it takes: the frames of an
        explorer then have one height.
    """
    limit = rows or _MAX_ROWS
    cell = _NARROW_CELL if narrow else _CELL
    heights = [
        _LABEL + _COUNT * narrow + _SCALE + _AFTER + _ROW * (
            rows + 1 if rows else min(p.found.wavefronts, limit) + (p.found.wavefronts > limit)
        )
        for p in panels
    ]
    fig, ax = style.canvas(title or _finding(panels), sum(heights), narrow)
    y = sum(heights)
    for panel, height in zip(panels, heights, strict=True):
        _panel(ax, y, panel, limit, cell)
        y -= height
    return style.finish(fig, alt=_alt(panels), evidence=evidence,
                        note="in each cell: the lane that is served")


def _panel(ax: Axes, top: float, panel: Panel, limit: int, cell: float) -> None:
    narrow = cell < _CELL
    found = panel.found
    label: dict[str, Any] = {"y": top - 14, "va": "bottom"}
    ax.text(0, s=panel.kind, size=style.NORMAL, weight="bold", **label)
    count = f"{style.plural(found.wavefronts, 'wavefront')}, ideal {found.ideal}"
    right = _LEFT + BANKS * cell
    after_kind = 36 if len(panel.kind) < 6 else 56
    room = right - after_kind if narrow else right - 176 - after_kind
    text = style.code(panel.label, room, "" if narrow else panel.where)
    ax.text(after_kind, s=text, size=style.NORMAL, family=["DejaVu Sans Mono"], **label)
    if narrow:
        top -= _COUNT
        ax.text(12 * bool(found.conflicts), top - 14, count, size=style.NORMAL, weight="bold",
                va="bottom")
        mark = 0.0
    else:
        ax.text(right, s=count, size=style.NORMAL, weight="bold", ha="right", **label)
        ax.text(right - 176, s=panel.where, ha="right", **label)
        mark = right - 6.1 * len(count) - 12
    if found.conflicts:
        shapes.rectangles(ax, [(mark, top - 12, 8, 8)], facecolor=style.WARNING)
    for bank in (*range(0, BANKS, 8 if narrow else 4), BANKS - 1):
        ax.text(_LEFT + (bank + 0.5) * cell, top - _LABEL + 1, f"{bank}", ha="center", va="bottom")
    ax.text(0, top - _LABEL + 1, "bank", va="bottom")
    y = top - _LABEL - 1
    contended = _contended(found)
    for number, row in enumerate(found.rows[:limit]):
        y -= _ROW
        _row(ax, y, number, row, panel, contended, cell)
    left_out = found.wavefronts - limit
    if left_out > 0:
        y -= _ROW
        ax.text(_LEFT, y + 2, f"… and {left_out} more like these", va="bottom")


def _contended(found: Banks) -> set[int]:
    """Banks that are asked for a word in more wavefronts than the access needs.

    Where groups of lanes conflict in different banks there may be none: then the busiest.
    """
    if not found.conflicts:
        return set()
    asked = Counter(bank for row in found.rows for bank in {bank for _, bank, _ in row})
    needed = min(found.ideal, max(asked.values()) - 1)
    return {bank for bank, times in asked.items() if times > needed}


def _row(
    ax: Axes, y: float, number: int, row: list[Cell], panel: Panel, contended: set[int],
    cell: float,
) -> None:
    narrow = cell < _CELL
    ax.text(_LEFT - 6, y + _ROW / 2 - 0.5, f"{number + 1}", ha="right", va="center")
    by_word: dict[int, list[int]] = {}
    for lane, _, word in row:
        by_word.setdefault(word, []).append(lane)
    spans: list[tuple[int, int, list[int]]] = []  # first bank, words, lanes
    for word in sorted(by_word):
        bank, lanes = word % BANKS, by_word[word]
        if spans and spans[-1][2] == lanes and spans[-1][0] + spans[-1][1] == bank:
            spans[-1] = (spans[-1][0], spans[-1][1] + 1, lanes)
        else:
            spans.append((bank, 1, lanes))
    is_broadcast = len(spans) == 1 and len(spans[0][2]) > 1
    bank, words, lanes = spans[0]
    right = bank + words < BANKS / 2
    each = {len(shared) for _, _, shared in spans}
    # Several words, each shared by as many lanes: said once, in the widest gap, if there is room.
    free = _widest_gap({b for bank, words, _ in spans for b in range(bank, bank + words)})
    said_once = (not narrow and len(spans) > 1 and len(each) == 1 and min(each) > 1
                 and len(free) >= 8)
    note = range(0)
    if is_broadcast:  # its words stand on the banks beside it: no grid through them
        long = 8 if narrow else 18
        note = range(bank + words, bank + words + long) if right else range(bank - long, bank)
    elif said_once:
        note = range(free.start, free.start + (12 if len(free) >= 12 else 8))
    # Lines weigh half of what a box for each bank does.
    runs = [(start, stop) for start, stop in ((0, note.start), (note.stop, BANKS)) if start < stop
            ] if note else [(0, BANKS)]
    shapes.strokes(ax, [((_LEFT + start * cell, level), (_LEFT + stop * cell, level))
                        for start, stop in runs for level in (y, y + _ROW)]
                   + [((_LEFT + edge * cell, y), (_LEFT + edge * cell, y + _ROW))
                      for start, stop in runs for edge in range(start, stop + 1)],
                   linewidth=0.4, alpha=0.3)
    for colour, these in (
        (style.ACCESS[panel.kind], [span for span in spans if span[0] not in contended]),
        (style.WARNING, [span for span in spans if span[0] in contended]),
    ):
        boxes = [(_LEFT + b * cell + 0.7, y + 0.7, n * cell - 1.4, _ROW - 1.4)
                 for b, n, _ in these]
        if boxes:
            shapes.rectangles(ax, boxes, facecolor=colour)
    for bank, words, lanes in spans:
        colour = style.WARNING if bank in contended else style.ACCESS[panel.kind]
        text = f"{lanes[0]}" if len(lanes) == 1 or said_once else f"{lanes[0]}+"
        if 5.8 * len(text) > words * cell:
            continue
        ax.text(_LEFT + (bank + words / 2) * cell, y + _ROW / 2 - 0.5, text, ha="center",
                va="center", color=style.on(colour))
    if said_once:
        of_these = " of these" if len(free) >= 12 else ""
        ax.text(_LEFT + free.start * cell + 6, y + _ROW / 2 - 0.5,
                f"{len(spans[0][2])} lanes share each{of_these}", ha="left", va="center")
    if is_broadcast:
        bank, words, lanes = spans[0]
        shared = "this word" if words == 1 else f"these {4 * words} bytes"
        ax.text(_LEFT + (bank + words * right) * cell + (6 if right else -6), y + _ROW / 2 - 0.5,
                "broadcast" if narrow else
                f"lanes {lanes[0]} to {lanes[-1]} share {shared}: a broadcast",
                ha="left" if right else "right", va="center")


def _widest_gap(taken: set[int]) -> range:
    """The longest run of banks that are not taken; the last of several."""
    gaps, start = [range(0)], 0
    for bank in (*sorted(taken), BANKS):
        gaps.append(range(start, bank))
        start = bank + 1
    return max(reversed(gaps), key=len)


def _finding(panels: Sequence[Panel]) -> str:
    worst = max(panels, key=lambda p: p.found.wavefronts - p.found.ideal)
    if not worst.found.conflicts:
        loads = {p.label.partition("[")[0]: p.found for p in panels if p.kind == "load"}
        if len(loads) == len(panels) and all(f.bytes_per_lane == 16 for f in loads.values()):
            each = ", ".join(f"of {name} {style.plural(f.wavefronts, 'wavefront')}"
                             for name, f in loads.items())
            return f"A 128-bit load takes: {each}"
        return "No bank conflict: every access takes its ideal number of wavefronts"
    return (
        f"{worst.label}: {style.plural(worst.found.wavefronts, 'wavefront')} where "
        f"{worst.found.ideal} would do"
    )


def _alt(panels: Sequence[Panel]) -> str:
    return " ".join(
        f"Shared {p.kind} {p.label}: {style.plural(p.found.wavefronts, 'wavefront')} over "
        f"{len({bank for row in p.found.rows for _, bank, _ in row})} of 32 banks, "
        f"ideal {p.found.ideal}."
        for p in panels
    )
