"""What the warps of a block do from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import style
from lib.show import scene
from lib.show.scene import Scene, words
from lib.topics.memory.tensor_memory import model
from lib.topics.memory.tensor_memory.model import Steps

_APART = 32  # of the lane's steps: so far apart lie groups of MMAs with a number each
_DOES = {"wait": "waits", "load": "TMA loads issued", "compute": "MMAs issued",
         "store": "tensor memory loaded, C stored", "barrier": "barrier of block or pair"}


def timeline(rows: Sequence[tuple[str, Steps]], roles: Sequence[tuple[str, int]], *, title: str,
             evidence: str, together: bool = True) -> Scene:
    """Draw what each warp of a block does, by the emulator's steps.

    Parameters
    ----------
    rows : sequence of (str, Steps)
        Blocks of one run, or variants.
    roles : sequence of (str, int)
        What the warps do, and how many of them, in order.
    together : bool
        Whether they are of one run, on one scale. Those of several runs have no scale: their
        instructions, one after the other, are no time that could be compared.
    """
    names = [f"{name} {n}" if many > 1 else name for name, many in roles for n in range(many)]
    last = max(found.last for _, found in rows)
    parts = []
    for name, found in rows:
        early, many = model.begun_early(found)
        parts += [words(name, bold=True),
                  words(f"{early} of {many} tiles begun before the one before is loaded" if many
                        else "it issues no MMA"),
                  scene.lanes([(what, _spans(found, warp)) for warp, what in enumerate(names)],
                              last if together else found.last,
                              unit=f"{last:,} instructions in order, no time" if together
                              else "order of instructions, no time")]
    return Scene(title, scene.key(*((phase, text, False) for phase, text in _DOES.items()))
                 + "".join(parts), evidence)


def _spans(found: Steps, warp: int) -> list[scene.Span]:
    """One warp's phases; the tiles of MMAs stand behind each group, of loads on them."""
    marks = [*found.marks[warp], ("end", found.last)]
    spans: list[scene.Span] = [
        (begin, end, f"{phase} slim" if phase == "barrier" else phase, "")
        for (phase, begin), (_, end) in zip(marks, marks[1:], strict=False) if phase in _DOES]
    spans += [(end, end + found.last / 12, "behind", ", ".join(map(str, tiles)))
              for tiles, end in model.bursts(found, warp, found.last / _APART)]
    return spans + [(begin, end, "store", tile)
                    for tile, (begin, end) in model.spans(found, warp, "ld").items()]


@style.styled
def roofs(
    lines: Sequence[tuple[str, float]], peak: float, at: Sequence[tuple[str, float, str]], *,
    title: str, evidence: str, narrow: bool = False,
) -> Figure:
    """Draw a data sheet's roofs and where kernels stand under them by intensity alone.

    Parameters
    ----------
    lines : sequence of (str, float)
        Bandwidths, B/s.
    peak : float
        Of the tensor cores, FLOP/s.
    at : sequence of (str, float, str)
        A kernel and level of memory, its FLOP per byte there, and which of the lines it is under.
    """
    across, height = (style.NARROW, 3.4) if narrow else (style.WIDTH, 3.6)
    fig = style.figure(title, height, across)
    ax = style.axes(fig, 0.62, 0.45, across - 0.8, height - 0.55)
    bandwidths = dict(lines)
    left, right = 10.0, 4000.0
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_ylim(peak / 40, peak * 3)
    ax.set_xlabel("FLOP per byte")
    ax.set_ylabel("PFLOP/s that the roofs allow")
    ticks = [1e14, 2.5e14, 5e14, 1e15, 2e15]
    ax.set_yticks(ticks, [f"{tick / 1e15:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    for name, bandwidth in lines:
        ridge = peak / bandwidth
        ax.plot([left, ridge], [left * bandwidth, peak], color=style.INK)
        x = max(left * 1.1, peak / 36 / bandwidth)
        ax.text(x, x * bandwidth * 1.12,
                name if narrow else f"{name}, {style.quantity(bandwidth, 'B/s')}",
                rotation=_slope(ax, across, height), rotation_mode="anchor")
    ax.plot([min(peak / b for _, b in lines), right], [peak, peak], color=style.INK)
    ax.text(right, peak * 1.08, f"tensor cores, {style.quantity(peak, 'FLOP/s')}", ha="right",
            va="bottom")
    for place, (name, intensity, line) in enumerate(at):
        allowed = min(peak, intensity * bandwidths[line])
        colour = style.WARNING if allowed < peak else style.FOCUS
        ax.plot([intensity, intensity], [peak / 40, allowed], color=colour, linestyle=":")
        ax.plot([intensity], [allowed], marker="o", color=colour, linestyle="none")
        ax.text(intensity * 1.06, peak / 34 * 1.7 ** (len(at) - place - 1), name,
                ha="left" if intensity < 500 else "right")
    said = "; ".join(
        f"{name}: {style.number(x)} FLOP per byte, where the roofs allow "
        f"{style.quantity(min(peak, x * bandwidths[line]), 'FLOP/s')}" for name, x, line in at)
    return style.finish(fig, evidence=evidence,
                        alt=f"Roofs of a data sheet. {said}. No speed of a kernel is shown.")


def _slope(ax: Axes, across: float, height: float) -> float:
    """The angle of a bandwidth's line, degrees."""
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    wide, tall = across - 0.8, height - 0.55
    return float(np.degrees(np.arctan2(tall / np.log(y1 / y0), wide / np.log(x1 / x0))))
