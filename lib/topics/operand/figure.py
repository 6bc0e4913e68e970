"""An operand of a WGMMA as it lies, its descriptor, and one element followed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.topics.operand.model import PER_LINE, START, Operand, lines

_CELL, _ROW, _LEFT, _HEAD = 30.0, 13.0, 30.0, 34.0
_LINES = 16
_TEXT = _LEFT + PER_LINE * _CELL + 18
_HEIGHT = _HEAD + _LINES * _ROW + 16
_FIELDS = (("start", 0, 14), ("leading", 16, 14), ("stride", 32, 14), ("base", 49, 3),
           ("swizzle", 62, 2))


@style.styled
def draw(
    operand: Operand, row: int, k: int,
    evidence: str = "modelled: the emulator's layout, PTX ISA 9.7.15.5",
) -> Figure:
    """Draw where the tile's chunks lie, and say where one element is.

    Parameters
    ----------
    operand : Operand
    row, k : int
        The element.
    evidence : str
    """
    place = operand.element(row, k)
    wavefronts = operand.wavefronts(row, k)
    finding = (f"Row {row}, k {k}: address {place.address:,}, bank {place.bank}; its eight chunks "
               f"take {style.plural(wavefronts, 'wavefront')}")
    fig = style.figure(finding, _HEIGHT / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, _HEIGHT / 72, bare=True)
    _lines(ax, operand, row, k, wavefronts > 1)
    says = _says(operand, row, k)
    for number, (text, bold) in enumerate(says):
        ax.text(_TEXT, _HEIGHT - 2 - 13 * number, text, size=style.SMALL, va="top",
                weight="bold" if bold else "normal")
    alt = f"{finding}. {'. '.join(text for text, _ in says if text)}."
    return style.finish(fig, alt=alt, evidence=evidence)


@style.styled
def absent(why: str) -> Figure:
    """Say why wgmma takes no such operand: the frame of an explorer."""
    fig = style.figure("wgmma takes no such operand", _HEIGHT / 72)
    ax = style.axes(fig, 0.08, 0, style.WIDTH - 0.16, _HEIGHT / 72, bare=True)
    first, _, rest = why.partition(": ")
    for number, text in enumerate((first, rest)):
        ax.text(0, _HEIGHT - 20 - 14 * number, text, size=style.NORMAL, va="top")
    return style.finish(fig, alt=f"No such operand: {why}.", evidence="modelled: PTX ISA 9.7.15")


def _lines(ax: Axes, operand: Operand, row: int, k: int, conflicts: bool) -> None:
    """Lines of 128 bytes; cells are chunks of 16."""
    top = _HEIGHT - _HEAD
    labels = lines(operand)
    count = min(_LINES, 1 + max(labels) // PER_LINE)
    ax.text(0, _HEIGHT - 2, f"lines of 128 bytes from {START:,} on, r.c: chunk c of "
            + ("row r" if operand.order == "K" else "k = r"), size=style.SMALL, va="top")
    for group in range(PER_LINE):
        ax.text(_LEFT + (group + 0.5) * _CELL, top + 2, f"{4 * group}", size=style.SMALL,
                ha="center", va="bottom")
    ax.text(_LEFT - 5, top + 2, "bank", size=style.SMALL, ha="right", va="bottom")
    for line in range(count):
        ax.text(_LEFT - 5, top - (line + 0.5) * _ROW, f"{line}", size=style.SMALL, ha="right",
                va="center")

    def box(at: int) -> tuple[float, float, float, float]:
        return (_LEFT + at % PER_LINE * _CELL, top - (at // PER_LINE + 1) * _ROW, _CELL, _ROW)

    colour = style.WARNING if conflicts else style.PHASE["load"]
    chunk, _ = operand.chunk(row, k)
    own = (int(operand.places[chunk]) - START) // 16
    core = [(int(address) - START) // 16 for address in operand.core(row, k)]
    shapes.rectangles(ax, [box(at) for at in core if at != own and at // PER_LINE < count],
                      facecolor=colour, alpha=style.PALE)
    shapes.rectangles(ax, [box(own)], facecolor=colour)
    for at, label in labels.items():
        if at // PER_LINE < count:
            x, y, w, h = box(at)
            ax.text(x + w / 2, y + h / 2 - 0.5, label, size=style.SMALL, ha="center", va="center",
                    color=style.on(colour) if at == own else style.INK)
    right, bottom = _LEFT + PER_LINE * _CELL, top - count * _ROW
    shapes.strokes(
        ax,
        [((_LEFT, top - r * _ROW), (right, top - r * _ROW)) for r in range(count + 1)]
        + [((_LEFT + c * _CELL, top), (_LEFT + c * _CELL, bottom)) for c in range(PER_LINE + 1)],
        edgecolor=style.INK, linewidth=0.4, alpha=0.4,
    )


def _says(operand: Operand, row: int, k: int) -> list[tuple[str, bool]]:
    """What stands beside the drawing: text, and whether it is a heading."""
    place, bits = operand.element(row, k), operand.bits
    found: list[tuple[str, bool]] = [("the descriptor", True), (f"{bits:016x}", False)]
    for name, first, width in _FIELDS:
        value = bits >> first & (1 << width) - 1
        size = f" = {value * 16:,} B / 16" if width == 14 else ""
        found.append((f"{first + width - 1}–{first}  {name}: {value}{size}", False))
    found += [
        ("", False), (f"element ({row}, {k})", True),
        (f"address {place.address:,}, bank {place.bank}", False),
        (_swizzle(operand.span), False),
        ("", False), ("if A comes from registers", True),
        (f"warp {row // 16}, lane {place.lane}, register {place.register}", False),
        (f"element {place.part} of {4 // operand.item} in it", False),
    ]
    return found


def _swizzle(span: int) -> str:
    if not span:
        return "no XOR: core matrices of 128 B"
    bits = {128: 3, 64: 2, 32: 1}[span]
    return f"bits 4 up XOR bits 7 up: {style.plural(bits, 'bit')}"
