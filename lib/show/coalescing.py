"""What one warp's access to global memory touches: sectors, lines, useful bytes.

The rule (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory", and Nsight
Compute's ``l1tex__t_requests`` and ``l1tex__t_sectors``): an executed warp instruction is one
request at any width; memory moves in 32-byte sectors, and the request costs as many sectors as
its active lanes touch, however few bytes of each they use. Four sectors make a 128-byte line,
the unit of the cache's tags.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lib import ptx
from lib.ptx.core.machine import LINE, SECTOR, WARP
from lib.show import scene
from lib.show.scene import Drawing, Scene, apart, column, side_by_side, words
from lib.show.words import percent, plural


@dataclass(frozen=True)
class Access:
    """An access made by formula instead of by a trace.

    Attributes
    ----------
    addresses : ndarray of int64, shape (32,)
        First byte of each lane's element.
    active : ndarray of bool, shape (32,)
        Lanes that take part.
    bytes_per_lane : int
    """

    addresses: np.ndarray
    active: np.ndarray
    bytes_per_lane: int = 4


WarpAccess = ptx.WarpAccess | Access


@dataclass(frozen=True)
class Coalescing:
    """One request, described.

    Attributes
    ----------
    lanes : int
        Active lanes.
    sectors, lines : tuple of int
        Addresses of the touched 32-byte sectors and 128-byte lines, relative to `base`, ascending.
    base : int
        The allocation's address, or 0.
    requested_bytes : int
        Bytes that all lanes ask for; one byte asked for twice counts twice.
    useful_bytes : int
        Distinct bytes asked for.
    """

    lanes: int
    sectors: tuple[int, ...]
    lines: tuple[int, ...]
    base: int
    requested_bytes: int
    useful_bytes: int

    @property
    def sector_bytes(self) -> int:
        """Bytes of all touched sectors."""
        return SECTOR * len(self.sectors)

    @property
    def efficiency(self) -> float:
        """Useful bytes over moved bytes, 0 to 1."""
        return self.useful_bytes / self.sector_bytes if self.sectors else 0.0

    @property
    def least_sectors(self) -> int:
        """The fewest sectors that could hold the useful bytes."""
        return -(-self.useful_bytes // SECTOR)


def _touched(addresses: np.ndarray, access: WarpAccess) -> np.ndarray:
    """Return the distinct byte addresses that an access's active lanes ask for, ascending."""
    return np.unique(addresses[np.asarray(access.active, dtype=bool), None]
                     + np.arange(access.bytes_per_lane))


