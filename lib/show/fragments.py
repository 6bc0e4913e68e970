"""Which lane holds what: a fragment, what ldmatrix deals out, one WGMMA to scale."""

from __future__ import annotations

from lib.ptx.core.machine import WARP
from lib.ptx.isa.fragments import left
from lib.show.scene import Box, Drawing, Scene, column, row, words
from lib.show.words import plural


def held(lane: int | slice, registers: slice = slice(None)) -> list[tuple[int, int]]:
    """Rows and columns of what a lane holds of 16×16 of A, in some of its registers."""
    rows, columns = (places[registers, lane].ravel().tolist()
                     for places in left(16, 16, 2).positions)
    return sorted(zip(rows, columns, strict=True))


def _cell(line: int, column: int, columns: int = 1) -> Box:
    return column * 15.0, line * 15.0, columns * 15.0, 15.0


def fragment(lane: int = 5) -> Scene:
    """10: a lane's eight elements of 16×16, and the eight rows that one load of the warp meets."""
    # One load brings the first register of all lanes: 8 rows of 16 bytes.
    own, loaded = held(lane), held(slice(None), slice(1))
    lines = {line for line, _ in loaded}
    drawing = Drawing(345, 242)
    drawing.boxes([_cell(*place) for place in loaded], "load", pale=True)
    drawing.boxes([_cell(*place) for place in own], "focus")
    drawing.grid((0, 0, 240, 240), 16, 16)
    for each, place in enumerate(loaded[::2]):
        drawing.label(_cell(*place, 2), each, over="focus" if each == lane else "")
    for place in own[::2]:
        if place not in loaded:
            drawing.label(_cell(*place, 2), lane, over="focus")
    drawing.lines([((246, 2), (252, 2)), ((252, 2), (252, 118)), ((246, 118), (252, 118))])
    met = ("one load of", "the warp:", f"{len(lines)} rows,", f"{len(lines)} lines")
    for at, text in enumerate(met):
        drawing.text(258, 42 + 15 * at, text)
    drawing.text(246, 176, f"lane {lane}:", bold=True)
    drawing.text(246, 191, f"{len(own)} elements,")
    drawing.text(246, 206, "4 registers")
    return Scene(f"Lane {lane} holds {len(own)} of 256 elements; each load of the warp touches "
                 f"{len(lines)} cache lines", drawing.html(), "reported: PTX ISA, mma.m16n8k16")


def dealt(line: int) -> list[int]:
    """The lanes that get a row of an 8×8 matrix from ldmatrix: two halves each."""
    return [lane for lane in range(WARP) if held(lane)[0][0] == line]


def ldmatrix(line: int) -> Scene:
    """14: lane r names row r of eight halves; four lanes get it."""
    asks, gets = Drawing(150, 208), Drawing(180, 208)
    asks.text(0, 12, "8 lanes name", bold=True).text(0, 27, "8 rows of 16 bytes")
    gets.text(0, 12, "32 lanes get", bold=True).text(0, 27, "2 halves each")
    for each in range(8):
        top = 36 + 21 * each
        asks.text(0, top + 15, f"lane {each}")
        asks.arrow((46, top + 10.5), (66, top + 10.5), "focus" if each == line else "")
        asks.boxes([(70, top + 2, 78, 17)], "focus" if each == line else "load",
                   pale=each != line)
        for part, lane in enumerate(dealt(each)):
            box = (part * 42.0, top + 2, 42.0, 17.0)
            gets.filled(box, lane, "focus" if each == line else "load", pale=each != line,
                      framed=True)
    first, *_, last = dealt(line)
    return Scene(f"Lane {line} names row {line}; lanes {first} to {last} get it",
                 row(asks.html(), gets.html()), "reported: PTX ISA, ldmatrix")


