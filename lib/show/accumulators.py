"""Where the sums of a tile lie: in registers of warpgroups, or in tensor memory."""

from __future__ import annotations

from dataclasses import dataclass

from lib.kernels.catalogue import find
from lib.kernels.spec import Variant, parted
from lib.problem import ITEM_BYTES
from lib.ptx.core.machine import WARP, WARPGROUP
from lib.ptx.core.tensor_memory import COLUMNS, LANES
from lib.show.display import show
from lib.show.operand import Tile
from lib.show.scene import Drawing, Grid, Scene, column, row, words
from lib.show.version import Version

LANE_BIT = 16  # of an address in tensor memory, from which on the lane stands


@dataclass(frozen=True)
class InRegisters:
    """A tile that consumers hold in their registers.

    Attributes
    ----------
    groups : int
        Warpgroups that share it, by rows.
    rows, columns : int
        Of each warpgroup.
    each : int
        Registers of each thread.
    """

    groups: int
    rows: int
    columns: int
    each: int


@dataclass(frozen=True)
class InTensorMemory:
    """Tiles that lie in tensor memory beside each other.

    Attributes
    ----------
    tiles, columns : int
        How many, and the columns of each.
    lanes : int
        That a warp reaches.
    """

    tiles: int
    columns: int
    lanes: int = WARP

    def address(self, lane: int, column: int) -> int:
        """Of one sum, from the first allocated column on.

        Raises
        ------
        ValueError
            If tensor memory has no such place.
        """
        if not (0 <= lane < LANES and 0 <= column < COLUMNS):
            raise ValueError(f"tensor memory has {LANES} lanes and {COLUMNS} columns, no ({lane}, "
                             f"{column})")
        return lane << LANE_BIT | column


