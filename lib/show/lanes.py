"""What 32 lanes ask for at once: sectors, banks, one wide load, a rectangle of C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.ptx.core.machine import BANKS, LINE, SECTOR, WARP
from lib.show import coalescing
from lib.show.banks import WORD, describe
from lib.show.coalescing import Coalescing
from lib.show.reuse import floats
from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import plural

_LEFT, _WIDE = 4.0, 320.0


def touched(addresses: Sequence[int]) -> Coalescing:
    """The sectors and lines of a load of one float by each lane."""
    return coalescing.describe(coalescing.Access(np.array(addresses), np.ones(WARP, bool)))


def _load(name: str, addresses: Sequence[int]) -> str:
    """Lanes above, the lines that they touch below, a stroke from each lane to its sector."""
    seen = touched(addresses)
    lines, count = seen.lines, len(seen.lines)
    each = _WIDE / WARP
    drawing = Drawing(345, 108)
    drawing.boxes([(_LEFT + i * each, 2, each - 2, 14) for i in range(WARP)], "focus")
    per_line = _WIDE / count
    wide = per_line / (LINE // SECTOR)
    gap = int(count == 1)

    def place(address: int) -> float:
        line, byte = divmod(address, LINE)
        return _LEFT + lines.index(line * LINE) * per_line + byte // SECTOR * wide

    every = [_LEFT + i * wide for i in range(count * (LINE // SECTOR))]
    drawing.boxes([(x, 76, wide - gap, 18) for x in every], "load", pale=True)
    drawing.boxes([(x, 76, wide - gap, 18) for x in sorted({place(one) for one in addresses})],
                  "load")
    drawing.frames([(_LEFT + i * per_line, 76, per_line - 1, 18) for i in range(count)],
                   faint=True)
    drawing.lines([((_LEFT + i * each + each / 2, 17), (place(one) + wide / 2, 75))
                   for i, one in enumerate(addresses)], faint=True)
    return column(words(name, bold=True), drawing.html(),
                  words(f"{plural(len(seen.sectors), 'sector')} of 32 bytes, "
                        f"{plural(count, 'line')}: {plural(count, 'wavefront')}", worse=count > 1))


def sectors() -> Scene:
    """01: one load of B where a warp lies along a row, one of A where it lies down a column."""
    along, down = [4 * i for i in range(WARP)], [4 * 4096 * i for i in range(WARP)]
    cost = [len(touched(addresses).lines) for addresses in (along, down)]
    return Scene(f"A load of 32 floats: {plural(cost[0], 'wavefront')}, or {cost[1]}",
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

    def rows(self) -> list[tuple[set[int], list[int]]]:
        """Of each wavefront the banks that deliver a word, and the lanes that they deliver to."""
        served = describe(coalescing.Access(
            WORD * np.array(self.first), np.ones(WARP, bool), WORD * self.each))
        return [({bank for _, bank, _ in cells},
                 [lane for lane, _, word in cells if word == self.first[lane]])
                for cells in served.rows]


def _banks(loads: Sequence[Access]) -> str:
    rows = [(*row, f"load {number}: " * (len(loads) > 1))
            for number, load in enumerate(loads, 1) for row in load.rows()]
    wide, high = 240.0, 16.0
    each, end = wide / BANKS, high * len(rows) + 12
    drawing = Drawing(345, end + 6)
    drawing.boxes([(_LEFT + bank * each, i * high, each - 1, high - 2)
                   for i, (banks, *_) in enumerate(rows) for bank in range(BANKS)
                   if bank not in banks], "wait", pale=True)
    drawing.boxes([(_LEFT + bank * each, i * high, each - 1, high - 2)
                   for i, (banks, *_) in enumerate(rows) for bank in sorted(banks)], "load")
    for i, (_, lanes, which) in enumerate(rows):
        whom = "all lanes" if len(lanes) == WARP else f"lanes {lanes[0]} to {lanes[-1]}"
        drawing.text(_LEFT + wide + 6, (i + 1) * high - 5, which + whom)
    drawing.text(_LEFT, end, "bank 0").text(_LEFT + wide, end, "bank 31", "end")
    return drawing.html()


def banks(before: Sequence[Access], after: Sequence[Access]) -> Scene:
    """05: the banks that loads meet, a wavefront a row, before and after."""
    costs = [sum(len(load.rows()) for load in loads) for loads in (before, after)]
    made = [column(words(loads[0].name, bold=True), _banks(loads),
                   words(f"{plural(cost, 'wavefront')}", worse=cost > min(costs)))
            for loads, cost in zip((before, after), costs, strict=True)]
    return Scene(f"Four floats of B for each lane: {costs[0]} wavefronts, then {costs[1]}",
                 row(*made), "modelled: from the lanes' addresses",
                 "a row is a wavefront, and the lanes that it serves; blue: banks that deliver a "
                 "float")


def columns_of_b() -> tuple[list[Access], list[Access]]:
    """Four floats of B for each lane: in 04 its neighbours, in 05 sixteen apart."""
    tx = [lane % 16 for lane in range(WARP)]
    return ([Access("04: a thread's columns are neighbours", [8 * x for x in tx], 4)],
            [Access("05: they lie 16 apart",
                    [x + 16 * j for x in tx]) for j in range(4)])


def wide_loads(before: int, after: int) -> Scene:
    """06: four loads become one; a thread's instructions for one k, before and after."""
    fmas, four, one = 64, Drawing(150, 62), Drawing(150, 62)
    for i in range(4):
        four.boxes([(2 + 37 * i, 40, 34, 20)], "load")
        four.arrow((19 + 37 * i, 20), (19 + 37 * i, 38))
        four.text(19 + 37 * i, 14, "load", "middle")
    one.boxes([(2, 40, 145, 20)], "load")
    one.arrow((74, 20), (74, 38))
    one.text(74, 14, "one load of 128 bits", "middle")
    strips = []
    for name, loads in (("loads of one float, one k", before), ("wide loads, one k", after)):
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


