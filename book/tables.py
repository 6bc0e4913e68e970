"""Tables that fit the page: no word of a cell breaks, and a phone shows one of words as cards.

A table of numbers stays one on a phone, where it scrolls sideways in its own frame behind the
names of its rows, so that a row can be compared; one of words becomes a card per row. Here each
cell learns the name of its column, each table whether it is wider than a phone or than the column
of a wide screen, and long names in code where they may be broken; the style sheet does the rest
(`book/static/book.css`).
"""

from __future__ import annotations

import html
import re

CARDS, NUMBERS, TIGHT = "table-cards", "table-numbers", "table-tight"
# Estimated pixels: a phone's column inside of a fold; a column of 733 px, with something to spare.
PHONE, COLUMN = 290, 560
LONG = 24  # characters of a name in code that may be broken: shorter ones stay whole
# Characters of a head, and of a cell, that a phone would set one word below the other.
TALL = {"th": 16, "td": 28}
NAME = 12  # of a row's name, for which it would be a narrow column
_VALUE = re.compile(r"[–-]$|[-−+~≈≤≥<>]?\s?\d|not recorded|none$")
_LETTER, _PADDING, _LINE = 8.0, 20.0, 14
_TABLE = re.compile(r'<table class="table">(.*?)</table>', re.S)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)</tr>", re.S)
_CELL = re.compile(r"<(t[hd])\b([^>]*)>(.*?)</\1>", re.S)
# What a browser would break behind its dash, beside its dots, or before its number.
_WHOLE = re.compile(
    r"(<[^>]*>)|([\d.,]+–[\d.,]+(?:\s?%)?|&lt;…&gt;|± [\d.,]+%?|\d{4}-\d\d-\d\d|[\d.]+e-\d+)")
_EVIDENCE = re.compile(r"<em>[^<]*\d{4}-\d\d-\d\d[^<]*</em>")
_CODE = re.compile(r"<code\b([^>]*)>(.*?)</code>", re.S)
_JOINT = re.compile(r"(<[^>]*>)|((?:&\w+;|[^\w\s&<>]|_)+)(?=\w)")


def arranged(page: str) -> str:
    """Return a page whose tables know how wide they are, and whose cells know their column's name.

    No date breaks, in a cell or in the line of evidence under it.

    Parameters
    ----------
    page : str
        HTML. A table with cells over several rows or columns stays as it is.
    """
    page = _EVIDENCE.sub(lambda found: _WHOLE.sub(_unbroken, found[0]), page)
    return _TABLE.sub(_arranged, page)


def _arranged(found: re.Match[str]) -> str:
    text = found[1]
    if re.search(r"\b(row|col)span=", text) or "<thead" not in text:
        return found[0]
    rows = [_CELL.findall(row) for row in _ROW.findall(text)]
    width = estimated([[cell for _, _, cell in row] for row in rows])
    cells = [_text(cell) for row in rows[1:] for _, _, cell in row[1:]]
    values = sum(len(cell) <= TALL["td"] and bool(_VALUE.match(cell)) or not cell
                 for cell in cells)
    narrow = NUMBERS if 2 * values >= len(cells) else CARDS
    classes = "table" + f" {narrow}" * (width > PHONE) + f" {TIGHT}" * (width > COLUMN)
    names = [_text(cell) for _, _, cell in rows[0]]
    head, body = text.split("</thead>", 1)
    head = _CELL.sub(_headed, _CODE.sub(_breakable, head))
    body = _ROW.sub(lambda row: _named(row[0], names), body)
    return f'<table class="{classes}">{head}</thead>{body}</table>'


def _named(row: str, names: list[str]) -> str:
    column = iter(enumerate(names))

    def cell(found: re.Match[str]) -> str:
        place, name = next(column, (1, ""))
        label = f' data-label="{html.escape(name)}"' if name and _text(found[3]) else ""
        label += _tall(found, NAME if place == 0 else TALL[found[1]])
        inside = _WHOLE.sub(_unbroken, _CODE.sub(_breakable, found[3]))
        return f"<{found[1]}{found[2]}{label}>{inside}</{found[1]}>"

    return _CELL.sub(cell, row)


def _headed(head: re.Match[str]) -> str:
    return f"<{head[1]}{head[2]}{_tall(head, TALL['th'])}>{head[3]}</{head[1]}>"


def _tall(cell: re.Match[str], limit: int) -> str:
    return " data-tall" if " " in _text(cell[3])[:limit + 1].strip() and len(
        _text(cell[3])) > limit else ""


def _unbroken(found: re.Match[str]) -> str:
    return found[1] or f'<span class="whole">{found[2]}</span>'


def _breakable(code: re.Match[str]) -> str:
    """A long name in code, which may be broken behind its punctuation."""
    if len(_text(code[2])) <= LONG:
        return code[0]
    inside = _JOINT.sub(lambda found: found[1] or f"{found[2]}<wbr>", code[2])
    return f'<span class="long-name"><code{code[1]}>{inside}</code></span>'


def _text(cell: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", cell)).split())


def estimated(rows: list[list[str]]) -> float:
    """The pixels that a table needs about, its cells wrapped where they may be.

    Parameters
    ----------
    rows : list of list of str
        The HTML of each cell.
    """
    def least(cell: str) -> int:
        names = [len(_text(code)) for _, code in _CODE.findall(cell)]
        words = [len(word) for word in _text(_CODE.sub(" ", cell)).split()]
        return max([*(n for n in names if n <= LONG), *words,
                    min(len(_text(cell)), _LINE)], default=0)

    columns = max(map(len, rows), default=0)
    return sum(_PADDING + _LETTER * max(least(row[i]) for row in rows if i < len(row))
               for i in range(columns))