def in_registers(variant: Variant) -> InRegisters:
    """Where a version with WGMMA has its sums."""
    warps, (rows, columns) = dict(variant.roles.warps)["consumers"], variant.tile
    groups = warps // WARPGROUP
    return InRegisters(groups, rows // groups, columns, rows * columns // (warps * WARP))


def in_tensor_memory(variant: Variant) -> InTensorMemory:
    """Where a version with tcgen05 has them."""
    return InTensorMemory(int(variant.constants["ACCUMULATORS"]), variant.tile[1])


_LEFT, _ROOM, _ROW, _POINT = 50.0, 296.0, 26.0, 7.0  # px
_OF_TILE = (("compute", "the MMAs add here"), ("store", "four warps store this"))


def where_picture(before: tuple[str, InRegisters], now: tuple[str, InTensorMemory],
          place: tuple[int, int], *, title: str, evidence: str) -> Scene:
    """Draw registers of warpgroups that hold one tile, and tensor memory that holds some.

    Parameters
    ----------
    before, now : (str, InRegisters or InTensorMemory)
        What a version is called, and where its sums lie.
    place : (int, int)
        A lane and a column, whose address is told.
    """
    (old, held), (new, memory) = before, now
    return Scene(title, row(
        column(words(old, bold=True), _registers(held).html(),
               words(f"{held.rows}×{held.columns} sums each: 128 threads × {held.each} registers. "
                     "The warps that multiply hold them, and stop multiplying to store them"),
               width=_LEFT + _ROOM + 1),
        column(words(new, bold=True), _memory(memory, place).html(),
               words(f"marked: lane {place[0]}, column {place[1]}; address {place[0]} << 16 | "
                     f"{place[1]} = {memory.address(*place):#010x}"), width=_LEFT + _ROOM + 1)),
        evidence)


def _registers(held: InRegisters) -> Drawing:
    drawing, wide = Drawing(_LEFT + _ROOM + 1, 38.0 * held.groups), _ROOM * held.columns / COLUMNS
    for group in range(held.groups):
        box = (_LEFT, 38.0 * group + 1, wide, 34.0)
        drawing.filled(box, f"{held.rows}×{held.columns} sums", _OF_TILE[0][0], pale=True,
                     framed=True)
        drawing.text(0, box[1] + 13, "warp-").text(0, box[1] + 28, f"group {group}")
    return drawing


def _memory(memory: InTensorMemory, place: tuple[int, int]) -> Drawing:
    quarters = LANES // memory.lanes
    grid = Grid(quarters, memory.tiles, (_ROOM / memory.tiles, _ROW), left=_LEFT,
                down={warp: f"warp {warp}" for warp in range(quarters)}, corner="column")
    for tile in range(memory.tiles):
        colour, text = _OF_TILE[tile % 2]
        box = grid.box(0, tile, quarters)
        grid.boxes([box], colour, pale=True).frames([box]).label(grid.box(1, tile, 2), text)
    for at in range(0, COLUMNS + 1, memory.columns):
        grid.text(_LEFT + at / COLUMNS * _ROOM, grid.top - 5, at,
                  "" if not at else "end" if at == COLUMNS else "middle")
    lane, at = place
    x, y = _LEFT + (at + 0.5) / COLUMNS * _ROOM, grid.top + (lane + 0.5) * quarters * _ROW / LANES
    return grid.ruled().boxes([(x - _POINT / 2, y - _POINT / 2, _POINT, _POINT)], "focus")


def atoms_picture(a: Tile, b: Tile, *, title: str, evidence: str) -> Scene:
    """Draw the atoms of a stage of A, along K, and of B, along N, and what its first MMA reads.

    Parameters
    ----------
    a, b : Tile
        Of one reader, whose instructions take all of their rows.
    """
    deep, columns, rows = a.piece[1], b.span // b.item, b.k // b.atom
    return Scene(title, row(
        column(words(f"A: {a.rows} rows of {a.run} bytes, K along them", bold=True),
               _a(a, rows).html(), words(f"down: the next 8 rows, stride {a.offsets[1]:,} B"),
               words(f"right: the next MMA, {a.begins(0, deep) - a.begins(0, 0)} B")),
        column(words(f"B: {b.k} rows of K, N along them, in {b.run // b.span} slabs", bold=True),
               _b(b, rows).html(),
               words(f"down: 8 of K, stride {b.offsets[1]:,} B; the next MMA, "
                     f"{b.begins(0, deep) - b.begins(0, 0):,} B"),
               words(f"right: the next {columns} columns, leading {b.offsets[0]:,} B"))), evidence)


def _a(a: Tile, rows: int) -> Grid:
    """Atoms below each other, in each of which an instruction reads some bytes of each line."""
    deep, last = a.piece[1], a.rows // a.atom - 1
    firsts = {at: (last if at == rows - 1 else at) * a.atom for at in range(rows)}
    down = {at: f"rows {first}–{first + a.atom - 1}" for at, first in firsts.items()}
    parts = a.k // deep
    grid = Grid(rows, parts, (250.0 / parts, 21.0), left=92, down=down | {rows - 2: "⋮"},
                across={part: f"k {part * deep}–{(part + 1) * deep - 1}" for part in range(parts)})
    grid.boxes([grid.box(at, 0) for at in range(rows)], "load")
    return grid.ruled().frames([grid.box(at, 0, 1, parts) for at in range(rows)])


def _b(b: Tile, rows: int) -> Grid:
    """Slabs beside each other, of whose atoms an instruction reads some."""
    columns, slabs, read = b.span // b.item, b.run // b.span, b.piece[1] // b.atom
    grid = Grid(rows, slabs, (280.0 / slabs, 21.0), left=60,
                across={slab: f"n {slab * columns}–{(slab + 1) * columns - 1}"
                       for slab in range(slabs)},
                down={at: f"k {at * b.atom}–{(at + 1) * b.atom - 1}" for at in range(rows)})
    places = [[grid.box(at, slab) for at in range(rows)] for slab in range(slabs)]
    apart = [[(x + 3, y, w - 6, h) for x, y, w, h in slab] for slab in places]
    grid.boxes([box for slab in apart for box in slab[:read]], "load")
    return grid.frames([box for slab in apart for box in slab])


_WORDS = {1: "one tile", 2: "two tiles"}
_PLACE = (40, 300)  # a lane and a column in the second tile, whose address is told


def where(version: Version, before: str) -> None:
    """Draw tensor memory with a version's sums, and the registers that hold those of another.

    Parameters
    ----------
    before : str
        ``"stem/variant"``, with WGMMA.
    """
    stem, name = parted(before)
    held = in_registers(find(stem).variant(name))
    now = in_tensor_memory(version.kernel.variants[0])
    show(where_picture(
        (f"{stem[:2]}, Hopper: one tile in registers", held),
        (f"{version.kernel.stem[:2]}, Blackwell: {_WORDS[now.tiles]} in tensor memory", now),
        _PLACE, title="The sums move out of the registers, and a second tile has room",
        evidence="modelled: from the tiles and roles of both versions"))


def atoms(version: Version) -> None:
    """Draw which part of a stage of A and of B one MMA reads, and both descriptors' distances."""
    variant = version.kernel.variants[0]
    rows, columns = variant.tile
    deep, item = variant.step * ITEM_BYTES[variant.dtype], ITEM_BYTES[variant.dtype]
    a = Tile("tcgen05", item, rows=rows, k_bytes=deep, side="A")
    b = Tile("tcgen05", item, "MN", rows=columns, k_bytes=deep, side="B")
    show(atoms_picture(
        a, b, title=f"The first of {a.k // a.piece[1]} MMAs reads {a.piece[1] * item} bytes of "
                    f"each row of A, and {b.piece[1] // b.atom} atoms of each slab of B",
        evidence="modelled: the layouts of PTX ISA 9.7.16.4; an atom is 1,024 bytes, swizzled"))
