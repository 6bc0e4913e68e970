"""What happened in each issue slot? One bar a kernel, to 100 % of the slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.limits.issue_slots.model import Account

_NAME, _BAR, _ROW, _LINE = 128.0, 376.0, 27.0, 15.0
_NARROW_BAR = 248.0
# Kinds of instruction, and reasons to wait, as Nsight Compute's documentation names them.
_ISSUED = {
    "fma": "FMA", "tensor": "tensor", "memory": "load, store", "integer": "integer, address",
    "control": "other",
}
STALLS = {
    "long_scoreboard": "long scoreboard", "lg_throttle": "LG throttle",
    "short_scoreboard": "short scoreboard", "mio_throttle": "MIO throttle", "barrier": "barrier",
    "wait": "wait", "dispatch_stall": "dispatch", "gmma": "gmma",
}
_OTHER, _IDLE = "other stalls", "SM without a warp"
_LEAST = 0.035  # a share that is not narrower than its own number
_SMALL = 0.02  # a part that is smaller in every bar joins the others


@dataclass(frozen=True)
class _Part:
    label: str
    colour: str
    hatched: bool = False


@style.styled
def draw(
    kernels: Mapping[str, Account], *, evidence: str, current: str | None = None,
    title: str | None = None, narrow: bool = False,
) -> Figure:
    """Draw one bar a kernel, issued slots filled, empty ones hatched by stall.

    Parameters
    ----------
    kernels : mapping of str to issue_slots.model.Account
        By name, in the order to draw.
    current : str, optional
        The kernel whose name is bold, and which the finding is about; the last one if not given.
    """
    current = current or list(kernels)[-1]
    parts, shares = _parts(kernels)
    left, full = (0.0, _NARROW_BAR) if narrow else (_NAME, _BAR)
    above = _LINE if narrow else 0.0
    legend = [_rows_of([(part, parts[part]) for part in parts if parts[part].hatched == hatched],
                       full) for hatched in (False, True)]
    lines = sum(len(rows) for rows in legend) + 2 * narrow
    height = _LINE * lines + 8 + (_ROW + above) * len(kernels) + 2
    fig, ax = style.canvas(title or _finding(current, kernels[current]), height, narrow)
    y = height
    for heading, rows in zip(("issued", "empty, by stall"), legend, strict=True):
        y -= above
        for i, row in enumerate(rows):
            y -= _LINE
            _legend(ax, left, y, row)
            if not i:
                _name(ax, heading, left, y + above + 5, style.SMALL, "normal", narrow)
    y -= 8
    for name, found in shares.items():
        y -= _ROW + above
        _name(ax, name, left, y + (_ROW + above - 6 if narrow else _ROW / 2), style.NORMAL,
              "bold" if name == current else "normal", narrow)
        _bar(ax, left, y, full, parts, found)
    return style.finish(
        fig, alt=_alt(kernels), evidence=evidence,
        note="% of issue slots; hatched: modelled, by warps stalled")


def _parts(kernels: Mapping[str, Account]) -> tuple[dict[str, _Part], dict[str, dict[str, float]]]:
    """What the bars are made of, in order, and each kernel's shares; small ones are joined."""
    def large(name: str) -> bool:
        return any({**one.issued, **one.empty}.get(name, 0) >= _SMALL for one in kernels.values())

    parts = {kind: _Part(_ISSUED[kind], style.ISSUED[kind])
             for kind in _ISSUED if kind == "control" or large(kind)}
    parts |= {stall: _Part(label, style.STALL[stall], True)
              for stall, label in STALLS.items() if large(stall)}
    parts |= {_OTHER: _Part(_OTHER, style.OTHER_STALL, True), _IDLE: _Part(_IDLE, "none", True)}
    shares = {}
    for name, one in kernels.items():
        found = dict.fromkeys(parts, 0.0)
        for kind, share in one.issued.items():
            found[kind if kind in parts else "control"] += share
        for stall, share in one.empty.items():
            found[stall if stall in parts else _OTHER] += share
        found[_IDLE] = one.idle
        shares[name] = found
    return parts, shares


def _name(ax: Axes, text: str, left: float, y: float, size: float, weight: str, narrow: bool
          ) -> None:
    """Write what stands beside a bar or the legend, or above it."""
    ax.text(left if narrow else left - 6, y, text, size=size, ha="left" if narrow else "right",
            va="center", weight=weight)


def _rows_of(parts: list[tuple[str, _Part]], room: float) -> list[list[_Part]]:
    """The legend's entries, in as many rows as they take."""
    rows: list[list[_Part]] = [[]]
    left = 0.0
    for _, part in parts:
        width = _width(part)
        if left + width > room and rows[-1]:
            rows.append([])
            left = 0.0
        rows[-1].append(part)
        left += width
    return rows


def _width(part: _Part) -> float:
    return 26 + 5.4 * len(part.label)


def _legend(ax: Axes, left: float, y: float, row: list[_Part]) -> None:
    for part in row:
        _fill(ax, (left, y, 10, 10), part)
        ax.text(left + 14, y + 5, part.label, va="center")
        left += _width(part)


def _fill(ax: Axes, box: tuple[float, float, float, float], part: _Part) -> None:
    if part.colour == "none":
        shapes.frames(ax, [box])
    elif part.hatched:
        shapes.rectangles(ax, [box], facecolor=part.colour, alpha=style.PALE)
        shapes.rectangles(ax, [box], facecolor="none", edgecolor=part.colour, hatch="////",
                          linewidth=0.6)
    else:
        shapes.rectangles(ax, [box], facecolor=part.colour)


def _bar(
    ax: Axes, left: float, y: float, full: float, parts: Mapping[str, _Part],
    found: Mapping[str, float],
) -> None:
    x = left
    for name, part in parts.items():
        width = found[name] * full
        if width > 0:
            _fill(ax, (x, y + 4, width, _ROW - 8), part)
        if width >= _LEAST * _BAR:
            ax.text(x + width / 2, y + _ROW / 2 - 0.5, f"{100 * found[name]:.0f}", ha="center",
                    va="center", color=style.INK if part.hatched else style.on(part.colour))
        x += width
    shapes.frames(ax, [(left, y + 4, full, _ROW - 8)], 0.5, alpha=0.7)


def label(stall: str) -> str:
    """A stall's name for people."""
    return stall.removesuffix("_stall").replace("_", " ").replace("lg", "LG").replace("mio", "MIO")


def _finding(name: str, found: Account) -> str:
    work = "tensor" if found.issued["tensor"] > found.issued["fma"] else "fma"
    kind = "a tensor instruction" if work == "tensor" else "an FMA"
    main = next(iter(found.empty), None)
    what = f"{style.percent(found.issued[work])} of the issue slots hold {kind}"
    empty = sum(found.empty.values())
    if main is None:
        return f"{name}: {what}"
    return f"{name}: {what}, {style.percent(empty)} stay empty; the largest stall is {label(main)}"


def _alt(kernels: Mapping[str, Account]) -> str:
    said = []
    for name, one in kernels.items():
        shares = [f"{style.percent(share)} {_ISSUED[kind]}"
                  for kind, share in one.issued.items() if share >= 0.005]
        shares += [f"{style.percent(share)} empty by {label(stall)}"
                   for stall, share in one.empty.items() if share >= _SMALL]
        said.append(f"{name}: " + ", ".join(shares) + ".")
    return "Of all issue slots, " + " ".join(said)
