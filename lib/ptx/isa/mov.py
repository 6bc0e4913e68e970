"""mov, with packing, unpacking and the clocks; prmt."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..core.addressing import space_of
from ..core.batch import Batch, Compute, Run, Writer
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.registers import CLOCKS, DTYPES, UNSIGNED, joined, parted, unstacked
from ..core.segment import PEER_BYTES, WINDOW_BYTES, WINDOWS, peer_window, rank_at
from ..core.syntax import SIZES, Symbol, Vector


@opcode("mov")
def move(d: Decoding) -> Run:
    """mov.type d, a; d or a may be braces, which pack and unpack"""
    d.only().count(2)
    kind, source = d.type, d.operands[1]
    if isinstance(d.operands[0], Vector) or isinstance(source, Vector):
        return _repack(d)
    put = d.write(0, kind)
    if isinstance(source, Symbol) and source.name in CLOCKS:
        return _read_clock(d, put, source.name)
    read = d.read(1, kind)
    return lambda f: put(f.r, read(f.r))


def _read_clock(d: Decoding, put: Writer, name: str) -> Run:
    """Clocks count the instructions that the emulator has run: steps, which are not time."""
    shift, dtype = 32 * name.endswith("_hi"), UNSIGNED[SIZES[d.type]]

    def step(f: Batch) -> None:
        steps = f.origin + d.index >> shift
        put(f.r, np.full((1, 1), steps & np.iinfo(dtype).max, dtype))

    return step


def _repack(d: Decoding) -> Run:
    """mov.b64 {lo, hi}, d and mov.b64 d, {lo, hi}, in 2 or 4 parts."""
    apart = isinstance(d.operands[0], Vector)
    items = d.vector(0 if apart else 1)
    size, odd = divmod(SIZES[d.type], len(items))
    if odd or size not in (1, 2, 4, 8) or len(items) == 1:
        d.wrong("braces hold 2 or 4 equal parts")
    kind = f"b{8 * size}"
    if apart:
        puts, a = d.write_all(items, kind), d.read(1, d.type)
        return lambda f: puts(f.r, unstacked(parted(a(f.r), DTYPES[kind])))
    put, parts = d.write(0, d.type), d.read_all(items, kind)
    return lambda f: put(f.r, joined(
        np.stack(np.broadcast_arrays(*parts(f.r)), axis=-1), DTYPES[d.type]))


# Mode -> which byte comes to a place, by the lowest two bits of c.
_PERMUTED: dict[str, Compute] = {
    "f4e": lambda place, c: c + place, "b4e": lambda place, c: c - place & 7,
    "rc8": lambda place, c: c, "rc16": lambda place, c: c % 2 * 2 + place % 2,
    "ecl": lambda place, c: np.maximum(c, place), "ecr": lambda place, c: np.minimum(c, place),
}


@opcode("prmt")
def permute(d: Decoding) -> Run:
    """prmt.b32{.mode} d, a, b, c: picks four of eight bytes"""
    mode = d.only(*_PERMUTED).needs("b32").pick(_PERMUTED)

    def compute(a: ndarray, b: ndarray, control: ndarray) -> ndarray:
        both = b.astype(np.uint64) << 32 | a
        result: ndarray = np.zeros((1, 1), np.uint32)
        for place in range(4):
            select = (control >> 4 * place & 15 if mode is None else
                      _PERMUTED[mode](place, control & 3))
            byte = (both >> 8 * (select & 7) & 255).astype(np.uint32)
            result = result | np.where(select & 8, (byte >> 7) * 255, byte) << 8 * place
        return result

    return d.alike(compute, 3)



# -- Address conversion: cvta, isspacep, mapa, getctarank. ----------------------------------------


@opcode("cvta")
def convert_address(d: Decoding) -> Run:
    """cvta{.to}.space.size: generic addresses from a space's own, and back."""
    base = WINDOWS.get(space_of(d).partition("::")[0])
    if base is None:
        return d.alike(lambda a: a, 1)
    window = DTYPES[d.type].type(base & ((1 << 8 * SIZES[d.type]) - 1))
    return d.alike((lambda a: a - window) if d.has("to") else (lambda a: a + window), 1)


@opcode("isspacep")
def is_space(d: Decoding) -> Run:
    """isspacep.space p, a"""
    space, _, whole = space_of(d).partition("::")
    put, read = d.accessors("pred", "u64")
    length = WINDOW_BYTES if whole or space != "shared" else PEER_BYTES

    def step(f: Batch) -> None:
        a = read(f.r)
        if space in WINDOWS:
            put(f.r, (a >= WINDOWS[space]) & (a < WINDOWS[space] + length))
        else:
            found = np.zeros(a.shape, bool)
            for segment in f.memory.segments[space]:
                found |= (a >= segment.first) & (a < segment.end)
            put(f.r, found)

    return step


@opcode("mapa")
def map_address(d: Decoding) -> Run:
    """mapa{.shared::cluster}.type d, a, b: the address of a in the block of rank b"""
    d.only("shared::cluster").needs(".u32.u64")
    put, a, rank = d.accessors(d.type, d.type, "u32")
    base = 0 if d.has("shared::cluster") else WINDOWS["shared"]

    def step(f: Batch) -> None:
        local, to = a(f.r).astype(np.int64) - base, rank(f.r).astype(np.int64)
        if (f.of_active(to) >= f.geometry.peers).any():
            raise Error(f"{d.place}: the cluster has {f.geometry.peers} blocks")
        inside = (local >= 0) & (local < WINDOW_BYTES)
        if not f.of_active(inside).all():
            raise Error(f"{f.place(d.instruction)}: the address is not in shared memory")
        whole = base + peer_window(0) + to * PEER_BYTES + local % PEER_BYTES
        put(f.r, whole.astype(DTYPES[d.type]))

    return step


@opcode("getctarank")
def get_rank(d: Decoding) -> Run:
    """getctarank{.shared::cluster}.type d, a: the rank of the block that an address lies in"""
    put, a = d.only("shared::cluster").needs(".u32.u64").accessors("u32", d.type)
    base = 0 if d.has("shared::cluster") else WINDOWS["shared"]

    def step(f: Batch) -> None:
        rank = rank_at(a(f.r).astype(np.int64) - base)
        own = (np.arange(f.blocks) % f.geometry.peers)[:, None]
        put(f.r, np.where(rank < 0, own, rank).astype(np.uint32))

    return step
