"""What 32 lanes ask for at once: sectors, banks, one wide load, a rectangle of C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.ptx.core.machine import BANKS, LINE, SECTOR, WARP
from lib.ptx.count.banks import wavefronts
from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import plural

_LEFT, _WIDE = 4.0, 320.0


def touched(addresses: Sequence[int]) -> tuple[int, int]:
    """Sectors and lines in which some addresses lie."""
    return len({one // SECTOR for one in addresses}), len({one // LINE for one in addresses})


def _load(name: str, addresses: Sequence[int]) -> str:
    """Lanes above, the lines that they touch below, a stroke from each lane to its sector."""
    lines = sorted({one // LINE for one in addresses})
    sectors, count = touched(addresses)
    each = _WIDE / WARP
    drawing = Drawing(345, 108)
    drawing.boxes([(_LEFT + i * each, 2, each - 2, 14) for i in range(WARP)], "focus")
    per_line = _WIDE / max(len(lines), 1)
    wide = per_line / (LINE // SECTOR)
    gap = 1 if len(lines) == 1 else 0

    def place(address: int) -> float:
        return _LEFT + lines.index(address // LINE) * per_line + address % LINE // SECTOR * wide

    every = [_LEFT + i * wide for i in range(len(lines) * (LINE // SECTOR))]
    drawing.boxes([(x, 76, wide - gap, 18) for x in every], "load", pale=True)
    drawing.boxes([(x, 76, wide - gap, 18) for x in sorted({place(one) for one in addresses})],
                  "load")
    drawing.frames([(_LEFT + i * per_line, 76, per_line - 1, 18) for i in range(len(lines))],
                   faint=True)
    drawing.lines([((_LEFT + i * each + each / 2, 17), (place(one) + wide / 2, 75))
                   for i, one in enumerate(addresses)], faint=True)
    return column(words(name, bold=True), drawing.html(),
                  words(f"{plural(sectors, 'sector')} of 32 bytes, {plural(count, 'line')}: "
                        f"{plural(count, 'wavefront')}", worse=count > 1))


def sectors(pitch: int = 4096) -> Scene:
    """01: one load of B where a warp lies along a row, one of A where it lies down a column."""
    along, down = [4 * i for i in range(WARP)], [4 * pitch * i for i in range(WARP)]
    cost = [touched(addresses)[1] for addresses in (along, down)]
    return Scene(f"The same 32 floats: {plural(cost[0], 'wavefront')}, or {cost[1]}",
                 row(_load("Lanes along a row: the load of B", along),
                     _load("Lanes down a column: the load of A", down)),
                 "modelled: from the lanes' addresses",
                 "pink: the 32 lanes; blue: the sectors that they touch")


@dataclass(frozen=True)
class Access:
    """A load from shared memory: what it is called, each lane's first word, and words per lane."""

    name: str
    first: Sequence[int]
    each: int = 1

    @property
    def cost(self) -> int:
        """Its wavefronts."""
        rows = np.array([[4 * word for word in self.first]])
        return int(wavefronts(rows, nbytes=4 * self.each)[0][0])

    def rows(self) -> list[set[int]]:
        """Of each wavefront the banks that deliver a word, in the order of the groups of lanes."""
        size, made = WARP // self.each, []
        for begin in range(0, WARP, size):
            asked = sorted({first + i for first in self.first[begin:begin + size]
                            for i in range(self.each)})
            while asked:
                served: dict[int, int] = {}
                for word in asked:
                    served.setdefault(word % BANKS, word)
                made.append(set(served))
                asked = [word for word in asked if word not in served.values()]
        return made


def _banks(loads: Sequence[Access]) -> str:
    rows = [banks for load in loads for banks in load.rows()]
    each, high = _WIDE / BANKS, 13.0
    drawing = Drawing(345, high * len(rows) + 18)
    half = [(i, banks) for i, banks in enumerate(rows)]
    drawing.boxes([(_LEFT + bank * each, i * high, each - 1, high - 2)
                   for i, banks in half for bank in range(BANKS) if bank not in banks],
                  "wait", pale=True)
    drawing.boxes([(_LEFT + bank * each, i * high, each - 1, high - 2)
                   for i, banks in half for bank in sorted(banks)], "load")
    drawing.text(_LEFT, high * len(rows) + 12, "bank 0")
    drawing.text(_LEFT + _WIDE, high * len(rows) + 12, "bank 31", "end")
    return drawing.html()


