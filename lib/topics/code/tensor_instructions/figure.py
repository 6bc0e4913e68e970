"""What does one instruction multiply, and where does each operand lie? Two of them to one scale."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.plotting.shapes import Box
from lib.ptx.core.machine import WARP
from lib.topics.code.tensor_instructions.model import Multiplies

_GAP, _LINE, _KEY = 6.0, 12.0, 18.0
_SCALE, _NARROW_SCALE = 1.24, 0.78  # pt an element
_EVIDENCE = ("modelled: shapes and registers from both versions' PTX, rows of a warp from the PTX "
             "ISA")
SHARED, REGISTERS = style.PHASE["load"], style.PHASE["compute"]


@style.styled
def draw(large: Multiplies, small: Multiplies, *, narrow: bool = False) -> Figure:
    """Draw A left of the sums and B above them, cut where another warp's rows begin.

    Parameters
    ----------
    large, small : Multiplies
        The instruction that is explained, and the one that it replaces, to the same scale.
    """
    scale = _NARROW_SCALE if narrow else _SCALE
    M, N, K = large.shape
    own = (K + N) * scale + _GAP
    tall = (K + M) * scale + _GAP
    other = (small.shape[2] + small.shape[0]) * scale + _GAP
    below = 4 * _LINE + other if narrow else 0.0
    height = _KEY + 2 * _LINE + tall + _LINE + below
    fig, ax = style.canvas(_finding(large, small), height, narrow)
    _key(ax, height)
    top = height - _KEY
    _instruction(ax, large, 0.0, top, scale)
    left, y = own + 22, top
    if narrow:
        left, y = 0.0, top - 2 * _LINE - tall - 2 * _LINE
    _instruction(ax, small, left, y, scale, named=narrow)
    _small(ax, small, left, y, scale, narrow)
    return style.finish(fig, alt=_alt(large, small), evidence=_EVIDENCE)


def _instruction(ax: Axes, one: Multiplies, left: float, top: float, scale: float,
                 named: bool = True) -> None:
    """Draw one instruction's operands under its name, with its upper left corner at a place."""
    M, N, K = one.shape
    if named:
        ax.text(left, top - 2, _name(one), size=style.NORMAL, weight="bold", va="top")
    top -= 2 * _LINE
    x, y = left + K * scale + _GAP, top - K * scale - _GAP
    b: Box = (x, top - K * scale, N * scale, K * scale)
    a: Box = (left, y - M * scale, K * scale, M * scale)
    sums: Box = (x, y - M * scale, N * scale, M * scale)
    for box, registers in ((a, one.a), (b, one.b), (sums, one.sums)):
        shapes.rectangles(ax, [box], facecolor=REGISTERS if registers else SHARED, alpha=0.55)
    warps = one.issuers // WARP
    each = M // warps * scale
    cuts = [y - warp * each for warp in range(1, warps)]
    shapes.strokes(ax, [((box[0], at), (box[0] + box[2], at)) for at in cuts
                        for box in (a, sums)], linewidth=1.0)
    shapes.frames(ax, [a, b, sums], 0.8)
    if warps == 1:
        return
    shapes.label(ax, b, f"B, {K}×{N}: one copy, read by all {warps} warps")
    for warp in range(warps):
        rows = f"warp {warp}: rows {M // warps * warp} to {M // warps * (warp + 1) - 1}"
        shapes.label(ax, (x, y - (warp + 1) * each, N * scale, each), rows)
    ax.text(left, y - M * scale - 2, f"A, {M}×{K}", va="top")
    ax.text(x + N * scale, y - M * scale - 2,
            f"sums, {M}×{N}: {one.sums} registers per lane", ha="right", va="top")


def _small(ax: Axes, one: Multiplies, left: float, top: float, scale: float, narrow: bool) -> None:
    """Say what the small instruction is: beside it on a phone, else in lines above and under it."""
    M, N, K = one.shape
    sizes = (f"A, {M}×{K}", f"B, {K}×{N}", f"sums, {M}×{N}")
    said = (f"{style.plural(one.issuers // WARP, 'warp')},", "same scale")
    if narrow:
        x = left + (K + N) * scale + _GAP + 12
        for row, text in enumerate((", ".join(sizes[:2]), sizes[2], " ".join(said))):
            ax.text(x, top - 2 * _LINE + 2 - row * _LINE, text, va="top")
        return
    kind, _, shape = _name(one).partition(".")
    for row, text in enumerate((f"{kind}.", shape)):
        ax.text(left, top - 2 - row * (_LINE - 1), text, size=style.NORMAL, weight="bold", va="top")
    y = top - 2 * _LINE - (K + M) * scale - _GAP - 4
    for row, text in enumerate((*sizes, *said)):
        ax.text(left, y - row * _LINE, text, va="top")


def _key(ax: Axes, height: float) -> None:
    x = 0.0
    for colour, text in ((SHARED, "in shared memory"), (REGISTERS, "in registers")):
        shapes.rectangles(ax, [(x, height - 10, 9, 9)], facecolor=colour, alpha=0.55)
        ax.text(x + 13, height - 1, text, va="top")
        x += 28 + style.text_width(text, style.SMALL)


def _name(one: Multiplies) -> str:
    """The instruction as a text calls it: its first word and its shape."""
    return f"{one.opcode.partition('.')[0]}.m{one.shape[0]}n{one.shape[1]}k{one.shape[2]}"


def _finding(large: Multiplies, small: Multiplies) -> str:
    return (f"{large.issuers // WARP} warps multiply as one, with one copy of B: the work of "
            f"{large.flops // small.flops} {_name(small)}")


def _alt(large: Multiplies, small: Multiplies) -> str:
    said = []
    for one in (large, small):
        M, N, K = one.shape
        warps = one.issuers // WARP
        where = [f"in {count} registers per lane" if count else "in shared memory"
                 for count in (one.a, one.b, one.sums)]
        said.append(
            f"{_name(one)}, of {style.plural(warps, 'warp')}: A, {M}×{K}, {where[0]}; B, {K}×{N}, "
            f"{where[1]}; sums, {M}×{N}, {where[2]}, {M // warps} rows for each warp.")
    return " ".join(said)
