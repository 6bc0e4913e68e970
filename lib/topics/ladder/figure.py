"""How far up are we? One bar per version, in per cent of cuBLAS; public kernels among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style

_NAME, _BAR, _ROW, _GROUP = 128.0, 250.0, 17.0, 26.0
_NARROW_NAME, _NARROW_BAR = 116.0, 74.0  # the numbers stand in a column behind the bars


@dataclass(frozen=True)
class Rung:
    """One version.

    Attributes
    ----------
    name : str
        ``"01 naive"``.
    group : str
        ``"FP32"`` or ``"FP16"``: each stands against cuBLAS of its own types.
    ratio : float or None
        Of cuBLAS, 1.0 = as fast; None where nothing is recorded.
    tflops : float or None
        TFLOP/s.
    reported_ratio : float or None
        What the source material reports for this version on its T4, of cuBLAS there.
    stale : bool
        The record no longer belongs to this source.
    peer : bool
        Whether it is a public kernel and none of ours: its bar is hollow.
    """

    name: str
    group: str
    ratio: float | None
    tflops: float | None
    reported_ratio: float | None = None
    stale: bool = False
    peer: bool = False

    @property
    def recorded(self) -> tuple[float, float] | None:
        """`ratio` and `tflops`; None where nothing is recorded."""
        if self.ratio is None or self.tflops is None:
            return None
        return self.ratio, self.tflops


@style.styled
def draw(
    rungs: Sequence[Rung], *, evidence: str, current: str | None = None, title: str | None = None,
    rival: str = "cuBLAS", defaults: Mapping[str, float] | None = None, narrow: bool = False,
) -> Figure:
    """Draw the ladder.

    Parameters
    ----------
    rungs : sequence of Rung
        In the order to draw.
    evidence : str
        ``"recorded: H100, 2026-11-21, 4096³"``.
    current : str, optional
        Name of this chapter's rung; it alone is in full colour.
    title : str, optional
        In place of the finding made from the numbers.
    rival : str
        What the ratios are of.
    defaults : mapping of str to float, optional
        By group, the speed of cuBLAS's default heuristic over that of the rival: a second line.
    narrow : bool
        For a phone.
    """
    start, longest = (_NARROW_NAME, _NARROW_BAR) if narrow else (_NAME, _BAR)
    width = style.NARROW if narrow else style.WIDTH
    groups = list(dict.fromkeys(rung.group for rung in rungs))
    height = _ROW * len(rungs) + _GROUP * len(groups) + 4
    fig = style.figure(title or _finding(rungs, current, rival), height / 72, width)
    ax = style.axes(fig, 0.08, 0, width - 0.16, height / 72, bare=True)
    top = max([1.0, *(r.ratio for r in rungs if r.ratio), *(r.reported_ratio or 0 for r in rungs)])
    scale = longest / top
    y = height
    for group in groups:
        y -= _GROUP
        mine = [rung for rung in rungs if rung.group == group]
        ax.text(0, y + 6, group, size=style.LARGE, weight="bold", va="bottom")
        line = start + scale
        shapes.strokes(ax, [((line, y + 5), (line, y - _ROW * len(mine)))], edgecolor=style.INK,
                       linewidth=0.8)
        ax.text(line, y + 7, _of(rival, group), size=style.SMALL, va="bottom",
                ha="right" if narrow else "center")
        default = (defaults or {}).get(group)
        if default:
            at = start + scale * default
            shapes.strokes(ax, [((at, y + 5), (at, y - _ROW * len(mine)))], edgecolor=style.INK,
                           linewidth=0.8, linestyle=(0, (2, 2)))
        for rung in mine:
            y -= _ROW
            _rung(ax, y, rung, start, scale, rung.name == current,
                  start + longest + 5 if narrow else None)
    notes = ["| = reported for a T4, of cuBLAS there"] if any(
        r.reported_ratio is not None for r in rungs) else []
    if defaults:
        notes = [*(["| T4, reported"] if notes else []), "dotted: cuBLAS's default"]
    if any(r.peer for r in rungs):
        notes.append("hollow: public")
    if narrow:
        notes.append("numbers: share, TFLOP/s")
    return style.finish(fig, alt=_alt(rungs, current, rival, defaults or {}), evidence=evidence,
                        note="; ".join(notes))


def _rung(
    ax: Axes, y: float, rung: Rung, start: float, scale: float, is_current: bool,
    column: float | None,
) -> None:
    """One bar, and its numbers behind it; with a `column` for them, they have no units."""
    weight = "bold" if is_current else "normal"
    ax.text(start - 6, y + _ROW / 2, rung.name, size=style.NORMAL, ha="right", va="center",
            weight=weight)
    if rung.recorded is None:
        ax.text(start + 4, y + _ROW / 2, "not recorded yet", size=style.SMALL, va="center")
        return
    ratio, tflops = rung.recorded
    shapes.rectangles(
        ax, [(start, y + 3, ratio * scale, _ROW - 6)],
        facecolor="none" if rung.peer else (
            style.FOCUS if is_current else style.OTHER),
        edgecolor=style.INK if rung.peer else "none", linewidth=0.8 if rung.peer else 0.0,
        alpha=1.0 if is_current or rung.peer else 0.55,
    )
    if rung.reported_ratio is not None:
        tick = start + rung.reported_ratio * scale
        shapes.strokes(ax, [((tick, y + 1), (tick, y + _ROW - 1))], edgecolor=style.INK,
                       linewidth=1.6)
    end = max(start + scale * max(ratio, rung.reported_ratio or 0), start) + 5
    if end - 5 < start + scale < end + 108:  # the line of cuBLAS must not cross the numbers
        end = start + scale + 5
    share, speed = style.percent(ratio), style.number(tflops)
    stale = " (stale)" if rung.stale else ""
    if column is None:
        text = f"{share}, {speed} TFLOP/s{stale}"
    else:
        text = f"{share}{stale}" if stale else f"{share}, {speed}"
    ax.text(column or end, y + _ROW / 2, text, size=style.SMALL, va="center", weight=weight)


def _of(rival: str, group: str) -> str:
    return f"{rival} {group}" if rival == "cuBLAS" else f"{rival}, {group}"


def _finding(rungs: Sequence[Rung], current: str | None, rival: str) -> str:
    known = [(*rung.recorded, rung) for rung in rungs if rung.recorded and not rung.peer]
    if not known:
        return "Nothing is recorded yet"
    ratio, tflops, one = next((r for r in known if r[2].name == current),
                              max(known, key=lambda r: r[0]))
    return (
        f"{one.name} reaches {style.percent(ratio)} of {_of(rival, one.group)}: "
        f"{style.number(tflops)} TFLOP/s"
    )


def _alt(
    rungs: Sequence[Rung], current: str | None, rival: str, defaults: Mapping[str, float]
) -> str:
    parts = [f"cuBLAS's default, {group}: {style.percent(ratio)} of {rival}."
             for group, ratio in defaults.items()]
    for rung in rungs:
        value = "not recorded"
        if rung.recorded:
            ratio, tflops = rung.recorded
            value = (f"{style.percent(ratio)} of {_of(rival, rung.group)}, "
                     f"{style.number(tflops)} TFLOP/s")
        if rung.reported_ratio is not None:
            value += f" (reported on a T4: {style.percent(rung.reported_ratio)})"
        which = " (this chapter)" if rung.name == current else " (public)" if rung.peer else ""
        parts.append(f"{rung.name}{which}: {value}.")
    return " ".join(parts)
