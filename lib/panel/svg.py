"""Small pictures for a page, where Matplotlib can't be: the same models, the same colours.

A text has 12 px and more, and takes the page's own colour; a phone has a layout of its own.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lib.ptx.core.machine import BANKS, LINE, SECTOR
from lib.show.colours import ACCESS, PALE, WARNING, on
from lib.topics.memory.banks.model import WORD, Banks
from lib.topics.memory.coalescing.model import WarpAccess, touched_bytes

_LEFT, _CELL, _ROW, _TOP = 30, 20, 18, 20
_NARROW_LEFT, _NARROW_CELL = 20, 18  # px: 16 banks across a phone of 360
_LETTER = 6.9  # px that a letter takes of a name with digits
_MAX_ROWS = 8
_MAX_LINES = 8


Layout = tuple[float, float, str]  # width and height in px, and shapes


def figure(alt: str, wide: Layout, narrow: Layout | None = None) -> str:
    """Put shapes in a ``<figure>`` with alt text, in a second layout for phones where it needs one.

    The book's style sheet shows one of the two, as it does of a figure (`lib.plotting.html.svg`).
    """
    drawings = _svg(alt, wide, ' class="figure-wide"' if narrow else "")
    if narrow:
        drawings += _svg(alt, narrow, ' class="figure-narrow" style="display:none"')
    return f'<figure class="figure-scroll live-figure" tabindex="0">{drawings}</figure>'


def _svg(alt: str, layout: Layout, more: str) -> str:
    width, height, body = layout
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(alt)}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'font-size="12"{more}>{body}</svg>'
    )


def _text(x: float, y: float, said: object, anchor: str = "") -> str:
    begins = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{begins}>{html.escape(str(said))}</text>'


def _texts(parts: Sequence[str], fill: str = "currentColor") -> str:
    """Texts that stand in the middle of their places, unless they say otherwise."""
    return f'<g text-anchor="middle" fill="{fill}">{"".join(parts)}</g>' if parts else ""


def _path(parts: Sequence[str], fill: str, more: str = "") -> str:
    return f'<path d="{"".join(parts)}" fill="{fill}"{more}/>' if parts else ""


def _box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle, as part of a path."""
    return f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"


_GRID = ' stroke="currentColor" stroke-opacity=".3" stroke-width=".5"'


