"""Small pictures for a page, where Matplotlib can't be: the same models, the same colours.

A text has 12 px and more, and takes the page's own colour; a narrow screen scrolls the picture.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lib.plotting.colours import ACCESS, PALE, WARNING, on
from lib.ptx.core.machine import BANKS, LINE, SECTOR
from lib.topics.memory.banks.model import WORD, Banks
from lib.topics.memory.coalescing.model import WarpAccess, touched_bytes

_LEFT, _CELL, _ROW, _TOP = 30, 20, 18, 20
_LETTER = 6.9  # px that a letter takes of a name with digits
_MAX_ROWS = 8
_MAX_LINES = 8


def figure(width: float, height: float, alt: str, body: str) -> str:
    """Put shapes in a ``<figure>`` with alt text."""
    return (
        '<figure class="figure-scroll live-figure" tabindex="0">'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(alt)}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'font-size="12">{body}</svg></figure>'
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

    Parameters
    ----------
    found : Banks
    kind : str
        ``"load"``, ``"store"``, … : which colour it has.
    label : str
        How the source names it.
    """
    shown = found.rows[:_MAX_ROWS]
    left_out = len(found.rows) - len(shown)
    width = _LEFT + BANKS * _CELL + 4
    height = _TOP + _ROW * (len(shown) + bool(left_out)) + 4
    scale = [_text(0, _TOP - 6, "bank", "start")]
    scale += [_text(_LEFT + (b + 0.5) * _CELL, _TOP - 6, b)
              for b in (*range(0, BANKS, 4), BANKS - 1)]
    tall = _ROW * len(shown)
    grid = [_box(_LEFT, _TOP, BANKS * _CELL, tall),
            *(f"M{_LEFT + b * _CELL} {_TOP}v{tall}" for b in range(1, BANKS)),
            *(f"M{_LEFT} {_TOP + i * _ROW}h{BANKS * _CELL}" for i in range(1, len(shown)))]
    parts = [_path(grid, "none", _GRID)]
    for number, row in enumerate(shown):
        y = _TOP + number * _ROW
        colour = WARNING if number >= found.ideal else ACCESS[kind]
        scale.append(_text(_LEFT - 6, y + 13, number + 1, "end"))
        lanes: dict[int, list[int]] = {}
        for lane, bank, _ in row:
            lanes.setdefault(bank, []).append(lane)
        boxes, said = [], []
        for bank, many, meeting in _spans(lanes):
            x = _LEFT + bank * _CELL
            boxes.append(_box(x + 1, y + 1, many * _CELL - 2, _ROW - 2))
            shared = len(set(meeting)) > 1
            said.append(_text(x + many * _CELL / 2, y + 13,
                              f"{meeting[0]}+" if shared else meeting[0]))
        parts += [_path(boxes, colour), _texts(said, on(colour))]
    if left_out:
        scale.append(_text(_LEFT, _TOP + len(shown) * _ROW + 14,
                           f"… and {left_out} more wavefronts", "start"))
    alt = (f"Shared {kind} {label}: {found.wavefronts} wavefronts, ideal {found.ideal}, over "
           f"{len({bank for row in found.rows for _, bank, _ in row})} of {BANKS} banks.")
    return figure(width, height, alt, _texts(scale) + "".join(parts))


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
    lines = np.unique(used // LINE)
    shown = lines[:_MAX_LINES].tolist()
    left_out = len(lines) - len(shown)
    names = [f"byte {line * LINE:,}" for line in shown]
    left, word = max(84, 8 + round(_LETTER * max(map(len, names), default=0))), 19
    sector = word * SECTOR // WORD
    width = left + 4 * (sector + 6)
    height = _TOP + (_ROW + 4) * len(shown) + (18 if left_out else 0) + 4
    scale = [_text(left + i * (sector + 6) + sector / 2, _TOP - 6, f"sector {i}")
             for i in range(LINE // SECTOR)]
    first: dict[int, list[int]] = {}  # by word
    for lane in np.flatnonzero(active).tolist():
        begin = int(starts[lane])
        for at in range(begin // WORD, (begin + access.bytes_per_lane - 1) // WORD + 1):
            first.setdefault(at, []).append(lane)
    passed: list[str] = []
    fetched: list[str] = []
    boxes, said = [], []
    for number, line in enumerate(shown):
        y = _TOP + number * (_ROW + 4)
        scale.append(_text(left - 8, y + 13, names[number], "end"))
        for i in range(LINE // SECTOR):
            x = left + i * (sector + 6)
            each = line * (LINE // SECTOR) + i
            (fetched if each in touched else passed).append(_box(x, y, sector, _ROW))
            words = range(each * SECTOR // WORD, (each + 1) * SECTOR // WORD)
            for at, many, lanes in _spans({at: first[at] for at in words if at in first}):
                place = x + at % (SECTOR // WORD) * word
                boxes.append(_box(place + 0.5, y + 0.5, many * word - 1, _ROW - 1))
                said.append(_text(place + many * word / 2, y + 13,
                                  f"{lanes[0]}+" if len(lanes) > 1 else lanes[0]))
    colour = ACCESS[kind]
    parts = [_path(passed, "none", _GRID), _path(fetched, colour, f' fill-opacity="{PALE}"'),
             _path(boxes, colour), _texts(said, on(colour))]
    if left_out:
        scale.append(_text(left, height - 6, f"… and {left_out} more lines like these", "start"))
    alt = (f"Global {kind} {label}: {len(touched)} sectors in {len(lines)} lines of 128 bytes, "
           f"{len(used)} of {len(touched) * SECTOR} bytes used.")
    return figure(width, height, alt, _texts(scale) + "".join(parts))


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
    return figure(max(width, 180) + 16, height + 34, alt, body)


def _where(wrong: NDArray[np.bool_]) -> str:
    rows, columns = np.flatnonzero(wrong.any(1)), np.flatnonzero(wrong.any(0))
    if not len(rows):
        return ""
    return (f": rows {rows[0]} to {rows[-1]}, columns {columns[0]} to {columns[-1]}")


def lanes(active: Sequence[bool], label: str) -> str:
    """Draw which of a warp's 32 lanes take part."""
    every = [_box(lane * _CELL + 1, 1, _CELL - 2, _ROW - 2) for lane in range(len(active))]
    names = [_text((lane + 0.5) * _CELL, 14, lane) for lane in range(len(active))]
    runs = np.flatnonzero(active).tolist()
    rests = [lane for lane in range(len(active)) if lane not in runs]
    colour = ACCESS["load"]
    body = (_path(every, "none", ' stroke="currentColor" stroke-opacity=".4"')
            + _path([every[lane] for lane in runs], colour)
            + _texts([names[lane] for lane in runs], on(colour))
            + _texts([names[lane] for lane in rests]))
    return figure(len(active) * _CELL, _ROW, f"{label}: {len(runs)} of {len(active)} lanes are "
                  "active.", body)
