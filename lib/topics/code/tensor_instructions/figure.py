"""What does one instruction multiply, and where does each operand lie? Two of them to one scale."""

from __future__ import annotations

from lib.ptx.core.machine import WARP
from lib.show.scene import Drawing, Scene, column, key, row, words
from lib.show.words import plural
from lib.topics.code.tensor_instructions.model import Multiplies

_GAP, _ROOM = 6.0, 340.0  # px
_SHARED, _REGISTERS = "load", "compute"


def draw(large: Multiplies, small: Multiplies) -> Scene:
    """Draw A left of the sums and B above them, cut where another warp's rows begin.

    Parameters
    ----------
    large, small : Multiplies
        The instruction that is explained, and the one that it replaces, to the same scale.
    """
    _, N, K = large.shape
    scale = (_ROOM - _GAP) / (K + N)
    return Scene(
        f"{large.issuers // WARP} warps multiply as one, with one copy of B: the work of "
        f"{large.flops // small.flops} {_name(small)}",
        key((_SHARED, "in shared memory", True), (_REGISTERS, "in registers", True))
        + row(*(_instruction(one, scale) for one in (large, small))),
        "modelled: shapes and registers from both versions' PTX, rows of a warp from the PTX ISA",
        "to one scale")


def _instruction(one: Multiplies, scale: float) -> str:
    M, N, K = one.shape
    warps = one.issuers // WARP
    where = [f"in {plural(count, 'register')} per lane" if count else "in shared memory"
             for count in (one.a, one.b, one.sums)]
    copies = f", one copy, read by all {warps} warps" if warps > 1 else ""
    rows = f", {M // warps} rows for each warp" if warps > 1 else ""
    return column(
        words(_name(one), bold=True), _drawing(one, scale).html(),
        words(plural(warps, "warp")), words(f"A, {M}×{K}, {where[0]}"),
        words(f"B, {K}×{N}, {where[1]}{copies}"), words(f"sums, {M}×{N}, {where[2]}{rows}"))


def _drawing(one: Multiplies, scale: float) -> Drawing:
    M, N, K = one.shape
    warps = one.issuers // WARP
    x = y = K * scale + _GAP
    drawing = Drawing(x + N * scale + 1, y + M * scale + 1)
    b, a = (x, 1.0, N * scale, K * scale), (1.0, y, K * scale, M * scale)
    sums = (x, y, N * scale, M * scale)
    for box, registers in ((a, one.a), (b, one.b), (sums, one.sums)):
        drawing.boxes([box], _REGISTERS if registers else _SHARED, pale=True)
    each = M // warps * scale
    drawing.lines([((box[0], y + warp * each), (box[0] + box[2], y + warp * each))
                   for warp in range(1, warps) for box in (a, sums)])
    if warps > 1:
        drawing.label(b, "B").text(2, y - _GAP - 2, "A")
        for warp in range(warps):
            drawing.label((x, y + warp * each, N * scale, each), f"warp {warp}: rows "
                          f"{M // warps * warp} to {M // warps * (warp + 1) - 1}")
    return drawing.frames([a, b, sums])


def _name(one: Multiplies) -> str:
    """The instruction as a text calls it: its first word and its shape."""
    return f"{one.opcode.partition('.')[0]}.m{one.shape[0]}n{one.shape[1]}k{one.shape[2]}"