def banks(before: Sequence[Access], after: Sequence[Access]) -> Scene:
    """05: the banks that loads meet, a wavefront a row, before and after."""
    costs = [sum(len(load.rows()) for load in loads) for loads in (before, after)]
    made = [column(words(loads[0].name, bold=True), _banks(loads),
                   words(f"{plural(cost, 'wavefront')}", worse=cost > min(costs)))
            for loads, cost in zip((before, after), costs, strict=True)]
    return Scene(f"The same floats of B: {costs[0]} wavefronts, then {costs[1]}", row(*made),
                 "modelled: from the lanes' addresses",
                 "a row is a wavefront; blue: banks that deliver a float")


def columns_of_b() -> tuple[list[Access], list[Access]]:
    """Four floats of B for each lane: in 04 its neighbours, in 05 sixteen apart."""
    tx = [lane % 16 for lane in range(WARP)]
    return ([Access("04: a thread's columns are neighbours", [8 * x for x in tx], 4)],
            [Access("05: they lie 16 apart", [x + 16 * j for x in tx]) for j in range(4)])


def wide_loads(before: int, after: int, fmas: int = 64) -> Scene:
    """06: four loads become one; a thread's instructions for one k, before and after."""
    four, one = Drawing(150, 62), Drawing(150, 62)
    for i in range(4):
        four.boxes([(2 + 37 * i, 40, 34, 20)], "load")
        four.arrow((19 + 37 * i, 20), (19 + 37 * i, 38))
        four.text(19 + 37 * i, 14, "load", "middle")
        one.text(19 + 37 * i, 54, "", "middle")
    one.boxes([(2, 40, 145, 20)], "load")
    one.arrow((74, 20), (74, 38))
    one.text(74, 14, "one load of 128 bits", "middle")
    strips = []
    for name, loads in (("05, one k", before), ("06, one k", after)):
        strip, cells = Drawing(345, 26), loads + fmas
        each = 340 / (before + fmas)
        strip.boxes([(i * each, 2, each - 1, 20) for i in range(loads)], "load")
        strip.boxes([(i * each, 2, each - 1, 20) for i in range(loads, cells)], "compute")
        strips.append(column(words(f"{name}: {loads} loads, {fmas} FMAs", bold=True),
                             strip.html()))
    return Scene(f"For the same {fmas} FMAs a thread issues {after} loads instead of {before}",
                 column(row(column(words("four floats, 32 bits each", bold=True), four.html()),
                            column(words("four neighbours", bold=True), one.html())),
                        row(*strips)),
                 "modelled: loads of shared memory in the machine code",
                 "a box is an issue slot; blue: load; green: FMA")


def floats_read(high: int, wide: int) -> tuple[int, int]:
    """Floats that a warp with a rectangle of C reads for one k, and its FMAs."""
    return high + wide, high * wide


def _warp(name: str, block: int, tile: tuple[int, int], lane: tuple[int, int]) -> str:
    (high, wide), scale = tile, 1.0
    read, fmas = floats_read(high, wide)
    left, top = 30.0, 30.0
    drawing = Drawing(left + block * scale + 4, top + block * scale + 4)
    drawing.boxes([(0, top, 22, high * scale)], "load")
    drawing.boxes([(left, 0, wide * scale, 22)], "load")
    drawing.boxes([(left, top, wide * scale, high * scale)], "focus", pale=True)
    drawing.boxes([(left, top, lane[1] * scale, lane[0] * scale)], "focus")
    drawing.grid((left, top, block * scale, block * scale), block // high, block // wide,
                 faint=False)
    drawing.text(11, top + high * scale / 2 + 4, "A" if high > 20 else "", "middle", over="load")
    drawing.text(left + wide * scale / 2, 15, "B", "middle", over="load")
    return column(words(name, bold=True), drawing.html(),
                  words(f"{high}×{wide}, a lane {lane[0]}×{lane[1]}: {read} floats for "
                        f"{fmas:,} FMAs"))


def rectangle(before: tuple[int, int] = (16, 128), after: tuple[int, int] = (128, 32)) -> Scene:
    """08: what a warp owns of a block's tile of 128×128, and what it reads for one k."""
    (a, p), (b, q) = floats_read(*before), floats_read(*after)
    return Scene(f"{a / p * WARP:.3g} floats from shared memory per 32 FMAs, then "
                 f"{b / q * WARP:.3g}",
                 row(_warp("07: a flat strip", 128, before, (8, 8)),
                     _warp("08: a tall rectangle", 128, after, (16, 8))),
                 "modelled: from the tile's sizes",
                 "blue: floats read for one k; pink: a warp's elements of C, dark: one lane's")
