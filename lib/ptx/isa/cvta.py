"""Address conversion: cvta, isspacep, mapa, getctarank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.addressing import space_of
from ..core.decode import Decoding, opcode
from ..core.errors import Error
from ..core.registers import DTYPES
from ..core.segment import PEER_BYTES, WINDOW_BYTES, WINDOWS, peer_window, rank_at
from ..core.syntax import SIZES

if TYPE_CHECKING:
    from ..core.batch import Batch
    from ..core.step import Run


@opcode("cvta")
def convert_address(d: Decoding) -> Run:
    """cvta{.to}.space.size: generic addresses from a space's own, and back."""
    d.count(2)
    space = space_of(d).partition("::")[0]
    back = d.has("to")
    kind = d.type
    put, read = d.target(kind), d.read(1, kind)
    if space not in WINDOWS:
        return lambda f: put(f.r, read(f.r))
    window = DTYPES[kind].type(WINDOWS[space] & ((1 << 8 * SIZES[kind]) - 1))
    if back:
        return lambda f: put(f.r, read(f.r) - window)
    return lambda f: put(f.r, read(f.r) + window)


@opcode("isspacep")
def is_space(d: Decoding) -> Run:
    """isspacep.space p, a"""
    d.count(2)
    space, _, whole = space_of(d).partition("::")
    put, read = d.write(0, "pred"), d.read(1, "u64")
    length = WINDOW_BYTES if whole or space != "shared" else PEER_BYTES

    def step(f: Batch) -> None:
        a = read(f.r)
        if space in WINDOWS:
            low = np.uint64(WINDOWS[space])
            put(f.r, (a >= low) & (a < low + np.uint64(length)))
        else:
            found = np.zeros(a.shape, bool)
            for segment in f.memory.segments[space]:
                found |= (a >= np.uint64(segment.first)) & (a < np.uint64(segment.end))
            put(f.r, found)

    return step


@opcode("mapa")
def map_address(d: Decoding) -> Run:
    """mapa{.shared::cluster}.type d, a, b: the address of a in the block of rank b"""
    d.only("shared::cluster").needs("u32", "u64").count(3)
    kind = d.type
    put, rank = d.write(0, kind), d.read(2, "u32")
    generic = not d.has("shared::cluster")
    source = d.operands[1]
    a = d.read(source, kind)
    dtype = DTYPES[kind]
    base = WINDOWS["shared"] if generic else 0
    place, instruction = d.place, d.instruction

    def step(f: Batch) -> None:
        address = a(f.r).astype(np.int64)
        local = address - base if generic else address
        to = rank(f.r).astype(np.int64)
        if (f.of_active(to) >= f.geometry.peers).any():
            raise Error(f"{place}: the cluster has {f.geometry.peers} blocks")
        if ((f.of_active(local) < 0) | (f.of_active(local) >= WINDOW_BYTES)).any():
            raise Error(f"{f.place(instruction)}: the address is not in shared memory")
        put(f.r, (base + peer_window(0) + to * PEER_BYTES + local % PEER_BYTES).astype(dtype))

    return step


@opcode("getctarank")
def get_rank(d: Decoding) -> Run:
    """getctarank{.shared::cluster}.type d, a: the rank of the block that an address lies in"""
    d.only("shared::cluster").needs("u32", "u64").count(2)
    put, a = d.write(0, "u32"), d.read(1, d.type)
    generic = not d.has("shared::cluster")

    def step(f: Batch) -> None:
        address = a(f.r).astype(np.int64) - (WINDOWS["shared"] if generic else 0)
        rank = rank_at(address)
        own = (np.arange(f.blocks) % f.geometry.peers)[:, None]
        put(f.r, np.where(rank < 0, own, rank).astype(np.uint32))

    return step
