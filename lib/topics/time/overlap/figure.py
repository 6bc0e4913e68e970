"""Who waits while a tile is fetched? Warps of an SM over time, for one order of the same work."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.time.overlap.model import MULTIPLY, ROLES, STORE, WAIT, Overlap, Span

_LEFT, _WIDTH = 100.0, 404.0
_HEAD, _ROW, _GAP, _AXIS = 20.0, 16.0, 8.0, 20.0
_KEY = {WAIT: ("wait", "wait for global memory"), STORE: ("load", "store to shared memory"),
        MULTIPLY: ("compute", "multiply")}
_ORDERS = {
    "one buffer": "One buffer", "at once": "Stored at once", "staged": "Stored after multiplying",
    "roles": "Roles",
}


@style.styled
def draw(found: Overlap, *, cycles: float, rows: int = 8) -> Figure:
    """Draw the first cycles of a run.

    Parameters
    ----------
    found : Overlap
        What `lib.topics.time.overlap.model.overlap` returns.
    cycles : float
        How much of it; what follows is cut off.
    rows : int
        Room for that many rows of warps: the frames of an explorer have one height.
    """
    height = _HEAD + _ROW * rows + _GAP + _ROW + _AXIS
    fig = style.figure(_finding(found), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    x = _LEFT
    for phase, (name, text) in _KEY.items():
        shapes.rectangles(ax, [(x, height - 11, 8, 8)], facecolor=style.PHASE[name],
                          alpha=style.PALE if phase == WAIT else 1.0)
        ax.text(x + 12, height - 12, text, size=style.SMALL, va="bottom")
        x += 26 + 5.2 * len(text)
    top, scale = height - _HEAD, _WIDTH / cycles
    for row in range(found.rows):
        y = top - _ROW * (row + 1)
        ax.text(0, y + _ROW / 2, _row(found, row), size=style.SMALL, va="center")
        _bars(ax, [s for s in found.spans if s.row == row], y, scale, cycles)
    y = top - _ROW * rows - _GAP - _ROW
    ax.text(0, y + _ROW / 2, "the SM", size=style.SMALL, weight="bold", va="center")
    _bars(ax, [s for s in found.spans if s.phase != WAIT], y, scale, cycles)
    shapes.strokes(ax, [((_LEFT, y - 3), (_LEFT + _WIDTH, y - 3))], edgecolor=style.INK,
                   linewidth=0.6)
    ax.text(_LEFT, y - 6, "0", size=style.SMALL, va="top")
    ax.text(_LEFT + _WIDTH, y - 6, f"{cycles:,.0f} cycles", size=style.SMALL, ha="right", va="top")
    return style.finish(fig, alt=_alt(found),
                        evidence="modelled: assumed times; the SM does one thing at a time")


def _bars(ax: Axes, spans: list[Span], y: float, scale: float, cycles: float) -> None:
    for phase, (name, _) in _KEY.items():
        shapes.rectangles(ax, [
            (_LEFT + s.start * scale, y + 1.5,
             max((min(s.end, cycles) - s.start) * scale - 0.7, 0.5), _ROW - 3)
            for s in spans if s.phase == phase and s.start < cycles
        ], facecolor=style.PHASE[name], alpha=style.PALE if phase == WAIT else 1.0)


def _row(found: Overlap, row: int) -> str:
    if found.form != ROLES:
        return f"block {row}"
    return f"block {row // 2}, {'producers' if row % 2 else 'consumers'}"


def _finding(found: Overlap) -> str:
    blocks = style.plural(found.blocks, "block")
    return f"{_ORDERS[found.form]}, {blocks}: the SM multiplies {style.percent(found.busy)} of " \
           "the time"


def _alt(found: Overlap) -> str:
    waits = sum(s.end - s.start for s in found.spans if s.phase == WAIT)
    return (
        f"{_ORDERS[found.form]}, {style.plural(found.blocks, 'block')} on an SM, "
        f"{style.plural(found.steps, 'tile')} each: done after {found.end:,.0f} cycles, of which "
        f"the SM multiplies {style.percent(found.busy)}; warps wait for global memory "
        f"{waits:,.0f} cycles, all together."
    )