def instructions_for(tile: tuple[int, int, int], each: tuple[int, int, int]) -> int:
    """How many instructions of one shape, M×N×K, another shape takes."""
    return (tile[0] // each[0]) * (tile[1] // each[1]) * (tile[2] // each[2])


def place(line: int, chunk: int, chunks: int = 8) -> int:
    """Where a chunk of 16 bytes lies in a row of eight: its number, XORed with the row's."""
    return chunk ^ line % chunks


def _chunks(drawing: Drawing, top: float, marked: range, swizzle: bool = True) -> None:
    """Draw eight rows of eight chunks as they lie in the banks, some of each row marked."""
    left, wide, high = 46.0, 20.0, 14.0
    for line in range(8):
        for chunk in range(8):
            at = place(line, chunk) if swizzle else chunk
            box, mine = (left + at * wide, top + line * high, wide, high), chunk in marked
            drawing.filled(box, chunk, "focus" if mine else "load", pale=not mine)
    drawing.grid((left, top, 8 * wide, 8 * high), 8, 8)


def _banks(name: str, swizzle: bool, chunk: int) -> str:
    drawing = Drawing(208, 132)
    drawing.text(126, 11, "four banks per cell", "middle")
    for line in range(8):
        drawing.text(0, 28 + line * 14, f"row {line}")
    _chunks(drawing, 17, range(chunk, chunk + 1), swizzle)
    cost = 8 // len({place(line, chunk) if swizzle else chunk for line in range(8)})
    return column(words(name, bold=True), drawing.html(),
                  words(f"chunk {chunk} of eight rows: {plural(cost, 'wavefront')}",
                        worse=cost > 1))


def xored() -> str:
    """15: eight rows of a tile with and without the XOR of a chunk's number with its row's."""
    return row(_banks("as it lies", False, 2), _banks("chunk c at place c ^ row", True, 2))


def _descriptor() -> str:
    """What a descriptor says of a tile whose rows run along K: where, how far, which swizzle."""
    strip, left = Drawing(338, 22), 0.0
    for name, wide in (("start", 76.0), ("next 8 rows: + 1,024", 160.0), ("swizzle: 128", 100.0)):
        box = (left, 1, wide, 20)
        strip.filled(box, name, "store", pale=True, framed=True)
        left += wide
    atom = Drawing(338, 114)
    _chunks(atom, 1, range(2))
    atom.text(0, 12, "start").arrow((30, 8), (44, 8))
    for line, text in enumerate(("8 rows of", "128 bytes")):
        atom.text(216, 54 + 15 * line, text)
    return column(words("its descriptor, 64 bits", bold=True), strip.html(), atom.html(),
                  words("pink: 16 of K, what one wgmma reads; the next 16 begin 32 bytes on"),
                  width=338)


def wgmma(shape: tuple[int, int, int] = (64, 256, 16), small: tuple[int, int, int] = (16, 8, 16)
          ) -> Scene:
    """17: one WGMMA and one mma.sync to one scale, a pixel an element of C, and a descriptor.
    """
    rows, columns, depth = shape
    one, many = Drawing(96, 108), Drawing(depth + 8 + columns + 4, 142)
    one.text(0, 12, "mma.sync", bold=True).text(0, 27, "one warp")
    one.boxes([(0, 36, small[1], small[0])], "compute")
    one.text(14, 48, f"{small[0]}×{small[1]} of C")
    one.text(0, 72, "A and B come").text(0, 87, "from registers")
    left, top = depth + 8, 60
    many.text(0, 12, "wgmma", bold=True).text(0, 27, "four warps together")
    many.filled((left, 36, columns, depth), "B: in shared memory", "load")
    many.filled((0, top, depth, rows), "A", "load")
    for warp in range(4):
        box = (left, top + warp * rows / 4, columns, rows / 4)
        many.filled(box, f"warp {warp}: sums in registers", "compute", pale=warp % 2 == 1)
    many.text(left, top + rows + 14, f"{rows}×{columns} of C")
    count = instructions_for(shape, small)
    return Scene(f"One wgmma does the work of {count} mma.sync, and reads both operands from "
                 "shared memory", row(one.html(), many.html(), _descriptor()),
                 "reported: PTX ISA", f"m{small[0]}n{small[1]}k{small[2]} and "
                 f"m{rows}n{columns}k{depth} to one scale")

