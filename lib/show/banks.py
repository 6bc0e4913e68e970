"""How a warp's access to shared memory is served: which lanes in which pass, over which banks.

Shared memory has 32 banks of 4-byte words; bank = (address / 4) mod 32. Each bank delivers one
word a pass (a *wavefront*), and any number of lanes may share that word. The rules:

* up to 32 bits a lane: the whole warp at once;
* 64 bits a lane: half a warp at a time; in a load the halves go together if for every active lane
  i lane i XOR 1 is inactive or has the same address, or if the same holds throughout for i XOR 2;
* 128 bits a lane: a quarter of a warp at a time; in a load, under that condition, the two quarters
  of each half go together, the halves never;
* in a store nothing goes together;
* ldmatrix and stmatrix go a matrix at a time: eight lanes, the 16 bytes that each address names.

A group that goes at once takes as many wavefronts as the busiest bank has distinct words. For loads
that is documented for compute capability 7.x (CUDA C++ Programming Guide, "Shared Memory"); the
calibration set in ``results/`` shows it on an H100, for loads and stores, in the counter of the
L1's data stage. ``lib.ptx.count.banks`` has the same rules, and the ideal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.ptx.core.machine import BANKS, WARP
from lib.ptx.count import banks as counted
from lib.ptx.count import cp_async
from lib.show.coalescing import WarpAccess
from lib.show.scene import Box, Drawing, Scene, column, row, words
from lib.show.words import plural

WORD = 4

MATRIX_KINDS = ("ldmatrix", "stmatrix")
MATRIX_ROW = 16  # bytes

Cell = tuple[int, int, int]


@dataclass(frozen=True)
class Banks:
    """One access to shared memory, served.

    Attributes
    ----------
    rows : list of list of (lane, bank, word)
        One list a wavefront; `word` is address // 4. A lane of 64 or 128 bits has 2 or 4 entries.
    ideal : int
        Wavefronts without a conflict, as Nsight Compute counts them (see `lib.ptx.count.banks`).
    bytes_per_lane : int
    """

    rows: list[list[Cell]]
    ideal: int
    bytes_per_lane: int

    @property
    def wavefronts(self) -> int:
        """Passes that the access takes."""
        return len(self.rows)

    @property
    def conflicts(self) -> int:
        """Passes beyond the ideal."""
        return self.wavefronts - self.ideal


def _pairs_agree(addresses: np.ndarray, active: np.ndarray, distance: int) -> bool:
    partner = np.arange(WARP) ^ distance
    return bool(np.all(~active | ~active[partner] | (addresses == addresses[partner])))


def _groups(
    addresses: np.ndarray, active: np.ndarray, bytes_per_lane: int, kind: str
) -> list[np.ndarray]:
    """Lanes that are served together, as arrays of lane numbers; groups without a lane dropped."""
    lanes = np.arange(WARP)
    merge = kind == "load" and any(
        _pairs_agree(addresses, active, distance) for distance in (1, 2)
    )
    if kind in MATRIX_KINDS:
        size = 8
    elif bytes_per_lane <= 4:
        size = 32
    elif bytes_per_lane == 8:
        size = 32 if merge else 16
    elif bytes_per_lane == 16:
        size = 16 if merge else 8
    else:
        raise ValueError(f"a lane's shared access has 1, 2, 4, 8 or 16 bytes, not {bytes_per_lane}")
    groups = [lanes[start : start + size] for start in range(0, WARP, size)]
    return [group[active[group]] for group in groups if active[group].any()]


def describe(access: WarpAccess, kind: str = "load") -> Banks:
    """Serve one access.

    Parameters
    ----------
    access : WarpAccess
        Addresses are bytes from the start of shared memory.
    kind : {"load", "store", "ldmatrix", "stmatrix"}

    Raises
    ------
    ValueError
        If a lane's bytes are none that `kind` has.
    """
    addresses = np.asarray(access.addresses, dtype=np.int64)
    active = np.asarray(access.active, dtype=bool)
    width = access.bytes_per_lane
    if kind in MATRIX_KINDS and width != MATRIX_ROW:
        raise ValueError(f"a row of {kind} has {MATRIX_ROW} bytes, not {width}")
    rows: list[list[Cell]] = []
    for group in _groups(addresses, active, width, kind):
        waiting: dict[int, list[int]] = {}  # bank -> its distinct words, in order of first asking
        served: list[list[Cell]] = []
        for lane in group:
            first = int(addresses[lane]) // WORD
            last = (int(addresses[lane]) + width - 1) // WORD
            for word in range(first, last + 1):
                words = waiting.setdefault(word % BANKS, [])
                if word not in words:
                    words.append(word)
                turn = words.index(word)
                while len(served) <= turn:
                    served.append([])
                served[turn].append((int(lane), word % BANKS, word))
        rows += served
    if kind in MATRIX_KINDS:
        _, ideal = counted.matrix_wavefronts(addresses[None], active[None])
    else:
        _, ideal = counted.wavefronts(addresses[None], active[None], width, kind == "store")
    return Banks(rows, int(ideal[0]), width)


def describe_copy(to: WarpAccess, source: WarpAccess, past_l1: bool) -> Banks:
    """Serve what a cp.async writes (`lib.ptx.count.cp_async`).

    Past the L1 (``.cg``), whole sectors of one 128-byte line that land in one line go in one
    wavefront, in whatever order. Through the L1 (``.ca``), eight lanes go at a time, and no two
    lanes of a wavefront may meet on a bank, be it of the L1's line or of shared memory.

    Parameters
    ----------
    to, source : WarpAccess
        In shared and in global memory, 16 bytes a lane, the same lanes.
    past_l1 : bool

    Raises
    ------
    ValueError
        If the copies are not of 16 bytes, or their wavefronts are none of these.
    """
    if to.bytes_per_lane != MATRIX_ROW or not np.array_equal(to.active, source.active):
        raise ValueError("only copies of 16 bytes, of the lanes that read, can be told apart")
    line = BANKS * WORD
    groups: dict[tuple[int, int], list[Cell]] = {}
    taken: dict[tuple[int, int, int], int] = {}  # pass, side, bank: lanes so far
    for lane in map(int, np.flatnonzero(to.active)):
        at, begin = int(to.addresses[lane]), int(source.addresses[lane])
        key = (begin // line, at // line)
        if not past_l1:
            sides = [(lane // 8, side, address % line) for side, address in enumerate((at, begin))]
            turn = max(taken.get(side, 0) for side in sides)
            taken.update(dict.fromkeys(sides, turn + 1))
            key = (lane // 8, turn)
        cells = groups.setdefault(key, [])
        first = at // WORD
        cells += [(lane, word % BANKS, word) for word in range(first, first + 4)]
    active = np.asarray(to.active, dtype=bool)[None]
    cost = cp_async.cost(np.asarray(to.addresses)[None], np.asarray(source.addresses)[None], active,
                         active, MATRIX_ROW, past_l1)
    if int(cost.wavefronts[0]) != len(groups):
        raise ValueError(f"these copies take {int(cost.wavefronts[0])} wavefronts, of which lanes "
                         f"go in which is not known")
    order = groups if past_l1 else sorted(groups)
    return Banks([groups[key] for key in order], int(cost.ideal[0]), MATRIX_ROW)


# -- drawn: a row a wavefront, banks across, lane numbers in the cells ----------------------------

_LEFT, _CELL, _ROW, _TOP = 20.0, 18.0, 18.0, 18.0  # px: 16 banks across a phone's panel
_HALF = BANKS // 2
_MAX_ROWS = 8


@dataclass(frozen=True)
class Panel:
    """One shared access of one warp, as its picture shows it.

    Attributes
    ----------
    label : str
        The expression in the source: ``"Bs[k][threadIdx.x]"``.
    served : Banks
        `describe` of it.
    kind : str
        ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"``, or ``"copy"`` for what a cp.async
        writes.
    where : str
        The line of the source.
    """

    label: str
    served: Banks
    kind: str = "load"
    where: str = ""


def panel(
    label: str, access: WarpAccess, *, kind: str = "load", where: str = "",
    source: WarpAccess | None = None, past_l1: bool = False,
) -> Panel:
    """Describe one access; of a copy, `source` is what it reads in global memory.

    Raises
    ------
    ValueError
        If it is a copy without a source, or one whose wavefronts no rule is known for.
    """
    if kind != "copy":
        return Panel(label, describe(access, kind), kind, where)
    if source is None:
        raise ValueError(f"{label}: what a copy costs depends on its source, too")
    return Panel(label, describe_copy(access, source, past_l1), kind, where)


def draw(panels: Sequence[Panel], *, evidence: str) -> Scene:
    """Draw some accesses to shared memory, one under the other."""
    return Scene(_finding(panels), column(*map(picture, panels)), evidence,
                 "in a cell: the lane that is served; +: others share its word")


def picture(panel: Panel) -> str:
    """Draw one access: its name, what it costs, and each half of the banks, which may wrap."""
    served = panel.served
    more = served.wavefronts - _MAX_ROWS
    met = {bank // _HALF * _HALF for cells in served.rows for _, bank, _ in cells}
    halves = [first for first in (0, _HALF) if first in met]
    return column(
        row(words(panel.kind, bold=True), words(panel.label, code=True), words(panel.where),
            words(f"{plural(served.wavefronts, 'wavefront')}, ideal {served.ideal}", bold=True,
                  worse=served.conflicts > 0)),
        row(*(_drawing(panel, first, min(served.wavefronts, _MAX_ROWS)).html()
              for first in halves)),
        "" if len(halves) == 2 else words(f"none of banks {_HALF - halves[0]} to "
                                          f"{2 * _HALF - halves[0] - 1}"),
        words(f"… and {more} more wavefronts like these") if more > 0 else "",
        *map(words, dict.fromkeys(filter(None, map(_shared, served.rows[:_MAX_ROWS])))))


def _drawing(panel: Panel, first: int, rows: int) -> Drawing:
    """Half of the banks, a row a wavefront."""
    drawing = Drawing(_LEFT + _HALF * _CELL, _TOP + rows * _ROW + 1)
    drawing.text(0, _TOP - 5, f"bank {first}")
    for bank in range(4, _HALF, 4):
        drawing.text(_LEFT + (bank + 0.5) * _CELL, _TOP - 5, first + bank, "middle")
    drawing.text(_LEFT + _HALF * _CELL, _TOP - 5, first + _HALF - 1, "end")
    drawing.grid((_LEFT, _TOP, _HALF * _CELL, rows * _ROW), rows, _HALF)
    contended = _contended(panel.served)
    boxes: dict[str, list[Box]] = {}
    for number, cells in enumerate(panel.served.rows[:rows]):
        y = _TOP + number * _ROW
        drawing.text(_LEFT - 5, y + 13, number + 1, "end")
        evenly = _shared(cells).endswith("each word")
        for bank, count, lanes in _spans(cells, first):
            box = (_LEFT + (bank - first) * _CELL + 1, y + 1, count * _CELL - 2, _ROW - 2)
            colour = "warning" if bank in contended else panel.kind
            shared = len(lanes) > 1 and not evenly and (count > 1 or lanes[0] < 10)
            boxes.setdefault(colour, []).append(box)
            drawing.label(box, f"{lanes[0]}{'+' if shared else ''}", over=colour)
    for colour, places in boxes.items():
        drawing.boxes(places, colour)
    return drawing


def _spans(cells: Sequence[Cell], first: int) -> list[tuple[int, int, list[int]]]:
    """Neighbouring banks of a half that serve the same lanes: the first, how many, the lanes."""
    lanes: dict[int, list[int]] = {}
    for lane, bank, _ in cells:
        if first <= bank < first + _HALF and lane not in lanes.setdefault(bank, []):
            lanes[bank].append(lane)
    spans: list[tuple[int, int, list[int]]] = []
    for bank, served in sorted(lanes.items()):
        if spans and spans[-1][2] == served and sum(spans[-1][:2]) == bank:
            spans[-1] = (spans[-1][0], spans[-1][1] + 1, served)
        else:
            spans.append((bank, 1, served))
    return spans


def _shared(cells: Sequence[Cell]) -> str:
    """What lanes of a wavefront share, where all of its words are shared by as many."""
    lanes: dict[int, set[int]] = {}
    for lane, _, word in cells:
        lanes.setdefault(word, set()).add(lane)
    sets = {frozenset(each) for each in lanes.values()}
    many = {len(each) for each in sets}
    if len(many) != 1 or many == {1}:
        return ""
    if len(sets) > 1:
        return f"{many.pop()} lanes share each word"
    (lanes_of,) = sets
    what = "this word" if len(lanes) == 1 else f"these {4 * len(lanes)} bytes"
    return f"lanes {min(lanes_of)} to {max(lanes_of)} share {what}: a broadcast"


def _contended(served: Banks) -> set[int]:
    """Banks that are asked for a word in more wavefronts than the access needs.

    Where groups of lanes conflict in different banks there may be none: then the busiest.
    """
    if not served.conflicts:
        return set()
    asked = Counter(bank for row in served.rows for bank in {bank for _, bank, _ in row})
    needed = min(served.ideal, max(asked.values()) - 1)
    return {bank for bank, times in asked.items() if times > needed}


def _finding(panels: Sequence[Panel]) -> str:
    worst = max(panels, key=lambda p: p.served.conflicts)
    if worst.served.conflicts:
        return (f"{worst.label}: {plural(worst.served.wavefronts, 'wavefront')} where "
                f"{worst.served.ideal} would do")
    return "No bank conflict: every access takes its ideal number of wavefronts"
