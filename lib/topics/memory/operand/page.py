"""Descriptors of tiles, the lines of a swizzle, and who names what for ldmatrix, as tables."""

from __future__ import annotations

from lib.plotting.display import table
from lib.topics.memory.operand.model import (
    CHUNK,
    FIELDS,
    K_BYTES,
    LEADING,
    START,
    STRIDE,
    Tile,
)

_EVIDENCE = "modelled: the emulator's layouts, PTX ISA 9.7.15.5 and 9.7.16.4"
_ALONG = {"K": "K", "MN": "M or N"}
_MODES = ("128", "64", "32", "none")


def rules(reader: str = "wgmma", rows: int = 128, k_bytes: int = 128) -> None:
    """Display both offsets, and the way to the next instruction, for each swizzle and direction.

    Parameters
    ----------
    reader : {"wgmma", "tcgen05"}
    rows, k_bytes : int
        Of a tile of 16-bit elements, as B.
    """
    found = []
    for order in ("K", "MN"):
        for mode in _MODES:
            tile = Tile(reader, 2, order, mode, rows, k_bytes, "B")
            (leading, stride), said = tile.offsets, tile.says
            step = tile.begins(0, tile.piece[1]) - tile.begins(0, 0)
            found.append((_ALONG[order], "none" if mode == "none" else f"{mode} B",
                          _offset(leading, said[0]), _offset(stride, said[1]), f"{step:,} B",
                          f"`{tile.bits(0, 0):016x}`"))
    table(("contiguous along", "swizzle", "leading byte offset", "stride byte offset",
           f"next {K_BYTES // 2} of K", "the 64 bits"), found,
          f"{_EVIDENCE}; B of {rows} columns by {k_bytes // 2} of K, 16-bit elements, at byte "
          f"{START:,}, in slabs as wide as the swizzle")


def _offset(of: int, said: str) -> str:
    return "unused, 1" if said.startswith("unused") else f"{of:,} B: {said}"


def fields(*tiles: Tile) -> None:
    """Display descriptors beside each other, field by field.

    Parameters
    ----------
    *tiles : Tile
        Of one reader; of each the descriptor of its first instruction.
    """
    first = tiles[0]
    rows = []
    for one in FIELDS[first.reader]:
        stands = [tile.bits(0, 0) >> one.low & (1 << one.width) - 1 for tile in tiles]
        said: dict[str, None] = {}
        if one in (LEADING, STRIDE):
            said = dict.fromkeys(tile.says[one is STRIDE] for tile in tiles)
        rows.append((f"{one.low} to {one.low + one.width - 1}" if one.width > 1 else f"{one.low}",
                     one.name, *(f"{value} = {16 * value:,} B / 16" if one.width == 14 else value
                                 for value in stands), "; ".join(said)))
    table(("bits", "field", *map(_title, tiles), "says"), rows, _EVIDENCE)


def _title(tile: Tile) -> str:
    swizzle = "no swizzle" if tile.mode == "none" else f"{tile.mode} B"
    return f"{tile.side}, along {_ALONG[tile.order]}, {swizzle}"


def lines(tile: Tile, count: int = 8) -> None:
    """Display where the chunks of the first lines lie, and which bits of the address make it so.

    Parameters
    ----------
    tile : Tile
        Swizzled.
    count : int
        Lines.
    """
    rows = []
    for line in range(count):
        plain = START + line * tile.pitch
        places = [int(place) for place in tile.places[line, : tile.span // CHUNK]]
        rows.append((line, f"{plain:,}", f"{plain >> 7 & 7:03b}",
                     ", ".join(f"{place:,}" for place in places),
                     " ".join(str((place - min(places)) // CHUNK) for place in places)))
    table(("row" if tile.order == "K" else "k", "first byte, unswizzled", "its bits 9 to 7",
           "bytes at which its chunks lie", "so chunk 0, 1, … lies in place"), rows, _EVIDENCE)


def named(tile: Tile) -> None:
    """Display which rows each group of lanes names for ldmatrix.x4, and what becomes of them.

    Parameters
    ----------
    tile : Tile
        That ldmatrix reads.
    """
    wide = CHUNK // tile.item
    rows = []
    for matrix in range(4):
        part = tile.addressed[8 * matrix : 8 * matrix + 8]
        down = f"{part[0, 0]} to {part[-1, 0]}"
        across = f"{part[0, 1] * wide} to {part[0, 1] * wide + wide - 1}"
        rows.append((f"{8 * matrix} to {8 * matrix + 7}",
                     *((down, across) if tile.order == "K" else (across, down)), f"r{matrix}"))
    table(("lanes that give addresses", f"rows of {'M' if tile.side == 'A' else 'N'}", "k",
           "becomes register"), rows,
          "modelled: the emulator's ldmatrix, PTX ISA 9.7.14.5.15; lane 4 g + t then holds row g "
          "of each matrix, elements 2 t and 2 t + 1")
