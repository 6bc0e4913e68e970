"""A tile in shared memory that tensor cores read: its descriptors, and where each element lies.

The tile has rows of M (of A) or of N (of B), and some bytes of K. It lies as tensor maps bring it:
slabs behind each other, each as wide as the swizzle, 16 bytes without one. One instruction reads 32
bytes of K of some rows. Its descriptor says where they begin; the places are those that the
emulator finds with these 64 bits (`lib.ptx.isa.matrix_descriptor`, `lib.ptx.isa.
tcgen05_operands`; PTX ISA 9.7.15.5 and 9.7.16.4). For `ldmatrix`, which takes no descriptor but
an address per lane, they are those of the tensor map's swizzle, or of rows with or without padding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lib.ptx.core import tensormap
from lib.ptx.core.machine import BANKS, LINE, WARP
from lib.ptx.isa import fragments
from lib.ptx.isa.matrix_descriptor import Descriptor, chunk_addresses
from lib.ptx.isa.tcgen05_operands import operand_chunks, operand_descriptor
from lib.show.banks import MATRIX_ROW, WORD, describe
from lib.show.coalescing import Access
from lib.show.display import table
from lib.show.explorer import Control, Live
from lib.show.scene import Grid, Scene, column, row, words
from lib.show.words import plural

CHUNK, CORE_ROWS = MATRIX_ROW, 8  # a core matrix: rows of a chunk, what is read at a time
START = 1024  # of the tile in shared memory: a multiple of all atoms
K_BYTES = 32  # of one instruction, of all types
ATOMS_OF_32 = "128/32"  # swizzled by 128 bytes, 32-byte atomicity: tcgen05's, of 32-bit types alone
PADDING = 16  # bytes behind each row where rows are padded

READERS = ("wgmma", "tcgen05", "ldmatrix")
TYPES = {"FP16, BF16": 2, "TF32": 4, "FP8, INT8": 1}  # bytes of an element
ORDERS = ("K", "MN")
MODES = {"128": 128, "64": 64, "32": 32, "none": 16, ATOMS_OF_32: 128, "padded": 16}
ROWS, DEPTHS = (64, 128, 256), (32, 64, 128, 256)  # rows; bytes of K
SIDES = ("A", "B")

# What a descriptor's field says of the swizzle, by reader.
CODES = {
    "wgmma": {"none": 0, "128": 1, "64": 2, "32": 3},
    "tcgen05": {"none": 0, ATOMS_OF_32: 1, "128": 2, "64": 4, "32": 6},
}


class Bits(NamedTuple):
    """A field of a descriptor: the first of its bits, how many, and its name."""

    low: int
    width: int
    name: str

    @property
    def place(self) -> str:
        """Its bits."""
        return f"{self.low} to {self.low + self.width - 1}" if self.width > 1 else f"{self.low}"

    def of(self, bits: int) -> int:
        """What a descriptor holds in it."""
        return bits >> self.low & (1 << self.width) - 1

    def said(self, bits: int) -> str:
        """The same, for people: addresses and offsets are in units of 16 bytes."""
        value = self.of(bits)
        return f"{value:,} = {16 * value:,} B / 16" if self.width == 14 else f"{value}"


START_FIELD, LEADING, STRIDE = (Bits(0, 14, "start address"), Bits(16, 14, "leading byte offset"),
                                Bits(32, 14, "stride byte offset"))
FIELDS = {
    "wgmma": (START_FIELD, LEADING, STRIDE, Bits(49, 3, "base offset"), Bits(62, 2, "swizzle")),
    "tcgen05": (START_FIELD, LEADING, STRIDE, Bits(46, 3, "constant"), Bits(49, 3, "base offset"),
                Bits(52, 1, "leading offset's mode"), Bits(61, 3, "swizzle")),
}


class Place(NamedTuple):
    """Where one element lies: its byte of shared memory, and the bank of its word."""

    address: int
    bank: int


class Holder(NamedTuple):
    """Who holds an element in registers.

    Attributes
    ----------
    warp : int
        Of a warpgroup; 0 where one warp reads.
    lane, register, part : int
        `part` counts the elements of a register.
    """

    warp: int
    lane: int
    register: int
    part: int


@dataclass(frozen=True)
class Tile:
    """A tile that is read in pieces, one instruction each.

    Attributes
    ----------
    reader : {"wgmma", "tcgen05", "ldmatrix"}
    item : int
        Bytes of an element: 1, 2 or 4.
    order : {"K", "MN"}
        What runs along a line: K, or the rows.
    mode : str
        A key of `MODES`: the swizzle.
    rows : int
        Of M or N.
    k_bytes : int
        Bytes of K.
    side : {"A", "B"}
        Which operand it is: says how many rows an instruction takes.

    Raises
    ------
    ValueError
        If there is no such tile, or nothing reads it so.
    """

    reader: str = "wgmma"
    item: int = 2
    order: str = "K"
    mode: str = "128"
    rows: int = 64
    k_bytes: int = 128
    side: str = "A"

    def __post_init__(self) -> None:
        known = (self.reader in READERS and self.item in TYPES.values() and self.order in ORDERS
                 and self.mode in MODES and self.rows in ROWS and self.k_bytes in DEPTHS
                 and self.side in SIDES)
        if not known:
            raise ValueError(f"no tile of {self.rows} rows by {self.k_bytes} bytes of K, elements "
                             f"of {self.item} bytes, {self.order}-major, {self.mode}, for "
                             f"{self.reader}'s {self.side}")
        if why := self._refused():
            raise ValueError(why)

    def _refused(self) -> str:
        """Why nothing reads such a tile; empty if something does."""
        if self.reader == "ldmatrix":
            if self.mode == ATOMS_OF_32:
                return "Only tcgen05 has the 128-byte swizzle with 32-byte atomicity"
            if self.order == "MN" and self.item != 2:
                return "ldmatrix.trans moves elements of 16 bits: it can't transpose others"
        elif self.mode == "padded":
            return (f"{self.reader} takes a descriptor, which has no room for padded rows: swizzle "
                    "them")
        elif self.reader == "wgmma":
            if self.mode == ATOMS_OF_32:
                return "Only tcgen05 has the 128-byte swizzle with 32-byte atomicity"
            if self.order == "MN" and self.item != 2:
                return "wgmma takes an operand along M or N only of 16-bit types: store it along K"
        elif self.order == "MN" and self.item == 4:
            if self.mode != ATOMS_OF_32:
                return ("tcgen05 takes TF32 along M or N only with the 128-byte swizzle of "
                        "32-byte atomicity")
        elif self.mode == ATOMS_OF_32:
            return "32-byte atomicity is for 32-bit types that run along M or N"
        if self.run < self.span:
            return (f"A line of this tile has {self.run} bytes, fewer than the {self.span} of the "
                    "swizzle: take a narrower swizzle or a larger tile")
        return ""

    @property
    def k(self) -> int:
        """Elements of K."""
        return self.k_bytes // self.item

    @property
    def run(self) -> int:
        """Bytes of a line: what lies along the contiguous direction of the matrix."""
        return self.k_bytes if self.order == "K" else self.rows * self.item

    @property
    def lines(self) -> int:
        """How many of them: rows, or elements of K."""
        return self.rows if self.order == "K" else self.k

    @property
    def span(self) -> int:
        """Bytes of a line that lie together, before the next line follows."""
        if self.reader == "ldmatrix" and self.mode in ("none", "padded"):
            return self.run
        return MODES[self.mode]

    @property
    def pitch(self) -> int:
        """Bytes from a line to the next."""
        return self.span + (PADDING if self.mode == "padded" else 0)

    @property
    def slab(self) -> int:
        """Bytes of all lines, `span` bytes of each."""
        return self.lines * self.pitch

    @property
    def atom(self) -> int:
        """Lines after which the pattern of the swizzle begins anew."""
        return 4 if self.mode == ATOMS_OF_32 else CORE_ROWS

    @property
    def piece(self) -> tuple[int, int]:
        """Rows and elements of K of one instruction."""
        limits = {("ldmatrix", "A"): 16, ("ldmatrix", "B"): 16, ("wgmma", "A"): 64,
                ("tcgen05", "A"): 128}.get((self.reader, self.side), 256)
        return min(limits, self.rows), K_BYTES // self.item

    # -- descriptors ----------------------------------------------------------------------------

    @property
    def offsets(self) -> tuple[int, int]:
        """Leading and stride byte offset."""
        if self.mode != "none":
            # Along K an atom is as wide as a line of the slab: the leading offset has no meaning,
            # and is 16 by convention.
            return (CHUNK if self.order == "K" else self.slab), self.atom * self.span
        right, below = self.slab, CORE_ROWS * CHUNK  # core matrices of 128 bytes
        return (right, below) if self.order == "K" else (below, right)

    def begins(self, row: int, k: int) -> int:
        """Where the instruction that reads an element begins to read: an address."""
        rows, deep = self.piece
        row, k = row // rows * rows, k // deep * deep
        line, byte = (row, k * self.item) if self.order == "K" else (k, row * self.item)
        return START + byte // self.span * self.slab + line * self.pitch + byte % self.span

    def bits(self, row: int, k: int) -> int:
        """The descriptor of the instruction that reads an element.

        Raises
        ------
        ValueError
            If the reader takes none.
        """
        if self.reader not in CODES:
            raise ValueError(f"{self.reader} takes no descriptor")
        leading, stride = self.offsets
        code = CODES[self.reader][self.mode]
        found = (self.begins(row, k) & 0x3FFFF) >> 4 | leading >> 4 << 16 | stride >> 4 << 32
        return found | (code << 62 if self.reader == "wgmma" else 1 << 46 | code << 61)

    @property
    def says(self) -> tuple[str, str]:
        """What leading and stride byte offset mean here."""
        if self.mode != "none":
            if self.order == "K":
                return ("unused: the atom is as wide as a line; 16 by convention",
                        "from 8 rows to the next 8")
            width, alone = self.span // self.item, self.piece[0] * self.item <= self.span
            return (f"from {width} rows of M or N to the next {width}"
                    + (": unused, the instruction reads no more" if alone else ""),
                    f"from {self.atom} of K to the next {self.atom}")
        width = CHUNK // self.item
        if self.order == "K":
            return f"from {width} of K to the next {width}", "from 8 rows to the next 8"
        return "from 8 of K to the next 8", f"from {width} rows of M or N to the next {width}"

    @property
    def named(self) -> str:
        """CUTLASS's name of the layout; empty for ldmatrix."""
        if self.reader == "ldmatrix":
            return ""
        mode = {"none": "INTER", ATOMS_OF_32: "SW128_32B"}.get(self.mode, f"SW{self.mode}")
        return f"{'GMMA' if self.reader == 'wgmma' else 'UMMA'}::Layout_{self.order}_{mode}_Atom"

    # -- places ---------------------------------------------------------------------------------

    @cached_property
    def places(self) -> np.ndarray:
        """Addresses of the chunks of 16 bytes: (lines, chunks of a line).

        With a descriptor they are what the emulator reads of the descriptor's bits, one
        instruction after the other; without, what its tensor copies write.
        """
        found = np.zeros((self.lines, self.run // CHUNK), np.int64)
        if self.reader == "ldmatrix":
            wide = self.span // CHUNK
            for slab in range(self.run // self.span):
                found[:, slab * wide : slab * wide + wide] = self._written(slab)
            return found
        rows, deep = self.piece
        for at, k in itertools.product(range(0, self.rows, rows), range(0, self.k, deep)):
            read = self._read(self.bits(at, k), rows)
            line, byte = (at, k * self.item) if self.order == "K" else (k, at * self.item)
            down, across = read.shape
            found[line : line + down, byte // CHUNK : byte // CHUNK + across] = read
        return found

    def _read(self, bits: int, rows: int) -> np.ndarray:
        if self.reader == "wgmma":
            return chunk_addresses(Descriptor.of(bits), rows, self.order.lower())
        return operand_chunks(operand_descriptor(bits), rows, self.order.lower(), self.item)

    def _written(self, slab: int) -> np.ndarray:
        start, wide = START + slab * self.slab, self.span // CHUNK
        if self.mode in ("none", "padded"):
            return (start + np.arange(self.lines)[:, None] * self.pitch
                    + np.arange(wide)[None, :] * CHUNK)
        at = tensormap.swizzled(start, self.lines * wide, int(self.mode))
        return np.asarray(at).reshape(self.lines, wide) * CHUNK

    def chunk(self, row: int, k: int) -> tuple[tuple[int, int], int]:
        """The chunk that an element lies in, an index of `places`, and at which of its bytes.

        Raises
        ------
        ValueError
            If the tile has no such element.
        """
        if not (0 <= row < self.rows and 0 <= k < self.k):
            raise ValueError(f"the tile has {self.rows} rows and {self.k} of K: no ({row}, {k})")
        line, byte = (row, k * self.item) if self.order == "K" else (k, row * self.item)
        return (line, byte // CHUNK), byte % CHUNK

    def element(self, row: int, k: int) -> Place:
        """Where an element lies."""
        chunk, inside = self.chunk(row, k)
        address = int(self.places[chunk]) + inside
        return Place(address, address // WORD % BANKS)

    def core(self, row: int, k: int) -> np.ndarray:
        """Addresses of the eight chunks that are read together with an element's: 128 bytes."""
        (line, chunk), _ = self.chunk(row, k)
        line, wide = line // self.atom * self.atom, CORE_ROWS // self.atom
        chunk = chunk // wide * wide
        return self.places[line : line + self.atom, chunk : chunk + wide].ravel()

    def wavefronts(self, row: int, k: int) -> int:
        """How often shared memory must be asked for those eight chunks."""
        addresses = np.zeros(WARP, np.int64)
        addresses[:CORE_ROWS] = self.core(row, k)
        return describe(Access(addresses, np.arange(WARP) < CORE_ROWS, CHUNK),
                        "ldmatrix").wavefronts

    # -- registers ------------------------------------------------------------------------------

    @property
    def fragment(self) -> fragments.Fragment | None:
        """How a warp holds 16 rows of a piece; None of what no lane holds.

        Of wgmma that is an A which comes from registers, in the form that takes it so.
        """
        deep, packed = K_BYTES // self.item, WORD // self.item
        if self.reader == "tcgen05" or (self.reader, self.side) == ("wgmma", "B"):
            return None
        made = fragments.left if self.side == "A" else fragments.right
        return made(16, deep, packed)

    def holder(self, row: int, k: int) -> Holder | None:
        """Who holds an element in registers, if anybody does."""
        fragment = self.fragment
        if fragment is None:
            return None
        rows, columns = fragment.positions
        here = (rows == row % 16) & (columns == k % (K_BYTES // self.item))
        [(register, lane, part)] = np.argwhere(here).tolist()
        return Holder(row % 64 // 16 if self.reader == "wgmma" else 0, lane, register, part)

    @property
    def addressed(self) -> np.ndarray:
        """Line and chunk of a piece that each lane names for ldmatrix.x4: shape (32, 2).

        So that the registers become the fragment of an mma: of A, or of two B side by side.
        """
        lane = np.arange(WARP)
        if (self.side == "A") == (self.order == "K"):
            return np.stack([lane % 16, lane // 16], axis=1)
        return np.stack([lane % 8 + lane // 16 * 8, lane // 8 % 2], axis=1)

    # -- the copy that brings it ----------------------------------------------------------------

    @property
    def box(self) -> tuple[int, int] | None:
        """Elements along a line, and lines, of each tensor copy; None if TMA can't write it."""
        if self.mode == "padded":
            return None
        return self.span // self.item, self.lines


def every_tile() -> Iterator[tuple[tuple[Any, ...], Tile | str]]:
    """All tiles that can be asked for, by their arguments without the side; or why there is none.

    Yields
    ------
    (tuple, Tile or str)
        Reader, bytes of an element, order, mode, rows and bytes of K; and the tile as A.
    """
    for key in itertools.product(READERS, TYPES.values(), ORDERS, MODES, ROWS, DEPTHS):
        try:
            yield key, Tile(*key)
        except ValueError as refused:
            yield key, str(refused)


def tabulated(tile: Tile) -> dict[str, Any]:
    """All that an explorer needs of a tile, and of its other side, as JSON has it.

    Chunk c of line l lies at ``start + c / wide · slab + l / 8 · 8 · pitch + atom[l mod 8][c mod
    wide]``, an instruction begins at the first's byte and the sum of its steps down and along, and
    the eight chunks of a read take as many wavefronts everywhere.
    """
    wide = tile.span // CHUNK
    atom = tile.places[:CORE_ROWS, :wide] - START
    found: dict[str, Any] = {"slab": tile.slab, "pitch": tile.pitch, "wide": wide,
                             "waves": tile.wavefronts(0, 0), "box": tile.box, "name": tile.named}
    plain = np.arange(CORE_ROWS)[:, None] * tile.pitch + np.arange(wide) * CHUNK
    if not np.array_equal(atom, plain):
        found["atom"] = (atom // CHUNK).tolist()
    for side in SIDES:
        one = Tile(tile.reader, tile.item, tile.order, tile.mode, tile.rows, tile.k_bytes, side)
        (rows, deep), first = one.piece, one.begins(0, 0)
        found[side] = {
            "rows": rows,
            "down": [one.begins(at, 0) - first for at in range(0, one.rows, rows)],
            "along": [one.begins(0, k) - first for k in range(0, one.k, deep)]}
        if tile.reader in CODES:
            found[side] |= {"bits": f"{one.bits(0, 0):016x}", "says": one.says}
    return found


PER_LINE = LINE // CHUNK


def choices() -> dict[str, Any]:
    """All tiles for the page: `tabulated` by their arguments, or why there is none; and the rest.

    Texts and atoms, which many tiles share, stand once, and are named by their number.
    """
    texts: list[str] = []
    atoms: list[list[list[int]]] = []

    def number(of: list[Any], one: Any) -> int:
        if one not in of:
            of.append(one)
        return of.index(one)

    found: dict[str, Any] = {}
    for key, tile in every_tile():
        name = " ".join(map(str, key))
        if isinstance(tile, str):
            found[name] = number(texts, tile)
            continue
        made = found[name] = tabulated(tile)
        made["name"] = number(texts, made["name"])
        if "atom" in made:
            made["atom"] = number(atoms, made["atom"])
        for side in SIDES:
            if "says" in made[side]:
                made[side]["says"] = [number(texts, one) for one in made[side]["says"]]
    return {
        "tiles": found, "texts": texts, "atoms": atoms, "start": START, "fields": FIELDS,
        "codes": CODES,
        "fragments": {f"{side} {item}": _fragment(side, item)
                      for side in SIDES for item in TYPES.values()},
        "addressed": {f"{side} {order}": Tile("ldmatrix", side=side, order=order).addressed.tolist()
                      for side in SIDES for order in ORDERS},
    }


def _fragment(side: str, item: int) -> list[list[list[int]]]:
    """Row and column of K of the first element in each lane's registers."""
    fragment = Tile("ldmatrix", item, side=side).fragment
    assert fragment is not None  # ldmatrix leaves everything in registers
    return [positions[..., 0].tolist() for positions in fragment.positions]


_CELL, _LINES = (37.0, 17.0), 16  # px; lines that are drawn


def draw(tile: Tile, at_row: int, k: int) -> Scene:
    """Draw where the tile's chunks lie, and say where one element is.

    Parameters
    ----------
    tile : Tile
        One with a descriptor.
    at_row, k : int
        The element: in the first 16 lines of 128 bytes.
    """
    place = tile.element(at_row, k)
    return Scene(
        f"Row {at_row}, k {k}: byte {place.address:,}, bank {place.bank}; "
        f"{plural(tile.wavefronts(at_row, k), 'wavefront')} for eight chunks",
        row(column(words(f"lines of 128 bytes from {START:,} on, r.c: chunk c of "
                         + ("row r" if tile.order == "K" else "k = r")),
                   _lines(tile, at_row, k).html()),
            column(*(words(text, bold=bold) for text, bold in _says(tile, at_row, k)))),
        "modelled: the emulator's layout, PTX ISA 9.7.15.5")


def _lines(tile: Tile, at_row: int, k: int) -> Grid:
    """Lines of 128 bytes; cells are chunks of 16."""
    places = (tile.places - START) // 16
    count = min(_LINES, 1 + int(places.max()) // PER_LINE)
    grid = Grid(count, PER_LINE, _CELL, across={group: 4 * group for group in range(PER_LINE)},
                down={line: line for line in range(count)}, corner="bank", left=36)
    colour = "warning" if tile.wavefronts(at_row, k) > 1 else "load"
    chunk, _ = tile.chunk(at_row, k)
    own = int(places[chunk])
    core = {(int(address) - START) // 16 for address in tile.core(at_row, k)} - {own}
    grid.boxes([grid.box(*divmod(at, PER_LINE)) for at in sorted(core) if at // PER_LINE < count],
               colour, pale=True)
    grid.boxes([grid.box(*divmod(own, PER_LINE))], colour)
    for down, line in enumerate(places.tolist()):
        for across, at in enumerate(line):
            if at // PER_LINE < count:
                grid.label(grid.box(*divmod(at, PER_LINE)), f"{down}.{across}",
                           over=colour if at == own else "")
    return grid.ruled()


def _says(tile: Tile, at_row: int, k: int) -> list[tuple[str, bool]]:
    """What stands beside the drawing: text, and whether it is a heading."""
    bits = tile.bits(at_row, k)
    lines: list[tuple[str, bool]] = [(f"{tile.reader}'s descriptor", True), (f"{bits:016x}", False)]
    for field in FIELDS[tile.reader]:
        lines.append((f"{field.place}  {field.name}: {field.said(bits)}", False))
    holder = tile.holder(at_row, k)
    if holder:
        lines += [
            ("the same, if A comes from registers", True),
            (f"warp {holder.warp}, lane {holder.lane}, register {holder.register}", False),
            (f"element {holder.part} of {4 // tile.item} in it", False),
        ]
    return lines


# What a swizzle is to a descriptor, and to cuTensorMapEncodeTiled.
SAID = {"128": "128 bytes", "64": "64 bytes", "32": "32 bytes",
        "none": "none: core matrices of 8 rows of 16 bytes",
        ATOMS_OF_32: "128 bytes, 32-byte atomicity"}
MAPS = {"128": "CU_TENSOR_MAP_SWIZZLE_128B", "64": "CU_TENSOR_MAP_SWIZZLE_64B",
        "32": "CU_TENSOR_MAP_SWIZZLE_32B", "none": "CU_TENSOR_MAP_SWIZZLE_NONE",
        ATOMS_OF_32: "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B"}


def tiles() -> Live:
    """Choose a tile in shared memory: see its descriptor, and where each of its elements lies."""
    first = Tile()
    controls = [
        Control("Read by", [("wgmma", "wgmma"), ("tcgen05.mma", "tcgen05"),
                            ("ldmatrix", "ldmatrix")]),
        Control("Type", list(TYPES.items())),
        Control("Contiguous along", [("K", "K"), ("M or N", "MN")]),
        Control("Swizzle", [("128 B", "128"), ("64 B", "64"), ("32 B", "32"), ("none", "none"),
                            ("128 B, 32 B atomicity", ATOMS_OF_32),
                            ("none, rows padded", "padded")]),
        Control.of("Operand", SIDES), Control.of("Rows of M or N", ROWS),
        Control.of("Bytes of K", DEPTHS, DEPTHS.index(first.k_bytes)),
    ]
    return Live(controls, {**choices(), "modes": SAID, "maps": MAPS},
                Path(__file__).with_suffix(".js"), "A tile in shared memory",
                draw(first, 13, 5),
                "modelled: the emulator's layouts, PTX ISA 9.7.15.5 and 9.7.16.4; 32 banks of 4 "
                "bytes, eight chunks of 16 bytes read at a time")


_EVIDENCE = "modelled: the emulator's layouts, PTX ISA 9.7.15.5 and 9.7.16.4"
_ALONG = {"K": "K", "MN": "M or N"}
_MODES = ("128", "64", "32", "none")


def rules() -> None:
    """Display both offsets of wgmma, and the way to the next instruction, for each swizzle and way.
    """
    found = []
    for order in ("K", "MN"):
        for mode in _MODES:
            tile = Tile("wgmma", 2, order, mode, 128, 128, "B")
            (leading, stride), said = tile.offsets, tile.says
            step = tile.begins(0, tile.piece[1]) - tile.begins(0, 0)
            found.append((_ALONG[order], "none" if mode == "none" else f"{mode} B",
                          _offset(leading, said[0]), _offset(stride, said[1]), f"{step:,} B",
                          f"`{tile.bits(0, 0):016x}`"))
    table(("contiguous along", "swizzle", "leading byte offset", "stride byte offset",
           f"next {K_BYTES // 2} of K", "the 64 bits"), found,
          f"{_EVIDENCE}; B of 128 columns by 64 of K, 16-bit elements, at byte "
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
        said: dict[str, None] = {}
        if one in (LEADING, STRIDE):
            said = dict.fromkeys(tile.says[one is STRIDE] for tile in tiles)
        rows.append((one.place, one.name, *(one.said(tile.bits(0, 0)) for tile in tiles),
                     "; ".join(said)))
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
