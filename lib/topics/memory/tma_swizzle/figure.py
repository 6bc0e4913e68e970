"""The swizzle of TMA and wgmma: a box as it is meant and as it lies, and its descriptor."""

from __future__ import annotations

from collections.abc import Sequence

from lib.ptx.core.machine import LINE
from lib.show import banks
from lib.show.scene import Box as Place
from lib.show.scene import Grid, Scene, column, heading, row, words
from lib.show.words import plural
from lib.topics.memory.tma_swizzle.model import CHUNK, CORE_ROWS, Box, Descriptor

_CELL, _ROWS = (37.0, 16.0), 16  # px; rows that are drawn


def draw(box: Box, *, chunk: int = 2, descriptor: Descriptor | None = None, major: str = "K",
         evidence: str = "modelled: the emulator's swizzle, PTX ISA 9.7.15.5") -> Scene:
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
    served = box.read(0, chunk)
    colour = "warning" if served.conflicts else "load"
    below = ""
    if descriptor:
        below = _descriptor(descriptor, major)
    elif not box.swizzled:
        below = words("wgmma without a swizzle reads another layout: each core matrix in one "
                      "piece of 128 bytes", bold=True)
    return Scene(_finding(box, served), row(
        column(words("as the matrix has it", bold=True),
               words(f"rows along {'K' if major == 'K' else 'N'}, chunks of 8 halves"),
               _logical(box, chunk, colour)),
        column(words("as it lies in shared memory", bold=True),
               words(f"a line of 128 bytes a row: {plural(served.wavefronts, 'wavefront')}"),
               _physical(box, chunk, colour))) + below, evidence)


def _logical(box: Box, chunk: int, colour: str) -> str:
    rows = min(box.rows, _ROWS)
    grid = Grid(rows, box.chunks, _CELL, across={at: at for at in range(box.chunks)},
                down={at: at for at in range(rows)}, left=36)
    return _filled(grid, [grid.box(at, chunk) for at in range(CORE_ROWS)], colour)


def _physical(box: Box, chunk: int, colour: str) -> str:
    per_line = LINE // CHUNK
    lines = min(-(-int(box.places.max() + CHUNK) // LINE), _ROWS)
    grid = Grid(lines, per_line, _CELL, across={group: 4 * group for group in range(per_line)},
                down={line: line for line in range(lines)}, corner="bank", left=36)
    return _filled(grid, [grid.box(place // LINE, place % LINE // CHUNK)
                          for place in map(int, box.core(0, chunk))], colour)


def _filled(grid: Grid, boxes: Sequence[Place], colour: str) -> str:
    """The core matrix with the numbers of its rows, so that it can be followed."""
    for number, box in enumerate(boxes):
        grid.label(box, number, over=colour)
    return grid.boxes(boxes, colour).ruled().html()


def _descriptor(found: Descriptor, major: str) -> str:
    """The fields of its 64 bits, the highest first."""
    leading = "has no meaning here" if major == "K" else "from a slab to the next"
    return heading(f"the descriptor for wgmma, {major}-major") + row(*(
        column(words(f"{name}: {value}", bold=True), words(f"bits {bits}"), words(text))
        for name, bits, value, text in (
            ("swizzle", "63–62", found.mode, ""), ("base", "51–49", 0, ""),
            ("SBO", "45–32", found.stride >> 4, f"{found.stride:,} B / 16: from 8 rows to the "
             "next 8"),
            ("LBO", "29–16", found.leading >> 4, f"{found.leading:,} B / 16: {leading}"),
            ("start", "13–0", found.start >> 4, f"{found.start:,} B / 16"))))


def _finding(box: Box, served: banks.Banks) -> str:
    name = f"{box.span}-byte swizzle" if box.swizzled else f"{box.span}-byte rows as they are"
    met = len({bank for cells in served.rows for _, bank, _ in cells})
    return (f"{name}: 8 rows of a chunk meet {met} of 32 banks, "
            f"{plural(served.wavefronts, 'wavefront')}")