@dataclass(frozen=True)
class Share:
    """What a warp owns of a block's tile: lanes down and across, 4×4 elements each, repeated.

    `apart` rows and columns lie between a lane's groups of 4×4, `times` of them each way.
    """

    name: str
    lanes: tuple[int, int]
    apart: tuple[int, int]
    times: tuple[int, int]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of C that are the warp's."""
        return (4 * self.lanes[0] * self.times[0], 4 * self.lanes[1] * self.times[1])

    def places(self) -> list[tuple[int, int]]:
        """Row and column at which each repetition begins."""
        return [(i * self.apart[0], j * self.apart[1])
                for i in range(self.times[0]) for j in range(self.times[1])]


STRIP = Share("07: two rows of lanes", (2, 16), (64, 64), (2, 2))
TALL = Share("08: eight rows of lanes", (8, 4), (32, 16), (4, 2))


def in_squares(lane: int) -> tuple[int, int]:
    """08: a lane's row and column among its warp's, numbered in squares of four."""
    return lane // 2 % 2 + lane // 8 * 2, lane % 2 + lane // 4 % 2 * 2


def _warp(share: Share) -> str:
    block, (read, fmas) = 128, floats(*share.tile)
    left, edge = 30.0, 20.0
    high, wide = 4 * share.lanes[0], 4 * share.lanes[1]
    drawing = Drawing(left + block + 4, left + block + 4)
    rows, columns = sorted({y for y, _ in share.places()}), sorted({x for _, x in share.places()})
    drawing.boxes([(0, left + y, edge, high - 1) for y in rows], "load")
    drawing.boxes([(left + x, 0, wide - 1, edge) for x in columns], "load")
    drawing.boxes([(left + x, left + y, wide, high) for y, x in share.places()], "focus",
                  pale=True)
    drawing.boxes([(left + x, left + y, 4, 4) for y, x in share.places()], "focus")
    drawing.frames([(left, left, block, block)])
    return column(words(share.name, bold=True), drawing.html(),
                  words(f"{read} floats for {fmas:,} FMAs"))


def _numbers(share: Share) -> str:
    high, wide = 19.0, 28.0
    drawing = Drawing(wide * share.lanes[1], high * share.lanes[0])
    for lane in range(WARP):
        y, x = in_squares(lane)
        box, among = (x * wide, y * high, wide - 2, high - 2), lane in (0, 1, 2)
        drawing.filled(box, lane, "focus", pale=not among)
    return column(words("08: a warp's lanes", bold=True), drawing.html(),
                  words("lane 1 wants lane 0's floats of A, lane 2 those of B"))


def rectangle() -> Scene:
    """08: what a warp owns of a block's tile of 128×128, what it reads for one k, its lanes."""
    (a, p), (b, q) = floats(*STRIP.tile), floats(*TALL.tile)
    return Scene(f"{a / p * WARP:.3g} floats from shared memory per FMA of a warp, then "
                 f"{b / q * WARP:.3g}",
                 row(_warp(STRIP), _warp(TALL), _numbers(TALL)),
                 "modelled: from the tile's sizes",
                 "blue: floats read for one k; pale: a warp's elements of C; pink: lane 0's")
