"""The swizzle of TMA and wgmma: a box as it is meant and as it lies, and its descriptor."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.plotting import shapes, style
from lib.ptx.core.machine import LINE
from lib.topics.memory.tma_swizzle.model import CHUNK, CORE_ROWS, Box, Descriptor

_CELL, _ROW, _LEFT, _HEAD, _GAP = 26.0, 12.0, 26.0, 46.0, 40.0
_ROWS, _NARROW_ROWS = 16, 8  # room for so many
_FIELDS = (  # name, first bit, last bit
    ("start", 0, 13), ("LBO", 16, 29), ("SBO", 32, 45), ("base", 49, 51), ("swizzle", 62, 63),
)
_BAR, _NARROW_BAR = 84.0, 112.0


@style.styled
def draw(
    box: Box, *, chunk: int = 2, descriptor: Descriptor | None = None, major: str = "K",
    evidence: str = "modelled: the emulator's swizzle, PTX ISA 9.7.15.5", narrow: bool = False,
) -> Figure:
    """Draw a box's first rows, one core matrix followed from its place in the box to its banks.

    Parameters
    ----------
    box : Box
    chunk : int
        The chunk of the first eight rows that is followed.
    descriptor : Descriptor, optional
        To be shown below, field by field.
    major : {"K", "MN"}
        Which way the rows run.
    """
    rows, bar = (_NARROW_ROWS, _NARROW_BAR) if narrow else (_ROWS, _BAR)
    tall = _HEAD + _ROW * rows + 10
    height = (2 * tall if narrow else tall) + bar
    fig, ax = style.canvas(_finding(box, chunk), height, narrow)
    top = height - _HEAD
    _logical(ax, box, chunk, top, major, rows)
    _physical(ax, box, chunk, *((_LEFT, top - tall) if narrow else
                                (_LEFT + 8 * _CELL + _GAP, top)), rows)
    if descriptor:
        _descriptor(ax, descriptor, major, narrow)
    elif not box.swizzled:
        said = ("wgmma without a swizzle reads another layout:",
                "each core matrix in one piece of 128 bytes")
        ax.text(0, bar - 8, ("\n" if narrow else " ").join(said), size=style.NORMAL, va="top",
                linespacing=1.2)
    return style.finish(fig, alt=_alt(box, chunk, descriptor), evidence=evidence)


def _logical(ax: Axes, box: Box, chunk: int, top: float, major: str, max_rows: int) -> None:
    along = "K" if major == "K" else "N"
    ax.text(0, top + _HEAD - 2, "as the matrix has it", size=style.NORMAL, weight="bold", va="top")
    ax.text(0, top + _HEAD - 15, f"rows along {along}, chunks of 8 halves", va="top")
    for c in range(box.chunks):
        ax.text(_LEFT + (c + 0.5) * _CELL, top + 2, f"{c}", ha="center", va="bottom")
    rows = min(box.rows, max_rows)
    for r in range(rows):
        ax.text(_LEFT - 5, top - (r + 0.5) * _ROW, f"{r}", ha="right", va="center")
    core = [(_LEFT + chunk * _CELL, top - (r + 1) * _ROW, _CELL, _ROW) for r in range(CORE_ROWS)]
    shapes.rectangles(ax, core, facecolor=_colour(box, chunk))
    _numbers(ax, core, _colour(box, chunk))
    shapes.grid(ax, _LEFT, top, (rows, box.chunks), (_ROW, _CELL))


def _physical(ax: Axes, box: Box, chunk: int, left: float, top: float, max_rows: int) -> None:
    per_line = LINE // CHUNK
    found = box.read(0, chunk)
    ax.text(left - _LEFT, top + _HEAD - 2, "as it lies in shared memory", size=style.NORMAL,
            weight="bold", va="top")
    ax.text(left - _LEFT, top + _HEAD - 15,
            f"a line of 128 bytes a row: {style.plural(found.wavefronts, 'wavefront')}", va="top")
    for group in range(per_line):
        ax.text(left + (group + 0.5) * _CELL, top + 2, f"{4 * group}", ha="center", va="bottom")
    ax.text(left - 5, top + 2, "bank", ha="right", va="bottom")
    places = box.places
    lines = min(-(-int(places.max() + CHUNK) // LINE), max_rows)
    for line in range(lines):
        ax.text(left - 5, top - (line + 0.5) * _ROW, f"{line}", ha="right", va="center")
    # Every chunk's own column number, so that the XOR can be read off.
    core = [
        (left + place % LINE // CHUNK * _CELL, top - (place // LINE + 1) * _ROW, _CELL, _ROW)
        for place in map(int, box.core(0, chunk))
    ]
    shapes.rectangles(ax, core, facecolor=_colour(box, chunk))
    _numbers(ax, core, _colour(box, chunk))
    shapes.grid(ax, left, top, (lines, per_line), (_ROW, _CELL))


def _numbers(ax: Axes, boxes: list[tuple[float, float, float, float]], colour: str) -> None:
    for row, (x, y, w, h) in enumerate(boxes):
        ax.text(x + w / 2, y + h / 2 - 0.5, f"{row}", ha="center", va="center",
                color=style.on(colour))


def _colour(box: Box, chunk: int) -> str:
    return style.WARNING if box.read(0, chunk).conflicts else style.PHASE["load"]


def _descriptor(ax: Axes, found: Descriptor, major: str, narrow: bool) -> None:
    """64 bits, the highest at the left, and what stands in them."""
    left, y = (14.0, _NARROW_BAR - 54) if narrow else (14.0, 30.0)
    width = (_LEFT if narrow else 8 * _CELL + _GAP + _LEFT) + 8 * _CELL - left
    unit = width / 64
    ax.text(0, (_NARROW_BAR if narrow else _BAR) - 8, f"the descriptor for wgmma, {major}-major",
            size=style.NORMAL, weight="bold", va="top")
    bits = {"start": found.start >> 4, "LBO": found.leading >> 4, "SBO": found.stride >> 4,
            "base": 0, "swizzle": found.mode}
    whole = {"start": found.start, "LBO": found.leading, "SBO": found.stride}
    boxes = []
    for name, first, last in _FIELDS:
        x, w = left + (63 - last) * unit, (last - first + 1) * unit
        boxes.append((x, y, w, 16))
        middle = x + w / 2
        ax.text(middle, y + 7.5, f"{bits[name]}", ha="center", va="center")
        below = f"{name}: {whole[name]:,} B / 16" if name in whole and not narrow else name
        ax.text(middle, y - 4, below, va="top", ha="center")
        ax.text(middle, y + 18, f"{last}–{first}", ha="center", va="bottom")
    shapes.frames(ax, [(left, y, width, 16)], alpha=0.4)
    shapes.frames(ax, boxes, 0.8)
    stride = "SBO: from 8 rows to the next 8"
    leading = "LBO: has no meaning here" if major == "K" else "LBO: from a slab to the next"
    if narrow:
        said = [f"start: {found.start:,} B / 16",
                f"{leading} ({found.leading:,} B / 16)", f"{stride} ({found.stride:,} B / 16)"]
        ax.text(0, y - 18, "\n".join(said), va="top", linespacing=1.2)
    else:
        ax.text(0, 4, f"{stride}; {leading}", va="bottom")


def _finding(box: Box, chunk: int) -> str:
    found = box.read(0, chunk)
    name = f"{box.span}-byte swizzle" if box.swizzled else f"{box.span}-byte rows as they are"
    return (
        f"{name}: 8 rows of a chunk meet "
        f"{len({bank for cells in found.rows for _, bank, _ in cells})} of 32 banks, "
        f"{style.plural(found.wavefronts, 'wavefront')}"
    )


def _alt(box: Box, chunk: int, descriptor: Descriptor | None) -> str:
    places = ", ".join(
        f"row {row} line {place // LINE} chunk {place % LINE // CHUNK}"
        for row, place in enumerate(map(int, box.core(0, chunk)))
    )
    text = f"{_finding(box, chunk)}. Chunk {chunk} of the first eight rows lies at {places}."
    if descriptor:
        text += (
            f" Descriptor: start {descriptor.start} bytes, LBO {descriptor.leading} bytes, SBO "
            f"{descriptor.stride} bytes, swizzle mode {descriptor.mode}."
        )
    return text
