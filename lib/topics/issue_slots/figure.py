"""Where does the peak go? Each kernel's issue slots, by what became of them."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.issue_slots.model import Slots

_NAME, _BAR, _ROW, _HEAD = 118.0, 384.0, 25.0, 34.0
# What became of a slot, for people, with its fill: none where the SM had nothing to do.
_PARTS = {
    "fma": ("multiply-adds", style.PHASE["compute"]),
    "other": ("other instructions", style.PHASE["load"]),
    "empty": ("empty: no warp ready", style.PHASE["wait"]),
    "idle": ("SM without work", "none"),
}
_LEAST = 0.03  # a share that is not narrower than its own number


@style.styled
def draw(
    kernels: Mapping[str, Slots], *, evidence: str, current: str | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one bar a kernel, from 0 to the peak.

    Parameters
    ----------
    kernels : mapping of str to models.slots.Slots
        By name, in the order to draw.
    evidence : str
    current : str, optional
        The kernel whose name is bold, and which the finding is about; the last one if not given.
    title : str, optional
        In place of the finding made from the numbers.
    """
    current = current or list(kernels)[-1]
    height = _HEAD + _ROW * len(kernels) + 2
    fig = style.figure(title or _finding(current, kernels[current]), height / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, height / 72, bare=True)
    left = 0.0
    for label, colour in _PARTS.values():
        shapes.rectangles(ax, [(left, height - 12, 9, 9)], facecolor=colour,
                          edgecolor=style.INK if colour == "none" else "none", linewidth=0.8)
        ax.text(left + 13, height - 2, label, size=style.SMALL, va="top")
        left += 28 + 5.6 * len(label)
    ax.text(_NAME + _BAR, height - 16, "peak", size=style.SMALL, ha="right", va="top")
    y = height - _HEAD
    for name, found in kernels.items():
        y -= _ROW
        ax.text(_NAME - 6, y + _ROW / 2, name, size=style.NORMAL, ha="right", va="center",
                weight="bold" if name == current else "normal")
        x = _NAME
        for part, (_, colour) in _PARTS.items():
            share = getattr(found, part)
            width = share * _BAR
            if colour != "none":
                shapes.rectangles(ax, [(x, y + 4, width, _ROW - 8)], facecolor=colour)
            if share >= _LEAST:
                ax.text(x + width / 2, y + _ROW / 2 - 0.5, f"{100 * share:.0f}", size=style.SMALL,
                        ha="center", va="center",
                        color=style.INK if colour == "none" else style.on(colour))
            x += width
        shapes.rectangles(ax, [(_NAME, y + 4, _BAR, _ROW - 8)], facecolor="none",
                          edgecolor=style.INK, linewidth=0.5, alpha=0.7)
    return style.finish(fig, alt=_alt(kernels), evidence=evidence, note="% of all issue slots")


def _finding(name: str, found: Slots) -> str:
    return (
        f"{name}: {style.percent(found.fma)} of all issue slots hold a multiply-add, "
        f"{style.percent(found.empty)} nothing"
    )


def _alt(kernels: Mapping[str, Slots]) -> str:
    return "Of all issue slots, " + " ".join(
        f"{name}: "
        + ", ".join(f"{style.percent(getattr(s, part))} {label}"
                    for part, (label, _) in _PARTS.items())
        + "."
        for name, s in kernels.items()
    )