def banks(found: Banks, kind: str, label: str) -> str:
    """Draw an access to shared memory: a row a wavefront, 32 banks across, lanes in the cells.

    On a phone a wavefront has two rows, of 16 banks each.

    Parameters
    ----------
    found : Banks
    kind : str
        ``"load"``, ``"store"``, … : which colour it has.
    label : str
        How the source names it.
    """
    alt = (f"Shared {kind} {label}: {found.wavefronts} wavefronts, ideal {found.ideal}, over "
           f"{len({bank for row in found.rows for _, bank, _ in row})} of {BANKS} banks.")
    return figure(alt, _banks(found, kind, _LEFT, _CELL, BANKS),
                  _banks(found, kind, _NARROW_LEFT, _NARROW_CELL, BANKS // 2))


def _banks(found: Banks, kind: str, left: float, cell: float, across: int) -> Layout:
    shown = found.rows[:_MAX_ROWS]
    left_out = len(found.rows) - len(shown)
    parts_of = BANKS // across
    each = _ROW * parts_of + (4 if parts_of > 1 else 0)
    width, tall = across * cell, _ROW * parts_of
    bottom = _TOP + each * len(shown)
    scale = [_text(0, _TOP - 6, "bank", "start")] if left >= _LEFT else []
    scale += [_text(left + (b + 0.5) * cell, _TOP - 6, b)
              for b in (*range(0, across, 4), across - 1)]
    grid, parts = [], []
    for number, row in enumerate(shown):
        y = _TOP + number * each
        grid += [_box(left, y, width, tall),
                 *(f"M{left} {y + i * _ROW}h{width:g}" for i in range(1, parts_of))]
        colour = WARNING if number >= found.ideal else ACCESS[kind]
        scale.append(_text(left - 6, y + 13, number + 1, "end"))
        lanes: list[dict[int, list[int]]] = [{} for _ in range(parts_of)]
        for lane, bank, _ in row:
            lanes[bank // across].setdefault(bank % across, []).append(lane)
        boxes, said = [], []
        for part, of in enumerate(lanes):
            for bank, many, meeting in _spans(of):
                x, above = left + bank * cell, y + part * _ROW
                boxes.append(_box(x + 1, above + 1, many * cell - 2, _ROW - 2))
                said.append(_text(x + many * cell / 2, above + 13, _name(meeting, many > 1)))
        parts += [_path(boxes, colour), _texts(said, on(colour))]
    # One line a bank, through all wavefronts; dashes leave the gaps between them out.
    columns = [f"M{left + b * cell:g} {_TOP}V{bottom}" for b in range(1, across)]
    gaps = f' stroke-dasharray="{tall} {each - tall}"' if each > tall else ""
    if parts_of > 1:
        scale.append(_text(0, bottom + 13, f"rows in twos: banks 0 to {across - 1}, then "
                           f"{across} to {BANKS - 1}", "start"))
        bottom += _ROW
    if left_out:
        scale.append(_text(left, bottom + 14, f"… and {left_out} more wavefronts", "start"))
        bottom += _ROW
    return (left + width + 4, bottom + 4, _texts(scale) + _path(grid, "none", _GRID)
            + _path(columns, "none", _GRID + gaps) + "".join(parts))


def _name(lanes: Sequence[int], room: bool) -> str:
    """The first of some lanes; a sign for more, but in a single cell beside two digits."""
    more = len(set(lanes)) > 1 and (room or lanes[0] < 10)
    return f"{lanes[0]}{'+' if more else ''}"


def _spans(lanes: dict[int, list[int]]) -> list[tuple[int, int, list[int]]]:
    """Neighbouring banks or words of the same lanes: the first one, how many, and the lanes."""
    found: list[tuple[int, int, list[int]]] = []
    for bank, meeting in sorted(lanes.items()):
        if found and found[-1][2] == meeting and sum(found[-1][:2]) == bank:
            found[-1] = (found[-1][0], found[-1][1] + 1, meeting)
        else:
            found.append((bank, 1, meeting))
    return found


def sectors(access: WarpAccess, base: int, kind: str, label: str) -> str:
    """Draw an access to global memory: a row a 128-byte line, its sectors, and the bytes used.

    On a phone a row is half of a line.

    Parameters
    ----------
    access : WarpAccess
    base : int
        Address of the array.
    kind, label : str
        As of `banks`.
    """
    active = np.asarray(access.active, dtype=bool)
    starts = np.asarray(access.addresses, dtype=np.int64) - base
    used = touched_bytes(starts, access.bytes_per_lane, active)
    touched = np.unique(used // SECTOR)
    first: dict[int, list[int]] = {}  # by word
    for lane in np.flatnonzero(active).tolist():
        begin = int(starts[lane])
        for at in range(begin // WORD, (begin + access.bytes_per_lane - 1) // WORD + 1):
            first.setdefault(at, []).append(lane)
    alt = (f"Global {kind} {label}: {len(touched)} sectors in {len(np.unique(used // LINE))} lines "
           f"of 128 bytes, {len(used)} of {len(touched) * SECTOR} bytes used.")
    sides = LINE // SECTOR
    return figure(alt, _sectors(touched, first, kind, sides), _sectors(touched, first, kind,
                                                                       sides // 2))


def _sectors(
    touched: NDArray[np.int64], first: Mapping[int, list[int]], kind: str, across: int
) -> Layout:
    rows = np.unique(touched // across)
    shown = rows[:_MAX_LINES].tolist()
    left_out = len(rows) - len(shown)
    whole = across == LINE // SECTOR
    names = [f"byte {row * across * SECTOR:,}" for row in shown]
    left = max(84, 8 + round(_LETTER * max(map(len, names), default=0))) if whole else 0
    word, above = 19, 0 if whole else 16  # on a phone a row's name stands above it
    sector, each = word * SECTOR // WORD, _ROW + 4 + above
    top = _TOP if whole else 0
    height = top + each * len(shown) + (18 if left_out else 0) + 4
    scale = [_text(left + i * (sector + 6) + sector / 2, top - 6, f"sector {i}")
             for i in range(across)] if whole else []
    passed: list[str] = []
    fetched: list[str] = []
    boxes, said = [], []
    for number, row in enumerate(shown):
        y = top + number * each + above
        scale.append(_text(left - 8, y + 13, names[number], "end") if whole
                     else _text(0, y - 4, names[number], "start"))
        for i in range(across):
            x = left + i * (sector + 6)
            one = row * across + i
            (fetched if one in touched else passed).append(_box(x, y, sector, _ROW))
            words = range(one * SECTOR // WORD, (one + 1) * SECTOR // WORD)
            for at, many, lanes in _spans({at: first[at] for at in words if at in first}):
                place = x + at % (SECTOR // WORD) * word
                boxes.append(_box(place + 0.5, y + 0.5, many * word - 1, _ROW - 1))
                said.append(_text(place + many * word / 2, y + 13, _name(lanes, many > 1)))
    colour = ACCESS[kind]
    parts = [_path(passed, "none", _GRID), _path(fetched, colour, f' fill-opacity="{PALE}"'),
             _path(boxes, colour), _texts(said, on(colour))]
    if left_out:
        more = "lines" if whole else f"pieces of {across * SECTOR} bytes"
        scale.append(_text(left, height - 6, f"… and {left_out} more {more} like these", "start"))
    return left + across * (sector + 6), height, _texts(scale) + "".join(parts)


def elements(wrong: NDArray[np.bool_]) -> str:
    """Draw C with its wrong elements.

    Parameters
    ----------
    wrong : array of bool, shape (M, N)
    """
    rows, columns = wrong.shape
    scale = 256 / max(rows, columns)
    width, height = columns * scale, rows * scale
    runs = []
    for i, row in enumerate(wrong):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            runs.append(f"M{start} {i}h{end - start}v1h-{end - start}z")
    many = int(wrong.sum())
    body = (
        f'<g transform="translate(8 8) scale({scale:g})">{_path(runs, WARNING)}</g>'
        + _path([_box(8, 8, width, height)], "none", ' stroke="currentColor"')
        + _texts([_text(8, height + 26, f"C, {rows}×{columns}: {many:,} wrong", "start")]))
    alt = f"C of {rows}×{columns} elements, of which {many} are wrong{_where(wrong)}."
    return figure(alt, (max(width, 180) + 16, height + 34, body))


def _where(wrong: NDArray[np.bool_]) -> str:
    rows, columns = np.flatnonzero(wrong.any(1)), np.flatnonzero(wrong.any(0))
    if not len(rows):
        return ""
    return (f": rows {rows[0]} to {rows[-1]}, columns {columns[0]} to {columns[-1]}")


def lanes(active: Sequence[bool], label: str) -> str:
    """Draw which of a warp's 32 lanes take part, on a phone in two rows."""
    alt = f"{label}: {sum(map(bool, active))} of {len(active)} lanes are active."
    return figure(alt, _lanes(active, len(active), _CELL),
                  _lanes(active, len(active) // 2, _NARROW_CELL))


def _lanes(active: Sequence[bool], across: int, cell: float) -> Layout:
    places = [(lane % across * cell, lane // across * _ROW) for lane in range(len(active))]
    every = [_box(x + 1, y + 1, cell - 2, _ROW - 2) for x, y in places]
    names = [_text(x + cell / 2, y + 14, lane) for lane, (x, y) in enumerate(places)]
    runs = np.flatnonzero(active).tolist()
    rests = [lane for lane in range(len(active)) if lane not in runs]
    colour = ACCESS["load"]
    body = (_path(every, "none", ' stroke="currentColor" stroke-opacity=".4"')
            + _path([every[lane] for lane in runs], colour)
            + _texts([names[lane] for lane in runs], on(colour))
            + _texts([names[lane] for lane in rests]))
    return across * cell, len(active) // across * _ROW, body