def describe(access: WarpAccess, allocation: ptx.Allocation | None = None) -> Coalescing:
    """Describe one warp's access, with addresses relative to the array it falls into.

    Parameters
    ----------
    access : WarpAccess
        From a trace.
    allocation : Allocation, optional
        The array; addresses are absolute if not given.

    Raises
    ------
    ValueError
        If the allocation does not start on a line, for then relative addresses would hide where
        the sectors are cut. (cudaMalloc aligns to 256 bytes, and so does the emulator.)
    """
    base = 0 if allocation is None else int(allocation.base)
    if base % LINE:
        raise ValueError(f"the allocation at {base:#x} does not start on a {LINE}-byte line")
    used = _touched(np.asarray(access.addresses, dtype=np.int64) - base, access)
    lanes = int(np.sum(access.active))
    return Coalescing(lanes=lanes,
                      sectors=tuple(int(s) for s in np.unique(used // SECTOR) * SECTOR),
                      lines=tuple(int(s) for s in np.unique(used // LINE) * LINE), base=base,
                      requested_bytes=lanes * access.bytes_per_lane,
                      useful_bytes=len(used))


# -- drawn: lanes above, sectors below, the price under them --------------------------------------

_SIDE = 312.0  # of the lanes and of the address axis, which are as wide as their column
_GAP = 0.38  # what is left out between two cells, in cells


@dataclass(frozen=True)
class Panel:
    """One access of one warp, as its picture shows it.

    Attributes
    ----------
    label : str
        The expression in the source: ``"B[k * N + col]"``.
    array : str
        Name of the array that the addresses are counted from: ``"B"``.
    access : WarpAccess
    cost : Coalescing
        `describe` of it.
    kind : str
        ``"load"``, ``"store"``, or ``"copy"`` for what a cp.async reads.
    where : str
        The line of the source: ``"01_naive.cu:31"``.
    """

    label: str
    array: str
    access: WarpAccess
    cost: Coalescing
    kind: str = "load"
    where: str = ""

    @property
    def cells(self) -> list[tuple[float, int]]:
        """Sectors on an axis: (position in cells, address); whole lines if they are few."""
        addresses = list(self.cost.sectors)
        if len(self.cost.lines) * LINE <= WARP * SECTOR:
            addresses = [line + part for line in self.cost.lines for part in range(0, LINE, SECTOR)]
        laid, at = [], 0.0
        for number, address in enumerate(addresses):
            at += _GAP * bool(number and address != addresses[number - 1] + SECTOR)
            laid.append((at, address))
            at += 1.0
        return laid


@dataclass(frozen=True)
class Group:
    """The accesses of one variant, by its name, which may be empty where there is only one."""

    name: str
    panels: Sequence[Panel] = field(default_factory=tuple)

    def sectors(self, *kinds: str) -> int:
        """Sectors of all accesses of some kinds together, one request each."""
        return sum(len(panel.cost.sectors) for panel in self.panels if panel.kind in kinds)


def panel(
    label: str, access: WarpAccess, allocation: ptx.Allocation | None = None, *,
    array: str | None = None, kind: str = "load", where: str = "",
) -> Panel:
    """Describe one access for the picture; up to its first bracket the label names the array."""
    return Panel(label, array if array is not None else label.split("[")[0].strip(), access,
                 describe(access, allocation), kind, where)


def draw(groups: Sequence[Group], *, evidence: str) -> Scene:
    """Draw some accesses, the wrong variant under the right one.

    All address axes have one scale, so that the width of what is filled is the price.

    """
    widest = max((_span(one) for group in groups for one in group.panels), default=1.0)
    return Scene(_finding(groups), column(*(
        part for group in groups for part in (
            scene.heading(group.name) if group.name else "",
            side_by_side(picture(one, widest) for one in group.panels))
    )), evidence)


def picture(panel: Panel, cells: float | None = None) -> str:
    """Draw one access: its name, lanes and sectors, and what it costs."""
    cost = panel.cost
    costly = len(cost.sectors) > cost.least_sectors
    return column(
        apart(words(panel.kind, bold=True), words(panel.where)), words(panel.label, code=True),
        apart("<span>lane 0</span>", f"<span>{WARP - 1}</span>"),
        _drawing(panel, max(cells or 0.0, _span(panel), 4.0)).html(stretched=True),
        words(_reached(panel)),
        apart(words(plural(len(cost.sectors), "sector"), bold=True, worse=costly),
              words(f"{percent(cost.efficiency)} useful")))


def _span(panel: Panel) -> float:
    return panel.cells[-1][0] + 1.0 if panel.cells else 0.0


def _drawing(panel: Panel, cells: float) -> Drawing:
    pitch, unit = _SIDE / WARP, _SIDE / cells
    lanes, strip, tall = 1.0, 36.0, 18.0
    left = (_SIDE - _span(panel) * unit) / 2
    place = {address: left + at * unit for at, address in panel.cells}
    active = np.asarray(panel.access.active, dtype=bool)
    starts = np.asarray(panel.access.addresses, dtype=np.int64) - panel.cost.base

    def x_of(byte: int) -> float:
        return place[byte // SECTOR * SECTOR] + byte % SECTOR / SECTOR * unit

    drawing = Drawing(_SIDE, strip + tall + 6)
    squares = [(lane * pitch + 1, lanes, pitch - 2, 9) for lane in range(WARP)]
    drawing.boxes([squares[lane] for lane in np.flatnonzero(active)], panel.kind)
    drawing.frames([squares[lane] for lane in np.flatnonzero(~active)], faint=True)
    drawing.lines([(((lane + 0.5) * pitch, lanes + 9),
                    (x_of(int(starts[lane])) + panel.access.bytes_per_lane / SECTOR * unit / 2,
                     strip)) for lane in np.flatnonzero(active)], panel.kind)
    drawing.boxes([(place[address], strip, unit, tall) for address in panel.cost.sectors],
                  panel.kind, pale=True)
    used = _touched(starts, panel.access)
    breaks = np.flatnonzero((np.diff(used) != 1) | (used[1:] % SECTOR == 0)) + 1
    drawing.boxes([(x_of(int(run[0])), strip, len(run) / SECTOR * unit, tall)
                   for run in np.split(used, breaks) if len(run)], panel.kind)
    drawing.frames([(x, strip, unit, tall) for x in place.values()], faint=True)
    under = strip + tall + 3
    of_lines = ([x for address, x in place.items() if address // LINE * LINE == line]
                for line in panel.cost.lines)
    drawing.lines([((min(mine) + 1, under), (max(mine) + unit - 1, under)) for mine in of_lines])
    return drawing


def _reached(panel: Panel) -> str:
    """What the lanes reach: an element that they share, or how many lines, and how far apart."""
    cost = panel.cost
    of = f" of {panel.array}" if panel.array else ""
    if not cost.lines:
        return "no lane takes part"
    if _is_broadcast(cost):
        return f"{cost.useful_bytes} bytes{of} for all lanes"
    if len(cost.lines) == 1:
        return f"one {LINE}-byte line{of}"
    steps = {b - a for a, b in itertools.pairwise(cost.lines)}
    apart = "" if len(steps) > 1 or steps == {LINE} else f", {steps.pop():,} B apart"
    return f"{plural(len(cost.lines), 'line')}{of}{apart}"


def _finding(groups: Sequence[Group]) -> str:
    panels = [panel for group in groups for panel in group.panels]
    if len(panels) == 1:
        return _sentence(panels[0].cost)
    if len(groups) > 1:
        cheap, dear = groups[0], groups[-1]
        verb = "load"
        few, many = cheap.sectors("load", "copy"), dear.sectors("load", "copy")
        if few == many:
            verb, few, many = "store", cheap.sectors("store"), dear.sectors("store")
        if few == many:
            return f"{dear.name.capitalize()} and {cheap.name} move the same number of sectors"
        return (f"{dear.name.capitalize()}: {plural(many, 'sector')} to {verb} what "
                f"{cheap.name} {verb}s with {few}")
    worst = max(panels, key=lambda p: len(p.cost.sectors) - p.cost.least_sectors)
    if len(worst.cost.sectors) == worst.cost.least_sectors:
        return "No access moves a sector more than its bytes need"
    # Each line is a cycle of the L1, however few of its sectors are wanted.
    scattered = " in as many lines" * (len(worst.cost.lines) == len(worst.cost.sectors))
    return (f"{worst.label}: {plural(len(worst.cost.sectors), 'sector')}{scattered} where "
            f"{worst.cost.least_sectors} would do")


def _is_broadcast(cost: Coalescing) -> bool:
    return cost.lanes > 1 and cost.useful_bytes * cost.lanes == cost.requested_bytes


def _sentence(cost: Coalescing) -> str:
    lanes, sectors = plural(cost.lanes, "lane"), plural(len(cost.sectors), "sector")
    if not cost.sectors:
        return "No lane takes part: nothing moves"
    if _is_broadcast(cost):
        return f"{lanes}, {sectors}: all read the same {cost.useful_bytes} bytes"
    if cost.useful_bytes == cost.sector_bytes:
        return f"{lanes}, {sectors}: every byte is used"
    return f"{lanes}, {sectors}: {percent(cost.efficiency)} of the bytes are used"
